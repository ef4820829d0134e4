"""The stage ``evolve``: `adp evolve`, whose store is then in the order of the ids."""

from __future__ import annotations

from pathlib import Path

from adp.rollouts.evolving.evolve_options import EvolveOptions, prepare_evolve
from adp.rollouts.spec import read_spec, split_named
from adp.workflows.loop.ordered_store import write_ordered
from adp.workflows.loop.stage_kind import StageContext, StageFacts, StageKind, given_spec
from adp.workflows.loop.stages.collect import episode_facts, placed, silent


class EvolveStage(EvolveOptions):
    """Options of a stage ``evolve``: those of the command."""

    store: str
    """The store with the first trajectories."""
    no_times: bool = True
    """Keep no times, which differ from run to run."""


def _placed(options: EvolveStage, context: StageContext) -> EvolveStage:
    result: EvolveStage = placed(options, context)
    named = {name: getattr(result, name) for name in ("refiner", "analyser", "judge")}
    changes = {
        name: given_spec(value, context) for name, value in named.items() if isinstance(value, str)
    }
    return result.model_copy(update=changes)


def _check(options: EvolveStage, context: StageContext) -> None:
    _placed(options, context).check()


def _run(options: EvolveStage, context: StageContext, out: Path) -> None:
    source = out.with_name(f"{out.name}-unordered")
    note = source.with_suffix(".done")
    if not out.exists() and not note.exists():
        given = _placed(options, context)
        with silent(read_spec(split_named(given.policy)[0])[0]):
            prepared = prepare_evolve(given, context.given_path(given.store), seal=True)
            prepared.run(source).check()
        note.touch()
    write_ordered(source, out, out.with_name(f"{out.name}-scratch"))


def _facts(options: EvolveStage, folder: Path) -> StageFacts:
    return episode_facts(folder)


KIND = StageKind(
    name="evolve",
    about="Operators make new trajectories of those of a store, in rounds.",
    options=EvolveStage,
    run=_run,
    facts=_facts,
    check=_check,
    free=frozenset({"concurrency", "max_failures", "retry_failed"}),
)
