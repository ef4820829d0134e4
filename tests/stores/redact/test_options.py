"""What is looked for: kinds, the own name, rules of the caller."""

from __future__ import annotations

import json

import pytest

from adp.stores.redact.current_user import surroundings
from adp.stores.redact.custom_rules import read_rules
from adp.stores.redact.finder import ValueFinder
from adp.stores.redact.options import DEFAULT_KINDS, RULES, RedactOptions, chosen_kinds
from adp.stores.redact.prefilter import Prefilter
from adp.stores.redact.rules import placeholder
from adp_schema.errors import InputError, UsageError
from tests.stores.redact import planted


def test_kinds_and_groups():
    secrets = {rule.kind for rule in RULES if rule.group == "secrets"}
    assert len(secrets) >= 30
    assert chosen_kinds(["secrets"]) == secrets
    assert chosen_kinds([]) == chosen_kinds(DEFAULT_KINDS)
    assert chosen_kinds(["-phone"]) == chosen_kinds([]) - {"phone"}
    assert chosen_kinds(["personal", "-personal", "email"]) == {"email"}
    assert chosen_kinds(["all"]) > chosen_kinds([])
    assert chosen_kinds(["email"], given=["ticket"]) == {"email", "ticket"}
    with pytest.raises(UsageError, match="did you mean phone"):
        chosen_kinds(["phon"])
    with pytest.raises(UsageError, match="no kind is left"):
        chosen_kinds(["email", "-email"])


def test_only_what_was_asked_for():
    text = f"{planted.plain()[4][1]} ada.lovelace@analytical.io"
    for name, left in (("secrets", "ada"), ("personal", planted.plain()[4][1][:9])):
        cleaned = ValueFinder(RedactOptions(kinds=(name,), user=((), ())).rules()).text(text)
        assert cleaned is not None
        assert len(cleaned.values) == 1
        assert left in cleaned.text


def test_the_own_name_and_home_come_from_the_surroundings(monkeypatch):
    monkeypatch.setattr("getpass.getuser", lambda: "testerina")
    monkeypatch.setattr("pathlib.Path.home", lambda: "/home/testerina/")
    for name in ("USER", "LOGNAME", "USERNAME", "HOME", "USERPROFILE"):
        monkeypatch.delenv(name, raising=False)
    assert surroundings() == (("/home/testerina",), ("testerina",))
    monkeypatch.setenv("HOME", "/Users/Ada.L")
    monkeypatch.setenv("USER", "ada")
    homes, names = surroundings()
    assert homes == ("/Users/Ada.L", "/home/testerina")
    assert names == ("Ada.L", "ada", "testerina")
    rules = RedactOptions(user=(homes, names), kinds=("own",)).rules()
    cleaned = ValueFinder(rules).text("cd /Users/Ada.L/x && ls -la /Users/Ada.Lx; ada adam _ada_")
    assert cleaned is not None
    assert cleaned.text == (
        "cd [redacted:own-home]/x && ls -la /Users/Ada.Lx; [redacted:own-name] adam "
        "_[redacted:own-name]_"
    )


def test_generic_names_are_nobody(monkeypatch):
    monkeypatch.setattr("getpass.getuser", lambda: "root")
    monkeypatch.setattr("pathlib.Path.home", lambda: "/root")
    for name in ("USER", "LOGNAME", "USERNAME", "HOME", "USERPROFILE"):
        monkeypatch.setenv(name, {"HOME": "/home/runner", "USER": "ubuntu"}.get(name, ""))
    assert surroundings() == ((), ())


def test_a_home_of_windows():
    options = RedactOptions(user=(("C:\\Users\\Ada",), ("Ada",)), kinds=("own",))
    (cleaned,) = ValueFinder(options.rules()).texts(
        ['{"p": "C:\\\\Users\\\\Ada\\\\x"}'], is_json=True
    )
    assert cleaned is not None
    assert json.loads(cleaned.text) == {"p": "[redacted:own-home]\\x"}


def test_odd_names_are_no_expressions():
    home, name = "/Users/J. O'Neil & Co-\u00e9 (x)+<y>", "J. O'Neil & Co-\u00e9 (x)+<y>"
    rules = RedactOptions(user=((home,), (name,)), kinds=("own",)).rules()
    cleaned = ValueFinder(rules).text(f"in {home}/a, by {name}!")
    assert cleaned is not None
    assert cleaned.text == "in [redacted:own-home]/a, by [redacted:own-name]!"


def test_rules_of_the_caller(tmp_path):
    file = tmp_path / "rules.yaml"
    file.write_text("- name: ticket\n  what: A ticket\n  regex: '\\bOPS-\\d{4,6}\\b'\n")
    (rule,) = read_rules(str(file))
    options = RedactOptions(kinds=("email",), given=(rule,), user=((), ()))
    texts = ValueFinder(options.rules()).texts(
        ["see OPS-1234, XOPS-1234 and OPS-99", '{"a": "OPS-12345\\n"}'], is_json=False
    )
    assert texts[0] is not None
    assert texts[0].text == "see [redacted:ticket], XOPS-1234 and OPS-99"
    assert texts[1] is not None
    assert texts[1].text == '{"a": "[redacted:ticket]\\n"}'
    file.write_text('[{"name": "all-said", "regex": "said:.*"}]')
    rules = RedactOptions(kinds=("email",), given=read_rules(str(file)), user=((), ())).rules()
    (cleaned,) = ValueFinder(rules).texts(['{"a": "said: \\"x\\" y", "b": 1}'], is_json=True)
    assert cleaned is not None
    assert "x" not in cleaned.text
    assert json.loads(cleaned.text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "neither YAML nor JSON"),
        ("a: 1", "must hold a list"),
        ("[]", "must hold a list"),
        ("[1]", "must be an object"),
        ("[{name: a}]", "must be an object"),
        ("[{name: a, regex: b, check: c}]", "must be an object"),
        ("[{name: A B, regex: b}]", "needs a name of small letters"),
        ("[{name: email, regex: b}]", "is a kind already"),
        ("[{name: a, regex: '('}]", r"not valid: unclosed group: \($"),
        ("[{name: a, regex: '(?<=x)y'}]", r"back references are not supported: \(\?<=x\)y$"),
        ("[{name: a, regex: '(?=a)b'}]", r"look-around and .* not supported: \(\?=a\)b$"),
        ("[{name: a, regex: '(a)\\1'}]", r"back references are not supported: \(a\)\\1$"),
        ("[{name: a, regex: 'x*'}]", "matches an empty text"),
        ("[{name: a, regex: '.+'}]", "matches anything"),
        ("[{name: a, regex: '(\\w{500}){500}'}]", "not valid: Compiled regex exceeds"),
        ("[{name: a, regex: b}, {name: a, regex: c}]", "twice"),
    ],
)
def test_rules_that_are_none(tmp_path, text, message):
    file = tmp_path / "rules.yaml"
    file.write_text(text)
    with pytest.raises((UsageError, InputError), match=message):
        read_rules(str(file))


def test_rules_of_the_caller_cannot_take_for_ever(tmp_path):
    file = tmp_path / "rules.yaml"
    file.write_text("[{name: slow, regex: '(a+)+b'}]")
    rules = RedactOptions(kinds=("email",), given=read_rules(str(file)), user=((), ())).rules()
    assert ValueFinder(rules).texts(["a" * 200_000]) == [None]


def test_the_screen_lets_through_what_the_rules_find():
    """A rule that is never asked finds nothing: each is asked about its own keys."""
    screen = Prefilter(RULES)
    texts = [value for _, value in planted.plain()] + [text for *_, text in planted.in_context()]
    kinds = [kind for kind, _ in planted.plain()] + [kind for kind, *_ in planted.in_context()]
    rows = screen.rows(texts)
    for number, kind in enumerate(kinds):
        assert kind in {rule.kind for rule in rows[number]}
    assert placeholder("x", 2) == "[redacted:x-2]"
