"""ADP v1 JSON: any record of any version comes back character for character."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adp.converters.adp_v1 import CONVERTER
from adp_schema.losses import Losses
from tests.converters.adp_v1_records import PNG, assert_same, dump, read
from tests.effort import examples
from tests.roundtrip import read_one, write_one

TEXT = st.text(st.characters(codec="utf-8", max_codepoint=0x10F7FE), max_size=6) | st.sampled_from(
    ["", "\ud83d", "a\udc00b", PNG, f"data:image/png;base64,{PNG}", "<finish> x </finish>", "\n\n"]
)
SPELLED = st.sampled_from(
    ["0", "-0", "1", "1.0", "1.50", "1e5", "-1E+2", "12345678901234567890123", "1e999", "NaN"]
)
JSON_TEXT = st.recursive(
    st.sampled_from(["null", "true", '"\\ud83d"', '"a"', "[]", "{}"]) | SPELLED,
    lambda inner: (
        st.lists(inner, max_size=2).map(lambda v: f"[{','.join(v)}]")
        | st.lists(st.tuples(st.sampled_from(["a", "b", "$c"]), inner), max_size=3).map(
            lambda pairs: "{" + ",".join(f'"{key}":{value}' for key, value in pairs) + "}"
        )
    ),
    max_leaves=4,
)
OBJECT = st.lists(st.tuples(st.sampled_from(["a", "b", "$c"]), JSON_TEXT), max_size=3).map(
    lambda pairs: "{" + ",".join(f'"{key}":{value}' for key, value in pairs) + "}"
)
STRING = TEXT.map(lambda text: json.dumps(text) if has_surrogate(text) else dump(text).decode())
MAYBE = st.just("null") | STRING
SOURCE = st.sampled_from(['"user"', '"agent"', '"environment"'])
IDS = st.sampled_from(["null", '"a"', '"b"', '"a#2"'])
NUMBER = st.just("null") | SPELLED


def has_surrogate(text: str) -> bool:
    return any(0xD800 <= ord(char) < 0xE000 for char in text)


def objects(
    name: str | None,
    required: dict[str, st.SearchStrategy[str]],
    optional: dict[str, st.SearchStrategy[str]],
) -> st.SearchStrategy[str]:
    """JSON objects with any of the optional keys, unknown ones, and any order."""
    class_ = {} if name is None else {"class_": st.just(json.dumps(name))}
    unknown = {"zz": JSON_TEXT, "$shape": JSON_TEXT}
    keys = st.fixed_dictionaries({**class_, **required}, optional={**optional, **unknown})
    shuffled = keys.flatmap(lambda d: st.permutations(list(d.items()))) | keys.map(
        lambda d: list(d.items())
    )
    return shuffled.map(lambda pairs: "{" + ",".join(f'"{k}":{v}' for k, v in pairs) + "}")


OBSERVED = {"tool_call_id": IDS, "reward": NUMBER}
THOUGHT = {"description": MAYBE, "reasoning_content": MAYBE, "reward": NUMBER}
BOXES = st.sampled_from(["null", "[]", '[{"a":1.50}]'])
IMAGES = objects(
    "image_observation", {"content": STRING, "source": SOURCE}, {"annotations": BOXES, **OBSERVED}
)
ITEMS = st.one_of(
    objects("text_observation", {"content": STRING, "source": SOURCE}, {"name": MAYBE, **OBSERVED}),
    IMAGES,
    objects(
        "web_observation",
        {},
        {
            "html": MAYBE,
            "axtree": MAYBE,
            "url": MAYBE,
            "image_observation": st.just("null") | IMAGES,
            "viewport_size": st.sampled_from(["null", "[1280,720]", "[1.0,2.50]"]),
            **OBSERVED,
        },
    ),
    objects("message_action", {"content": STRING}, THOUGHT),
    objects("api_action", {"function": STRING, "kwargs": OBJECT}, {**THOUGHT, "tool_call_id": IDS}),
    objects(
        "code_action", {"language": STRING, "content": STRING}, {**THOUGHT, "tool_call_id": IDS}
    ),
)
RECORDS = objects(
    None,
    {"id": STRING, "content": st.lists(ITEMS, max_size=5).map(lambda v: f"[{','.join(v)}]")},
    {
        "details": OBJECT,
        "schema_version": st.sampled_from(["null", '"1"', '"1.0.0"', '"1.3.2"', '"1.5.0"']),
        "available_apis": JSON_TEXT,
        "available_custom_tools": JSON_TEXT,
    },
)


@settings(max_examples=examples(400), deadline=None, suppress_health_check=list(HealthCheck))
@given(RECORDS)
def test_any_record_comes_back(text):
    assert_same(text.encode())


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(RECORDS)
def test_any_record_can_be_written_as_1_5(text):
    run = read(text.encode())
    run.source_format = "other"
    losses = Losses()
    out = write_one(CONVERTER, run, losses)
    again = read_one(CONVERTER, out)
    assert len(again) == 1
