"""``adp eval``: run a suite, from a policy to figures."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from adp.cli.collect_screen import CollectScreen
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
from adp.cli.run_config import suite_of
from adp.cli.score import show as show_scores
from adp.cli.score import show_results
from adp.cli.text import (
    console,
    counted,
    epilog,
    print_json,
    print_table,
    progress_bar,
    say,
    stdout_to_stderr,
)
from adp.eval.eval_options import EvalOptions
from adp.eval.evaluate import Evaluated, failed_bounds, read_bounds
from adp.eval.evaluate import evaluate as run
from adp.eval.suite import SUITES
from adp_schema.errors import FindingsError, UsageError
from adp_schema.store import Store

EPILOG = epilog(
    "adp eval --suite toolworld --policy openai:model=m --n 4 -o runs --min success=0.9",
    *(2, 3, 5, 8, 12),
)


SuiteName = Annotated[
    str | None, typer.Option("--suite", metavar="S", help="Name of a suite, or YAML file.")
]
Env = Annotated[
    str | None,
    typer.Option("--env", "-e", metavar="E", help="Another environment than the suite's."),
]
Tasks = Annotated[
    str | None, typer.Option("--tasks", "-t", metavar="T", help="Other tasks than the suite's.")
]
With = Annotated[
    list[str] | None, typer.Option("--with", metavar="SCORERS", help="Further scorers.")
]
Number = Annotated[int | None, typer.Option("--n", min=1, help="Attempts at each task.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Only so many tasks, the first ones.")]
Seed = Annotated[int | None, typer.Option(help="Seed of the run.")]
Least = Annotated[
    list[str] | None,
    typer.Option("--min", metavar="FIGURE=X", help="Exit 8 if a figure is less."),
]
Most = Annotated[
    list[str] | None,
    typer.Option("--max", metavar="FIGURE=X", help="Exit 8 if a figure is more."),
]
Listed = Annotated[bool, typer.Option("--list", help="List the suites, and end.")]


def evaluate(
    suite: SuiteName = None,
    config: RunConfig = None,
    policy: PolicySpec = None,
    out: Out = None,
    env: Env = None,
    tasks: Tasks = None,
    scorers: With = None,
    n: Number = None,
    limit: Limit = None,
    concurrency: AtOnce = 64,
    seed: Seed = None,
    dataset: Dataset = None,
    max_failures: Failures = 20,
    retry_failed: Again = False,
    no_times: NoTimes = False,
    unsafe_python: Unsafe = False,
    least: Least = None,
    most: Most = None,
    results: Annotated[
        str | None,
        typer.Option(
            "--results", metavar="FILE", help="Write figures and cases as Tiny Tool Use does, too."
        ),
    ] = None,
    listed: Listed = False,
    as_json: JsonReport = False,
) -> None:
    """Run a suite: let a policy do its tasks, score what it did, and print the figures.

    A run that was stopped goes on with the same call. That an agent fails is no error of the
    command; with --min and --max it ends with exit code 8 when a figure is not good enough, or is
    undefined. The figure broken is the share of episodes that something else than the agent broke.
    Show and compare runs with: adp report eval STORE...
    """
    if listed:
        list_suites(as_json=as_json)
        return
    chosen = suite_of({"suite": suite, "policy": policy}, config, out, as_json=as_json)
    if chosen["suite"] is None or chosen["policy"] is None or out is None:
        raise UsageError("give --suite, --policy and -o; adp eval --list shows the suites")
    given = EvalOptions.model_validate(
        {
            **chosen,
            "env": env,
            "tasks": tasks,
            "with": tuple(scorers or ()),
            "n": n,
            "limit": limit,
            "concurrency": concurrency,
            "seed": seed,
            "dataset": dataset,
            "max_failures": max_failures,
            "retry_failed": retry_failed,
            "no_times": no_times,
            "unsafe_python": unsafe_python,
            "min": read_bounds(least or []),
            "max": read_bounds(most or []),
        }
    )
    with (
        stdout_to_stderr(wanted=as_json),
        CollectScreen(out, quiet=as_json) as screen,
        progress_bar("scoring", "trajectories", quiet=as_json) as progress,
    ):
        options = given.options()
        result = run(
            given.chosen(), given.policy, out, options, watch=screen.show, progress=progress
        )
    show(result, out, as_json=as_json)
    if results is not None:
        show_results(Store.open(out), results, quiet=as_json)
    check(result, out)
    result.collected.check()


def list_suites(*, as_json: bool) -> None:
    """List the suites that have a name."""
    if as_json:
        print_json({"suites": [suite.model_dump(mode="json") for suite in SUITES.all()]})
        return
    rows = [
        (suite.name, suite.about, suite.tasks, ", ".join(map(str, suite.scorers)))
        for suite in SUITES.all()
    ]
    heads = ("suite", "what it measures", "tasks", "scorers")
    print_table(heads, rows, fold=["what it measures", "scorers"])


def show(result: Evaluated, out: str, *, as_json: bool) -> None:
    """Print what running a suite brought."""
    if as_json:
        print_json(
            {
                "suite": result.suite,
                "policy": result.policy,
                "tasks": result.tasks,
                "refused": list(result.refused),
                "collected": result.collected.plain(),
                "notes": result.collected.notes,
                "scores": asdict(result.scores),
                "gates": [asdict(gate) for gate in result.gates],
            }
        )
        return
    report = result.collected
    for reason in result.refused[:5]:
        say(f"refused: {reason}")
    say(
        f"{result.suite}: {counted(result.tasks, 'task')}, {counted(report.asked, 'episode')} = "
        f"{report.done_before:,} done before + {report.done_now:,} done now + "
        f"{report.failed:,} broken + {report.left:,} left"
    )
    for note in report.notes:
        say(f"note: {note}")
    console().print()
    show_scores(result.scores)
    for gate in result.gates:
        value = "undefined" if gate.value is None else f"{gate.value:.4g}"
        word = "holds" if gate.holds else "FAILS"
        say(f"{word}: {gate.figure} {value}, {gate.bound} {gate.limit:g}")
    if report.left:
        say("next: the same call goes on")
    say(f"next: adp report eval {out} -o report.html")


def check(value: Evaluated, out: str) -> None:
    """End with an error when a figure is not good enough.

    Raises:
        FindingsError: a bound does not hold.
    """
    fault = failed_bounds(value.gates)
    if fault is not None:
        raise FindingsError(f"{fault}; see what failed with: adp report eval {out}")
