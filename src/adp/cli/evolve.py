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
from adp.rollouts.evolving.evolve_options import EvolveOptions, prepare_evolve
from adp.rollouts.evolving.operator import BUILTIN, OPERATORS
from adp.rollouts.evolving.report import EvolveReport
from adp.rollouts.evolving.settings import Rule
from adp.workflows.flywheel_records import write_flywheel
from adp.workflows.rft import make_rft
from adp_schema.errors import EmptyResultError, UsageError
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
    options = EvolveOptions(
        env=env, policy=policy, refiner=refiner, analyser=analyser, judge=judge, rounds=rounds,
        ops=tuple(name.strip() for name in ops.split(",")) if ops else (), correct=rule(correct),
        additional_calls=additional_calls, tries=tries, max_turns=max_turns, max_calls=max_calls,
        max_seconds=max_seconds, seed=seed, dataset=dataset, concurrency=concurrency,
        max_failures=max_failures, retry_failed=retry_failed, tagged=tagged,
        first_is_used=first_is_used, no_times=no_times, unsafe_python=unsafe_python,
    )  # fmt: skip
    with stdout_to_stderr(wanted=as_json):
        report = _evolve(options, path, out, seal=seal, quiet=as_json)
        files, empty = _files(out, rft, flywheel, sealed=report.sealed)
    if as_json:
        print_json({"store": out, **report.plain(), **files})
    else:
        _show(report, out)
        _show_files(files, rft, flywheel)
    report.check()
    if empty is not None:
        raise EmptyResultError(f"--rft: nothing is fit for it, so {rft} was not written: {empty}")
    if rft is not None and "rft" not in files:
        raise UsageError(f"--rft needs a finished store; end it first: adp seal {out}")


def _files(
    out: str, rft: str | None, flywheel: str | None, *, sealed: bool
) -> tuple[dict[str, Any], EmptyResultError | None]:
    """Write what is wanted besides the store.

    Returns:
        What became of it, as JSON; and why there is nothing for RFT, which is said at the end.
    """
    files: dict[str, Any] = {}
    if flywheel is not None:
        files["flywheel_records"] = write_flywheel(Store.open(out), flywheel)
    if rft is not None and sealed:
        try:
            files["rft"] = make_rft(out, rft).plain()
        except EmptyResultError as error:
            return files, error
    return files, None


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
    options: EvolveOptions, store: str, out: str, *, seal: bool | None, quiet: bool
) -> EvolveReport:
    prepared = prepare_evolve(options, store, seal=seal)
    with progress_bar("evolving", "tasks", quiet=quiet) as progress:
        progress.total(len(prepared.source.jobs))
        return prepared.run(out, watch=lambda done, of: progress.advance(1))


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
    for reason, count in report.unjudged.most_common(5):
        say(f"not judged: {reason}: {count:,}")
    for reason, count in report.failures.most_common(5):
        say(f"broke: {reason}: {count:,}")
    if report.sealed:
        say(f"sealed; next: adp stats {out}")
    elif report.failed:
        say(f"next: the same call with --retry-failed makes the {report.failed:,} broken again; "
            f"or adp seal {out}")  # fmt: skip
    else:
        say(f"next: the same call goes on; or adp seal {out}")
