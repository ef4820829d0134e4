"""What `adp collect` says when a run has ended."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import Any

from adp.cli.info import branches_of
from adp.cli.text import counted, say, visible
from adp.rollouts.collecting.counts import CollectReport, EpisodeCounts
from adp.rollouts.collecting.task_files import TaskSet
from adp_schema.store import Store


def say_tasks(task_set: TaskSet, tasks: str) -> None:
    """Say on stderr what was noted about the tasks, and which records are none."""
    for note in task_set.notes:
        print(visible(f"{tasks}: {note}"), file=sys.stderr)
    if not task_set.refused:
        return
    count = len(task_set.tasks)
    total = f"{task_set.records:,} records = {count:,} tasks + {task_set.refused:,} refused"
    print(visible(f"{tasks}: {total}"), file=sys.stderr)
    for reason in task_set.reasons[:5]:
        print(visible(f"  {reason}"), file=sys.stderr)
    if task_set.refused > 5:
        print(f"  and {task_set.refused - 5:,} more; --json lists them", file=sys.stderr)


def say_branches(out: str) -> None:
    """Say how many branches a store holds besides its episodes."""
    branches = branches_of(Store.open(out))
    if branches:
        held = counted(branches, "branch", "branches")
        say(
            f"the store holds {held} besides its episodes: the alternates; "
            "adp export leaves them out, --branches rows writes them"
        )


def say_branching(report: CollectReport) -> None:
    """Say how the attempts in a store began, where they branch."""
    counts = report.branching
    if counts is None:
        return
    refused = counts["forks_refused"]
    say(
        f"branching: {counted(counts['groups'], 'group')} = {counts['initial']:,} initial + "
        f"{counted(counts['branches'], 'branch', 'branches')} + "
        f"{counted(counts['refills'], 'refill')}"
        + (f"; {counted(refused, 'branch', 'branches')} refused by the world" if refused else "")
    )


def say_alternates(report: CollectReport) -> None:
    """Say what became of alternates that were followed to the end."""
    counts = report.alternates
    if counts is None:
        return
    depths = " + ".join(f"{n:,} of depth {depth}" for depth, n in counts["by_depth"].items())
    results = [f"{counts['succeeded']:,} succeeded", f"{counts['failed']:,} failed"]
    results += [f"{counts[name]:,} {name}" for name in ("unscored", "broken") if counts[name]]
    beyond = f"; {counts['beyond']:,} beyond alternate_branches" if counts["beyond"] else ""
    say(
        f"alternates: {counted(counts['branches'], 'branch', 'branches')} = {depths}; "
        f"{', '.join(results)}; {counted(counts['calls'], 'call')}, {counts['tokens_in']:,} tokens "
        f"read, {counts['tokens_out']:,} written{beyond}"
    )


def remarks_of(report: CollectReport, cost: float | None) -> list[str]:
    """What else there is to say about a run.

    Args:
        report: what became of the run.
        cost: the budget of the run in US dollars.
    """
    remarks = [*report.notes]
    if cost is not None and report.whole.episodes and not report.whole.priced:
        remarks.append("no episode has a known cost, so --total-cost could not stop the run")
    return remarks


def summary(
    report: CollectReport,
    out: str,
    asked: tuple[int, int],
    remarks: Sequence[str] = (),
    since: Sequence[str] = (),
) -> None:
    """Print the counts of a run, and what to do next.

    Args:
        report: the counts.
        out: the store.
        asked: number of tasks, and attempts at each.
        remarks: what else to say.
        since: earlier stores, which hold a part of the episodes.
    """
    tasks, n = asked
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
        say(f"stopped: {_option(report.stopped)} is used up")
    if report.hanging:
        calls = counted(report.hanging, "call")
        say(f"hanging: {calls} of tools did not return; what they do ends with this command")
    for line in _next(report, out, n, since):
        say(line)


def _next(report: CollectReport, out: str, n: int, since: Sequence[str]) -> list[str]:
    """Whether the store was ended, and what to do next."""
    place = shlex.quote(out)
    if report.sealed and since:
        places = " ".join(shlex.quote(item) for item in since)
        return [f"sealed; next: adp merge {places} {place} -o {shlex.quote(f'{since[0]}-whole')}"]
    if report.sealed:
        return [f"sealed; next: adp stats {place}"]
    if report.failed and not report.left:
        again = f"the same call with --retry-failed tries the {report.failed:,} broken again"
        return [f"next: {again}; or adp seal {place}"]
    if report.left:
        # Seconds count from the beginning of each call.
        larger = report.stopped not in (None, "total_seconds")
        more = f" with a larger {_option(report.stopped)}" if larger else ""
        return [f"next: the same call{more} goes on"]
    if report.beyond or report.most_asked > n:
        held = counted(report.beyond, "episode")
        most = f", and a call asked for --n {report.most_asked}" if report.most_asked > n else ""
        return [
            f"not sealed: it holds {held} that this call does not ask for{most}",
            f"next: a larger --n goes on; adp seal {place} ends it as it is",
        ]
    return [f"next: adp stats {place}; adp seal {place} ends it"]


def _option(name: str | None) -> str:
    return f"--{name or ''}".replace("_", "-")


def _lines(episodes: EpisodeCounts) -> list[str]:
    lines = []
    unscored = episodes.episodes - episodes.broken - episodes.scored
    if episodes.scored:
        rate = episodes.succeeded / episodes.scored
        text = f"success: {rate:.3f} ({episodes.succeeded:,} of {episodes.scored:,} scored)"
        text += f"; {episodes.by_reward:,} by the reward alone" if episodes.by_reward else ""
        lines.append(text + (f"; {unscored:,} not scored" if unscored else ""))
    elif unscored:
        lines.append(f"success: none of the {unscored:,} episodes was scored")
    if episodes.reasons:
        lines.append(
            f"ended: {episodes.terminated:,} by themselves, {episodes.truncated:,} cut "
            f"({_list(episodes.reasons)})"
        )
    if episodes.errors:
        lines.append(f"broken: {_list(episodes.errors)}")
        commonest_messages = episodes.commonest()
        lines += [
            f"  {reason}: {commonest_messages[reason]}" for reason in list(commonest_messages)[:8]
        ]
    if episodes.tokens_in or episodes.tokens_out:
        cost = f", {episodes.cost_usd:.4f} USD" if episodes.cost_usd else ""
        lines.append(f"tokens: {episodes.tokens_in:,} read, {episodes.tokens_out:,} written{cost}")
    return lines


def _list(counts: Any) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.most_common(8))
