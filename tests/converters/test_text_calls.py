"""Calls in text: what is found, with which characters, and what an edit changes."""

from __future__ import annotations

import ast
import itertools
import json
import time

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from adp.converters.text_calls import (
    CLOSE,
    OPEN,
    CallGroup,
    TextCall,
    find_bare,
    find_tagged,
    object_at,
    prose,
    rewrite,
    with_member,
)
from adp.converters.text_calls.edit import CallEdit, write_call
from adp.converters.text_calls.find import is_json_like
from tests.converters.sharegpt_records import bare_calls, json_calls, python_calls, tagged_calls
from tests.effort import examples

MANY = settings(
    max_examples=examples(200),
    deadline=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def calls_of(groups: list[CallGroup]) -> list[TextCall]:
    return [call for group in groups for call in group.calls]


def wanted(groups: list[CallGroup]) -> list[CallEdit]:
    return [CallEdit(call.values, call.kind, call.span) for call in calls_of(groups)]


def names(text: str) -> list[str | None]:
    return [call.values.name for call in calls_of(find_tagged(text))]


LONE = '<tool_call>{"name": "f"}</tool_call></think>b'

# ---- finding -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value", "words"),
    [
        ("no call", [], "no call"),
        ('<tool_call>{"name": "f"}</tool_call>', ["f"], ""),
        ('a\n<tool_call>\n{"name": "f"}\n</tool_call>\nb', ["f"], "a\n\nb"),
        (
            '<tool_call>{"name": "f"}</tool_call><tool_call>{"name": "g"}</tool_call>',
            ["f", "g"],
            "",
        ),
        ('<tool_call>[{"name": "f"}, {"name": "g"}]</tool_call>', ["f", "g"], ""),
        ('<tool_call>\n{"name": "f"}\n{"name": "g"}\n</tool_call>', ["f", "g"], ""),
        ("<tool_call>{'name': 'f', 'x': None}</tool_call>", ["f"], ""),
        ('cut <tool_call>{"name": "f"}\n', ["f"], "cut"),
        ('cut <tool_call>{"name": "f', [], 'cut <tool_call>{"name": "f'),
        ('<tool_call>{"name": "f"} and more</tool_call>', [], None),
        ('<tool_call>{"name": 1}</tool_call>', [], None),
        ("<tool_call>{'name': f()}</tool_call>", [], None),
        ("<tool_call>__import__('os').getcwd()</tool_call>", [], None),
        ('<think><tool_call>{"name": "f"}</tool_call></think>x', [], None),
        ('<tool_call>{"name": "f"}</tool_call></think>b<tool_call>{"name": "g"}', ["g"], LONE),
        ('<think>never closed <tool_call>{"name": "f"}</tool_call>', [], None),
        ('<tool_call>{"name": "f", "arguments": {"x": "</tool_call>"}}</tool_call>', ["f"], ""),
        ('<tool_call>{"name": "f", "arguments": {"x": "<think>"}}</tool_call>', ["f"], ""),
    ],
)
def test_calls_in_tags(text, value, words):
    groups = find_tagged(text)
    assert [call.values.name for call in calls_of(groups)] == value
    assert prose(text, groups) == (text if words is None else words)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"name": "f", "arguments": {}}', ["f"]),
        (' [{"name": "f"}, {"name": "g"}] \n', ["f", "g"]),
        ('{"name": "f"}\n{"name": "g"}', ["f", "g"]),
        ('<think>{"name": "no"}</think>\n\n{"name": "f"}', ["f"]),
        ('I look it up.\n{"name": "f"}', ["f"]),
        ("[{'name': 'f'}]", ["f"]),
        ('<tool_call>{"name": "f"}</tool_call>', ["f"]),
        ('{"name": "f"} done', []),
        ('{"arguments": {}}', []),
        ('[{"name": "f"}, 1]', []),
        ("[]", []),
        ("", []),
        ("plain", []),
        ('<think>{"name": "f"}', []),
    ],
)
def test_a_text_of_calls(text, value):
    assert [call.values.name for call in calls_of(find_bare(text))] == value


@pytest.mark.parametrize(
    ("written", "arguments", "raw", "kind"),
    [
        ('{"a": 1.0,  "a": 2}', '{"a": 1.0,  "a": 2}', None, "object"),
        ("[1]", "[1]", None, "object"),
        ("null", None, None, None),
        ('"{\\"a\\": 1}"', '{"a": 1}', None, "json_string"),
        ('"{bad"', None, "{bad", "invalid"),
        ('{"a": NaN}', None, '{"a": NaN}', "object"),
        ('{"a": "x\ny"}', None, '{"a": "x\ny"}', "object"),
    ],
)
def test_arguments_keep_their_characters(written, arguments, raw, kind):
    (call,) = calls_of(find_tagged(f'{OPEN}{{"name": "f", "arguments": {written}}}{CLOSE}'))
    assert (call.values.arguments, call.values.raw, call.kind) == (arguments, raw, kind)


def test_arguments_of_python():
    text = f"{OPEN}{{'name': 'f', 'arguments': {{'\xe9': None, 'b': [1,\n 2.0]}}}}{CLOSE}"
    (call,) = calls_of(find_tagged(text))
    assert (call.values.raw, call.kind) == ("{'\xe9': None, 'b': [1,\n 2.0]}", "python_literal")
    (call,) = calls_of(find_tagged(f"{OPEN}{{'name': 'f', 'arguments': {{\"a\": 1}}}}{CLOSE}"))
    assert (call.values.arguments, call.kind) == ('{"a": 1}', "object")


def test_further_keys():
    text = '{"id": "c1", "name": "f", "parameters": {}, "x": [1.0], "type": "function"}'
    (call,) = calls_of(find_bare(text))
    assert call.values == ("c1", "f", "{}", None)
    assert call.others == {"x": "[1.0]", "type": '"function"'}


@MANY
@given(st.lists(json_calls(), min_size=1, max_size=3), st.booleans())
def test_what_is_found_is_what_a_parser_reads(written, tagged):
    text = "".join(f"{OPEN}\n{call}\n{CLOSE} " for call in written)
    if not tagged:
        text = f"[{', '.join(written)}]"
    calls = calls_of(find_tagged(text) if tagged else find_bare(text))
    assert len(calls) == len(written)
    for call, source in zip(calls, written, strict=True):
        parsed = json.loads(source, strict=False)
        assert call.values.name == parsed["name"]
        assert text[slice(*call.places["name"])] in source
        if call.kind == "object":
            value = parsed.get("arguments", parsed.get("parameters"))
            read = json.loads(call.values.arguments or call.values.raw or "", strict=False)
            # NaN differs from itself.
            assert repr(read) == repr(value)


@MANY
@given(python_calls())
def test_python_is_read_as_python_reads_it(source):
    calls = calls_of(find_tagged(f"x {OPEN}{source}{CLOSE}"))
    if CLOSE in source:
        return
    (call,) = calls
    parsed = ast.literal_eval(source)
    assert call.values.name == parsed["name"]
    if call.kind == "python_literal":
        assert ast.literal_eval(call.values.raw or "") == parsed["arguments"]


def test_hostile_texts_take_no_time():
    texts = [
        OPEN * 20_000,
        OPEN * 20_000 + CLOSE,
        (OPEN + "{") * 200_000,
        (OPEN + '{"name":"f","arguments":') * 50_000,
        f'{OPEN}{{"a": ' * 5_000,
        f"{OPEN}{{'a': " * 5_000 + CLOSE,
        OPEN + "[" * 100_000 + CLOSE,
        OPEN + "{'a': " + "(" * 5_000 + CLOSE,
        OPEN + "[" + "{'name': 'f'}," * 20_000 + "]" + CLOSE,
        "<think>" * 20_000 + OPEN,
        "{\n" * 20_000,
        OPEN + '{"name": "f", "arguments": ' + "9" * 10_000 + "}" + CLOSE,
        OPEN + "{'name': 'f', 'arguments': " + "9" * 10_000 + "}" + CLOSE,
        OPEN + "\ud83d{'name': '\ud83d'}" + CLOSE,
    ]
    start = time.process_time()
    for text in texts:
        find_tagged(text)
        find_bare(text)
    assert time.process_time() - start < 5


# ---- writing back --------------------------------------------------------------------------


@MANY
@given(st.one_of(tagged_calls(), bare_calls()))
def test_unedited_calls_stay_as_they_are(text):
    for groups in (find_tagged(text), find_bare(text)):
        assert rewrite(text, groups, wanted(groups)) == text
        assert all(a.end <= b.start for a, b in itertools.pairwise(groups))


@MANY
@given(st.one_of(tagged_calls(), bare_calls()), st.integers(0, 9))
def test_a_new_name_changes_nothing_else(text, number):
    groups = find_bare(text)
    calls = wanted(groups)
    if not calls:
        return
    place = number % len(calls)
    old = calls_of(groups)[place]
    calls[place].values = old.values._replace(name="quite_new")
    out = rewrite(text, groups, calls)
    start, end = old.places["name"]
    assert out.startswith(text[:start])
    assert out.endswith(text[end:])
    assert len(out) - len(text) == len('"quite_new"') - (end - start)
    again = [call.values.name for call in calls_of(find_bare(out))]
    assert again == [call.values.name for call in calls]


@MANY
@given(st.one_of(tagged_calls(), bare_calls()), st.integers(0, 9))
def test_a_dropped_call_leaves_the_others(text, number):
    groups = find_bare(text)
    calls = wanted(groups)
    if not calls:
        return
    del calls[number % len(calls)]
    out = rewrite(text, groups, calls)
    for call in calls_of(groups):
        if any(item.span == call.span for item in calls):
            assert text[call.object.start : call.object.end] in out
    assert prose(text, groups).split() == prose(out, find_bare(out)).split() or not calls


def test_edits():
    text = 'a <tool_call>{"arguments" : {"x":1}, "name":"f"}</tool_call> b'
    groups = find_tagged(text)
    (call,) = wanted(groups)
    call.values = call.values._replace(arguments='{"x": 2.50}')
    edited = 'a <tool_call>{"arguments" : {"x": 2.50}, "name":"f"}</tool_call> b'
    assert rewrite(text, groups, [call]) == edited
    call.values = call.values._replace(arguments=None, raw="{bad")
    call.kind = "invalid"
    assert '"arguments" : "{bad", "name":"f"' in rewrite(text, groups, [call])
    assert rewrite(text, groups, []) == "a  b"
    text = f"{OPEN}{{'name': 'f'}}{CLOSE}"
    groups = find_tagged(text)
    (call,) = wanted(groups)
    call.values = call.values._replace(name="it's", arguments='{"x": null}')
    call.kind = "object"
    assert rewrite(text, groups, [call]) == (
        f"{OPEN}{{'name': \"it's\", 'arguments': {{'x': None}}}}{CLOSE}"
    )


def test_a_call_that_is_added():
    text = '{"name": "f"}'
    groups = find_bare(text)
    new = CallEdit(calls_of(groups)[0].values._replace(name="g", arguments='{"x": 1}'), "object")
    assert names(rewrite("words", [], [new])) == ["g"]
    assert rewrite("", [], [new], tagged=False) == '{"name": "g", "arguments": {"x": 1}}'
    assert rewrite("", [], [new, new], tagged=False).startswith('[{"name": "g"')
    assert names(rewrite(text, groups, [*wanted(groups), new])) == ["g"]
    for text in ('{"name": "f"}', 'a\n[{"name": "f"}]', '{"name": "f"}\n{"name": "e"}'):
        groups = find_bare(text)
        old = wanted(groups)
        for calls in ([*old, new], [*old[1:], new, new]):
            out = rewrite(text, groups, calls, tagged=False)
            results = [call.values.name for call in calls_of(find_bare(out))]
            assert results == [call.values.name for call in calls]


def test_words_that_were_edited():
    text = f'long words {OPEN}{{"name": "f"}}{CLOSE}{OPEN}{{"name": "g"}}{CLOSE}'
    calls = wanted(find_tagged(text))
    edited = text.replace("long words", "w")
    groups = find_tagged(edited)
    assert rewrite(edited, groups, calls) == edited
    calls[1].values = calls[1].values._replace(name="h")
    assert names(rewrite(edited, groups, calls)) == ["f", "h"]
    assert names(rewrite(edited, groups, calls[:1])) == ["f"]
    assert names(rewrite("only words", [], calls)) == ["f", "h"]


def test_members():
    result = object_at(' {"name": "f", "content": 1}')
    assert result is not None
    assert with_member(' {"name": "f", "content": 1}', result, "name", "\xe9") == (
        ' {"name": "\xe9", "content": 1}'
    )
    assert object_at("{'a': 'b'}") is not None
    assert [object_at(text) for text in ("[1]", "", "{", '{"a": 1} x', '{"a":1}{"b":2}')] == [
        None
    ] * 5


def test_small_words():
    assert json.loads(write_call('a"b', '{"x": 1.0}')) == {"name": 'a"b', "arguments": {"x": 1.0}}
    assert write_call("\ud83d", "{}") == '{"name": "\\ud83d", "arguments": {}}'
    assert is_json_like(' {"a": NaN}\n')
    assert not any(is_json_like(text) for text in ("", "{", "{} x", "'a'"))
