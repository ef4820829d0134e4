"""``adp query``: SQL over stores."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from adp.cli.process import was_interrupted
from adp.cli.text import console, counted, epilog, print_table, say
from adp.core.input_files import read_text
from adp.stores.locks import alone_at_file
from adp_schema.errors import AdpError, InputError, UsageError, unknown_name
from adp_schema.gate import MEMORY_LIMIT, QueryGate
from adp_schema.gate_engine import SECONDS_VARIABLE, unfinished
from adp_schema.gate_files import RECORD, ExtraView, StoreFiles, record_views
from adp_schema.manifest import MANIFEST
from adp_schema.scores import SCORE_VIEWS, score_files, score_views
from adp_schema.store import Store
from adp_schema.views import STORE_COLUMN, VIEWS

EPILOG = epilog(
    "adp query my_store -c 'SELECT name, count(*) FROM calls GROUP BY name'", 2, 3, 5, 6
)

OBJECT = "object"
"""The form of ``--json``, which no file has."""

FORMATS = ("table", "csv", "json", "jsonl", "parquet")
LIMIT = 40
SECONDS = 60.0
ALL_VIEWS = VIEWS | SCORE_VIEWS

HELP = """\
Write a SELECT and end it with a semicolon.
  .tables        list the tables and views
  .schema NAME   list the columns of one
  .help          show this
  .quit          leave; so does Ctrl-D"""


Seconds = Annotated[
    float,
    typer.Option(
        min=0,
        metavar="N",
        envvar=SECONDS_VARIABLE,
        show_envvar=False,
        help="Seconds that a query may work; 0 sets no limit.",
    ),
]


@dataclass(frozen=True)
class QueryOutput:
    """Where results go: form, file and the number of rows in a table; how long a query works."""

    form: str
    file: Path | None
    limit: int
    seconds: float = SECONDS


@alone_at_file
def query(
    stores: Annotated[
        list[str], typer.Argument(metavar="STORE", help="Folders or URLs of stores.")
    ],
    command: Annotated[
        str | None, typer.Option("--command", "-c", metavar="SQL", help="The query.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", metavar="FILE", help="File with the query.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="FORMAT", help=f"{', '.join(FORMATS)}; else as -o FILE ends."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the rows to a file.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print columns and rows as one JSON object.")
    ] = False,
    limit: Annotated[
        int, typer.Option(min=0, metavar="N", help="Rows of a table; 0 shows all.")
    ] = LIMIT,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory that the query may use.")
    ] = MEMORY_LIMIT,
    temp: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Folder for what does not fit in memory."),
    ] = None,
    seconds: Seconds = SECONDS,
    scores: Annotated[
        list[str] | None,
        typer.Option(metavar="FOLDER", help="Where the scores are, if not in the store."),
    ] = None,
) -> None:
    """Ask stores in SQL, which can read their tables and do nothing else.

    Without -c and -f, it reads statements from standard input, each ended by a semicolon; on a
    terminal that is a prompt, and .tables says what there is to ask. Over several stores, the
    column store of trajectories tells them apart. What adp score said is in the view scores. What
    adp curate made has the views ledger, annotations and step_columns too; the last one is empty
    where no op of the recipe speaks of steps.

    A query stops when its time or its memory is used up; the environment variable
    ADP_QUERY_SECONDS sets the time for good.
    """
    if command is not None and file is not None:
        raise UsageError("-c and -f exclude each other")
    if as_json and (form is not None or out is not None or (command is None and file is None)):
        raise UsageError("--json prints the rows of one query, -c or -f; leave out --format and -o")
    output = QueryOutput(OBJECT, None, limit) if as_json else choose_output(form, out, limit)
    output = replace(output, seconds=seconds)
    command = text_of(file) if file is not None else command
    files, extra = what_to_ask(stores, scores)
    with QueryGate(files, memory_limit=memory, temp_directory=temp, extra=extra) as gate:
        if command is not None:
            run(gate, command, output)
        elif out is not None:
            raise UsageError("-o takes one result: give the query with -c or -f")
        elif sys.stdin.isatty():
            prompt(gate, output)
        else:
            for statement in statements(sys.stdin.readline):
                if not answer(gate, statement, output):
                    break


def what_to_ask(
    stores: list[str], scores: list[str] | None
) -> tuple[list[StoreFiles], list[ExtraView]]:
    """The files of the stores, and the views over their scores and their record of curation."""
    extra = record_views(stores[0]) if len(stores) == 1 else []
    paths = outputs(stores[0]) if extra else stores
    files = store_files(paths)
    return files, extra + scores_of(files, paths, scores)


def text_of(file: Path) -> str:
    """The text of a file with SQL.

    Raises:
        InputError: it cannot be read, or is no text.
    """
    try:
        return read_text(file)
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None


def choose_output(form: str | None, out: Path | None, limit: int) -> QueryOutput:
    """Decide on the form of the result.

    Raises:
        UsageError: the form is unknown, or does not fit with the file.
    """
    if form is None:
        suffix = out.suffix.removeprefix(".").lower() if out is not None else "table"
        form = suffix if suffix in FORMATS else "jsonl" if suffix == "ndjson" else None
    if form is None:
        raise UsageError(f"the end of {out} names no format; give --format {'|'.join(FORMATS[1:])}")
    if form not in FORMATS:
        raise UsageError(unknown_name("format", form, FORMATS))
    if form == "parquet" and out is None:
        raise UsageError("parquet is not for a terminal; give a file with -o")
    if form == "table" and out is not None:
        raise UsageError(
            f"a table is for the screen; with -o give --format {'|'.join(FORMATS[1:])}"
        )
    return QueryOutput(form, out, limit)


def outputs(path: str) -> list[str]:
    """The stores of a curated folder: itself, or those that its outputs are; none when linked."""
    folder = Path(path)
    if (folder / MANIFEST).exists() or not (folder / RECORD).is_dir():
        return [path]
    return [str(item.parent) for item in sorted(folder.glob(f"*/{MANIFEST}"))]


def store_files(paths: list[str]) -> list[StoreFiles]:
    """Open the stores; two of one name are told apart by their paths."""
    stores = [Store.open(path) for path in paths]
    names = [store.name for store in stores]
    unique = len(set(names)) == len(names)
    return [
        StoreFiles(
            store.name if unique else path, store.tables_files(), store.renamed, store.journal
        )
        for store, path in zip(stores, paths, strict=True)
    ]


def scores_of(
    files: list[StoreFiles], paths: list[str], folders: list[str] | None
) -> list[ExtraView]:
    """The views over the scores of the stores.

    Raises:
        UsageError: there are folders of scores, but not one for each store.
    """
    if folders and len(folders) != len(paths):
        raise UsageError("give --scores FOLDER once for each store, in their order")
    roots = folders or [Store.open(path).root for path in paths]
    results = [(file.name, score_files(root)) for file, root in zip(files, roots, strict=True)]
    return score_views(results, named=True)


def run(gate: QueryGate, sql: str, output: QueryOutput) -> None:
    """Run one statement and print or write its rows."""
    from adp.cli.output import print_table, write_rows

    reader = gate.of_user(sql, seconds=output.seconds)
    if output.form != "table":
        count = write_rows(reader, output.form, output.file)
        if output.file is not None:
            say(f"{counted(count, 'row')} in {output.file}")
    elif reader.schema.names == ["explain_key", "explain_value"]:
        for plan in reader.read_all()["explain_value"].to_pylist():
            say(plan)
    else:
        print_table(reader, output.limit)


def answer(gate: QueryGate, statement: str, output: QueryOutput) -> bool:
    """Run a statement or a dot command; the result is False when it ends the session.

    Raises:
        QueryError: the statement fails.
        UsageError: there is no such command or table.
    """
    word, _, rest = statement.rstrip(";").strip().partition(" ")
    if word in (".quit", ".exit"):
        return False
    if word == ".tables":
        show_tables()
    elif word == ".schema":
        show_schema(gate, rest.strip())
    elif word == ".help":
        console().print(Text(HELP))
    elif word.startswith("."):
        known = (".tables", ".schema", ".help", ".quit")
        raise UsageError(unknown_name("command", word, known))
    else:
        run(gate, statement, output)
    return True


def show_tables() -> None:
    """List the views with what they hold."""
    heads = ("name", "rows are")
    print_table(heads, [(view.name, view.description) for view in ALL_VIEWS.values()], fold=heads)


def show_schema(gate: QueryGate, name: str) -> None:
    """List the columns of a view with their types and meanings.

    Raises:
        UsageError: there is no view of this name.
    """
    if name not in ALL_VIEWS:
        raise UsageError(unknown_name("table", name, ALL_VIEWS))
    heads = ("column", "type", "meaning")
    meanings = ALL_VIEWS[name].columns | dict([STORE_COLUMN])
    kinds = gate.query(f"SELECT column_name, column_type FROM (DESCRIBE {name})")
    columns = zip(*(part.to_pylist() for part in kinds.columns), strict=True)
    print_table(heads, [(name, kind, meanings[name]) for name, kind in columns], fold=heads)


def prompt(gate: QueryGate, output: QueryOutput) -> None:
    """Ask for statements on a terminal until the input ends; an error does not end it."""
    import contextlib

    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  gives input() a history and the arrow keys
    console().print(Text("End a query with a semicolon. .tables lists the tables, .help helps."))
    lines = Lines()
    for statement in statements(lines.read, lines.begin):
        try:
            if not answer(gate, statement, output):
                return
        except AdpError as error:
            if unfinished():  # it would go on taking memory and time
                raise
            say(f"error: {error}", "red")
        except KeyboardInterrupt:
            was_interrupted()  # this is its answer: an error of a later statement is an error
            console().print(Text("stopped"))


class Lines:
    """Lines from a terminal, with a prompt that shows whether a statement is under way."""

    def __init__(self) -> None:
        self._first = True

    def begin(self) -> None:
        """The next line begins a statement."""
        self._first = True

    def read(self) -> str:
        """The next line with its end; nothing at the end of the input."""
        try:
            line = input("adp> " if self._first else "...> ")
        except EOFError:
            print()
            return ""
        self._first = False
        return line + "\n"


def statements(read: Callable[[], str], begin: Callable[[], None] = lambda: None) -> Iterator[str]:
    """Split lines into statements: up to a semicolon outside of quotes and comments.

    A line that starts with a dot is a statement of its own.

    Args:
        read: gives the next line, nothing at the end.
        begin: called before each line that begins a statement.
    """
    pending = ""
    while True:
        if not pending.strip():
            begin()
        line = read()
        if not pending.strip() and line.startswith("."):
            yield line.strip()
            continue
        pending += line
        complete, pending = _split(pending, at_end=not line)
        yield from complete
        if not line:
            return


def _split(text: str, *, at_end: bool) -> tuple[list[str], str]:
    """Cut complete statements off a text; at the end, what is left is one too."""
    results = []
    start = at = 0
    while (at := text.find(";", at) + 1) > 0:
        # SQLite's own test knows strings, quoted names and comments.
        if sqlite3.complete_statement(text[start:at]):
            results.append(text[start:at].strip())
            start = at
    rest = text[start:]
    if at_end and rest.strip():
        results.append(rest.strip())
        rest = ""
    return [statement for statement in results if statement.strip(";").strip()], rest
