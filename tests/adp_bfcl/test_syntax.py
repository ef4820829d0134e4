"""Calls in the syntax of Java and JavaScript, against the parsers of the installed bfcl-eval."""

from __future__ import annotations

import importlib
import random
import sys

import pytest

from adp_bfcl import syntax_tree
from adp_bfcl.categories import Language
from adp_bfcl.decoding import bracketed, decode
from adp_bfcl.environment import Bfcl, BfclSettings
from adp_bfcl.judge import judge_answer
from adp_bfcl.loader import load
from adp_bfcl.python_calls import DecodeError
from adp_bfcl.tasks import task_of
from adp_schema.errors import MissingExtraError
from tests.adp_bfcl.mutate import SOURCES
from tests.adp_bfcl.official import installed
from tests.adp_bfcl.samples import ANSWER, row, write

BOTH = [Language.JAVA, Language.JAVASCRIPT]
CALLS = [
    "f(a=1)",
    'a.b.f(x="y", z=1)',
    "f()",
    'f(1, "x", y, true)',
    'f(a="x",)',
    "f(a=1, a=2)",
    "f(/* c */ a=1)",
    "f(a=1 /* c */)",
    "f(a=/* c */ 1)",
    "f(a=1, // c\nb=2)",
    "f(a= )",
    "f(a=1",
    "f(a=1))",
    "f?.(a=1)",
    "f`t`",
    "f.g()(a=1)",
    'f(a="é", b="x")',
    'f(é="x", b="\U0001f600")',
]
VALUES = [
    *SOURCES,
    "a?.5:1",
    "{a(){}}",
    "{get a(){return 1}}",
    "yield",
    "await x",
    "async (x) => { await y }",
    "x => x + 1",
    "x -> { return 1; }",
    "function(){ g(b=2); }",
    "`a${b}c`",
    "/[/]/g",
    "<a/>",
    "String::valueOf",
    "(String) x",
    "Foo.class",
    "new int[]{1,2}",
    "new int[3][4]",
    "new Foo<Map<String, List<Integer>>>(1, /* c */ 'x', \"y\")",
    "new Runnable() { public void run() { x(); } }",
    '"""x"""',
    '"a\\"b"',
    "'ab'",
    '"a" + "b"',
    "a ** b",
    "**b",
    "1.",
    "08",
    "g(b=(1, 2))",
]
WRAPPERS = [
    "%s",
    "[%s]",
    "[[%s]]",
    "%s {}",
    "{%s}",
    "{%s;}",
    "[%s,]",
    "%s;",
    "%s\n%s",
    "%s, %s",
    "import a.b;\n%s",
    "try { %s; } catch (Exception e) {}",
    "const r = %s;",
    "if (x) { %s; }",
    "class A { void m() { %s; } }",
    "public static void main(String[] a) { %s; }",
    "```java\n[%s]\n```",
    "```\n%s\n```",
    "Sure! %s",
    "return %s;",
    "await %s",
    "x => %s",
    "console.log(%s)",
    "%s.then(x => x)",
    "// c\n%s",
    "%s // done",
    "'%s'",
]


@pytest.fixture(scope="module")
def parsers():
    """The official parsers by language."""
    tree_sitter = pytest.importorskip("tree_sitter")
    if not hasattr(tree_sitter.Parser, "set_language"):
        pytest.skip("bfcl-eval needs tree-sitter 0.21, which Python 3.13 has not")
    return {
        Language.JAVA: importlib.import_module(
            "bfcl_eval.model_handler.parser.java_parser"
        ).parse_java_function_call,
        Language.JAVASCRIPT: importlib.import_module(
            "bfcl_eval.model_handler.parser.js_parser"
        ).parse_javascript_function_call,
    }


def same(text, language, parsers):
    """Whether both read it alike, and whether they could read it."""
    try:
        wanted = parsers[language](bracketed(text)[1:-1])
    except Exception as error:  # it raises many kinds
        wanted = type(error)
    try:
        value = decode(text, "prompt", language)
    except DecodeError:
        value = DecodeError
    failed = isinstance(value, type)
    assert failed == isinstance(wanted, type), (text, value, wanted)
    assert failed or value == wanted, text
    return not failed


@installed
@pytest.mark.parametrize("language", BOTH)
def test_wrappers_and_values(language, parsers):
    calls = [*CALLS, *(f"f(a={value}, b=c)" for value in VALUES)]
    read = [
        same(wrapper.replace("%s", call), language, parsers)
        for call in calls
        for wrapper in (WRAPPERS if call in CALLS else WRAPPERS[:3])
    ]
    assert min(sum(read), len(read) - sum(read)) > 60


@installed
@pytest.mark.parametrize("language", BOTH)
@pytest.mark.parametrize("size", [1500, pytest.param(60_000, marks=pytest.mark.slow)])
def test_damaged(language, size, parsers):
    rng = random.Random(size)
    read = 0
    for _ in range(size):
        call = f"f(a={rng.choice(VALUES)}, b={rng.choice(VALUES)})"
        call = rng.choice([call, rng.choice(CALLS)])
        text = rng.choice(WRAPPERS).replace("%s", call)
        for _ in range(rng.choice([0, 1, 1, 2])):
            place = rng.randrange(len(text))
            text = text[:place] + rng.choice(["", *"()[]{}\"',=\\\n.;:/*é"]) + text[place + 1 :]
        read += same(text, language, parsers)
    assert size * 0.1 < read < size * 0.9


def test_what_is_too_long_is_no_call():
    pytest.importorskip("tree_sitter")
    for language in BOTH:
        short = f"f(a='{'x' * 9_000}')"
        ((call,),) = (decode(short, "prompt", language),)
        assert len(call["f"]["a"]) == 9_000
        with pytest.raises(DecodeError, match="10,000"):
            decode(f"f(a='{'x' * 10_000}')", "prompt", language)


@pytest.fixture
def bare(monkeypatch):
    """tree-sitter's grammars are not installed."""
    monkeypatch.setitem(sys.modules, "tree_sitter_javascript", None)
    syntax_tree._parser.cache_clear()
    yield
    syntax_tree._parser.cache_clear()


@pytest.mark.usefixtures("bare")
def test_without_tree_sitter(tmp_path):
    pytest.importorskip("tree_sitter")
    with pytest.raises(MissingExtraError, match=r"tree-sitter-javascript.*adp\[bfcl\]"):
        judge_answer("f(a=1)", [], [], "simple_java", mode="prompt")
    assert decode([{"f": '{"a": 1}'}], "fc", Language.JAVA) == [{"f": {"a": 1}}]
    assert decode("f(a=1)", "prompt", Language.PYTHON) == [{"f": {"a": 1}}]

    folder = write(
        tmp_path,
        "BFCL_v4_simple_java",
        [row("simple_java_0")],
        answers={"simple_java_0": ANSWER},
    )
    ((entry),) = load(["simple_java"], folder).entries
    with pytest.raises(MissingExtraError):
        Bfcl(BfclSettings(mode="prompt")).reset(task_of(entry))
