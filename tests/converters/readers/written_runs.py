"""Runs that hypothesis makes, and what a model saw and said in a run, for tests of writers."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from adp.converters.writing import is_seen
from adp_schema.builder import Origin, RowBuilder
from adp_schema.model import Media, Observation, Step, Trajectory
from adp_schema.parts import JOINT, Parts
from adp_schema.reader import assemble, to_models

WORDS = st.one_of(
    st.sampled_from(["hello", "a b", " line\n", "é😀", '{"a": 1}', '["content"]', '"quoted"', "0"]),
    st.sampled_from(['{"content": "x"}', '[{"type": "text", "text": "x"}]', "null", "<b>&"]),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8),
).filter(lambda text: text.strip() == text != "" or text == " line\n")
"""Texts that a reader of nested JSON may take for something else."""
_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 10**12), WORDS),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)
ARGUMENTS = st.dictionaries(WORDS, _VALUES, max_size=3)


@st.composite
def runs(draw: st.DrawFn) -> Trajectory:
    """A run with turns of a model, calls side by side, their results, and reasoning."""
    builder = RowBuilder()
    builder.begin(Origin(0, "d", {"source_file": "f", "source_records": [1]}))
    builder.trajectory({"source_id": "run", "agent_model": "m"})
    if draw(st.booleans()):
        builder.step({"source": "system", "kind": "message", "text": draw(WORDS)})
    number = 0
    for _ in range(draw(st.integers(1, 4))):
        builder.step({"source": "user", "kind": "message", "text": draw(WORDS)})
        for _ in range(draw(st.integers(0, 2))):
            calls = draw(st.lists(st.tuples(st.sampled_from("fg"), ARGUMENTS), max_size=2))
            _turn(draw, builder, number, calls)
            number += len(calls)
            if not calls:
                break  # some formats join turns that nothing stands between
    builder.step({"source": "user", "kind": "message", "text": draw(WORDS)})
    _turn(draw, builder, number, [])
    builder.finish()
    tables = builder.tables()
    media = {blob.media_id or "": blob for blob in to_models(tables["media"], Media)}
    (run,) = assemble(tables["trajectories"], tables, media)
    return run


def _turn(
    draw: st.DrawFn, builder: RowBuilder, number: int, calls: list[tuple[str, dict[str, Any]]]
) -> None:
    parts = Parts()
    if draw(st.booleans()):
        parts.reasoning(draw(WORDS))
    if not calls or draw(st.booleans()):
        parts.text(draw(WORDS))
    for index in range(len(calls)):
        parts.call(index)
    builder.step({"source": "agent", "kind": "llm_turn", **parts.columns()})
    for index, (name, arguments) in enumerate(calls):
        text = json.dumps(arguments, ensure_ascii=draw(st.booleans()))
        builder.call({"kind": "function", "name": name, "call_id": f"c{number + index}",
                      "arguments": text, "arguments_kind": "object"})  # fmt: skip
    for index in draw(st.permutations(range(len(calls)))):
        columns = {"source": "environment", "text": draw(WORDS)}
        builder.observation(columns, answers=f"c{number + index}")


def spoken(run: Trajectory) -> list[Any]:
    """What a run says: its messages, calls, results and reasoning in order."""
    out: list[Any] = []
    names = {(it.step, it.call): it.call_id for step in run.steps for it in step.calls}
    for step in run.steps:
        if is_seen(step):
            out.append(_turn_of(step))
        out += [_result(row, names) for row in step.observations]
    return [*(_result(row, names) for row in run.early_observations), *out]


def _turn_of(step: Step) -> Any:
    reasoning = [] if step.reasoning is None else step.reasoning.split(JOINT)
    calls = [(it.name, json.loads(it.arguments or "null"), it.call_id) for it in step.calls]
    return step.source, step.text, reasoning, calls


def _result(row: Observation, names: dict[Any, Any]) -> Any:
    return "result", names.get((row.call_step, row.call)), row.text
