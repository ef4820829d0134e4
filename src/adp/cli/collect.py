"""``adp collect``: a policy acts in an environment, and the episodes become a store."""

from __future__ import annotations

from typing import Annotated

import typer

from adp.cli.collect_list import list_kinds, list_tools
from adp.cli.collect_screen import CollectScreen
from adp.cli.collect_summary import (
    remarks_of,
    say_alternates,
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
    RunConfig,
    Unsafe,
)
from adp.cli.run_config import from_config
from adp.cli.text import epilog, nothing_new, print_json, stdout_to_stderr
from adp.rollouts.collecting.collect_options import CollectOptions, prepare_collect
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
StepRewards = Annotated[
    str | None,
    typer.Option(
        metavar="R",
        help="Reward each step by the rules of SAGE's collector: sage, or sage:key=value,... "
        "(correct_tool, correct_args, error, success, success_by).",
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
    config: RunConfig = None,
    policy: PolicySpec = None,
    tasks: Tasks = None,
    out: Out = None,
    n: Number = 1,
    concurrency: AtOnce = 64,
    expert_mode: ExpertMode = None,
    branching: Branching = None,
    step_rewards: StepRewards = None,
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
        return _list(env, tasks, as_json=as_json)
    named = {"tasks": tasks, "expert_mode": expert_mode, "max_turns": max_turns}
    chosen = from_config({"env": env, "policy": policy, **named}, config, out, as_json=as_json)
    if chosen["env"] is None or chosen["policy"] is None or out is None:
        raise UsageError("give --env, --policy and -o; adp collect --list shows what there is")
    options = CollectOptions(
        **chosen,
        split=split,
        branching=branching,
        step_rewards=step_rewards,
        n=n,
        concurrency=concurrency,
        seed=seed,
        dataset=dataset,
        max_calls=max_calls,
        max_tokens=max_tokens,
        max_seconds=max_seconds,
        total_tokens=total_tokens,
        total_cost=total_cost,
        total_seconds=total_seconds,
        max_failures=max_failures,
        retry_failed=retry_failed,
        no_times=no_times,
        unsafe_python=unsafe_python,
    )
    with nothing_new(as_json=as_json):
        _collect(options, out, since or [], seal, as_json=as_json)


def _list(env: str | None, tasks: str | None, *, as_json: bool) -> None:
    if env is None:
        list_kinds(as_json=as_json)
    else:
        list_tools(env, tasks, as_json=as_json)


def _collect(
    options: CollectOptions, out: str, since: list[str], seal: bool | None, *, as_json: bool
) -> None:
    with stdout_to_stderr(wanted=as_json):
        prepared = prepare_collect(options)
        result, settings = prepared.tasks, prepared.settings
        if not as_json:
            say_tasks(result, prepared.tasks_text)
        with CollectScreen(out, quiet=as_json) as screen:
            report = prepared.run(out, since=since, seal=seal, watch=screen.show)
    remarks = remarks_of(report, options.total_cost)
    if as_json:
        refused = {"records": result.records, "refused": result.refused, "reasons": result.reasons}
        head = {"store": out, "tasks": refused, "notes": [*result.notes, *remarks]}
        print_json({**head, **report.plain()})
    else:
        if prepared.cast.assistance is not None:
            say_branches(out)
        say_branching(report)
        say_alternates(report)
        summary(report, out, (len(result.tasks), settings.n), remarks, since)
    report.check()
