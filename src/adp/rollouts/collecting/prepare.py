"""Before a run: what there is to do, and what a finished store says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from adp.rollouts.collecting.alternate_counts import note_alternates
from adp.rollouts.collecting.branching.counts import note_branching
from adp.rollouts.collecting.counts import CollectReport, Episode
from adp.rollouts.collecting.earlier_stores import read_earlier
from adp.rollouts.collecting.output_store import episodes_of
from adp.rollouts.collecting.plan import EpisodePlan
from adp.rollouts.collecting.run_file import begun_with, most_asked
from adp.rollouts.collecting.setting_differences import check_same, since_advice
from adp.rollouts.collecting.settings import CollectSettings
from adp_schema.errors import NothingNewError, OutputExistsError, UsageError
from adp_schema.model import Task


def plan_of(root: Path, tasks: Sequence[Task], settings: CollectSettings) -> EpisodePlan:
    """What a run has to do.

    Raises:
        UsageError: the tasks have no ids of their own, or earlier stores have others of these ids.
        OutputExistsError: an earlier store was made with other settings.
        NothingNewError: earlier stores hold all of it, and there is no store to go on with.
    """
    if any(Path(place).resolve() == root.resolve() for place in settings.since):
        raise UsageError(f"-o and --since both name {root}; choose another -o")
    before = begun_with(root) or {}
    earlier, dataset = read_earlier(settings.since, settings.dataset or before.get("dataset"))
    name = str(dataset or root.resolve().name or "rollouts")
    plan = EpisodePlan(name, tasks, settings, earlier)
    earlier.check(plan.settings(), tasks)
    if settings.since and not root.exists():
        result = look(plan)
        if not result.left and not (settings.retry_failed and result.failed):
            broken = f", {result.failed:,} of them broken" if result.failed else ""
            raise NothingNewError(
                f"nothing is left to do: {', '.join(settings.since)} "
                f"{'holds' if len(settings.since) == 1 else 'hold'} all {result.asked:,} episodes "
                f"that this call asks for{broken}; {root} was not made"
            )
        plan = EpisodePlan(name, tasks, settings, earlier)
    plan.report.notes += earlier.notes()
    return plan


def look(plan: EpisodePlan, there: Iterable[Episode] = ()) -> CollectReport:
    """The report of a run that does nothing.

    Args:
        plan: what was asked for; it cannot be used again.
        there: all tries that the store holds.
    """
    plan.jobs(there)
    return plan.close([])


def look_up(root: Path, plan: EpisodePlan, settings: CollectSettings) -> CollectReport:
    """The report of a run whose store was sealed.

    Raises:
        OutputExistsError: it was begun with other settings or by something else, or not all of
            what is asked for was done.
    """
    before = begun_with(root)
    if before is None:
        raise OutputExistsError(
            f"{root} holds a store already; choose another -o or remove it first"
        )
    check_same(root, before, plan.settings())
    report = look(plan, episodes_of(root, plan.dataset))
    if report.left or (settings.retry_failed and report.failed):
        text = f"with {report.left:,} episodes left and {report.failed:,} broken"
        raise OutputExistsError(
            f"{root} is sealed, {text}, and takes no more; {since_advice(root, settings.since)}"
        )
    report.sealed, report.most_asked = True, most_asked(root)
    note_branching(report, root, plan.dataset, settings.branching)
    note_alternates(report, root, plan.dataset)
    return report
