"""The pages on formats: an index, and a page a format.

A page says how the format is recognised, which versions are read and written, what becomes of
an example, and of every field. All of it comes from the code: the converter's own words, and
`tools.tables.field_table`, which tries each field.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

from adp.converters.branches import LEFT_OUT, WHOLE
from adp.converters.readers import READERS
from adp.converters.registry import BUILTIN, formats
from adp.converters.systems import SYSTEMS
from adp.converters.unwritten_columns import BOOKKEEPING
from adp.converters.user_format import is_written
from adp.converters.via_atif import ATIF
from adp_schema.builder import Origin, RowBuilder
from adp_schema.losses import Losses
from adp_schema.protocols import Converter, RawRecord
from tools.markdown import NOTE, table
from tools.tables.column_table import NO_CONTENT, column_table
from tools.tables.field_table import (
    LOST,
    VERDICTS,
    FieldRow,
    FieldTable,
    field_table,
    load_probe,
)
from tools.tables.via_atif_table import BACK, hop_table

CONVERTERS = {name: formats.get(name) for name in sorted(BUILTIN)}
"""The formats of this package; those of other packages are none of these pages' business."""

_FILES = {
    "jsonl": "a record a line",
    "json_array": "one array of records",
    "json": "one record a file",
    "session": "one record a file, with a line for each of its items",
    "sqlite": "SQLite databases of many records",
    "text": "one text a file, which is no JSON",
}
_SHOWN = ("trajectories", "steps", "tool_calls", "observations", "links", "pairs")
_HIDDEN = frozenset({"seq", "trajectory_id", "source_format", "source_hash"})


def index_page() -> str:
    """The list of formats."""
    rows = [
        (f"[`{name}`](formats/{name}.md)", converter.title, ", ".join(converter.flavours))
        for name, converter in CONVERTERS.items()
    ]
    lines = [
        *("# Formats", "", NOTE, ""),
        *table(("name", "what", "flavours to write"), rows),
        "",
        "Each page says how the format is recognised, what becomes of each field, and what is lost",
        "on the way to each other format. [formats/columns.md](formats/columns.md) says it of each",
        "column of the store.",
        "",
        *_only_read(),
        *("## Branches and preference pairs", ""),
        "`adp export` writes a branch inside its run where the format has a place for it.",
        "Elsewhere it depends on what the branch is:",
        "",
        *table(
            ("kind", "what it is", "a record of its own"),
            [
                *(
                    (f"`{kind}`", why, "yes, without the steps before it")
                    for kind, why in WHOLE.items()
                ),
                *(
                    (f"`{kind}`", why, "only with `--branches rows`")
                    for kind, why in LEFT_OUT.items()
                ),
                ("none", "nothing is known of it", "only with `--branches rows`"),
            ],
        ),
        "",
        "What a branch that is left out started is left out with it, and so is a run of another",
        "format that a preference pair rejects as a whole. `--branches rows` writes all of them.",
        "What is left out is counted and reported as a loss, so `--strict` stops there; only what",
        "`--no-branches` leaves out is no loss. A preference pair that the target does not hold is",
        "reported as `$.pairs[*]`.",
    ]
    return "\n".join(lines) + "\n"


def _only_read() -> list[str]:
    """The logs of programs: those that are only read, and those that are written, too."""
    rows = []
    for name in sorted(READERS):
        reader = formats.get(name)
        written = "yes" if is_written(reader) else ""
        rows.append((f"`{name}`", reader.title, reader.recognised, written, reader.versions))
    return [
        *("## Logs of programs", ""),
        "Most are only read. Some are written as what their program looks for",
        "([logs.md](logs.md#going-back)), or as what APIs, traces and evaluations take",
        "([logs.md](logs.md#writing-what-apis-and-evaluation-tools-take)).",
        "",
        "What no column holds is in `extra`; what is of a kind that the reader has never seen is",
        "kept and counted. `adp doctor FILES` names it, and says how complete the runs are.",
        "",
        *table(("name", "what", "recognised by", "written", "versions"), rows),
        "",
        *_of_systems(),
    ]


def _of_systems() -> list[str]:
    """The files of the systems whose features this project covers."""
    known = [formats.get(name) for name in sorted(SYSTEMS)]
    rows = [(f"`{it.name}`", it.title, it.recognised, it.versions) for it in known]
    return [
        *("## Files of systems", ""),
        "Files of ET-Agent, SAGE and Tiny Tool Use are read, and written back equal. Those of M3",
        "have a page of their own. Runs of other formats are written as these systems write them.",
        "",
        *table(("name", "what", "recognised by", "versions"), rows),
        "",
    ]


def format_page(name: str) -> str:
    """The page of one format."""
    converter = CONVERTERS[name]
    tried = field_table(name, CONVERTERS)
    lines = [
        *(f"# {name}", "", NOTE, "", f"{converter.title}.", ""),
        *("## How it is recognised", "", converter.recognised, ""),
        f"Files are usually {_FILES[converter.container]}"
        f"{'' if converter.container == 'session' else '; any framing is read'} "
        "([store.md](../store.md)). To skip the guess: "
        f"`adp convert SRC --from {name} -o STORE`.",
        "",
        *("## Versions", "", converter.versions, ""),
        *_flavours(converter),
        *_example(name, converter),
        *_losses(tried),
        *(_hop(converter) if name == ATIF else []),
        *_fields(tried.rows),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _flavours(converter: Converter) -> list[str]:
    if not converter.flavours:
        return []
    names = ", ".join(f"`{name}`" for name in converter.flavours)
    command = f"`adp export STORE --to {converter.name} --flavour {converter.flavours[-1]} -o OUT`"
    return [f"It is written in the flavours {names}; the first is the default: {command}", ""]


def _example(name: str, converter: Converter) -> list[str]:
    """A small record, and the rows that it becomes."""
    record = load_probe(name)["example"]
    what = (
        "The lines of this file, as a list," if converter.container == "session" else "This record"
    )
    lines = ["## Example", "", what, "", "```json"]
    lines += [
        json.dumps(record, indent=2, ensure_ascii=False),
        "```",
        "",
        f"become{'' if converter.container == 'session' else 's'} these rows:",
        "",
    ]
    for kind, rows in _rows(converter, record).items():
        for row in rows:
            cells = ", ".join(f"{key} `{_short(value)}`" for key, value in row.items())
            lines.append(f"- **{kind}**: {cells}")
    return [*lines, ""]


def _rows(converter: Converter, record: Any) -> dict[str, list[dict[str, Any]]]:
    """The filled columns of the rows of a record."""
    data = json.dumps(record, ensure_ascii=False).encode()
    builder, losses = RowBuilder(), Losses()
    columns = {"source_format": converter.name, "source_hash": "0" * 32}
    builder.begin(Origin(seq=0, dataset="example", columns=columns, size=len(data)))
    converter.read(RawRecord(data, "example.json", 1, 0, len(data)), builder, losses)
    builder.close_record(losses)
    tables = builder.tables()
    return {
        kind: [
            {key: value for key, value in row.items() if value is not None and key not in _HIDDEN}
            for row in tables[kind].to_pylist()
        ]
        for kind in _SHOWN
    }


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= 120 else f"{text[:117]}..."


def _losses(tried: FieldTable) -> list[str]:
    """What does not survive: in the store, and on the way to each other format."""
    rows = tried.rows
    lines = ["## Losses", "", "A loss is always reported; `--strict` makes it an error.", ""]
    paths = [row.path for row in rows if LOST in row.verdict.split(", ")]
    lines += [f"- Fields lost in the store: {_paths(paths)}."]
    for target, further in tried.further.items():
        gone = [row.path for row in rows if LOST in row.targets[target].split(", ")]
        lines.append(f"- Fields lost in `{target}`: {_paths(gone)}.")
        lines += [f"  - also reported: `{path}`: {reason}" for path, reason in further]
    return [*lines, ""]


def _hop(converter: Converter) -> list[str]:
    """What becomes of a store that is written in a format and read back."""
    result = hop_table(converter)
    exact = sum(word == BACK for word in result.values())
    rows = [(f"`{name}`", word) for name, word in result.items() if word != BACK]
    return [
        *("## A store that goes through it", ""),
        f"Of the {len(result)} columns of the store that are no bookkeeping, {exact} come back as",
        "they were when a store is written in this format and read back. Measured: each column of",
        "a small store is filled or changed in turn, and all its rows are compared afterwards. The",
        "others, in some or all rows:",
        "",
        *table(("column", "what becomes of it"), rows),
        "",
    ]


def _paths(paths: list[str]) -> str:
    return ", ".join(f"`{path}`" for path in paths) or "nothing"


def _fields(rows: list[FieldRow]) -> list[str]:
    """The table of all fields."""
    others = sorted({target for row in rows for target in row.targets})
    cells = [
        (
            f"`{row.path}`",
            row.verdict,
            ", ".join(f"`{column}`" for column in row.columns),
            *(row.targets[other] for other in others),
        )
        for row in rows
    ]
    return [
        *("## Fields", ""),
        "Made by trying: a record with every field filled is read, one value is changed, and the",
        "rows are compared; then both are written in each other format. A field that is neither",
        "kept nor reported as lost stops the making of this page.",
        "",
        *table(("word", "meaning"), VERDICTS.items()),
        "| to `table.column` | in another format: kept, and read back into that column |",
        "",
        *table(("field", "in the store", "where", *(f"in {other}" for other in others)), cells),
    ]


def columns_page() -> str:
    """What becomes of each column of the store in each format."""
    rows = []
    for name, verdicts in column_table(CONVERTERS).items():
        if name.partition(".")[2] not in BOOKKEEPING:
            rows.append((f"`{name}`", *verdicts.values()))
    lines = [
        *("# Columns of the store in each format", "", NOTE, ""),
        "Made by trying: a small store with a row in every table is written in every format, each",
        "column is filled or changed in turn, and the store is written again. A column that makes",
        "no difference and is not reported as lost stops the making of this page. What is written",
        "and reported too is written for some rows, or in another form.",
        "",
        *table(("column", *CONVERTERS), rows),
        "",
        *(
            "## What is no loss",
            "",
            "These columns describe the store, or repeat what others say.",
            "",
        ),
        *table(("column", "why"), [(f"`{name}`", why) for name, why in BOOKKEEPING.items()]),
        "",
        "No export writes rows of these tables:",
        "",
        *table(("table", "why"), [(f"`{name}`", why) for name, why in NO_CONTENT.items()]),
        "",
        "Scores lie beside the tables of a store; they can be made of the target again.",
    ]
    return "\n".join(lines) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "formats.md": index_page,
    "formats/columns.md": columns_page,
    **{f"formats/{name}.md": functools.partial(format_page, name) for name in CONVERTERS},
}
"""Path under ``docs/`` -> what makes the page."""
