"""What `adp collect` says when a run has ended."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from adp.cli.text import console, counted, visible

if TYPE_CHECKING:
    from adp.eval.rollout.tally import CollectReport, Tally
    from adp.eval.rollout.task_files import TaskSet


def say_tasks(found: TaskSet, tasks: str) -> None:
    """Say on stderr what was noted about the tasks, and which records are none."""
    for note in found.notes:
        print(visible(f"{tasks}: {note}"), file=sys.stderr)
    if not found.refused:
        return
    total = f"{found.records:,} records = {len(found.tasks):,} tasks + {found.refused:,} refused"
    print(visible(f"{tasks}: {total}"), file=sys.stderr)
    for reason in found.reasons[:5]:
        print(visible(f"  {reason}"), file=sys.stderr)
    if found.refused > 5:
        print(f"  and {found.refused - 5:,} more; --json lists them", file=sys.stderr)


def remarks_of(policy: Any, found: TaskSet, report: CollectReport, cost: float | None) -> list[str]:
    """What else there is to say about a run.

    Args:
        policy: its method ``remarks(tasks)``, if there is one, is asked.
        found: the tasks.
        report: what became of the run.
        cost: the budget of the run in US dollars.
    """
    method = getattr(policy, "remarks", None)
    remarks = list(method(found.tasks)) if callable(method) else []
    if cost is not None and report.whole.episodes and not report.whole.priced:
        remarks.append("no episode has a known cost, so --total-cost could not stop the run")
    return remarks


def summary(
    report: CollectReport, out: str, tasks: int, n: int, remarks: Sequence[str] = ()
) -> None:
    """Print the counts of a run, and what to do next."""
    screen = console()

    def say(text: str) -> None:
        screen.print(visible(text), soft_wrap=True)

    say(
        f"asked: {report.asked:,} ({counted(tasks, 'task')} x {n}) = {report.done_before:,} done "
        f"before + {report.done_now:,} done now"
        + (f" + {report.done_elsewhere:,} by another process" if report.done_elsewhere else "")
        + f" + {report.failed:,} broken + {report.left:,} left"
    )
    for line in _lines(report.whole):
        say(line)
    now = report.plain()
    if report.now.episodes:
        say(
            f"this call: {counted(report.now.episodes, 'episode')} in {report.seconds:.1f} s, "
            f"{now['episodes_per_second']:,.1f} a second, "
            f"{now['tokens_per_second']:,.0f} tokens a second"
        )
    for remark in remarks:
        say(f"note: {remark}")
    if report.stopped:
        say(f"stopped: {report.stopped} is used up; the same call with more of it goes on")
    if report.hanging:
        said = counted(report.hanging, "call")
        say(f"hanging: {said} of tools did not return; what they do ends with this command")
    if report.sealed:
        say(f"sealed; next: adp stats {out}")
    elif report.failed and not report.left:
        say(
            f"next: the same call with --retry-failed tries the {report.failed:,} broken again; "
            f"or adp seal {out}"
        )
    elif report.left:
        say("next: the same call goes on")
    else:
        say(f"next: adp stats {out}; adp seal {out} ends it")


def _lines(whole: Tally) -> list[str]:
    lines = []
    unscored = whole.episodes - whole.broken - whole.scored
    if whole.scored:
        rate = whole.succeeded / whole.scored
        text = f"success: {rate:.3f} ({whole.succeeded:,} of {whole.scored:,} scored)"
        text += f"; {whole.by_reward:,} by the reward alone" if whole.by_reward else ""
        lines.append(text + (f"; {unscored:,} not scored" if unscored else ""))
    elif unscored:
        lines.append(f"success: none of the {unscored:,} episodes was scored")
    if whole.reasons:
        lines.append(
            f"ended: {whole.terminated:,} by themselves, {whole.truncated:,} cut "
            f"({_list(whole.reasons)})"
        )
    if whole.errors:
        lines.append(f"broken: {_list(whole.errors)}")
        said = whole.commonest()
        lines += [f"  {reason}: {said[reason]}" for reason in list(said)[:8]]
    if whole.tokens_in or whole.tokens_out:
        cost = f", {whole.cost_usd:.4f} USD" if whole.cost_usd else ""
        lines.append(f"tokens: {whole.tokens_in:,} read, {whole.tokens_out:,} written{cost}")
    return lines


def _list(counts: Any) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.most_common(8))


def say_branches(out: str) -> None:
    """Say how many alternates the store holds besides its episodes."""
    from adp.cli.info import branches_of
    from adp_schema.store import Store

    branches = branches_of(Store.open(out))
    if branches:
        held = counted(branches, "branch", "branches")
        console().print(
            f"the store holds {held} besides its episodes: the alternates; "
            "adp export --no-branches leaves them out",
            soft_wrap=True,
        )
