"""``adp loop``: rounds of collecting, selecting, training and evaluating, from one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adp.cli.options import JsonReport
from adp.cli.text import (
    counted,
    epilog,
    print_json,
    print_table,
    progress_bar,
    say,
    stdout_to_stderr,
)
from adp.workflows.loop import LoopOptions, LoopPlan, StageNews, make_plan, read_loop, run_loop
from adp.workflows.loop.report import LoopNumbers, write_report
from adp.workflows.loop.sage import read_foreign_loop
from adp.workflows.loop.schema import json_schema
from adp.workflows.loop.shipped import loop_path, read_shipped, shipped_loops
from adp_schema.errors import UsageError

EPILOG = epilog("adp loop et_agent --set scale=smoke -o runs/et_agent", 2, 3, 5, 8, 10, 11, 12)

LoopName = Annotated[
    str | None,
    typer.Argument(
        metavar="LOOP", help="YAML file, the name of a shipped loop, or a configuration of SAGE."
    ),
]
OutFolder = Annotated[
    str | None, typer.Option("--out", "-o", metavar="OUT", help="Folder for all that it makes.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Change a variable, or seed, model, scale."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check it, print the plan, and stop.")]
Only = Annotated[
    str | None, typer.Option(metavar="STAGE", help="Do only this stage, such as round-1.train.")
]
Until = Annotated[str | None, typer.Option(metavar="STAGE", help="End after this stage.")]
Redo = Annotated[
    list[str] | None,
    typer.Option(
        metavar="STAGE",
        help="Do a stage again, and after it those whose inputs changed. May be given again.",
    ),
]
AllowPython = Annotated[
    bool,
    typer.Option("--allow-python", help="Let recipes, rewards and environments be Python code."),
]
Listed = Annotated[bool, typer.Option("--list", help="List the shipped loops, and end.")]
Schema = Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of such files.")]


def loop(
    path: LoopName = None,
    out: OutFolder = None,
    settings: Settings = None,
    dry_run: DryRun = False,
    only: Only = None,
    until: Until = None,
    redo: Redo = None,
    allow_python: AllowPython = False,
    listed: Listed = False,
    schema: Schema = False,
    as_json: JsonReport = False,
) -> None:
    """Do the stages of a loop: collect, score, curate, train, eval and more, round after round.

    Everything is checked before anything runs. Each stage is done once and writes to
    OUT/round-K/STAGE; a call that was stopped goes on when it is called again. OUT/ledger.jsonl
    has a line for each stage, OUT/report.html shows success, calls, length and format by round.
    Begin with a copy of a shipped loop: adp new loop et_agent. An AgentSFTConfig or a
    TrainingPipelineConfig of SAGE is read as it is, with --set data=STORE for the first.
    """
    if schema:
        return print_json(json_schema())
    if listed:
        return list_loops(as_json=as_json)
    if path is None:
        raise UsageError("name a loop: adp loop LOOP.yaml -o OUT; adp loop --list shows some")
    plan = _plan(loop_path(path), settings or [], allow_python=allow_python, as_json=as_json)
    if dry_run:
        return show_plan(plan, as_json=as_json)
    if out is None:
        raise UsageError("say where it goes: -o OUT; or only look: --dry-run")
    with (
        stdout_to_stderr(wanted=as_json),
        progress_bar("working", "", quiet=as_json) as progress,
    ):

        def watch(news: StageNews) -> None:
            if not as_json:
                _say_news(news)

        options = LoopOptions(only, until, redo or (), watch, progress)
        records = run_loop(plan, out, options)
        numbers = LoopNumbers(plan.file.name, plan.file.about, records)
        written = write_report(Path(out), numbers)
    if as_json:
        print_json({"out": out, "report": [str(item) for item in written], **numbers.plain()})
        return
    left = len(plan.stages) - len(records)
    done = f"{counted(len(records), 'stage')} done"
    say(f"{done}, {left:,} left; the report: {written[-1]}")
    if left:
        say("next: the same call without --only and --until goes on")


def _plan(file: Path, settings: list[str], *, allow_python: bool, as_json: bool) -> LoopPlan:
    """The plan of a file: of a loop, or of a configuration of SAGE, whose mapping is said."""
    sage_loop = read_foreign_loop(file, settings)
    if sage_loop is None:
        return make_plan(read_loop(file, settings), file.parent, allow_python=allow_python)
    if not as_json:
        say(f"{file.name} is a configuration of SAGE:")
        for line in sage_loop.lines:
            say(f"  {line}")
    loop_file = read_loop(sage_loop.plain, sage_loop.settings)
    return make_plan(loop_file, file.parent, allow_python=allow_python)


def _say_news(news: StageNews) -> None:
    if news.what == "begins":
        say(f"{news.key}: {news.kind} ...")
        return
    before = " (done before)" if news.what == "done before" else f" ({news.seconds:,.1f} s)"
    say(f"{news.key}: {news.line}{before}")


def list_loops(*, as_json: bool) -> None:
    """List the loops that come with this package."""
    loops = {name: read_shipped(name) for name in shipped_loops()}
    if as_json:
        rows = [
            {
                "name": name,
                "about": file.about,
                "variables": file.variables,
                "scales": sorted(file.scales),
            }
            for name, file in loops.items()
        ]
        print_json({"loops": rows})
        return
    table = [
        (name, file.about, ", ".join(file.variables), ", ".join(file.scales) or "-")
        for name, file in loops.items()
    ]
    heads = ("loop", "what it does", "variables (--set)", "scales")
    print_table(heads, table, fold=["what it does", "variables (--set)"])


def show_plan(plan: LoopPlan, *, as_json: bool) -> None:
    """Print what a loop would do."""
    if as_json:
        stages = [
            {
                "stage": stage.key,
                "kind": stage.kind.name,
                "options": stage.plain,
                "inputs": stage.inputs,
                "values": stage.values,
            }
            for stage in plan.stages
        ]
        print_json({"name": plan.file.name, "rounds": plan.rounds, "stages": stages})
        return
    rows = []
    for stage in plan.stages:
        values = ", ".join(f"{name}={value}" for name, value in stage.values.items())
        rows.append((stage.key, stage.kind.name, ", ".join(stage.inputs) or "-", values or "-"))
    print_table(("stage", "kind", "takes", "values"), rows, fold=["takes"])
    rounds = counted(plan.rounds, "round")
    say(f"{rounds}, {counted(len(plan.stages), 'stage')}; dry run: nothing was done")
