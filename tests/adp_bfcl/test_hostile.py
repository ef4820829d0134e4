"""Text that wants to be run, or to take for ever, is read as text and no more."""

from __future__ import annotations

import builtins
import json
import os

import pytest

from adp_bfcl.categories import Language
from adp_bfcl.decoding import decode, sources
from adp_bfcl.java_values import java_value
from adp_bfcl.javascript_values import javascript_value
from adp_bfcl.judge import judge_answer, judge_entry
from adp_bfcl.loader import by_id
from adp_bfcl.python_calls import DecodeError
from adp_bfcl.simulators import Services
from adp_bfcl.verdict import CHECKER_ERROR
from tests.adp_bfcl.official import installed

RUN = "__import__('os').environ.__setitem__('BFCL_HIT', '1')"
TEXTS = [
    RUN,
    f"f(a={RUN})",
    f"[f(a={RUN} + 1)]",
    f"[f(a=(lambda: {RUN})())]",
    f"[f(a=lambda: {RUN})]",
    f"[{RUN} for x in [1]]",
    f"f(a=[{RUN} for x in [1]])",
    f"f(a=x[{RUN}])",
    f'f(a=f"{{{RUN}}}")',
    "f(a=().__class__.__bases__[0].__subclasses__())",
    f"f(**{{'a': {RUN}}})",
    f"f(a={RUN} if 1 else 2)",
    f"f(a=(b := {RUN}))",
    f"ls(a={RUN})",
    f"exec({RUN!r})",
    f"eval(source={RUN!r})",
    "f(a=9**9**9**9)",
    "f(a=2**10**8 - 1)",
    "f(a=1 << 10**12)",
    "f(a='x' * 10**10)",
    "f(a=[0] * 10**10)",
    "f(a='%999999999d' % 1)",
    "f(a='%*d' % (999999999, 1))",
    "f(a=" + "-" * 5000 + "1)",
    "f(a=" + "(" * 5000 + "1" + ")" * 5000 + ")",
    "f(a=" + "[" * 5000 + "]" * 5000 + ")",
    "f(a=" + "{1:" * 3000 + "1" + "}" * 3000 + ")",
    "f(a=" + "g(a=" * 3000 + "1" + ")" * 3000 + ")",
    "f" + ".a" * 5_000 + "(x=1)",
    "f(a=" + "1+" * 5_000 + "1)",
    "f(a=" + "9" * 20_000 + ")",
    "f(a='" + "x" * 2_000_000 + "')",
    "f(a=\x00)",
    "f(a='\ud800')",
    "\ud800",
    "f(a=" + "`${" * 3000 + "x",
    "f(a=" + "new Foo<" * 3000 + ")",
    "f(a=" + "x -> " * 3000 + "1)",
    "f(a=" + "x ? " * 3000 + "1)",
    "f(a=" + "(" * 300 + "a" + ")" * 300 + ")",
    "[[[" * 2000,
    "/*" * 20_000,
    "f(a=/" + "(" * 20_000,
]


@pytest.fixture(autouse=True)
def _nothing_runs(monkeypatch):
    """Whatever would run text fails the test."""

    def caught(*args, **options):
        raise AssertionError("text was run")

    monkeypatch.delenv("BFCL_HIT", raising=False)
    monkeypatch.setattr(builtins, "eval", caught)
    monkeypatch.setattr(os, "system", caught)
    yield
    assert "BFCL_HIT" not in os.environ


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
@pytest.mark.parametrize("language", list(Language))
def test_prompt_mode(text, language):
    try:
        calls = decode(text, "prompt", language)
    except DecodeError:
        return
    assert calls is None or isinstance(calls, list | dict)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_answers_of_every_form(text):
    function = {"name": "f", "parameters": {"properties": {"a": {"type": "any"}}, "required": []}}
    for answer in (text, [{"f": text}], [{text: "{}"}], {"f": text}, [text], [[text]], [None], 5):
        for mode in ("fc", "prompt"):
            for category in ("simple_python", "simple_java", "irrelevance", "parallel"):
                result = judge_answer(answer, [function], [{"f": {"a": [1]}}], category, mode=mode)
                assert not result.valid or category == "irrelevance"
            try:
                assert all(isinstance(call, str) for call in sources(answer, mode))
            except DecodeError:
                continue


@installed
@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_services(text, marked):
    pytest.importorskip("mpmath")
    services = Services(["GorillaFileSystem", "MathAPI"], {}, marked=marked)
    arguments = json.dumps(text)
    calls = [text, f"ls(a={text})", f"touch(file_name={arguments})", f"mean(numbers=[{text}])"]
    before = set(vars(services.instances["MathAPI"]))
    result = services.run(calls)
    assert len(result) == len(calls)
    assert all(isinstance(item, str) for item in result)
    assert result[0].startswith("Error during execution:")
    assert set(vars(services.instances["MathAPI"])) == before


@installed
def test_numbers_that_would_take_hours():
    pytest.importorskip("mpmath")
    services = Services(["MathAPI"], {})
    calls = [
        "power(base=9, exponent=999999999999)",
        f"power(base={'9' * 4000}, exponent={'9' * 4000})",
        "power(9, 10**9)",
        "power(base=2.0, exponent=99999999999)",
        "logarithm(value=2, base=3, precision=10000000000)",
        "square_root(number=2, precision=100000000000)",
        "round_number(number=5, decimal_places=-99999999999)",
        "__init__()",
        "_load_scenario(scenario={})",
        "mean.__globals__",
        "mean.__func__(None, [1])",
        "MathAPI().mean([1])",
    ]
    assert all("error" in item.lower() for item in services.run(calls))


@installed
@pytest.mark.parametrize("turn", [None, 5, 1.5, True])
@pytest.mark.parametrize("mode", ["fc", "prompt"])
def test_a_turn_that_is_no_list_is_not_judged(turn, mode):
    """The official checker raises a TypeError, even where nothing was to be done in that turn."""
    entry = next(
        value for value in by_id().values() if value.multi_turn and [] in value.turns_of_calls
    )
    result = [["[" + ", ".join(calls) + "]"] if calls else [] for calls in entry.turns_of_calls]
    for number in range(len(result)):
        given = [*result[:number], turn, *result[number + 1 :]]
        outcome = judge_entry(entry, given, mode=mode)
        assert (outcome.valid, outcome.error_type) == (False, CHECKER_ERROR)
    for iterable in ("text", {"a": 1}, []):
        outcome = judge_entry(entry, [iterable for _ in result], mode=mode)
        assert outcome.error_type != CHECKER_ERROR


@pytest.mark.parametrize(
    "text",
    [
        "[[" + "],[" * 3000,
        "[[" + "], [" * 3000 + "]]",
        "new Array([" + "],[" * 2000,
        "{" + "a:" * 5000,
        "{" + ",a" * 5000 + "}",
        "new HashMap<" * 300 + ">(){" + " " * 3000,
        "new HashMap<>(){" + " " * 3900,
        "new HashMap<>() {{ " + 'put("",' * 500,
        "new ArrayList<>() {{" + " " * 3900,
        "new ArrayList<>() {{}}" + " " * 3900,
        "new ArrayList<>(Arrays.asList(" * 100,
        "new x[] {" * 400,
        "9" * 100_000,
        "[" * 100_000,
    ],
    ids=range(14),
)
def test_values_are_read_in_bounded_time(text):
    for declared in ("array", "dict", "String", "integer"):
        try:
            javascript_value(text, declared, "integer")
        except ValueError:
            assert text.isdigit()
    for declared in ("Array", "ArrayList", "HashMap", "long", "float"):
        java_value(text, declared, "String")
