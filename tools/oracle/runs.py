"""Made-up runs for the oracles of trainers' rows, by what is special about them."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adp_schema.builder import Origin, RowBuilder
from adp_schema.store import Store

RUNS_A_CASE = 8


@dataclass(frozen=True)
class Case:
    """What is special about a run.

    Attributes:
        calls: most calls of one step.
        users: turns of the user.
        reasoning: whether steps have reasoning.
        words: whether words stand beside calls.
        masked: whether some steps are not trained.
        system: whether there is a message of the system.
        tools: whether tools are on offer, and called.
    """

    calls: int = 1
    users: int = 1
    reasoning: bool = False
    words: bool = False
    masked: bool = False
    system: bool = True
    tools: bool = True


CASES: dict[str, Case] = {
    "words only": Case(tools=False),
    "no system": Case(system=False),
    "single calls": Case(),
    "words beside calls": Case(words=True),
    "parallel calls": Case(calls=3),
    "reasoning": Case(reasoning=True),
    "reasoning, several users": Case(reasoning=True, users=3),
    "several users": Case(users=3),
    "masked steps": Case(masked=True, users=2),
    "everything": Case(3, 3, reasoning=True, words=True, masked=True),
}

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look",
            "description": "Looks at a place, in metres; “all” is allowed.",
            "parameters": {
                "type": "object",
                "properties": {"at": {"type": "string"}, "limit": {"type": "integer"}},
                "required": ["at"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "write_file",
            "description": "Writes a file.",
            "parameters": {"type": "object", "properties": {"lines": {"type": "array"}}},
        },
    },
]

_WORDS = (
    *("the", "sea", "harbour", "7", "boats,", "ropes", "and", "“salt”", "café", "x < y", "&", "'s"),
    *("if a:\n    b()", "naïve", "→", "3.50", "{brackets}", "<b>", "海", "\\n"),
)


@dataclass
class _Maker:
    """Makes one run."""

    builder: RowBuilder
    case: Case
    draw: random.Random
    steps: list[int] = field(default_factory=list)

    def words(self, most: int = 9) -> str:
        return " ".join(self.draw.choice(_WORDS) for _ in range(self.draw.randint(2, most)))

    def run(self, name: str, seq: int) -> None:
        case, builder = self.case, self.builder
        builder.begin(Origin(seq=seq, dataset="made"))
        tools = json.dumps(TOOLS, ensure_ascii=False) if case.tools else None
        builder.trajectory({"source_id": name, "task_id": name, "tools": tools})
        builder.task({"dataset": "made", "task_id": name, "answers": json.dumps([self.words()])})
        if case.system:
            builder.step({"source": "system", "kind": "message", "text": self.words()})
        for _ in range(case.users):
            builder.step({"source": "user", "kind": "message", "text": self.words()})
            for _ in range(self.draw.randint(1, 2) if case.tools else 0):
                self._calling()
            self._agent(self.words())
        builder.finish()

    def _agent(self, text: str | None) -> None:
        columns: dict[str, Any] = {"source": "agent", "kind": "llm_turn", "text": text}
        if self.case.reasoning and self.draw.random() < 0.8:
            columns["reasoning"] = self.words()
        if self.case.masked and self.draw.random() < 0.4:
            columns["loss_weight"] = 0.0
        self.steps.append(self.builder.step(columns))

    def _calling(self) -> None:
        self._agent(self.words(4) if self.case.words else None)
        count = self.draw.randint(1, self.case.calls)
        for _ in range(count):
            if self.draw.random() < 0.6:
                name, given = "look", {"at": self.words(3), "limit": self.draw.randint(0, 9)}
            else:
                name, given = "write_file", {"lines": [self.words(2), None, {"deep": 1.5}]}
            text = json.dumps(given, ensure_ascii=False)
            self.builder.call({"kind": "function", "name": name, "arguments": text})
        for _ in range(count):
            self.builder.observation({"source": "environment", "text": self.words()}, by_order=True)


def made_runs(folder: Path, runs: int = RUNS_A_CASE) -> Store:
    """A store of some runs of each case; the id of a run begins with its case.

    Args:
        folder: folder of the store; it is made.
        runs: runs of each case.
    """
    from tests.store_builders import write_store

    builder = RowBuilder()
    for index, (name, case) in enumerate(CASES.items()):
        for number in range(runs):
            seq = index * RUNS_A_CASE + number
            _Maker(builder, case, random.Random(seq)).run(f"{name} {number}", seq)
    return write_store(folder, builder)


def made_pairs(folder: Path, runs: int = RUNS_A_CASE) -> Store:
    """A store of pairs: the last steps of two runs of a case that begin alike.

    Args:
        folder: folder of the store; it is made.
        runs: pairs of each case.
    """
    from tests.store_builders import write_store

    builder = RowBuilder()
    for index, (name, case) in enumerate(CASES.items()):
        for number in range(runs):
            seq = (index * RUNS_A_CASE + number) * 2
            ends = []
            for side in (0, 1):
                maker = _Sided(builder, case, random.Random(seq), side=side)
                maker.run(f"{name} {number} {side}", seq + side)
                ends.append(maker.steps[-1])
            builder.pair(
                {
                    "pair_id": f"{name} {number}",
                    "level": "step",
                    **_side("chosen", f"made/{name} {number} 0", ends[0]),
                    **_side("rejected", f"made/{name} {number} 1", ends[1]),
                }
            )
    return write_store(folder, builder)


def _side(which: str, trajectory_id: str, step: int) -> dict[str, Any]:
    return {f"{which}_id": trajectory_id, f"{which}_from": step, f"{which}_to": step + 1}


@dataclass
class _Sided(_Maker):
    """Makes the same run for both sides, but for the last step."""

    side: int = 0

    def run(self, name: str, seq: int) -> None:
        case, builder = self.case, self.builder
        super().run(name, seq)
        last = builder.rows["steps"][-1]
        other = random.Random((seq << 1) + 7 + self.side)
        last["text"] = " ".join(other.choice(_WORDS) for _ in range(8))
        if case.reasoning:
            last["reasoning"] = f"side {self.side}"
        last["loss_weight"] = None
