"""Small runs of an agent for the tests of exporters: each step says a word of its own.

A run is described by its steps, so hypothesis can look for the one that goes wrong, and a test can
say by the words alone which steps a file trains.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from adp_schema.builder import Origin, RowBuilder
from adp_schema.store import Store
from tests.store_builders import write_store

TOOLS = json.dumps(
    [
        {
            "type": "function",
            "function": {
                "name": "search",
                "description": "Search.",
                "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
            },
        }
    ]
)

WORD = re.compile(r"\bw\d+x\d+\b")


@dataclass(frozen=True)
class Turn:
    """One step.

    Attributes:
        role: system, user or agent.
        weight: of an agent, its weight in the loss; None for the default.
        calls: number of calls that it makes, each with a result.
        reasoning: whether it reasons.
        broken: whether the arguments of its first call are no JSON object.
        copied: whether it repeats earlier context.
        edit: whether the context is cut before it.
        says: what it says in place of a word of its own.
    """

    role: str = "agent"
    weight: float | None = None
    calls: int = 0
    reasoning: bool = False
    broken: bool = False
    copied: bool = False
    edit: bool = False
    says: str | None = None

    @property
    def counts(self) -> bool:
        """Whether it has a weight in the loss."""
        return self.role == "agent" and not self.copied and self.weight != 0


@dataclass(frozen=True)
class Run:
    """One trajectory.

    Attributes:
        turns: its steps.
        branch: of a branch, how many steps of the run before it it keeps; 0 for a main line.
        success: whether it solved its task.
    """

    turns: tuple[Turn, ...] = (Turn("user"), Turn())
    branch: int = 0
    success: bool | None = None
    columns: dict[str, Any] = field(default_factory=dict)


turns = st.builds(
    Turn,
    role=st.sampled_from(["user", "agent", "agent", "agent", "system"]),
    weight=st.sampled_from([None, None, 1.0, 0.0, 0.5]),
    calls=st.integers(0, 2),
    reasoning=st.booleans(),
    broken=st.sampled_from([False, False, True]),
    copied=st.sampled_from([False, False, False, True]),
    edit=st.sampled_from([False, False, False, False, True]),
)
runs = st.builds(
    Run,
    turns=st.lists(turns, max_size=5).map(lambda item: (Turn("user"), *item)),
    branch=st.sampled_from([0, 0, 1, 2, 3]),
    success=st.sampled_from([None, True, False]),
)


def word(run: int, step: int) -> str:
    """The word of a step."""
    return f"w{run}x{step}"


def write_runs(
    folder: Path, described: Iterable[Run], pairs: Iterable[dict[str, Any]] = ()
) -> Store:
    """Write a store of runs, in order, and of pairs."""
    builder = RowBuilder()
    before = 0
    for number, run in enumerate(described):
        builder.begin(Origin(seq=number * 10, dataset="d"))
        kept = min(run.branch, before)
        columns = {"source_id": f"r{number}", "tools": TOOLS, "success": run.success, **run.columns}
        if kept:
            columns |= {"parent_id": f"d/r{number - 1}", "parent_step": kept}
            columns["branch_kind"] = "rewind"
        builder.trajectory(columns)
        for place, turn in enumerate(run.turns):
            _step(builder, word(number, place), turn)
        builder.finish()
        before = kept + sum(1 + turn.edit for turn in run.turns)
    for pair in pairs:
        builder.pair(pair)
    return write_store(folder, builder)


def _step(builder: RowBuilder, text: str, turn: Turn) -> None:
    if turn.edit:
        builder.step({"source": "environment", "kind": "context_edit", "edit_boundary": "truncate"})
    if turn.role != "agent":
        builder.step({"source": turn.role, "kind": "message", "text": f"said {turn.says or text}"})
        return
    builder.step(
        {
            "source": "agent",
            "kind": "llm_turn",
            "text": f"did {turn.says or text}",
            "reasoning": "hm, let me see" if turn.reasoning else None,
            "loss_weight": turn.weight,
            "is_copied_context": turn.copied or None,
        }
    )
    for number in range(turn.calls):
        name = f"{text}c{number}"
        call = {"call_id": name, "kind": "function", "name": "search"}
        if turn.broken and number == 0:
            builder.call({**call, "arguments_raw": "{oops", "arguments_kind": "invalid"})
        else:
            builder.call({**call, "arguments": '{"query": "x", "share": 3.141592653589793}'})
        builder.observation({"text": f"found {number}"}, answers=name)


def weighed(described: Iterable[Run], *, branches: bool) -> dict[str, Turn]:
    """The words of the steps that have a weight, by the description alone."""
    results: dict[str, Turn] = {}
    for number, run in enumerate(described):
        # A branch of a run without steps would be a main line; every run has one at least.
        if not (run.branch and number) or branches:
            results |= {
                word(number, place): turn for place, turn in enumerate(run.turns) if turn.counts
            }
    return results
