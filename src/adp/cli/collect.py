"""``adp collect``: a policy acts in an environment, and the episodes become a store."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from adp.cli.collect_list import list_kinds, list_tools
from adp.cli.collect_screen import CollectScreen
from adp.cli.collect_summary import (
    remarks_of,
    say_branches,
    say_branching,
    say_tasks,
    summary,
)
from adp.cli.options import JsonReport
from adp.cli.rollout_options import (
    Again,
    AtOnce,
    Dataset,
    Failures,
    NoTimes,
    Out,
    PolicySpec,
    Unsafe,
)
from adp.cli.text import epilog, nothing_new, print_json, stdout_to_stderr
from adp.rollouts.collecting.branching.settings import load_policy, read_branching
from adp.rollouts.collecting.collect import collect_now
from adp.rollouts.collecting.offered_tools import closed, made
from adp.rollouts.collecting.run_file import kind_facts
from adp.rollouts.collecting.settings import CollectSettings
from adp.rollouts.collecting.tasks import own_tasks, read_tasks
from adp.rollouts.experts.spec import cast_of
from adp.rollouts.spec import load_environment
from adp_schema.errors import UsageError

EPILOG = epilog(
    "adp collect --env toolworld --policy openai:model=m --tasks test:300 --n 8 -o rollouts",
    *(2, 3, 5, 12),
)


Env = Annotated[
    str | None, typer.Option("--env", "-e", metavar="E", help="Environment: NAME[:key=value,...].")
]
Tasks = Annotated[
    str | None,
    typer.Option(
        "--tasks",
        "-t",
        metavar="T",
        help="File of tasks, store, or SPLIT:COUNT[:SEED]; by default 100 of the environment's.",
    ),
]
ExpertMode = Annotated[
    str | None,
    typer.Option(
        metavar="M",
        help="An expert beside the policy: none, ground_truth, random or informed, with settings.",
    ),
]
Branching = Annotated[
    str | None,
    typer.Option(
        metavar="B",
        help="Let attempts branch where the model is unsure: arpo, or key=value,... "
        "(initial, beam, probability, entropy_weight, call_limit, ...).",
    ),
]
Number = Annotated[int, typer.Option("--n", min=1, help="Attempts at each task.")]
Seed = Annotated[int, typer.Option(help="Seed of the run.")]
Split = Annotated[
    str | None, typer.Option(help="Of a file or a store, only the tasks of this split.")
]
Turns = Annotated[
    int | None,
    typer.Option(
        min=1, help="Turns of an episode, at most; what the environment says else, or 30."
    ),
]
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
Since = Annotated[
    list[str] | None,
    typer.Option(
        metavar="OLD",
        help="Leave out what this finished store of the same run holds; then put both into one "
        "with adp merge. May be repeated.",
    ),
]
Seal = Annotated[
    bool | None,
    typer.Option("--seal/--keep-open", help="End the store; by default when it is whole."),
]
Listed = Annotated[
    bool,
    typer.Option("--list", help="List environments and policies, or the tools of --env; and end."),
]


def collect(
    env: Env = None,
    policy: PolicySpec = None,
    tasks: Tasks = None,
    out: Out = None,
    n: Number = 1,
    concurrency: AtOnce = 64,
    expert_mode: ExpertMode = None,
    branching: Branching = None,
    seed: Seed = 0,
    split: Split = None,
    dataset: Dataset = None,
    max_turns: Turns = None,
    max_calls: Calls = None,
    max_tokens: Tokens = None,
    max_seconds: Seconds = None,
    total_tokens: AllTokens = None,
    total_cost: AllCost = None,
    total_seconds: AllSeconds = None,
    max_failures: Failures = 20,
    retry_failed: Again = False,
    since: Since = None,
    seal: Seal = None,
    no_times: NoTimes = False,
    unsafe_python: Unsafe = False,
    listed: Listed = False,
    as_json: JsonReport = False,
) -> None:
    """Let a policy act in an environment, and collect the episodes in a store.

    Each task is tried N times. An episode is in the store as soon as it has ended; a run that was
    stopped goes on with the same call, and nothing is done twice. Episodes that broke, such as
    by a server that did not answer, are kept and counted apart. When not one is whole, the exit
    code is 12.
    """
    if listed:
        if env is None:
            list_kinds(as_json=as_json)
        else:
            list_tools(env, tasks, as_json=as_json)
        return
    if env is None or policy is None or out is None:
        raise UsageError("give --env, --policy and -o; adp collect --list shows what there is")
    limits = {
        "max_turns": max_turns,
        "max_calls": max_calls,
        "max_tokens": max_tokens,
        "max_seconds": max_seconds,
    }
    given = {
        "dataset": dataset,
        "seed": seed,
        "limits": {name: value for name, value in limits.items() if value is not None},
        "timed": not no_times,
        "branching": None if branching is None else read_branching(branching),
        "n": n,
        "concurrency": concurrency,
        "totals": {"tokens": total_tokens, "cost": total_cost, "seconds": total_seconds},
        "max_failures": max_failures,
        "retry_failed": retry_failed,
        "since": since or (),
        "seal": seal,
    }
    what = {"env": env, "policy": policy, "tasks": tasks, "split": split, "expert": expert_mode}
    with nothing_new(as_json=as_json):
        _collect(what, out, given, unsafe_python=unsafe_python, as_json=as_json)


def _collect(
    what: dict[str, Any], out: str, given: dict[str, Any], *, unsafe_python: bool, as_json: bool
) -> None:
    with stdout_to_stderr(wanted=as_json):
        kind, about = load_environment(what["env"], unsafe_python=unsafe_python)
        policy_kind, policy_about = load_policy(what["policy"], given["branching"])
        tasks = what["tasks"] or own_tasks(kind)
        result = read_tasks(tasks, kind, about, split=what["split"])
        if not what["tasks"]:
            result.notes.append("made by the environment; choose others with --tasks")
        cast = cast_of(policy := policy_kind.make(policy_about), what["expert"])
        first = made(kind, about)
        if cast.assistance is not None:
            result.leave(*cast.able(result.tasks, first))
        closed(first)
        if not as_json:
            say_tasks(result, tasks)
        facts = {
            "environment": kind_facts(kind.name, about),
            "policy": kind_facts(policy_kind.name, policy_about),
            **cast.facts,
        }
        given |= {"environment": kind.name, "policy": policy.name, "facts": {"made_with": facts}}
        settings = CollectSettings.model_validate(given).within(first)
        with CollectScreen(out, quiet=as_json) as screen:
            report = collect_now(
                out,
                lambda: kind.make(about),
                cast.actors,
                result.tasks,
                settings,
                watch=screen.show,
                policies=cast.policies,
            )
    remarks = remarks_of(report, given["totals"]["cost"])
    if as_json:
        refused = {"records": result.records, "refused": result.refused, "reasons": result.reasons}
        head = {"store": out, "tasks": refused, "notes": [*result.notes, *remarks]}
        print_json({**head, **report.plain()})
    else:
        if cast.assistance is not None:
            say_branches(out)
        say_branching(report)
        summary(report, out, (len(result.tasks), settings.n), remarks, settings.since)
    report.check()
