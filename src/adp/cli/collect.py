"""``adp collect``: a policy acts in an environment, and the episodes become a store."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adp.cli.text import console, counted, epilog, print_json, visible

if TYPE_CHECKING:
    from adp.eval.rollout.tally import CollectReport, Tally
    from adp.eval.rollout.task_files import TaskSet

EPILOG = epilog(
    "adp collect --env toolworld --policy openai:model=m --tasks test:300 --n 8 -o rollouts",
    *(2, 3, 5, 12),
)


Env = Annotated[
    str, typer.Option("--env", "-e", metavar="E", help="Environment: NAME[:key=value,...].")
]
PolicySpec = Annotated[
    str, typer.Option("--policy", "-p", metavar="P", help="Policy: NAME[:key=value,...].")
]
Tasks = Annotated[
    str,
    typer.Option("--tasks", "-t", metavar="T", help="File of tasks, store, or SPLIT:COUNT[:SEED]."),
]
Out = Annotated[str, typer.Option("--out", "-o", metavar="STORE", help="The store.")]
ExpertMode = Annotated[
    str | None,
    typer.Option(
        metavar="M",
        help="An expert beside the policy: none, ground_truth, random or informed, with settings.",
    ),
]
Number = Annotated[int, typer.Option("--n", min=1, help="Attempts at each task.")]
AtOnce = Annotated[int, typer.Option(min=1, help="Episodes that run at once.")]
Seed = Annotated[int, typer.Option(help="Seed of the run.")]
Split = Annotated[
    str | None, typer.Option(help="Of a file or a store, only the tasks of this split.")
]
Dataset = Annotated[
    str | None, typer.Option(help="Data set of the trajectories; by default STORE's name.")
]
Turns = Annotated[int, typer.Option(min=1, help="Turns of an episode, at most.")]
Calls = Annotated[int | None, typer.Option(min=1, help="Calls of an episode, at most.")]
Tokens = Annotated[int | None, typer.Option(min=1, help="Tokens written in an episode, at most.")]
Seconds = Annotated[float | None, typer.Option(min=0.001, help="Seconds of an episode, at most.")]
AllTokens = Annotated[
    int | None, typer.Option(min=1, help="Begin no episode when STORE has cost so many tokens.")
]
AllCost = Annotated[
    float | None, typer.Option(min=0.0001, help="Begin none when it has cost so many US dollars.")
]
AllSeconds = Annotated[
    float | None, typer.Option(min=0.001, help="Begin none after so many seconds of this call.")
]
Failures = Annotated[
    int, typer.Option(min=1, help="Stop when so many in a row broke for one reason.")
]
Again = Annotated[bool, typer.Option("--retry-failed", help="Try the broken episodes again.")]
Seal = Annotated[
    bool | None,
    typer.Option("--seal/--keep-open", help="End the store; by default when it is whole."),
]
NoTimes = Annotated[
    bool, typer.Option("--no-times", help="Keep no times, which differ from run to run.")
]
Unsafe = Annotated[
    bool,
    typer.Option(
        "--unsafe-python",
        help="Let the environment python run programs without a sandbox, with all your rights.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the report as JSON.")]


def collect(
    env: Env,
    policy: PolicySpec,
    tasks: Tasks,
    out: Out,
    n: Number = 1,
    concurrency: AtOnce = 64,
    expert_mode: ExpertMode = None,
    seed: Seed = 0,
    split: Split = None,
    dataset: Dataset = None,
    max_turns: Turns = 30,
    max_calls: Calls = None,
    max_tokens: Tokens = None,
    max_seconds: Seconds = None,
    total_tokens: AllTokens = None,
    total_cost: AllCost = None,
    total_seconds: AllSeconds = None,
    max_failures: Failures = 20,
    retry_failed: Again = False,
    seal: Seal = None,
    no_times: NoTimes = False,
    unsafe_python: Unsafe = False,
    as_json: Json = False,
) -> None:
    """Let a policy act in an environment, and collect the episodes in a store.

    Each task is tried N times. An episode is in the store as soon as it has ended; a run that was
    stopped goes on with the same call, and nothing is done twice. Episodes that broke, such as
    by a server that did not answer, are kept and counted apart.
    """
    given = {
        "dataset": dataset,
        "seed": seed,
        "limits": {
            "max_turns": max_turns,
            "max_calls": max_calls,
            "max_tokens": max_tokens,
            "max_seconds": max_seconds,
        },
        "timed": not no_times,
        "n": n,
        "concurrency": concurrency,
        "totals": {"tokens": total_tokens, "cost": total_cost, "seconds": total_seconds},
        "max_failures": max_failures,
        "retry_failed": retry_failed,
        "seal": seal,
    }
    what = {"env": env, "policy": policy, "tasks": tasks, "split": split, "expert": expert_mode}
    _collect(what, out, given, unsafe_python=unsafe_python, as_json=as_json)


def _collect(
    what: dict[str, Any], out: str, given: dict[str, Any], *, unsafe_python: bool, as_json: bool
) -> None:
    from adp.cli.collect_screen import Screen
    from adp.eval.policy import POLICIES
    from adp.eval.rollout.assist_spec import cast_of
    from adp.eval.rollout.collect import collect_now
    from adp.eval.rollout.run_file import kind_facts
    from adp.eval.rollout.settings import CollectSettings
    from adp.eval.rollout.tasks import read_tasks
    from adp.eval.spec import load, load_environment

    kind, about = load_environment(what["env"], unsafe_python=unsafe_python)
    policy_kind, policy_about = load(POLICIES, what["policy"])
    found = read_tasks(what["tasks"], kind, about, split=what["split"])
    policy = policy_kind.make(policy_about)
    cast = cast_of(policy, what["expert"])
    if cast.assistance is not None:
        kept, reasons = cast.able(found.tasks, kind.make(about))
        found.leave(kept, reasons)
    _say_refused(found, what["tasks"])
    facts = {
        "environment": kind_facts(kind.name, about),
        "policy": kind_facts(policy_kind.name, policy_about),
        **cast.facts,
    }
    settings = CollectSettings.model_validate(
        {**given, "environment": kind.name, "policy": policy.name, "facts": {"made_with": facts}}
    )
    with Screen(out, quiet=as_json) as screen:
        report = collect_now(
            out,
            lambda: kind.make(about),
            cast.actors,
            found.tasks,
            settings,
            watch=screen.show,
            policies=cast.policies,
        )
    if as_json:
        refused = {"records": found.records, "refused": found.refused, "reasons": found.reasons}
        print_json({"store": out, "tasks": refused, **report.plain()})
    else:
        if cast.assistance is not None:
            _say_branches(out)
        _summary(report, out, len(found.tasks), settings.n)


def _say_refused(found: TaskSet, tasks: str) -> None:
    if not found.refused:
        return
    total = f"{found.records:,} records = {len(found.tasks):,} tasks + {found.refused:,} refused"
    print(visible(f"{tasks}: {total}"), file=sys.stderr)
    for reason in found.reasons[:5]:
        print(visible(f"  {reason}"), file=sys.stderr)
    if found.refused > 5:
        print(f"  and {found.refused - 5:,} more; --json lists them", file=sys.stderr)


def _say_branches(out: str) -> None:
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


def _summary(report: CollectReport, out: str, tasks: int, n: int) -> None:
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
    if whole.tokens_in or whole.tokens_out:
        cost = f", {whole.cost_usd:.4f} USD" if whole.cost_usd else ""
        lines.append(f"tokens: {whole.tokens_in:,} read, {whole.tokens_out:,} written{cost}")
    return lines


def _list(counts: Any) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.most_common(8))
