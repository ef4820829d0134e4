"""``adp curate``: a recipe makes a data set out of stores, and says why each row is in or out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from adp.cli.text import console, counted, epilog, light_table, print_json, visible
from adp.core.progress import ConsoleProgress, Silent
from adp_schema.errors import UsageError

if TYPE_CHECKING:
    from adp.curation.recipe import Recipe
    from adp.curation.result import Curated
    from adp.curation.run import CurateOptions

EPILOG = epilog("adp curate recipe.yaml -o dataset", 2, 5, 6, 10)

Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="PATH=VALUE", help="Change the recipe: seed=5, ops.filter.sql=success."
    ),
]
Explain = Annotated[
    bool,
    typer.Option("--explain", help="Check it, and say what each stage would do; read no data."),
]
Every = Annotated[
    bool, typer.Option("--all", help="With --explain: also options that are at their default.")
]


def curate(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="RECIPE", help="YAML file; or a folder made with --link, to write its stores."
        ),
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="OUT", help="Folder for what is made.")
    ] = None,
    settings: Settings = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Do all stages, print the counts, write nothing.")
    ] = False,
    explain: Explain = False,
    every: Every = False,
    link: Annotated[
        bool, typer.Option("--link", help="Write the selection and its record, but no stores.")
    ] = False,
    allow_python: Annotated[
        bool, typer.Option("--allow-python", help="Let the recipe call Python functions.")
    ] = False,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input", metavar="NAME=STORE", help="Where an input of a linked folder lies now."
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Processes; one a core by default.")
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of recipes.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Make a data set out of stores by a recipe: measure, filter, dedup, mix, pair.

    Ops only say something about trajectories; the selection happens once, at the end. Why each
    trajectory is in or out is in OUT/curation/ledger.parquet: ask adp why OUT ID, or SQL:
    adp query OUT -c "SELECT * FROM ledger". The inputs are not touched. A stopped run goes on
    when it is called again.
    """
    from adp.curation.recipe_file import read_recipe

    if schema:
        return _print_schema()
    if path is None:
        raise UsageError("name a recipe: adp curate recipe.yaml -o OUT")
    if Path(path).is_dir():
        return _materialise(path, out, inputs or [], workers, as_json=as_json)
    if inputs:
        raise UsageError("--input is for linked folders; in a recipe use --set inputs.NAME=STORE")
    if explain:
        return _explain(read_recipe(path, settings or []), every=every, as_json=as_json)
    if every:
        raise UsageError("--all belongs to --explain")
    if out is None and not dry_run:
        raise UsageError("say where the data set goes: -o OUT; or only look: --dry-run")
    from adp.curation.run import CurateOptions

    recipe = read_recipe(path, settings or [])
    options = CurateOptions(Path(path).parent, workers, link, allow_python)
    _run(recipe, None if dry_run else out, options, as_json=as_json)


def _print_schema() -> None:
    from adp.curation.recipe import json_schema

    print_json(json_schema())


def _run(recipe: Recipe, out: str | None, options: CurateOptions, *, as_json: bool) -> None:
    from adp.curation.run import run

    with Silent() if as_json else ConsoleProgress("curating", "") as progress:
        done = run(recipe, out, options=options, progress=progress)
    if as_json:
        print_json(done.report)
    else:
        _report(done, out, link=options.link)


def _materialise(
    folder: str, out: str | None, inputs: list[str], workers: int | None, *, as_json: bool
) -> None:
    from adp.curation.linked import materialise

    if out is None:
        raise UsageError("say where the data set goes: -o OUT")
    places = {}
    for item in inputs:
        name, equals, place = item.partition("=")
        if not equals:
            raise UsageError(f"--input takes NAME=STORE, not {item!r}")
        places[name] = place
    with Silent() if as_json else ConsoleProgress("writing") as progress:
        report = materialise(folder, out, places, workers=workers, progress=progress)
    if as_json:
        print_json(report)
        return
    _outputs(report["outputs"])
    console().print(f"next: adp info {visible(out)}", soft_wrap=True)


def _explain(recipe: Recipe, *, every: bool, as_json: bool) -> None:
    from adp.curation.check_plan import check_plan, explain

    check_plan(recipe, allow_python=True)
    plan = explain(recipe, every=every or as_json)
    if as_json:
        print_json({"stages": plan})
        return
    screen = console()
    for stage in plan:
        name = stage["name"] if stage["name"] == stage["op"] else f"{stage['name']} ({stage['op']})"
        screen.print(f"{stage['stage']}  {name}: {stage['title']}", soft_wrap=True)
        for key, value in stage["options"].items():
            text = json.dumps(value, ensure_ascii=False)
            screen.print(Text(f"     {key}: {visible(text)}"), soft_wrap=True)
        if stage["where"]:
            screen.print(Text(f"     only where {visible(stage['where'])}"), soft_wrap=True)
        for word in ("needs", "columns", "step_columns"):
            if stage[word]:
                label = word.replace("_", " ")
                screen.print(Text(f"     {label}: {', '.join(stage[word])}"), soft_wrap=True)
        screen.print(Text(f"     cost: {stage['cost']}"), soft_wrap=True)


def _report(done: Curated, out: str | None, *, link: bool) -> None:
    """Print the stages, what went out for which reason, and the outputs."""
    screen = console()
    for source in done.report["inputs"]:
        kind = " in reserve" if source["reserve"] else ""
        count = counted(source["trajectories"], "trajectory", "trajectories")
        more = (
            f", {counted(source['branches'], 'branch', 'branches')}" if source["branches"] else ""
        )
        screen.print(Text(f"{source['name']}: {count}{more}{kind}"), soft_wrap=True)
    table = light_table("", "stage", "in", "dropped", "out", right=["in", "dropped", "out"])
    for stage in done.report["stages"]:
        more = f" +{stage['admitted']:,}" if stage["admitted"] else ""
        table.add_row(
            str(stage["stage"]),
            Text(stage["name"]),
            f"{stage['in']:,}",
            f"{stage['dropped']:,}",
            f"{stage['out']:,}{more}",
        )
    screen.print(table)
    for stage in done.report["stages"]:
        text = " ".join(stage["lines"])
        items = [f"{n:,} {reason}" for reason, n in stage["reasons"].items() if reason not in text]
        for line in [*stage["lines"], *items]:
            screen.print(Text(f"{stage['stage']} {stage['name']}: {visible(line)}"), soft_wrap=True)
    _outputs(done.report["outputs"])
    if out is None:
        screen.print("dry run: nothing was written")
    elif link:
        names = [source["name"] for source in done.report["inputs"]]
        places = " ".join(f"--input {name}=STORE" for name in names)
        screen.print(f"next: adp curate {visible(out)} -o NEW {places}", soft_wrap=True)
    else:
        screen.print(f"next: adp why {visible(out)} ID", soft_wrap=True)


def _outputs(outputs: list[dict[str, Any]]) -> None:
    screen = console()
    for output in outputs:
        more = [
            counted(output[many], result, many)
            for many, result in (("branches", "branch"), ("copies", "copy"), ("pairs", "pair"))
            if output[many]
        ]
        words = ", ".join([counted(output["trajectories"], "trajectory", "trajectories"), *more])
        screen.print(Text(f"{output['name'] or 'the store'}: {words}"), soft_wrap=True)
