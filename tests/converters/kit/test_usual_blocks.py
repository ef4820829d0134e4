"""Blocks that are decoded at once give what they give key by key."""

import json

import pytest
from msgspec import Raw

from adp.converters.kit.blocks import BlockReader
from adp.converters.kit.drafts import TrajectoryDraft
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import ANTHROPIC, UsageKeys, set_usage, take_usage
from adp.converters.kit.usual_blocks import usual_blocks, usual_result, usual_texts
from adp_schema.builder import RowBuilder
from adp_schema.jsontext import NUMBER_MARK
from adp_schema.losses import Losses


class KeyByKey(BlockReader):
    """Reads every block key by key, as all readers do that are derived."""


CALL = '{"type":"tool_use","id":"c1","name":"look","input":{"x":1.50,"y":"\\u00e9"}}'
USUAL = [
    '[{"type":"text","text":"hi \\"you\\""},{"type":"text","text":"é"}]',
    '[{"type":"thinking","thinking":"so","signature":"c2ln"},' + CALL + "]",
    '[{"type":"thinking","thinking":"so","thinkingSignature":"c2ln"}]',
    '[{"type":"toolCall","id":"c1","name":"look","arguments":"{\\"x\\":1}"}]',
    '[{"type": "input_text", "text": "spaced"}, {"type": "output_text", "text": "too"}]',
    '[{"cache_prompt": false, "type": "text", "text": "of OpenHands"}]',
]
OTHERS = [
    '[{"type":"text","text":"a","text":"b"}]',
    '[{"type":"text","text":"a","more":1}]',
    '[{"type":"text","text":"\\/"}]',
    '[{"type":"text","text":null}]',
    '[{"type":"text"}]',
    '["text",{"type":"text","text":"a"}]',
    '[{"type":"thinking","thinking":"so","signature":null}]',
    '[{"type":"tool_use","id":"c1","name":"look","input":null}]',
    '[{"type":"tool_use","id":7,"name":"look","input":{}}]',
    '[{"cache_prompt": true, "type": "text", "text": "kept"}]',
    '[\n  {\n    "type": "text",\n    "text": "a"\n  }\n]',
    f'[{{"type":"text","text":"{NUMBER_MARK}NaN"}}]',
    "[]",
]
RESULTS = [
    '{"tool_use_id":"c1","type":"tool_result","content":"done"}',
    '{"tool_use_id":"c1","type":"tool_result","content":[{"type":"text","text":"x"}],"is_error":true}',
    '{"tool_use_id":"c1","type":"tool_result","content":null}',
    '{"tool_use_id":"c1","type":"tool_result"}',
    '{"tool_use_id":"c1","type":"tool_result","content":"a","content":"b"}',
    '{"tool_use_id":5,"type":"tool_result","content":"a"}',
]
CACHED = {"cache_prompt": Raw(b"false")}


def drafts(kind: type[BlockReader], content: str) -> tuple[object, ...]:
    """What a content becomes as that of a message, of a user's message and of a result."""
    losses, run = Losses(), TrajectoryDraft()
    reader = kind(RowBuilder(), losses, run, usual=CACHED)
    raw = Raw(content.encode())
    step = run.step("agent", "llm_turn")
    reader.content(raw, step, "$.content")
    reader.user_content(raw, "$.content", lambda: run.step("user"))
    reader.result(raw, run.observe({}), "$.content")
    texts = [str(it.parts.columns()) for it in (*run.steps, *step.observations, *run.observations)]
    return texts, repr(run.steps).count("Draft"), _plain(run), losses.items


def _plain(run: TrajectoryDraft) -> str:
    steps = [(it.columns, it.extra, [(call.columns, call.extra) for call in it.calls],
              [(seen.columns, seen.answers, seen.extra) for seen in it.observations])
             for it in run.steps]  # fmt: skip
    return json.dumps(steps, default=lambda value: bytes(value).decode())


@pytest.mark.parametrize("content", [*USUAL, *OTHERS, *(f"[{it}]" for it in RESULTS), *RESULTS])
def test_the_rows_are_the_same(content):
    assert drafts(BlockReader, content) == drafts(KeyByKey, content)


@pytest.mark.parametrize("content", USUAL)
def test_usual_forms_are_decoded_at_once(content):
    assert usual_blocks(Raw(content.encode()), CACHED)


@pytest.mark.parametrize("content", OTHERS)
def test_other_forms_are_not(content):
    assert not usual_blocks(Raw(content.encode()), CACHED)
    assert not usual_texts(Raw(content.encode()))


def test_results():
    taken = [usual_result(Raw(it.encode())) is not None for it in RESULTS]
    assert taken == [True, True, False, False, False, False]


KEYS = UsageKeys(prompt=("in", "input"), written=("out.all", "out"), cost=("cost.total",))


@pytest.mark.parametrize(
    "record",
    [
        '{"input_tokens":5,"cache_read_input_tokens":7,"output_tokens":2}',
        '{"in":5.0,"input":4,"out":{"all":3},"cost":{"total":0.25}}',
        '{"in":-0,"out":{"all":9223372036854775808},"cost":{"total":3}}',
        '{"in":true,"out":"7","cost":{"total":1e400}}',
        '{\n  "in": 1,\n  "out": {\n    "all": 2\n  }\n}',
        '{"in":1,"in":2,"out":{"all":3,"all":4}}',
        '{"in":1,"out.all":2,"out":{"all":3}}',
        '{"in":1,"deep":{"er":{"out":1}},"text":"a\\":b"}',
    ],
)
@pytest.mark.parametrize("keys", [ANTHROPIC, KEYS])
def test_usage_is_the_same_whole_and_by_key(record, keys):
    whole, by_key, losses, others = {}, {}, Losses(), Losses()
    source = SourceObject(f'{{"usage":{record}}}'.encode(), "$", losses)
    take_usage(source, "usage", whole, keys)
    set_usage(SourceObject(record.encode(), "usage", others), by_key, keys)
    del whole["usage"]
    assert whole == by_key
    assert losses.items == others.items
