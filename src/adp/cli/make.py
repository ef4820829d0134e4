"""``adp make``: tasks with calls that are made up, carried out, and kept when they went well."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from adp.cli.options import JsonReport
from adp.cli.rollout_options import Dataset, Failures, Unsafe
from adp.cli.text import (
    counted,
    epilog,
    print_json,
    print_table,
    progress_bar,
    say,
    stdout_to_stderr,
)
from adp.rollouts.generators.carry_out import ANSWER
from adp.rollouts.generators.make_options import MakeOptions, prepare_make
from adp.rollouts.generators.report import MakeReport
from adp.rollouts.spec import wrong_setting
from adp.workflows.made_pairs import make_pairs
from adp_schema.errors import UsageError

CODES = (2, 3, 5, 10, 12)


def _epilog(example: str) -> str:
    return epilog(example, *CODES)


app = typer.Typer(
    name="make",
    help="Make data: tasks with calls that are carried out, and kept when they went well.",
    epilog=_epilog("adp make synthetic --env configured:file=tools.yaml -o made"),
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Env = Annotated[
    str,
    typer.Option("--env", "-e", metavar="E", help="Environment: NAME[:key=value,...]."),
]
Out = Annotated[str, typer.Option("--out", "-o", metavar="STORE", help="The store.")]
Count = Annotated[
    int | None, typer.Option("--count", "-n", min=1, help="Samples, all tools together, at most.")
]
PerTool = Annotated[int | None, typer.Option(min=1, help="Samples of each tool, at most.")]
Tools = Annotated[
    str | None, typer.Option(metavar="T", help="Only these tools: NAME,NAME; else all.")
]
Templates = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="YAML with templates, values and words of your own."),
]
Values = Annotated[
    Path | None,
    typer.Option("--values", metavar="FILE", help="YAML with values: tool -> parameter -> list."),
]
Tasks = Annotated[
    str | None,
    typer.Option(
        "--tasks",
        "-t",
        metavar="T",
        help="Tasks whose worlds are taken: a file, store, or SPLIT:COUNT[:SEED].",
    ),
]
Answer = Annotated[str, typer.Option(help="Text of the answers, with {result}.")]
Seed = Annotated[int, typer.Option(help="Seed of the run.")]
Split = Annotated[str | None, typer.Option(help="Split of the samples, such as train or test.")]
Without = Annotated[
    list[str] | None,
    typer.Option(
        metavar="STORE", help="Leave out the samples of this finished store. May be repeated."
    ),
]
AtOnce = Annotated[int, typer.Option(min=1, help="Candidates that are carried out at once.")]
Seconds = Annotated[float | None, typer.Option(min=0.001, help="Seconds of a sample, at most.")]


@app.command(epilog=_epilog("adp make templates --env configured:file=tools.yaml -n 1000 -o made"))
def templates(
    env: Env,
    out: Out,
    count: Count = None,
    per_tool: Annotated[
        int | None,
        typer.Option(min=1, help="Canonical sentences of each tool; 10 without --count."),
    ] = None,
    templates_file: Templates = None,
    tools: Tools = None,
    tasks: Tasks = None,
    answer: Answer = ANSWER,
    seed: Seed = 0,
    dataset: Dataset = None,
    split: Split = None,
    without: Without = None,
    concurrency: AtOnce = 16,
    max_seconds: Seconds = None,
    max_failures: Failures = 20,
    unsafe_python: Unsafe = False,
    as_json: JsonReport = False,
) -> None:
    """Sentences written by hand, with values, and up to three paraphrases of each.

    A tool with one parameter 'expression', 'location' or 'query' has sentences of its own, others
    have general ones; a file with your own takes their place.
    """
    _make("templates", locals())


@app.command(epilog=_epilog("adp make synthetic --env weather --per-tool 50 -o made"))
def synthetic(
    env: Env,
    out: Out,
    count: Count = None,
    per_tool: PerTool = None,
    templates_file: Values = None,
    tools: Tools = None,
    tasks: Tasks = None,
    answer: Answer = ANSWER,
    seed: Seed = 0,
    dataset: Dataset = None,
    split: Split = None,
    without: Without = None,
    concurrency: AtOnce = 16,
    max_seconds: Seconds = None,
    max_failures: Failures = 20,
    unsafe_python: Unsafe = False,
    as_json: JsonReport = False,
) -> None:
    """Arguments drawn from the schemas of the tools, and instructions made of them.

    Without --count and --per-tool there are 20 samples of each tool.
    """
    _make("synthetic", locals())


@app.command(
    epilog=_epilog("adp make teacher --env weather --policy openai:model=m --per-tool 50 -o made")
)
def teacher(
    env: Env,
    policy: Annotated[
        str, typer.Option("--policy", "-p", metavar="P", help="Policy: NAME[:key=value,...].")
    ],
    out: Out,
    count: Count = None,
    per_tool: PerTool = None,
    tries: Annotated[int, typer.Option(min=1, help="Calls proposed for a question, at most.")] = 3,
    pairs: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="At the end, write preference pairs to DIR/pairs."),
    ] = None,
    templates_file: Values = None,
    tools: Tools = None,
    tasks: Tasks = None,
    answer: Answer = ANSWER,
    seed: Seed = 0,
    dataset: Dataset = None,
    split: Split = None,
    without: Without = None,
    concurrency: AtOnce = 16,
    max_seconds: Seconds = None,
    max_failures: Failures = 20,
    unsafe_python: Unsafe = False,
    as_json: JsonReport = False,
) -> None:
    """A model proposes questions with calls; calls that fail become rejected sides of pairs.

    Without --count and --per-tool there are 20 samples of each tool.
    """
    _make("teacher", locals())


@app.command(epilog=_epilog("adp make chains --env shop.py:Shop --max-length 4 -n 1000 -o made"))
def chains(
    env: Env,
    out: Out,
    count: Count = None,
    per_tool: Annotated[
        int | None,
        typer.Option("--per-path", min=1, help="Samples of each path; 5 without --count."),
    ] = None,
    edges: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="YAML with the edges of the graph; else they are found."),
    ] = None,
    max_length: Annotated[int, typer.Option(min=2, max=8, help="Calls of a chain, at most.")] = 3,
    form: Annotated[
        str, typer.Option(metavar="F", help="goal: one question; turns: one a call; or mixed.")
    ] = "mixed",
    templates_file: Values = None,
    tools: Tools = None,
    tasks: Tasks = None,
    answer: Answer = ANSWER,
    seed: Seed = 0,
    dataset: Dataset = None,
    split: Split = None,
    without: Without = None,
    concurrency: AtOnce = 16,
    max_seconds: Seconds = None,
    max_failures: Failures = 20,
    unsafe_python: Unsafe = False,
    as_json: JsonReport = False,
) -> None:
    """Tasks of several calls, each with an argument out of an earlier result.

    The paths go through a graph of tools, with an edge where a result fits an argument.
    """
    _make("chains", locals())


def _make(generator: str, given: dict[str, Any]) -> None:
    """Run a generator.

    Args:
        generator: its name.
        given: the options of its command by name.
    """
    out, as_json, pairs = given.pop("out"), given.pop("as_json"), given.pop("pairs", None)
    names, without = given.pop("tools"), given.pop("without")
    given["tools"] = [name.strip() for name in names.split(",")] if names else ()
    given["without"] = without or ()
    given["templates"] = given.pop("templates_file")
    try:
        options = MakeOptions.model_validate({**given, "generator": generator})
    except ValidationError as error:
        raise UsageError(f"adp make {generator}: {wrong_setting(error, MakeOptions)}") from None
    with stdout_to_stderr(wanted=as_json):
        prepared = prepare_make(options, out)
        with progress_bar("making", "samples", quiet=as_json) as progress:
            done = 0

            def watch(kept: int) -> None:
                nonlocal done
                progress.advance(kept - done)
                done = kept

            progress.total(options.count or 0)
            report = prepared.run(out, watch=watch)
        made_pairs = None if pairs is None else make_pairs(out, pairs)
    more = {} if made_pairs is None else {"pairs": made_pairs}
    if as_json:
        return print_json({"store": out, **report.plain(), **more})
    _show(report, out)
    if made_pairs is not None:
        say(f"{counted(made_pairs, 'preference pair')}; next: adp train dpo {pairs}/pairs")


def _show(report: MakeReport, out: str) -> None:
    for note in report.notes:
        say(note)
    asked = "" if report.asked is None else f" of {report.asked:,} asked for"
    say(f"{counted(report.kept, 'sample')}{asked} kept of {counted(report.tried, 'candidate')}, "
        f"{report.kept_before:,} of them before this call")  # fmt: skip
    for reason, count in report.failures.most_common():
        say(f"not kept: {reason}: {count:,}")
    if report.failed_beside:
        say(f"{counted(report.failed_beside, 'failed call')} beside calls that went well")
    rows = []
    for name, tool in report.tools.items():
        covered = sum(count > 0 for count in tool.parameters.values())
        values = sum(tool.values.values())
        rows.append(
            (name, f"{tool.calls:,}", f"{covered} of {len(tool.parameters)}", f"{values:,}")
        )
    columns = ("tool", "calls", "parameters", "different values")
    print_table(columns, rows, right=columns[1:])
    covered_all = report.covered()
    say(f"covered: {covered_all['tools_covered']} of {counted(covered_all['tools'], 'tool')}, "
        f"{covered_all['parameters_covered']} of "
        f"{counted(covered_all['parameters'], 'parameter')}")  # fmt: skip
    if report.asked is not None and report.kept < report.asked and report.exhausted:
        say(f"nothing new came any more of: {', '.join(report.exhausted[:5])}")
    if report.sealed:
        say(f"sealed; next: adp stats {out}")
