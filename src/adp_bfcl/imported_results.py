"""BFCL's result files as trajectories, so that `adp score` and the reports take them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from adp.rendering.arguments import object_of, whole_text
from adp.stores.locks import alone
from adp_bfcl.answers import flat
from adp_bfcl.decoding import Mode
from adp_bfcl.entries import BfclEntry
from adp_bfcl.loader import Rejected
from adp_bfcl.results import Answered, modes_of, question_of, read_results, unknown
from adp_bfcl.tasks import task_of
from adp_schema.errors import EmptyResultError, OutputExistsError
from adp_schema.model import Step, Task, ToolCall, Trajectory
from adp_schema.seal_store import seal
from adp_schema.store import Store


@dataclass
class Imported:
    """What became of the rows of result files.

    Attributes:
        trajectories: number of trajectories in the store.
        unknown: rows without a question, by reason.
        rejected: rows that could not be read.
        models: names of the models.
    """

    trajectories: int = 0
    unknown: Counter[str] = field(default_factory=Counter)
    rejected: list[Rejected] = field(default_factory=list)
    models: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """Number of rows in the files."""
        return self.trajectories + sum(self.left_out.values())

    @property
    def left_out(self) -> dict[str, int]:
        """Why rows are not in the store, and how many."""
        return {**self.unknown, **({"rejected": len(self.rejected)} if self.rejected else {})}

    def plain(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {
            "rows": self.rows,
            "trajectories": self.trajectories,
            "left_out": self.left_out,
            "models": self.models,
            "rejected": [str(item) for item in self.rejected],
        }


@alone
def store_results(
    folder: Path, out: str, entries: Mapping[str, BfclEntry], *, mode: Mode | None = None
) -> Imported:
    """Read a folder of results into a new store.

    Args:
        folder: ``result``, or the folder of one model in it.
        out: folder of the store.
        entries: the entries by id; see `adp_bfcl.loader.by_id`.
        mode: form of the answers; None: see `adp_bfcl.scores.judge_results`.

    Raises:
        InputError: there is no result file.
        EmptyResultError: no row answers a known question; nothing is written.
        OutputExistsError: the store is there already.
        StoreError: it cannot be written, or another run writes there.
    """
    if Path(out).exists():
        raise OutputExistsError(f"{out} is there already; choose another name")
    done = Imported()
    trajectories = trajectories_of(folder, entries, mode=mode, done=done)
    first = next(trajectories, None)
    if first is None:
        why = "; ".join(f"{count:,}: {reason}" for reason, count in done.left_out.items())
        raise EmptyResultError(f"no row of {folder} answers a known question ({why})")
    with Store.grow(out) as store:
        for trajectory in chain([first], trajectories):
            store.append(trajectory)
            done.trajectories += 1
    seal(Path(out))
    return done


def trajectories_of(
    folder: Path,
    entries: Mapping[str, BfclEntry],
    *,
    mode: Mode | None = None,
    done: Imported | None = None,
) -> Iterator[Trajectory]:
    """Read a folder of results as trajectories with their tasks.

    Messages of the tools are not in result files, so the steps are those of user and agent. Rows
    without a question are left out; `adp_bfcl.scores.judge_results` names them.

    Args:
        folder: ``result``, or the folder of one model in it.
        entries: the entries by id; see `adp_bfcl.loader.by_id`.
        mode: form of the answers; None: see `adp_bfcl.scores.judge_results`.
        done: told which rows were left out.

    Raises:
        InputError: there is no result file.
    """
    done = done or Imported()
    answered = list(read_results(folder, done.rejected))
    modes = modes_of(answered, mode)
    done.models = sorted(modes)
    for item in answered:
        entry = question_of(item, entries)
        if entry is None:
            done.unknown[unknown(item)] += 1
        else:
            yield _trajectory(item, entry, task_of(entry), modes[item.model])


def _trajectory(value: Answered, entry: BfclEntry, task: Task, mode: Mode) -> Trajectory:
    steps: list[Step] = []
    turns = (
        value.result if entry.multi_turn and isinstance(value.result, list) else [[value.result]]
    )
    for number, messages in enumerate(entry.question[: len(turns)]):
        for message in messages:
            steps.append(
                Step(
                    step=len(steps),
                    turn=number,
                    source=str(message["role"]),
                    kind="message",
                    text=whole_text(str(message["content"])),
                )
            )
        for answer in turns[number] if isinstance(turns[number], list) else ():
            steps.append(_step(answer, len(steps), number, value.model))
    noted = {"id": entry.entry_id, "category": entry.category, "mode": mode, "result": value.result}
    name = f"{value.model}/{value.entry_id}"
    return Trajectory(
        trajectory_id=f"bfcl/{name}",
        source_id=name,
        source_format="bfcl_result",
        dataset="bfcl",
        split="test",
        task_id=task.task_id,
        attempt=0,
        agent_name=value.model,
        agent_model=value.model,
        total_tokens_in=_total(value.row.get("input_token_count")),
        total_tokens_out=_total(value.row.get("output_token_count")),
        extra=json.dumps({"bfcl": noted}),
        steps=steps,
        task=task,
    )


def _step(answer: Any, number: int, turn: int, model: str) -> Step:
    step = Step(step=number, turn=turn, source="agent", kind="llm_turn", model=model)
    if isinstance(answer, list) and all(isinstance(call, Mapping) for call in answer):
        pairs = [(name, value) for call in answer for name, value in call.items()]
        step.calls = [
            _call(number, index, str(name), value) for index, (name, value) in enumerate(pairs)
        ]
    else:
        step.text = whole_text(answer if isinstance(answer, str) else json.dumps(answer))
    return step


def _call(step: int, index: int, name: str, value: Any) -> ToolCall:
    text = whole_text(value if isinstance(value, str) else json.dumps(value))
    valid = object_of(text)[1]
    return ToolCall(
        step=step,
        call=index,
        call_id=f"call_{step}_{index}",
        kind="function",
        name=whole_text(name),
        arguments=text if valid else None,
        arguments_raw=None if valid else text,
        arguments_kind="json_string" if valid else "invalid",
        origin="structured",
    )


def _total(value: Any) -> int | None:
    numbers = [item for item in flat(value) if isinstance(item, int | float)]
    return round(sum(numbers)) if numbers else None
