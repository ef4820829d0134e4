"""What commands print about losses: contents first, and the keys of ``extra`` together."""

from __future__ import annotations

import re
from collections import Counter

from rich.text import Text

from adp.cli.manifest_text import TOP
from adp.cli.text import console, counted, one_line, print_table
from adp.converters.unwritten_columns import REASON

_CONTENT = re.compile(
    r"\$(?:\.branches\[\*\])*"
    r"|.*\.(?:text|prose|reasoning|arguments|arguments_raw|visible_text|axtree|html|edit_summary)"
    r"|.*\.(?:tools|media|content|steps|calls|observations|early_observations|pairs)(?:\[\*\])?"
    r"|.*\.steps\[\*\](?:\.kind)?|.*\.calls\[\*\]\.name"
)
"""Paths of what somebody said, called or answered, and of what is left out as a whole."""
_MEDIA = re.compile(r"\$\.media\.[^.:]+")
_TITLE = "lost (path: reason)"


def print_losses(counts: dict[str, int]) -> None:
    """Print the losses that matter most, if there are any.

    Args:
        counts: ``path: reason`` -> number of times.
    """
    if not counts:
        return
    ordered = grouped_losses(counts)
    screen = console()
    screen.print()
    rows = [(f"{count:,}", one_line(name)) for name, count in ordered[:TOP]]
    print_table(("times", _TITLE), rows, right=["times"], fold=[_TITLE])
    if len(ordered) > TOP:
        more = counted(len(ordered) - TOP, "more kind")
        screen.print(Text(f"and {more}; --json has the full list", "dim"))
    elif len(ordered) < len(counts):
        screen.print(Text("--json has them key by key", "dim"))


def grouped_losses(counts: dict[str, int]) -> list[tuple[str, int]]:
    """Losses in the order in which they matter: contents, other columns, keys of ``extra``.

    Keys of ``extra`` in the same place are one line, and so are blobs.

    Args:
        counts: ``path: reason`` -> number of times.
    """
    keys: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for name, count in counts.items():
        place, dot, key = name.partition(".extra.")
        if dot and key.endswith(f": {REASON}"):
            name = f"{place}.extra"
            keys[name] += 1
        else:
            name = _MEDIA.sub("$.media.*", name)
        times[name] += count
    lines = []
    for name, count in times.items():
        shown = f"{name}.*: {REASON} ({counted(keys[name], 'key')})" if name in keys else name
        lines.append((_rank(name, in_extra=name in keys), shown, count))
    lines.sort(key=lambda line: (line[0], -line[2], line[1]))
    return [(shown, count) for _, shown, count in lines]


def _rank(name: str, *, in_extra: bool) -> int:
    """How much a loss matters: 0 most."""
    path = name.partition(": ")[0]
    if in_extra or ".extra." in path:
        return 2
    return 0 if _CONTENT.fullmatch(path) else 1
