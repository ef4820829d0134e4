"""Columns whose place in ATIF cannot say them as they are come back through ``extra.adp``."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from adp.converters.export import export
from adp.converters.run import convert
from adp_schema.builder import Origin, RowBuilder
from adp_schema.media import media_of_bytes
from adp_schema.store import Store
from tests.store_builders import write_store

TIME = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
MADE_BY_A_MODEL = {
    **{"model": "m", "reasoning_effort": "low", "tokens_in": 3, "tokens_out": 4},
    **{"tokens_cached": 1, "cost_usd": 0.5, "prompt_token_ids": [1], "logprobs": [-0.5]},
    **{"completion_token_ids": [2]},
}


def cut(builder: RowBuilder) -> dict[str, str]:
    """A text that an image stands inside of, with nothing else between its two halves."""
    image = builder.media(media_of_bytes(b"\x89PNG", "image/png"))
    parts = [{"type": "text", "span": [0, 5]}, {"type": "media", "media_id": image},
             {"type": "text", "span": [5, 11]}]  # fmt: skip
    return {"text": "See:  this.", "content": json.dumps(parts, separators=(",", ":"))}


STEPS = {
    "a user with the numbers of a model": lambda _: {"source": "user", **MADE_BY_A_MODEL},
    "the environment with a model": lambda _: {"source": "environment", "model": "m", "text": "x"},
    "no text": lambda _: {"source": "agent"},
    "an empty text": lambda _: {"source": "agent", "text": ""},
    "a text around an image": lambda builder: {"source": "user", **cut(builder)},
    "a time in words": lambda _: {"source": "user", "timestamp_text": "yesterday", "text": "x"},
    "a time without its text": lambda _: {
        **{"source": "user", "timestamp": TIME, "timestamp_zone_known": True, "text": "x"},
    },
}


@pytest.fixture(params=STEPS)
def store(request, tmp_path):
    """A store with the step twice: in a run and in the run of its subagent."""
    builder = RowBuilder()
    columns = {"source_file": "f.jsonl", "source_records": [1], "source_format": "openai_chat"}
    builder.begin(Origin(0, "d", columns))
    builder.trajectory({"source_id": "run"})
    add(builder, STEPS[request.param](builder))
    builder.link({"kind": "continuation", "target_id": "next"})
    main = builder.finish()
    builder.trajectory({"source_id": "sub", "parent_id": main, "parent_step": 2,
                        "branch_kind": "subagent"})  # fmt: skip
    add(builder, STEPS[request.param](builder))
    builder.finish()
    return write_store(tmp_path / "store", builder)


def add(builder, step):
    """The step, and one whose result is cut as its text is."""
    kind = "llm_turn" if step["source"] == "agent" else "message"
    builder.step({"kind": kind, **step})
    builder.step({"source": "agent", "kind": "llm_turn", "text": "I look."})
    call = {"call_id": "c", "kind": "function", "name": "f", "arguments_kind": "object"}
    builder.call({**call, "arguments": "{}"})
    builder.observation({"source": "environment", **cut(builder)}, answers="c")


def rows(store, table):
    """The rows of a table without what says where they were read, and how it was written."""
    ours = ("extra", "trajectory_id", "parent_id", "seq", "source_id", "call_id", "native_call_id")
    return [
        {
            k: v
            for k, v in row.items()
            if k not in ours and not k.startswith("source_") and v is not None
        }
        for row in store.query(f"SELECT * FROM {table} ORDER BY ALL").to_pylist()
    ]


def test_the_rows_come_back(store, tmp_path):
    there = export(store, "atif", str(tmp_path / "atif"))
    convert([str(tmp_path / "atif")], str(tmp_path / "again"))
    again = Store.open(str(tmp_path / "again"))
    assert there.losses == {}
    for table in ("steps", "observations", "tool_calls", "links"):
        assert rows(again, table) == rows(store, table)


def test_the_record_is_written_again_as_it_was(store, tmp_path):
    export(store, "atif", str(tmp_path / "atif"))
    convert([str(tmp_path / "atif")], str(tmp_path / "again"))
    export(Store.open(str(tmp_path / "again")), "atif", str(tmp_path / "twice"))
    first, second = (
        [path.read_bytes() for path in (tmp_path / name).rglob("*") if path.is_file()]
        for name in ("atif", "twice")
    )
    assert len(first) == 1
    assert first == second


def test_columns_that_are_not_told_apart_stay_where_they_were_read(tmp_path):
    """Somebody else's ``adp`` about a step of the agent is no word about its columns."""
    step = {"step_id": 1, "source": "agent", "message": "a", "extra": {"adp": {"model": "m"}}}
    record = {
        "schema_version": "ATIF-v1.7",
        "agent": {"name": "a", "version": "1"},
        "steps": [step],
    }
    (tmp_path / "a.json").write_text(json.dumps(record))
    convert([str(tmp_path / "a.json")], str(tmp_path / "store"))
    (row,) = Store.open(str(tmp_path / "store")).query("FROM steps").to_pylist()
    assert row["model"] is None
    assert json.loads(row["extra"])["adp"] == {"model": "m"}
