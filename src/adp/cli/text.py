"""What commands print with: consoles, light tables, sizes, bars and JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from typing import Any

from rich.console import Console as RichConsole
from rich.table import Table
from rich.text import Text

from adp.core.progress import ConsoleProgress, Silent
from adp.stores.visible_text import human_size, visible
from adp_schema.errors import NothingNewError

__all__ = [
    "bars",
    "console",
    "counted",
    "epilog",
    "human_size",
    "light_table",
    "nothing_new",
    "one_line",
    "pairs",
    "print_json",
    "print_lines",
    "print_table",
    "progress_bar",
    "say",
    "share",
    "stdout_to_stderr",
    "visible",
]  # fmt: skip

_EXITS = {
    1: "something failed, and is named",
    2: "the call is wrong",
    3: "an input cannot be read",
    4: "--strict and something would be lost",
    5: "no store, or a damaged one",
    6: "SQL that is refused",
    8: "something was found that stops the call",
    9: "the Hub refuses, or cannot be reached",
    10: "nothing is left, and nothing was written",
    11: "the training stopped on an error",
    12: "episode after episode broke for the same reason",
}


def epilog(example: str, *codes: int) -> str:
    """The end of a command's help: an example and its exit codes.

    Args:
        example: the words of the call.
        codes: exit codes that the command can return besides 0.
    """
    lines = [f"  {code}  {_EXITS[code]}" for code in codes]
    return "\b\nExample:\n  " + example + "\n\n\b\nExit codes:\n  0  done\n" + "\n".join(lines)


class Console(RichConsole):
    """A console that leaves no blanks behind the lines of a table in a pipe or a file."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print, as rich does."""
        if self.is_terminal or not any(isinstance(item, Table) for item in objects):
            super().print(*objects, **options)
            return
        with self.capture() as taken:
            super().print(*objects, **options)
        for line in taken.get().splitlines():
            self.file.write(line.rstrip(" ") + "\n")


def console() -> Console:
    """A console on stdout that never interprets markup in data.

    In a pipe it is wide, so that ids stay whole for the next program.
    """
    piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(markup=False, highlight=False, emoji=False, width=200 if piped else None)


def light_table(*columns: str, right: Sequence[str] = (), fold: Sequence[str] = ()) -> Table:
    """A table without lines, but for one under its head.

    Args:
        columns: names of the columns.
        right: columns of numbers; they are never cut.
        fold: columns that must stay whole, such as ids; too long ones go on in the next line.
    """
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
    for name in columns:
        if name in right:
            table.add_column(name, justify="right", no_wrap=True, min_width=len(name))
        elif name in fold:
            table.add_column(name, overflow="fold", min_width=10)
        else:
            table.add_column(name, no_wrap=True, overflow="ellipsis")
    return table


def print_table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    right: Sequence[str] = (),
    fold: Sequence[str] = (),
) -> None:
    """Print a light table; control characters in its cells are shown as signs.

    Args:
        heads: names of the columns.
        rows: their cells.
        right: columns of numbers, see `light_table`.
        fold: columns that must stay whole.
    """
    table = light_table(*heads, right=right, fold=fold)
    for row in rows:
        table.add_row(*(Text(visible(cell)) if isinstance(cell, str) else cell for cell in row))
    console().print(table)


def say(text: str, style: str = "") -> None:
    """Print a line, which may be longer than the screen; control characters are shown as signs."""
    console().print(Text(visible(text), style), soft_wrap=True)


def print_lines(screen: Console, lines: Iterable[Text]) -> None:
    """Print lines: in a pipe whole, as they are.

    Rich takes a tenth of a millisecond to print a line, and a trajectory has thousands.

    Args:
        screen: where they are printed.
        lines: the lines; their styles show on a terminal only.
    """
    terminal = screen.is_terminal
    for line in lines:
        if terminal:
            screen.print(line)
        else:
            line.expand_tabs()
            screen.file.write(line.plain + "\n")


def pairs(rows: Sequence[tuple[str, str]]) -> Table:
    """Names and values below each other."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, Text(visible(value)))
    return table


def one_line(text: str | None, limit: int = 200) -> str:
    """A text as one line without control characters, cut at a limit."""
    line = visible(" ".join((text or "")[: 4 * limit].split()))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def counted(number: int, text: str, many: str = "") -> str:
    """A number with its noun: ``1 record``, ``2,000 records``.

    Args:
        number: how many.
        text: the noun for one.
        many: the noun for all other numbers; with an s unless given.
    """
    return f"{number:,} {text if number == 1 else many or text + 's'}"


def share(part: float, full: float) -> str:
    """A share in percent; a dash when there is no whole."""
    return f"{100 * part / full:.1f} %" if full else "-"


def bars(rows: Sequence[tuple[str, int]], width: int) -> list[Text]:
    """A histogram: a label, a bar and a count in each line.

    Args:
        rows: labels and counts.
        width: width of the screen.
    """
    most = max((count for _, count in rows), default=0)
    labels = max((len(label) for label, _ in rows), default=0)
    room = max(5, min(40, width - labels - len(f"{most:,}") - 2))
    lines = []
    for label, count in rows:
        length = max(1, round(room * count / most)) if count else 0
        bar = "█" * length
        lines.append(
            Text.assemble(f"{label:>{labels}} ", (bar, "cyan"), f"{' ' if bar else ''}{count:,}")
        )
    return lines


def progress_bar(what: str, unit: str = "bytes", *, quiet: bool) -> ConsoleProgress | Silent:
    """Progress on stderr, see `ConsoleProgress`; none where the output is for a program."""
    return Silent() if quiet else ConsoleProgress(what, unit)


@contextmanager
def nothing_new(*, as_json: bool) -> Iterator[None]:
    """Say that there was nothing new to do, which is no error."""
    try:
        yield
    except NothingNewError as nothing:
        if as_json:
            print_json({"store": None, "message": str(nothing)})
        else:
            say(str(nothing))


@contextmanager
def stdout_to_stderr(*, wanted: bool = True) -> Iterator[None]:
    """Send what code of the user's and its processes print to standard error.

    Standard output is then the report's alone, and stays JSON.

    Args:
        wanted: whether to do it at all.
    """
    if not wanted:
        yield
        return
    sys.stdout.flush()
    with ExitStack() as undone, redirect_stdout(sys.stderr):
        try:
            kept = os.dup(1)
        except OSError:  # it is closed
            pass
        else:
            undone.callback(os.close, kept)
            undone.callback(os.dup2, kept, 1)
            os.dup2(2, 1)
        yield


def print_json(data: Mapping[str, Any]) -> None:
    """Print an object as JSON for other programs; docs/json-output.md has the keys."""
    text = json.dumps(data, indent=2, ensure_ascii=False, default=str)
    # A lone surrogate would stop the writing; JSON has an escape for it.
    sys.stdout.write(text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n")
