"""Generate the pages of ``docs/`` that follow from the code.

    python -m tools.docs            write them
    python -m tools.docs --check    exit with 1 when one is stale

- ``docs/schema.md`` and ``docs/schema.json``: the tables, the views, and the rows as JSON Schema.
- ``docs/cli.md``: the help of every command. A command without an example is an error.
- ``docs/dpo-losses.md``: the losses of DPO, as M3 and as TRL name them.
- ``docs/chat-templates.md``: see `tools.templates_page`; kept as it is where TRL is not installed.
- ``docs/scorers.md``: see `tools.scorers_page`.
- ``docs/dialects.md``: see `tools.dialects_page`.
- ``docs/plugins.md``: see `tools.plugins_page`.
- ``matches.json`` beside the recipes: how their rows are recognised.
- ``docs/formats.md`` and ``docs/formats/<name>.md``: see `tools.format_pages`.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Help texts wrap at the width of the terminal, so it is fixed before typer is imported.
os.environ.update({"COLUMNS": "100", "LINES": "40", "NO_COLOR": "1", "TERM": "dumb"})

from adp.cli import main as cli
from adp.converters.datasets.catalogue import MATCHES, matches_text
from adp_schema import extra_column, model, parts
from adp_schema.scores import SCORE_VIEWS
from adp_schema.tables import ENUMS, SCHEMA_VERSION, TABLES, Table
from adp_schema.views import STORE_COLUMN, VIEWS, View
from tools import format_pages
from tools.check_page import checks_page
from tools.datasets_page import datasets_page, datasets_schema
from tools.dialects_page import dialects_page
from tools.environments_page import environments_page, policies_page
from tools.loss_page import losses_page
from tools.markdown import NOTE, cell
from tools.ops_page import ops_page, recipe_schema
from tools.plugins_page import plugins_page
from tools.redaction_page import redaction_page
from tools.scorers_page import scorers_page
from tools.templates_page import templates_page
from tools.train_page import train_page, train_schema

DOCS = Path(__file__).resolve().parent.parent / "docs"
ROWS = (
    *(model.Trajectory, model.Step, model.ToolCall, model.Observation, model.Task, model.Media),
    *(model.Link, model.Pair, model.RawRow, model.Reject, model.SourceFile),
)
RESERVED = {
    "$null": "names of columns whose value was null in the source",
    "$absent": "names of keys that the source left out where they are usually written",
    "$shape": "the form that the source's own format used, for writing it back the same way",
    "$escaped": "originals of columns whose characters cannot be stored (lone surrogates, NaN)",
    "$parsed": "what was recovered from texts, or set by a recipe, after the row was read",
    "$tool_names": "the name and the arguments that a renamed call had",
}


# ---- the schema ----------------------------------------------------------------------------------


def schema_page() -> str:
    """The page of tables and views."""
    lines = [
        *("# Tables and views", "", NOTE, ""),
        f"Schema version {SCHEMA_VERSION}. A store holds one folder of Parquet files per table;",
        "[store.md](store.md) says how they lie on disk. Every column may be null. As JSON Schema:",
        "[schema.json](schema.json).",
        "",
        *ids_and_order(),
        *json_text(),
        "## Tables",
        "",
    ]
    for table in TABLES.values():
        lines += table_section(table)
    lines += [
        *("## Views", ""),
        "`adp query` and `Store.query` see these views. Over several named stores the views of",
        f"trajectories also have the column `{STORE_COLUMN[0]}`.",
        "",
    ]
    return "\n".join([*lines, *views()]).rstrip() + "\n"


def ids_and_order() -> list[str]:
    """How rows are named and sorted."""
    sorts = [
        f"| `{table.name}` | {', '.join(f'`{name}`' for name in table.sort)} "
        f"| {'always' if table.required else 'only when it has rows'} "
        f"| {', '.join(f'`{name}`' for name in table.bloom)} |"
        for table in TABLES.values()
    ]
    return [
        *("## Ids and order", ""),
        "- `trajectory_id` is `<dataset>/<source_id>`; the hash of the record stands in for an id",
        "  that the source did not give. Repeats get `#2`, `#3` in input order. It names a",
        "  trajectory in every store.",
        "- `seq` is the place in the input. It sorts and joins all tables of one store; it is not",
        "  dense, and means nothing in another store.",
        "- `step` counts the steps of a trajectory from 0, `call` the calls of a step from 0. An",
        "  observation names the call that it answers by `call_step` and `call`.",
        "- Every hash is blake2b-128, in hexadecimal.",
        "",
        "| table | sorted by | in the store | Bloom filter |",
        "|---|---|---|---|",
        *sorts,
        "",
    ]


def json_text() -> list[str]:
    """What is inside the columns of JSON text."""
    missing = set(extra_column.RESERVED) ^ set(RESERVED)
    if missing:
        raise ValueError(f"tools/docs.py does not describe {sorted(missing)} of extra")
    part = " ".join((parts.__doc__ or "").split("\n\n")[-1].split())
    return [
        *("## JSON text", ""),
        "A column marked *JSON* holds the characters of the source, because key order and the",
        "spelling of numbers reach the prompt. In SQL: `json_extract(arguments, '$.city')`.",
        "",
        "**`extra`** is an object with the keys of the source that no column holds. These keys are",
        "reserved; a source key that begins with a dollar sign gets a second one:",
        "",
        *(f"- `{name}`: {RESERVED[name]}" for name in extra_column.RESERVED),
        "",
        f"**`content`** of steps and observations is a list of parts. {part.replace('``', '`')}",
        "",
    ]


def table_section(table: Table) -> list[str]:
    """A table and its columns."""
    lines = [f"### {table.name}", "", first_line(table.row), ""]
    lines += ["| column | type | description |", "|---|---|---|"]
    for column in table.schema:
        metadata = column.metadata or {}
        kind = "JSON" if metadata.get(b"content") == b"json" else type_name(str(column.type))
        text = metadata[b"description"].decode()
        words = ENUMS.get((table.name, column.name))
        if words and not all(word in text for word in words):
            text += f" One of: {', '.join(f'`{word}`' for word in sorted(words))}."
        lines.append(f"| `{column.name}` | {kind} | {cell(text)} |")
    return [*lines, ""]


def type_name(arrow: str) -> str:
    """An Arrow type as the page writes it."""
    return arrow.replace("list<item: ", "list<").replace("list<element: ", "list<")


def views() -> list[str]:
    """All views: first those with the columns of a table, then each of the others."""
    lines = ["| view | a row is | columns |", "|---|---|---|"]
    others: list[View] = []
    for view in (VIEWS | SCORE_VIEWS).values():
        table = next((t.name for t in TABLES.values() if t.schema.names == list(view.columns)), "")
        same = next((f"view-{other.name}" for other in others if other.columns == view.columns), "")
        if table or same:
            table = table or same
            text = cell(view.description)
            lines.append(
                f"| `{view.name}` | {text} | those of [{table.removeprefix('view-')}](#{table}) |"
            )
        else:
            others.append(view)
    for view in others:
        lines += ["", f"### View {view.name}", "", view.description, ""]
        lines += ["| column | description |", "|---|---|"]
        lines += [f"| `{name}` | {cell(text)} |" for name, text in view.columns.items()]
    return lines


def first_line(thing: Any) -> str:
    """First line of a docstring."""
    return str(thing.__doc__ or "").strip().splitlines()[0]


def schema_json() -> str:
    """JSON Schema of the rows, and of a trajectory with all that hangs from it."""
    defs: dict[str, Any] = {}
    for row in ROWS:
        row_schema = row.model_json_schema(ref_template="#/$defs/{model}")
        defs.update(row_schema.pop("$defs", {}))
        if "properties" in row_schema:  # a row that refers to itself is among its own definitions
            defs[row.__name__] = row_schema
    for table in TABLES.values():
        properties = defs[table.row.__name__]["properties"]
        for name, column in properties.items():
            if (table.name, name) in ENUMS:
                column["anyOf"][0]["enum"] = sorted(ENUMS[table.name, name])
            if name in table.schema.names:
                metadata = table.schema.field(name).metadata or {}
                if metadata.get(b"content") == b"json":
                    column["anyOf"][0]["contentMediaType"] = "application/json"
            column.pop("title", None)
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Trajectory",
        "description": f"A trajectory of adp, schema version {SCHEMA_VERSION}, with its rows.",
        "$ref": "#/$defs/Trajectory",
        "$defs": dict(sorted(defs.items())),
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


# ---- the command line ----------------------------------------------------------------------------


def cli_page() -> str:
    """The page of commands.

    Raises:
        ValueError: a command has no example.
    """
    lines = ["# Commands", "", NOTE, "", "[errors.md](errors.md) explains the exit codes.", ""]
    lines += ["```", help_of([]), "```", ""]
    bare: list[str] = []
    for section, commands in cli.sections().items():
        lines += [f"## {section}", ""]
        for name in commands:
            for words in command_words(name):
                text = help_of(words)
                if "Example" not in text:
                    bare.append(" ".join(words))
                lines += [f"### adp {' '.join(words)}", "", "```", text, "```", ""]
    if bare:
        raise ValueError(f"commands without an example: {', '.join(bare)}")
    return "\n".join(lines).rstrip() + "\n"


def command_words(name: str) -> Iterator[list[str]]:
    """A command, or the commands of a group."""
    command = cli.load_command(name, *cli.command_table()[name])
    result = getattr(command, "commands", None)
    if not result:
        yield [name]
        return
    for child in sorted(key for key, value in result.items() if not value.hidden):
        yield [name, child]


def help_of(words: list[str]) -> str:
    """What ``--help`` prints.

    Raises:
        RuntimeError: it fails.
    """
    out, wrong = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(wrong):
        code = cli.main([*words, "--help"])
    if code:
        raise RuntimeError(f"adp {' '.join(words)} --help: {wrong.getvalue().strip()}")
    return "\n".join(line.rstrip() for line in out.getvalue().strip().splitlines())


def suite_schema() -> str:
    """JSON Schema of the files of suites, for editors."""
    from adp.eval.suite import Suite

    return json.dumps(Suite.model_json_schema(), indent=2, ensure_ascii=False) + "\n"


def loop_schema() -> str:
    """JSON Schema of the files of loops, for editors."""
    from adp.workflows.loop.schema import json_schema

    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


# ---- writing -------------------------------------------------------------------------------------

PAGES: dict[str, Callable[[], str]] = {
    "schema.md": schema_page,
    "schema.json": schema_json,
    "cli.md": cli_page,
    "checks.md": checks_page,
    "redaction.md": redaction_page,
    "ops.md": ops_page,
    "scorers.md": scorers_page,
    "chat-templates.md": templates_page,
    "recipe.schema.json": recipe_schema,
    "datasets-list.md": datasets_page,
    "dialects.md": dialects_page,
    "datasets.schema.json": datasets_schema,
    f"../src/adp/converters/datasets/recipes/{MATCHES}": matches_text,
    "environments-settings.md": environments_page,
    "policies-settings.md": policies_page,
    "train-config.md": train_page,
    "train-config.schema.json": train_schema,
    "dpo-losses.md": losses_page,
    "plugins.md": plugins_page,
    "suite.schema.json": suite_schema,
    "loop.schema.json": loop_schema,
    **format_pages.PAGES,
}


def main(arguments: list[str]) -> int:
    """Write or check the pages, and return the exit status."""
    if set(arguments) - {"--check"}:
        print("usage: python -m tools.docs [--check]", file=sys.stderr)
        return 2
    check = "--check" in arguments
    stale = 0
    for name, make in PAGES.items():
        path, text = DOCS / name, make()
        old = path.read_text(encoding="utf-8") if path.exists() else None
        if old == text:
            continue
        stale += 1
        if check:
            print(f"docs/{name} is stale; run: make docs")
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"docs/{name} written")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
