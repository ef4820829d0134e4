"""Stores of runs with outcomes, tokens, texts and calls of any kind, for tests of numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from adp_schema.builder import Origin, RowBuilder
from adp_schema.media import media_of_bytes
from adp_schema.store import Store
from tests.store_builders import reject_row, write_store

names = st.sampled_from(["a", "b", "näme", "{{7*7}}"])
texts = st.sampled_from(["", "hello", "hello", "two\nlines", "é" * 9, "x" * 1200]) | st.none()
numbers = st.none() | st.integers(0, 2000)
truths = st.none() | st.booleans()


def _rows(**columns: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(columns).map(
        lambda row: {name: value for name, value in row.items() if value is not None}
    )


results = _rows(
    text=texts,
    axtree=texts,
    is_error=truths,
    exit_code=st.none() | st.sampled_from([0, 1, 127]),
    error_type=st.none() | names,
)
calls = st.tuples(
    _rows(
        name=st.none() | names,
        kind=st.sampled_from(["function", "code", "message"]),
        language=st.none() | st.sampled_from(["python", "bash"]),
        arguments=st.none() | st.just('{"a": 1}'),
        arguments_raw=st.none() | st.just('{"a": '),
        arguments_kind=st.none() | st.sampled_from(["object", "invalid", "text"]),
        span_start=st.none() | st.just(0),
    ),
    st.lists(results, max_size=2),
)
steps = st.tuples(
    _rows(
        source=st.sampled_from(["system", "user", "agent", "agent", "environment"]),
        kind=st.sampled_from(["message", "llm_turn"]),
        text=texts,
        reasoning=texts,
        tokens_in=numbers,
        tokens_out=numbers,
    ),
    st.lists(calls, max_size=2),
)
runs = st.tuples(
    _rows(
        dataset=names,
        success=truths,
        reward=st.none() | st.floats(-2, 2, width=32),
        agent_model=st.none() | names,
        agent_name=st.none() | names,
        license=st.none() | st.sampled_from(["mit", "cc-by-nc-4.0"]),
        may_publish=truths,
        split=st.none() | st.sampled_from(["train", "test"]),
        stop_reason=st.none() | names,
        error_type=st.none() | names,
        truncated=truths,
        total_tokens_in=numbers,
    ),
    st.lists(steps, max_size=5),
    st.booleans(),
)
shards = st.lists(st.lists(runs, max_size=5), min_size=1, max_size=2)


def write(folder: Path, described: list[list[Any]]) -> Store:
    """Write a store: shards of runs. A run that is marked branches off the one before it."""
    builders = []
    known: list[str] = []
    for index, members in enumerate(described):
        builder = RowBuilder()
        for place, run in enumerate(members):
            _add_run(builder, index * 1000 + place, run, known)
        builder.reject(reject_row(b"{", "odd", record=index))
        builders.append(builder)
    return write_store(folder, *builders, losses={"$.x: no place": 3, "$.a: no place": 3})


def _add_run(builder: RowBuilder, seq: int, run: Any, known: list[str]) -> None:
    columns, spoken, branch = run
    builder.begin(Origin(seq=seq, dataset="none", columns={"source_format": f"f{seq % 2}"}))
    if branch and known:
        columns = {**columns, "parent_id": known[-1], "parent_step": 0, "branch_kind": "fork"}
    builder.trajectory({**columns, "source_id": str(seq)})
    if seq % 3 == 0:
        builder.media(media_of_bytes(f"image {seq % 2}".encode() * 30, "image/png"))
    for number, (step, called) in enumerate(spoken):
        builder.step(step)
        for place, (call, answers) in enumerate(called):
            name = f"c{number}-{place}"
            builder.call({**call, "call_id": name})
            for answer in answers:
                builder.observation(answer, answers=name)
    builder.finish()
    known.append(builder.rows["trajectories"][-1]["trajectory_id"])
