"""``adp curate``: a recipe makes a data set out of stores, and says why each row is in or out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from adp.cli.options import JsonReport, Workers
from adp.cli.text import counted, epilog, print_json, print_table, progress_bar, say
from adp.curation.check_plan import check_plan, explain
from adp.curation.linked import materialise
from adp.curation.outputs import Curated
from adp.curation.recipe import Recipe, json_schema
from adp.curation.recipe_file import read_recipe
from adp.curation.run import CurateOptions, run
from adp_schema.errors import UsageError

EPILOG = epilog("adp curate recipe.yaml -o dataset", 2, 5, 6, 10)

Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="PATH=VALUE", help="Change the recipe: seed=5, ops.filter.sql=success."
    ),
]
ExplainOption = Annotated[
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
    explained: ExplainOption = False,
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
    workers: Workers = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of recipes.")
    ] = False,
    as_json: JsonReport = False,
) -> None:
    """Make a data set out of stores by a recipe: measure, filter, dedup, mix, pair.

    Ops only say something about trajectories; the selection happens once, at the end. Why each
    trajectory is in or out is in OUT/curation/ledger.parquet: ask adp why OUT ID, or SQL:
    adp query OUT -c "SELECT * FROM ledger". The inputs are not touched. A stopped run goes on
    when it is called again.
    """
    if schema:
        return print_json(json_schema())
    if path is None:
        raise UsageError("name a recipe: adp curate recipe.yaml -o OUT")
    if Path(path).is_dir():
        return _materialise(path, out, inputs or [], workers, as_json=as_json)
    if inputs:
        raise UsageError("--input is for linked folders; in a recipe use --set inputs.NAME=STORE")
    if explained:
        return _explain(read_recipe(path, settings or []), every=every, as_json=as_json)
    if every:
        raise UsageError("--all belongs to --explain")
    if out is None and not dry_run:
        raise UsageError("say where the data set goes: -o OUT; or only look: --dry-run")
    recipe = read_recipe(path, settings or [])
    options = CurateOptions(Path(path).parent, workers, link, allow_python)
    target = None if dry_run else out
    with progress_bar("curating", "", quiet=as_json) as progress:
        done = run(recipe, target, options=options, progress=progress)
    if as_json:
        print_json(done.report)
    else:
        _report(done, target, link=link)


def _materialise(
    folder: str, out: str | None, inputs: list[str], workers: int | None, *, as_json: bool
) -> None:
    if out is None:
        raise UsageError("say where the data set goes: -o OUT")
    places = {}
    for item in inputs:
        name, equals, place = item.partition("=")
        if not equals:
            raise UsageError(f"--input takes NAME=STORE, not {item!r}")
        places[name] = place
    with progress_bar("writing", quiet=as_json) as progress:
        report = materialise(folder, out, places, workers=workers, progress=progress)
    if as_json:
        print_json(report)
        return
    _outputs(report["outputs"])
    say(f"next: adp info {out}")


def _explain(recipe: Recipe, *, every: bool, as_json: bool) -> None:
    check_plan(recipe, allow_python=True)
    plan = explain(recipe, every=every or as_json)
    if as_json:
        print_json({"stages": plan})
        return
    for stage in plan:
        name = stage["name"] if stage["name"] == stage["op"] else f"{stage['name']} ({stage['op']})"
        say(f"{stage['stage']}  {name}: {stage['title']}")
        for key, value in stage["options"].items():
            say(f"     {key}: {json.dumps(value, ensure_ascii=False)}")
        if stage["where"]:
            say(f"     only where {stage['where']}")
        for word in ("needs", "columns", "step_columns"):
            if stage[word]:
                say(f"     {word.replace('_', ' ')}: {', '.join(stage[word])}")
        say(f"     cost: {stage['cost']}")


def _report(done: Curated, out: str | None, *, link: bool) -> None:
    """Print the stages, what went out for which reason, and the outputs."""
    for source in done.report["inputs"]:
        kind = " in reserve" if source["reserve"] else ""
        branches = counted(source["branches"], "branch", "branches")
        more = f", {branches}" if source["branches"] else ""
        count = counted(source["trajectories"], "trajectory", "trajectories")
        say(f"{source['name']}: {count}{more}{kind}")
    rows = []
    for stage in done.report["stages"]:
        more = f" +{stage['admitted']:,}" if stage["admitted"] else ""
        counts = (f"{stage['in']:,}", f"{stage['dropped']:,}", f"{stage['out']:,}{more}")
        rows.append((str(stage["stage"]), stage["name"], *counts))
    print_table(("", "stage", "in", "dropped", "out"), rows, right=["in", "dropped", "out"])
    for stage in done.report["stages"]:
        text = " ".join(stage["lines"])
        items = [f"{n:,} {reason}" for reason, n in stage["reasons"].items() if reason not in text]
        for line in [*stage["lines"], *items]:
            say(f"{stage['stage']} {stage['name']}: {line}")
    _outputs(done.report["outputs"])
    if out is None:
        say("dry run: nothing was written")
    elif link:
        places = " ".join(f"--input {source['name']}=STORE" for source in done.report["inputs"])
        say(f"next: adp curate {out} -o NEW {places}")
    else:
        say(f"next: adp why {out} ID")


def _outputs(outputs: list[dict[str, Any]]) -> None:
    nouns = {"branches": "branch", "copies": "copy", "pairs": "pair"}
    for output in outputs:
        words = [counted(output["trajectories"], "trajectory", "trajectories")]
        words += [counted(output[many], noun, many) for many, noun in nouns.items() if output[many]]
        say(f"{output['name'] or 'the store'}: {', '.join(words)}")
