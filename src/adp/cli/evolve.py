"""``adp evolve``: operators make new trajectories of those of a store, round after round."""

from __future__ import annotations

from typing import Annotated, Any, cast, get_args

import typer

from adp.cli.options import JsonReport
from adp.cli.rollout_options import (
    Again,
    Dataset,
    Failures,
    NoTimes,
    Out,
    PolicySpec,
    Unsafe,
)
from adp.cli.text import (
    counted,
    epilog,
    print_json,
    print_table,
    progress_bar,
    say,
    stdout_to_stderr,
)
from adp.rollouts.collecting.limits import Limits, limits_in
from adp.rollouts.collecting.offered_tools import closed, made
from adp.rollouts.collecting.run_file import kind_facts
from adp.rollouts.collecting.tasks import read_tasks
from adp.rollouts.evolving.asking import ANALYSER, JUDGE, REFINER
from adp.rollouts.evolving.carry_out import Evolver
from adp.rollouts.evolving.evolve import evolve_now
from adp.rollouts.evolving.operator import BUILTIN, OPERATORS
from adp.rollouts.evolving.report import EvolveReport
from adp.rollouts.evolving.settings import EvolveSettings, Rule
from adp.rollouts.evolving.sources import read_jobs
from adp.rollouts.experts.spec import cast_of
from adp.rollouts.policy import POLICIES, Policy
from adp.rollouts.spec import load, load_environment
from adp.workflows.flywheel_records import write_flywheel
from adp.workflows.rft import make_rft
from adp_schema.errors import UsageError
from adp_schema.store import Store

EPILOG = epilog(
    "adp evolve rollouts --env toolworld --policy openai:model=m --refiner openai:model=r "
    "-o evolved --rounds 3",
    *(2, 3, 5, 12),
)

Source = Annotated[
    str | None, typer.Argument(metavar="STORE", help="The store with the first trajectories.")
]
Env = Annotated[
    str | None, typer.Option("--env", "-e", metavar="E", help="Environment: NAME[:key=value,...].")
]
Refiner = Annotated[
    str | None,
    typer.Option(metavar="P", help="Policy that finds steps and rewrites right trajectories."),
]
Analyser = Annotated[
    str | None,
    typer.Option(metavar="P", help="Policy that rewrites flawed steps; by default the refiner."),
]
JudgeSpec = Annotated[
    str | None, typer.Option(metavar="P", help="Policy that judges answers, for --correct math.")
]
Rounds = Annotated[int, typer.Option(min=1, help="Rounds for each task.")]
Ops = Annotated[
    str | None,
    typer.Option(
        metavar="OPS", help="Operators: NAME,NAME; by default the six of adp. See --list."
    ),
]
Correct = Annotated[
    str,
    typer.Option(metavar="RULE", help="Who says what is right: " + ", ".join(get_args(Rule)) + "."),
]
More = Annotated[int, typer.Option(min=0, help="Calls beyond the budget when a run goes on.")]
Tries = Annotated[int, typer.Option(min=1, help="How often an answer is asked for.")]
Turns = Annotated[int | None, typer.Option(min=1, help="Turns of an episode, at most.")]
Calls = Annotated[int | None, typer.Option(min=1, help="Calls of an episode, at most.")]
Seconds = Annotated[float | None, typer.Option(min=0.001, help="Seconds of an episode, at most.")]
AtOnce = Annotated[int, typer.Option(min=1, help="Tasks that are worked on at once.")]
Tagged = Annotated[
    bool, typer.Option("--tagged", help="The policy writes <search>, <python> and <answer>.")
]
FirstUsed = Annotated[
    bool,
    typer.Option("--first-is-used", help="Select as ET-Agent's code: the first counts as used."),
]
Seal = Annotated[
    bool | None,
    typer.Option("--seal/--keep-open", help="End the store; by default when it is whole."),
]
Rft = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="At the end, select for RFT, and write rows there."),
]
Flywheel = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="At the end, write the buffers as records of ET-Agent."),
]
Listed = Annotated[bool, typer.Option("--list", help="List the operators, and end.")]


def evolve(
    path: Source = None,
    env: Env = None,
    policy: PolicySpec = None,
    refiner: Refiner = None,
    analyser: Analyser = None,
    judge: JudgeSpec = None,
    out: Out = None,
    rounds: Rounds = 3,
    ops: Ops = None,
    correct: Correct = "environment",
    additional_calls: More = 4,
    tries: Tries = 4,
    max_turns: Turns = None,
    max_calls: Calls = None,
    max_seconds: Seconds = None,
    seed: Annotated[int, typer.Option(help="Seed of the run.")] = 0,
    dataset: Dataset = None,
    concurrency: AtOnce = 16,
    max_failures: Failures = 20,
    retry_failed: Again = False,
    seal: Seal = None,
    tagged: Tagged = False,
    first_is_used: FirstUsed = False,
    no_times: NoTimes = False,
    rft: Rft = None,
    flywheel: Flywheel = None,
    unsafe_python: Unsafe = False,
    listed: Listed = False,
    as_json: JsonReport = False,
) -> None:
    """Make new trajectories of those of a store, in rounds.

    In each round the best trajectory of a task that was not selected yet is what the operators
    start from. Steps that are kept are carried out again, the changed one too, and the policy goes
    on. Everything is stored with where it comes from, why it is right or wrong, and which answers
    could not be used. A run that was stopped goes on with the same call.
    """
    if listed:
        return list_operators(as_json=as_json)
    if path is None or env is None or policy is None or out is None:
        raise UsageError("give a store, --env, --policy and -o; adp evolve --list shows operators")
    limits = {"max_turns": max_turns, "max_calls": max_calls, "max_seconds": max_seconds}
    given = {
        "dataset": dataset, "seed": seed, "rounds": rounds, "correct": rule(correct),
        "operators": tuple(name.strip() for name in ops.split(",")) if ops else (),
        "additional_calls": additional_calls, "tries": tries, "tagged": tagged,
        "limits": {name: value for name, value in limits.items() if value is not None},
        "first_is_used": first_is_used, "timed": not no_times, "concurrency": concurrency,
        "max_failures": max_failures, "retry_failed": retry_failed, "seal": seal,
    }  # fmt: skip
    specs = {REFINER: refiner, ANALYSER: analyser or refiner, JUDGE: judge}
    what = {"store": path, "env": env, "policy": policy, "models": specs}
    with stdout_to_stderr(wanted=as_json):
        report = _evolve(what, out, given, unsafe_python=unsafe_python, quiet=as_json)
        files = _files(out, rft, flywheel, sealed=report.sealed)
    if as_json:
        print_json({"store": out, **report.plain(), **files})
    else:
        _show(report, out)
        _show_files(files, rft, flywheel)
    report.check()
    if rft is not None and "rft" not in files:
        raise UsageError(f"--rft needs a finished store; end it first: adp seal {out}")


def _files(out: str, rft: str | None, flywheel: str | None, *, sealed: bool) -> dict[str, Any]:
    """Write what is wanted besides the store; what became of it, as JSON."""
    files: dict[str, Any] = {}
    if rft is not None and sealed:
        files["rft"] = make_rft(out, rft).plain()
    if flywheel is not None:
        files["flywheel_records"] = write_flywheel(Store.open(out), flywheel)
    return files


def _show_files(files: dict[str, Any], rft: str | None, flywheel: str | None) -> None:
    if "rft" in files:
        rows = files["rft"]
        say(
            f"rft: {rows['selected']:,} of {rows['in']:,} trajectories, {rows['rows']:,} rows "
            f"under {rft}/rows"
        )
    if "flywheel_records" in files:
        say(f"flywheel: {counted(files['flywheel_records'], 'record')} in {flywheel}")


def _evolve(
    what: dict[str, Any], out: str, given: dict[str, Any], *, unsafe_python: bool, quiet: bool
) -> EvolveReport:
    kind, about = load_environment(what["env"], unsafe_python=unsafe_python)
    policy_kind, policy_about = load(POLICIES, what["policy"])
    store = Store.open(what["store"])
    source = read_jobs(store, read_tasks(what["store"], kind, about).tasks)
    policy = policy_kind.make(policy_about)
    cast_ = cast_of(policy)
    known = {what["policy"]: policy}  # a model that is named twice is loaded once
    models: dict[str, Policy] = {}
    facts: dict[str, Any] = {}
    for who, spec in what["models"].items():
        if spec is not None:
            model_kind, model_about = load(POLICIES, spec)
            if spec not in known:
                known[spec] = model_kind.make(model_about)
            models[who] = known[spec]
            facts[who] = kind_facts(model_kind.name, model_about)
    first = made(kind, about)
    limits = limits_in(first, Limits.model_validate(given["limits"]))
    closed(first)
    made_with = {
        "environment": kind_facts(kind.name, about),
        "policy": kind_facts(policy_kind.name, policy_about),
        **facts,
    }
    settings = EvolveSettings.model_validate(
        given
        | {"limits": limits, "environment": kind.name, "policy": policy.name}
        | {"facts": {"made_with": made_with}}
    )
    evolver = Evolver(lambda: kind.make(about), cast_.actors, models, settings)
    with progress_bar("evolving", "tasks", quiet=quiet) as progress:
        progress.total(len(source.jobs))
        return evolve_now(
            out, source, evolver,
            watch=lambda done, of: progress.advance(1),
            policies=list(known.values()),
        )  # fmt: skip


def rule(name: str) -> Rule:
    """The rule of a name.

    Raises:
        UsageError: there is none.
    """
    if name not in get_args(Rule):
        raise UsageError(f"--correct {name}: there is no such rule; rules: "
                         f"{', '.join(get_args(Rule))}")  # fmt: skip
    return cast("Rule", name)


def list_operators(*, as_json: bool) -> None:
    """Print the operators."""
    names = dict.fromkeys([*BUILTIN, *OPERATORS])
    listed = [OPERATORS.get(name) for name in names]
    if as_json:
        fields = ("name", "applies_to", "asks", "about")
        return print_json(
            {"operators": [{name: getattr(item, name) for name in fields} for item in listed]}
        )
    width = max(len(item.name) for item in listed)
    for item in listed:
        asks = f" (asks {' and '.join(item.asks)})" if item.asks else ""
        say(f"{item.name:<{width}}  {item.applies_to:<9}  {item.about}{asks}")


def _show(report: EvolveReport, out: str) -> None:
    for reason, count in report.skipped.items():
        say(f"left out: {counted(count, 'trajectory', 'trajectories')}: {reason}")
    say(f"{counted(report.asked, 'task')}, {report.left:,} left; "
        f"{counted(report.initial, 'trajectory', 'trajectories')} to begin with, "
        f"{report.made_now:,} entries written by this call")  # fmt: skip
    names = ("tried", "made", "correct", "unchanged", "given_up", "broken")
    rows = [
        (name, *(f"{getattr(counts, key):,}" for key in names))
        for name, counts in report.operators.items()
    ]
    if rows:
        print_table(("operator", *(key.replace("_", " ") for key in names)), rows,
                    right=[key.replace("_", " ") for key in names])  # fmt: skip
    say("tasks with a right trajectory, by round: " + " ".join(f"{n:,}" for n in report.solved))
    for reason, count in report.bad_answers.most_common():
        say(f"answers that could not be used: {reason}: {count:,}")
    for reason, count in report.failures.most_common(5):
        say(f"broke: {reason}: {count:,}")
    if report.sealed:
        say(f"sealed; next: adp stats {out}")
    elif report.failed:
        say(f"next: the same call with --retry-failed makes the {report.failed:,} broken again; "
            f"or adp seal {out}")  # fmt: skip
    else:
        say(f"next: the same call goes on; or adp seal {out}")
