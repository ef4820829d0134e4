"""The look at all patterns at once finds what each of them finds."""

from __future__ import annotations

import pytest

from adp.stores.redact import prefilter
from adp.stores.redact.options import RedactOptions
from adp.stores.redact.prefilter import Prefilter
from adp.stores.redact.rules import Rule
from tests.stores.redact import planted

OWN_NAMES = (("/home/testerina",), ("testerina",))
TEXTS = [
    *(value for _, value in planted.plain("5")),
    *(f'{{"a": "{value}"}}' for _, value in planted.plain("5")),
    *("", "hello", "\\u0041b", "a@b.de", "4539578763621486", "/home/testerina/x", "nothing 12"),
]


def test_a_small_column_is_searched_as_a_large_one(monkeypatch: pytest.MonkeyPatch):
    made = Prefilter(RedactOptions(kinds=("all",), user=OWN_NAMES).rules())
    small = [made.rows([text]) for text in TEXTS]
    monkeypatch.setattr(prefilter, "SMALL", -1)
    assert small == [made.rows([text]) for text in TEXTS]
    assert {} in small


def test_patterns_that_do_not_fit_together_are_tried_alone():
    patterns = ["(?x) abc # a remark", "(?P<a>y)", "(?P<a>z)"]
    rules = [Rule(text, "given", "mine", text, gate=text) for text in patterns]
    assert Prefilter(rules).rows(["abc", "nothing", "z"]) == {0: [rules[0]], 2: [rules[2]]}


def test_a_small_column_is_asked_for_all_gates_of_all_its_cells(monkeypatch: pytest.MonkeyPatch):
    rules = [Rule(name, "given", "mine", name, gate=name) for name in "abcdefghijklmnopqrst"]
    cells = ["t", "none: 1", "b a", "gz", "m"]
    rows = Prefilter(rules).rows(cells)
    assert {row: [rule.kind for rule in ours] for row, ours in rows.items()} == {
        0: ["t"], 1: ["e", "n", "o"], 2: ["a", "b"], 3: ["g"], 4: ["m"],
    }  # fmt: skip
    monkeypatch.setattr(prefilter, "SMALL", -1)
    assert rows == Prefilter(rules).rows(cells)
