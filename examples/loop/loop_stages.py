"""What is special to this example in `loop.yaml`: first model, tasks, teachers, judge."""

import os
from pathlib import Path

from adp.workflows.loop.ordered_store import write_ordered
from examples.loop import run, stages
from examples.loop.scale import SCALES
from examples.loop.work import Work


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
    return facts | _ordered(work, "pool", out)


def probes(out: Path, seed: int, *, size: str, model: str):
    """Let a model act, and note beside its faults what it should have done."""
    work = _work(out)
    place = os.path.relpath(model, work.root)
    facts = stages.probe(work, SCALES[size], seed, place, "probes")
    return facts | _ordered(work, "probes", out)


def _work(out: Path) -> Work:
    """A folder beside the result, which goes when the stage is done."""
    work = Work(out.with_name(f"{out.name}-made").absolute())
    work.root.mkdir(parents=True, exist_ok=True)
    return work


def _ordered(work: Work, name: str, out: Path) -> dict:
    """Put the episodes in an order that does not depend on which of them ended first."""
    write_ordered(work.path(name), out, work.path("scratch"))
    return {}
