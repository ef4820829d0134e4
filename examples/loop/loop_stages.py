"""What is special to this example in `loop.yaml`: first model, tasks, teachers, judge."""

import json
import os
import sys
from pathlib import Path

from adp.workflows.loop.ordered_store import write_ordered

ROOT = str(Path(__file__).resolve().parents[2])
if ROOT not in sys.path:  # adp loads this file by its place, from whatever folder
    sys.path.append(ROOT)

from examples.loop import run, stages  # noqa: E402
from examples.loop.names import name_loss  # noqa: E402
from examples.loop.scale import SCALES  # noqa: E402
from examples.loop.work import Work  # noqa: E402


def tasks(out: Path, seed: int, *, size: str):
    """Write the tasks that are measured on."""
    out.mkdir(parents=True)
    return stages.write_tasks(Work(out), SCALES[size], seed)


def base(out: Path, seed: int, *, size: str):
    """Make the model with random weights, and teach it to copy."""
    work = _work(out)
    facts = run.base(work, SCALES[size], seed)
    work.path("base").rename(out)
    return facts


def pool(out: Path, seed: int, *, size: str):
    """Let the teachers act."""
    work = _work(out)
    facts = stages.collect(work, SCALES[size], seed)
    _ordered(work, "pool", out)
    return facts


def leaked(out: Path, seed: int, *, size: str):
    """Let the teachers act at tasks of the split test, by mistake."""
    work = _work(out)
    facts = stages.collect_leaked(work, SCALES[size], seed)
    _ordered(work, "leaked", out)
    return facts


def names(out: Path, seed: int, *, size: str, model: str):
    """Take the loss of a model on names; one that is too high did not learn to copy."""
    out.mkdir(parents=True)
    tasks = stages.tasks_of(SCALES[size], "train", run.NAME_TASKS, seed, stages.NAMES)
    loss = name_loss(Path(model), tasks)
    facts = {"name_loss": round(loss, 4), "learnt": loss <= run.LEARNT}
    (out / "names.json").write_text(json.dumps(facts) + "\n")
    return facts


def probes(out: Path, seed: int, *, size: str, model: str):
    """Let a model act, and note beside its faults what it should have done."""
    work = _work(out)
    place = os.path.relpath(model, work.root)
    facts = stages.probe(work, SCALES[size], seed, place, "probes")
    _ordered(work, "probes", out)
    return facts


def _work(out: Path) -> Work:
    """A folder beside the result, which goes when the stage is done."""
    work = Work(out.with_name(f"{out.name}-made").absolute())
    work.root.mkdir(parents=True, exist_ok=True)
    return work


def _ordered(work: Work, name: str, out: Path) -> None:
    """Put the episodes in an order that does not depend on which of them ended first."""
    write_ordered(work.path(name), out, work.path("scratch"))
