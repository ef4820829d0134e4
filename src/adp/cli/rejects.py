"""``adp rejects``: records that could not be converted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from adp.cli.options import StorePath
from adp.cli.text import console, counted, epilog, one_line, print_json, say
from adp.stores.locks import alone_at_file
from adp_schema.errors import OutputExistsError
from adp_schema.store import Store

EPILOG = epilog("adp rejects my_store --reason role -o mend.jsonl", 2, 5)

_SELECT = """
SELECT source_file, record, path, reason, length, data FROM rejects
WHERE status = ? AND (? = '' OR contains(lower(reason), lower(?))) ORDER BY seq, source_file, record
"""
_COUNT = """
SELECT count(*) AS n FROM rejects
WHERE status = ? AND (? = '' OR contains(lower(reason), lower(?)))
"""


@alone_at_file
def rejects(
    path: StorePath,
    count: Annotated[int, typer.Option("-n", min=1, help="How many to show.")] = 20,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="Only those whose reason holds this text.")
    ] = "",
    skipped: Annotated[
        bool, typer.Option("--skipped", help="Show the records that are no trajectories instead.")
    ] = False,
    out: Annotated[
        str | None, typer.Option("-o", metavar="FILE", help="Write all these records to a file.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> None:
    """Show the records that could not be converted, and why.

    With -o they are written out, one a line and without limit, so that they can be mended and
    converted again.
    """
    store = Store.open(path)
    values = ["skipped" if skipped else "rejected", reason, reason]
    if out is not None:
        write_records(store.query(_SELECT, values).to_pylist(), Path(out))
        return
    rows = store.query(f"{_SELECT} LIMIT {count}", values).to_pylist()
    if as_json:
        for row in rows:
            row["data"] = (row["data"] or b"").decode("utf-8", "replace")
        print_json({"rejects": rows})
        return
    total = store.query(_COUNT, values).to_pylist()[0]["n"]
    report(rows, total, values[0])


def report(rows: list[dict[str, Any]], total: int, word: str) -> None:
    """Print rejected records: place and reason, then how they begin."""
    screen = console()
    for row in rows:
        place = f"{row['source_file']}#{row['record']}"
        where = f" - at {one_line(row['path'])}" if row["path"] else ""
        screen.print(
            Text.assemble((one_line(place), "bold"), ": ", (one_line(row["reason"]), "red"), where),
            soft_wrap=not screen.is_terminal,
        )
        start = (row["data"] or b"")[:400].decode("utf-8", "replace")
        screen.print(Text(f"    {one_line(start, 120)}", "dim"), soft_wrap=not screen.is_terminal)
    shown = f", {len(rows):,} shown (-n)" if len(rows) < total else ""
    screen.print(f"{total:,} {word}{shown}")


def write_records(rows: list[dict[str, Any]], out: Path) -> None:
    """Write raw records to a new file, one a line.

    Line ends inside a record become blanks: in JSON they stand between tokens only.

    Raises:
        OutputExistsError: the file is there already.
    """
    if out.exists():
        raise OutputExistsError(f"{out} is there already; choose another -o or remove it first")
    cut = 0
    with out.open("wb") as file:
        for row in rows:
            data: bytes = row["data"] or b""
            cut += len(data) < (row["length"] or 0)
            file.write(data.replace(b"\r\n", b" ").replace(b"\n", b" ") + b"\n")
    say(f"{counted(len(rows), 'record')} written to {out}")
    if cut:
        say(f"{cut:,} of them are cut: a store keeps their beginning only", "red")
