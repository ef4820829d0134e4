"""The buffers of `adp evolve` as records of ET-Agent's flywheel, a record a task."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from adp.converters.systems.et_agent import FLYWHEEL
from adp.core.json_values import json_object
from adp.rollouts.evolving.lineage import lineage_of
from adp_schema import jsontext
from adp_schema.errors import EmptyResultError, OutputExistsError
from adp_schema.losses import Losses
from adp_schema.manifest import write_atomic
from adp_schema.model import Trajectory
from adp_schema.store import Store

_LISTED = "evolve_trajectories_buffer"


def flywheel_records(store: Store, losses: Losses | None = None) -> Iterator[dict[str, Any]]:
    """The records: parallel lists of texts, answers and verdicts, and what the judge said.

    Places at which no trajectory was made are left out. The first item is the initial trajectory.

    Args:
        store: a store of `adp evolve`.
        losses: takes what the texts have no place for, such as calls of other tools than a search
            and Python.
    """
    places: dict[str, list[tuple[int, str]]] = {}
    frame = store.scan("trajectories").select(
        *("task_id", "attempt", "trajectory_id", "extra", "error_type")
    )
    for task_id, attempt, name, extra, error in frame.collect().iter_rows():
        if error is None and lineage_of(extra):
            places.setdefault(str(task_id), []).append((attempt or 0, name))
    for listed in places.values():
        runs = [store.get(name, exact=True) for _, name in sorted(listed)]
        yield _record(runs, losses or Losses())


def write_flywheel(store: Store, out: str | os.PathLike[str]) -> int:
    """Write the records into a file.

    Args:
        store: a store of `adp evolve`.
        out: the file; JSON, a list.

    Returns:
        How many.

    Raises:
        OutputExistsError: the file is there already.
        EmptyResultError: the store holds no buffer.
    """
    path = Path(out)
    if path.exists():
        raise OutputExistsError(f"{path} is there already; remove it, or name another file")
    records = [jsontext.encode(record) for record in flywheel_records(store)]
    if not records:
        raise EmptyResultError(f"{store.name} holds no buffer; adp evolve makes such stores")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, "[\n" + ",\n".join(text.decode() for text in records) + "\n]\n")
    return len(records)


def _record(runs: list[Trajectory], losses: Losses) -> dict[str, Any]:
    first, rest = runs[0], runs[1:]
    for number, run in enumerate(runs):  # places without a trajectory leave gaps
        run.attempt = number
    lineages = [lineage_of(run.extra) for run in runs]
    record = FLYWHEEL.write(first.model_copy(update={"branches": rest}), losses)
    words = [_judgement(lineage) for lineage in lineages]
    task = json_object(first.task.extra) if first.task is not None else {}
    known = {
        "initial_output": record[_LISTED][0],
        "prediction": record["evolve_predictions"][0],
        "source": task.get("source", ""),
        "initial_logs": [],
        "evolve_judgements": [text for text in words if text is not None],
    }
    record |= {key: known.get(key, record.get(key)) for key in known if key not in record}
    return {key: record[key] for key in FLYWHEEL.keys.order if key in record}


def _judgement(lineage: dict[str, Any]) -> str | None:
    """What the refiner or the analyser said about a trajectory's parent."""
    words = lineage.get("words") or {}
    return next((words[name] for name in _JUDGEMENTS if name in words), None)


_JUDGEMENTS = ("flawed_step", "redundant_step", "global_refinement")
