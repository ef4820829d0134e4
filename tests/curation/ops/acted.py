"""Stores of described runs of agents, and a plain reading of the same descriptions.

A run is a dict: ``steps`` and columns of the trajectory. A step has columns, ``calls`` and
``seen`` (observations that answer no call); a call has columns and ``results``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from adp_schema.builder import Origin, RowBuilder
from adp_schema.store import Store
from tests.store_builders import write_store

SPACING = 10


def agent(text: str | None = "so", *calls: dict[str, Any], **columns: Any) -> dict[str, Any]:
    """A step of the agent."""
    return {"source": "agent", "kind": "llm_turn", "text": text, "calls": list(calls), **columns}


def user(text: str | None = "do it", **columns: Any) -> dict[str, Any]:
    """A step of the user."""
    return {"source": "user", "kind": "message", "text": text, **columns}


def call(
    name: str, arguments: str | None, *results: dict[str, Any], **columns: Any
) -> dict[str, Any]:
    """A call, with its results."""
    ours = {"kind": "function", "name": name, "arguments": arguments, **columns}
    return {**ours, "results": list(results)}


def result(text: str | None, **columns: Any) -> dict[str, Any]:
    """An observation."""
    return {"source": "environment", "text": text, **columns}


def write(folder: Path, runs: Iterable[dict[str, Any]], shards: int = 1) -> Store:
    """Write a store of runs; ``seq`` is the place times `SPACING`."""
    listed = list(runs)
    builders = [RowBuilder() for _ in range(shards)]
    size = -(-len(listed) // shards)
    for place, run in enumerate(listed):
        _add(builders[place // size], place, run)
    return write_store(folder, *builders)


def _add(builder: RowBuilder, place: int, run: dict[str, Any]) -> None:
    columns = {name: value for name, value in run.items() if name not in ("steps", "early")}
    builder.begin(Origin(seq=place * SPACING, dataset=columns.get("dataset") or "d"))
    builder.trajectory({"source_id": str(place), **columns})
    for seen in run.get("early", ()):
        builder.observation(dict(seen))
    for number, step in enumerate(run["steps"]):
        builder.step({k: v for k, v in step.items() if k not in ("calls", "seen")})
        for index, entry in enumerate(step.get("calls", ())):
            name = f"c{number}-{index}"
            builder.call({**{k: v for k, v in entry.items() if k != "results"}, "call_id": name})
            for answer in entry["results"]:
                builder.observation(dict(answer), answers=name)
        for seen in step.get("seen", ()):
            builder.observation(dict(seen))
    builder.finish()


# ---- a plain reading ---------------------------------------------------------------------------


def status(row: dict[str, Any]) -> bool | None:
    """Whether a result failed, as recorded."""
    if row.get("is_error") or row.get("error_type") is not None or row.get("exit_code"):
        return True
    known = row.get("is_error") is not None or row.get("exit_code") is not None
    return False if known else None


def calls_of(run: dict[str, Any]) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Step, index and call, in order, without those of the user."""
    for number, step in enumerate(run["steps"]):
        for index, entry in enumerate(step.get("calls", ())):
            if entry.get("requestor") != "user":
                yield number, index, entry


def results_of(run: dict[str, Any]) -> Iterator[tuple[int, int | None, int, dict[str, Any]]]:
    """Step, call, order and result, in order: observations, and steps that stand for one."""
    steps = run["steps"]
    for number, step in enumerate(steps):
        order = 0
        for index, entry in enumerate(step.get("calls", ())):
            for answer in entry["results"]:
                yield number, index, order, answer
                order += 1
        for seen in step.get("seen", ()):
            yield number, None, order, seen
            order += 1
        if order or step["source"] != "agent" or number + 1 == len(steps):
            continue
        following = steps[number + 1]
        indexes = [
            index
            for at, index, outcome in calls_of(run)
            if at == number and outcome["kind"] != "message"
        ]
        if indexes and following["source"] in ("user", "environment"):
            yield number, indexes[-1], 0, {"text": following["text"], "spoken": number + 1}


TOOLS = (
    '[{"name": "a", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}, '
    '"required": ["x"]}}]'
)

# ---- any runs ----------------------------------------------------------------------------------

names = st.sampled_from(["a", "b"])
argument_texts = st.sampled_from(
    [
        '{"x": 1}',
        '{"x":1}',
        '{"x": 2, "y": "long word here"}',
        '{"y":"long word here","x":2}',
        "[",
        "{}",
    ]
)
texts = st.sampled_from(
    [
        "",
        " ",
        "fine",
        "Error: no",
        "the value is 8472",
        "uses 8472 now",
        "Kennzeichen öäü",
        "x" * 900,
    ]
)
results = st.fixed_dictionaries(
    {"text": st.none() | texts},
    optional={
        "is_error": st.booleans(),
        "exit_code": st.sampled_from([0, 2]),
        "error_type": st.just("Boom"),
        "truncated": st.booleans(),
        "source": st.just("environment"),
    },
)


def _call(
    name: str | None, arguments: str | None, answers: Sequence[Any], more: Any
) -> dict[str, Any]:
    ours: dict[str, Any] = {"kind": "function", "name": name, "results": list(answers), **more}
    ours["arguments"] = arguments if arguments != "[" else None
    if arguments == "[":
        ours |= {"arguments_raw": "[", "arguments_kind": "invalid"}
    return ours


calls = st.builds(
    _call,
    st.none() | names | names,
    st.none() | argument_texts | argument_texts,
    st.lists(results, max_size=2),
    st.fixed_dictionaries(
        {},
        optional={
            "requestor": st.sampled_from(["agent", "user"]),
            "kind": st.sampled_from(["code", "message"]),
        },
    ),
)
agents = st.fixed_dictionaries(
    {
        "source": st.just("agent"),
        "kind": st.just("llm_turn"),
        "text": st.none() | texts,
        "calls": st.lists(calls, max_size=3),
    },
    optional={
        "reasoning": texts,
        "seen": st.lists(results, max_size=1),
        "stop_reason": st.sampled_from(["stop", "length", "max_tokens"]),
        "loss_weight": st.sampled_from([0.0, 0.5, 1.0]),
        "is_copied_context": st.booleans(),
        "actor": st.sampled_from(["agent", "expert"]),
        "labels": st.lists(st.sampled_from(["REWARD_AGENT_STUCK", "REWARD_SUCCESS_TOOL_CALL"])),
    },
)
others = st.fixed_dictionaries(
    {
        "source": st.sampled_from(["user", "environment", "system"]),
        "kind": st.just("message"),
        "text": st.none() | texts,
    }
)
runs = st.fixed_dictionaries(
    {"steps": st.lists(st.one_of(agents, agents, others), max_size=7)},
    optional={
        "success": st.booleans(),
        "reward": st.sampled_from([-1.0, 0.0, 0.4, 1.0]),
        "truncated": st.booleans(),
        "stop_reason": st.sampled_from(["done", "max_steps"]),
        "final_answer": st.sampled_from(["", "42"]),
        "error_type": st.sampled_from(["ConnectionError", "Odd"]),
        "task_id": st.sampled_from(["t", "u"]),
        "tools": st.just(TOOLS),
        "early": st.lists(results, max_size=1),
    },
)
