"""OpenAI chat: reading all messages at once makes the rows of reading them one by one."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adp.converters.openai_chat import read
from adp_schema import jsontext
from adp_schema.builder import Origin, RowBuilder
from adp_schema.losses import Losses
from adp_schema.protocols import RawRecord
from tests.converters.strategies import PIXEL, openai_records
from tests.effort import examples

SETTINGS = settings(
    max_examples=examples(200),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
LAYOUTS = ((",", ":"), (", ", ": "), (",", ": "), (" ,", ":"))
TEXTS = st.sampled_from(
    ["", "hi", 'a "b" \\ \n', "é世界", "\U0001f600", f"data:image/png;base64,{PIXEL}"]
)
PARTS = st.lists(
    st.one_of(
        TEXTS.map(lambda text: {"type": "text", "text": text}),
        st.just({"type": "image_url", "image_url": {"url": f"data:image/gif;base64,{PIXEL}"}}),
        st.just({"text": "x", "type": "text"}),
    ),
    max_size=3,
)
ARGUMENTS = st.sampled_from(
    [{}, {"a": 1, "role": "user"}, {"a": [{"role": "x", "content": "y"}]}, '{"a": 1}', "not json",
     "", '"text"', None, 5, [1], {"a": "é\n"}, '{"a":\n1}']
)  # fmt: skip
IDS = st.sampled_from(["a", "b", "c", "d", "é", 'q"'])
CALLS = st.lists(
    st.builds(
        lambda call_id, name, arguments: {
            "id": call_id,
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        },
        IDS,
        st.sampled_from(["f", "g"]),
        ARGUMENTS,
    ),
    max_size=2,
)
STEPS = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "human", "developer", "odd"])},
    optional={
        "content": st.one_of(TEXTS, TEXTS, PARTS, st.none()),
        "reasoning_content": st.one_of(TEXTS, st.none()),
        "tool_calls": st.one_of(CALLS, CALLS, st.none()),
        "name": st.sampled_from(["bob", None]),
        "weight": st.just(1),
    },
)
RESULTS = st.fixed_dictionaries(
    {"role": st.sampled_from(["tool", "tool", "function"]), "tool_call_id": IDS},
    optional={"content": st.one_of(TEXTS, PARTS, st.none()), "name": st.sampled_from(["f", None])},
)
PLAIN = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant"]), "content": st.one_of(TEXTS, PARTS)}
)
MESSAGES = st.lists(st.one_of(PLAIN, RESULTS, STEPS), max_size=5)


WAYS = ("plain_rows", "usual_rows")
"""Functions that read all messages of a record at once: with its keys in one pass, and alone."""


def outcome(data, *ways):
    """What a reader makes of a record, and which of the ways that it may use gave the rows."""
    functions, used = {name: getattr(read, name) for name in WAYS}, []

    def spied(name):
        def call(*arguments):
            made = functions[name](*arguments) if name in ways else None
            rows = made and made[2] if name == "plain_rows" else made
            used.extend([name] if rows is not None else [])
            return made

        return call

    builder, losses = RowBuilder(), Losses()
    columns = {"source_hash": "", "source_records": [1]}
    builder.begin(Origin(0, "d", columns, size=len(data)))
    try:
        for name in WAYS:
            setattr(read, name, spied(name))
        read.read_record(RawRecord(data, "a", 1, 0, len(data)), builder, losses)
        builder.close_record(losses)
    except Exception as error:
        return (type(error), str(error)), used
    finally:
        for name, function in functions.items():
            setattr(read, name, function)
    return (builder.tables(), losses.counts), used


def assert_same(data):
    expected = outcome(data)[0]
    for ways in (WAYS, WAYS[:1], WAYS[1:]):
        assert outcome(data, *ways)[0] == expected


@SETTINGS
@given(MESSAGES, st.sampled_from(LAYOUTS), st.booleans(), st.randoms())
def test_both_ways_agree_on_usual_records(messages, separators, ascii_only, chance):
    if chance.random() < 0.1 and messages:
        keys = list(messages[0].items())
        chance.shuffle(keys)
        messages[0] = dict(keys)
    record = {"id": "x", "messages": messages, "more": {"messages": messages}}
    if chance.random() < 0.3:
        record = dict(reversed(record.items()))
    text = json.dumps(record, separators=separators, ensure_ascii=ascii_only)
    assert_same(text.encode())


@SETTINGS
@given(openai_records())
def test_both_ways_agree_on_any_record(data):
    try:
        jsontext.decode_object(data)
    except ValueError:
        return
    assert_same(data)


USUAL = {
    "id": "x",
    "messages": [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"role": "assistant", "content": None, "reasoning_content": "r", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": {"role": "b"}}},
            {"id": "b", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        ]},
        {"role": "tool", "tool_call_id": "b", "name": "f", "content": "2"},
        {"role": "tool", "tool_call_id": "z", "content": "3"},
        {"role": "assistant", "content": "done", "tool_calls": None},
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("separators", "way"), list(zip(LAYOUTS[:2], WAYS, strict=True)), ids=["compact", "spaced"]
)
def test_usual_records_are_read_at_once(separators, way):
    data = json.dumps(USUAL, separators=separators).encode()
    assert outcome(data, *WAYS)[1] == [way]
    assert_same(data)


COMPACT = json.dumps(USUAL["messages"], separators=(",", ":"))


@pytest.mark.parametrize(
    ("before", "after", "ways"),
    [
        ('{"id":"x",', "}", ["plain_rows"]),
        ('{"id":"x", ', ' , "tools":[] }', ["plain_rows"]),
        ('{"id":"x","id":"y",', "}", ["plain_rows"]),
        ('{"n":"\\u0000",', ',"a":[[1]],"b":"[{]"}', ["plain_rows"]),
        ('{"messages":[],', "}", ["usual_rows"]),
        (f'{{"messages":{COMPACT},', "}", ["usual_rows"]),
        (f'{{"more":{{"messages":{COMPACT}}},', "}", ["usual_rows"]),
        ("{", ',"messages":[]}', []),
        ("{", f',"messages":{COMPACT}}}', ["usual_rows"]),
        ("{", ',"messages":"\\u0000\\u0000"}', []),
        ('{"n":"\\u0000\\u0000",', "}", ["usual_rows"]),
        ('{"n":"\\"messages\\":[",', "}", ["plain_rows"]),
        ("[{", "}]", []),
        ("{", "},", []),
        ("{", ',"n":}', []),
        ('{"n":"\\ud800",', "}", []),
    ],
)
def test_what_stands_around_the_messages(before, after, ways):
    """They are those of the key at the top, the last one, whatever else looks like it."""
    data = f'{before}"messages":{COMPACT}{after}'.encode()
    assert outcome(data, *WAYS)[1] == ways
    assert_same(data)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"role":"user"', '"role":"user","role":"user"'),
        ('"role":"user"', '"role":"assistant","role":"user"'),
        ('"role":"user"', '"r\\u006fle":"user"'),
        ('"role":"user",', '"role":"user" ,'),
        ('"id":"a",', '"id":"b","id":"a",'),
        ('"id":"a","type":"function"', '"type":"function","id":"a"'),
        ('"name":"f","arguments":"{}"', '"arguments":"{}","name":"f"'),
        ('"type":"function"', '"type":"custom"'),
        ('"arguments":"{}"', '"arguments":null'),
        ('"arguments":"{}"', '"arguments":"{}","more":1'),
        ('"id":"b"', '"id":"a"'),
        ('"content":"2"', '"content":"2","weight":1'),
        ('"content":"2"', '"content":2'),
        ('"content":"2"', '"content":"\U0010f7ffNaN"'),
        ('"content":"2"', '"content":"\\ud800"'),
        ('"role":"system"', '"role":"developer"'),
        ('"tool_calls":null', '"tool_calls":[]'),
        ('"tool_call_id":"z"', '"tool_call_id":null'),
    ],
)
def test_what_is_not_usual_is_read_message_by_message(old, new):
    text = json.dumps(USUAL, separators=(",", ":"))
    assert old in text
    data = text.replace(old, new, 1).encode()
    assert not outcome(data, *WAYS)[1]
    assert_same(data)
