"""WebShop: own texts, and real ones against a plain walk and the standard actions."""

from __future__ import annotations

import re
from typing import Any

import pytest

from adp.converters.text_calls.dialects.webshop import DIALECT
from tests.converters.text_calls.dialects import checks, upstream

RAW = [
    "adp_v1/agenttuning_webshop/sample_raw.json",
    "datasets/agentinstruct_webshop/sample_raw.agenttuning_webshop.head2.json",
    "datasets/eto/sample_raw.eto.head3.json",
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Thought:\nI look.\n\nAction:\nsearch[red shoes]",
            [("search", {"keywords": "red shoes"})],
        ),
        ("Thought: I buy.\nAction: click[Buy Now]", [("click", {"element": "Buy Now"})]),
        ("search[a [b] c]", [("search", {"keywords": "a [b] c"})]),
        ("Click[< Prev]\n", [("Click", {"element": "< Prev"})]),
        ("Action: click[x]\nThis buys it.", [("click", {"element": "x"})]),
    ],
)
def test_calls(text: str, expected: list[tuple[str, Any]]) -> None:
    assert checks.calls(DIALECT, text) == expected
    assert checks.rewritten(DIALECT, text)


@pytest.mark.parametrize(
    "text",
    [
        "You can use search[keywords] or click[value].",
        "search[red shoes] is what I would do",
        "Action: I search[x]",
        "```\nAction: search[x]\n```",
        "Action: buy[x]",
        "search[\n]",
        "x = search[0]\nclick[1]",
    ],
)
def test_what_is_no_call(text: str) -> None:
    assert not checks.checked(DIALECT, text)


def test_thoughts() -> None:
    text = "Ok.\nThought:\none\ntwo\n\nAction:\nsearch[x]"
    assert checks.thoughts(DIALECT, text) == ["one\ntwo"]
    assert checks.prose(DIALECT, text) == "Ok."
    assert checks.thoughts(DIALECT, "think[I want shoes.]") == ["I want shoes."]
    assert checks.results(DIALECT, "Observation:\nPage 1", text) == ["Page 1"]


def test_a_text_that_holds_a_run() -> None:
    turns = "Action: search[x]\nObservation: a\n\nAction: think[b]\nObservation: OK.\n\n"
    text = f"{turns}Action: click[c]"
    assert [piece.source for piece in DIALECT.pieces(text)] == ["agent", "result"] * 2 + ["agent"]


def test_edits() -> None:
    text = "Thought: a\nAction: search[b]"
    new = checks.edited(DIALECT, text, arguments='{"keywords": "c d"}')
    assert new == [("search", {"keywords": "c d"})]


@pytest.mark.parametrize("path", RAW)
def test_real_turns(path: str) -> None:
    turns = upstream.agent_turns(path)
    words = [re.search(r"(search|click)\[(.*)\]\s*$", text) for text in turns]
    expected = [(match[1], match[2]) for match in words if match]
    calls = [call for text in turns for call in checks.calls(DIALECT, text)]
    assert [(name, *values.values()) for name, values in calls] == expected
    assert len(expected) >= 5
    for text in turns:
        checks.rewritten(DIALECT, text)


def test_the_standard_actions() -> None:
    ours = [call for text in upstream.agent_turns(RAW[0]) for call in checks.calls(DIALECT, text)]
    assert ours == upstream.standard_actions("adp_v1/agenttuning_webshop/sample_std.json")
