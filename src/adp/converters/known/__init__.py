"""Files that are recognised by name although no format here reads them.

When no format takes a file, its user learns what it seems to be. And a format that only sees a
familiar shape does not misread a file that is of another kind: see `outranks`.
"""

from __future__ import annotations

from pathlib import Path

from adp.converters.known import benchmarks, chats, no_traces, sessions, spans
from adp.converters.known.head import Head, read_head
from adp.converters.known.signature import KnownFormat as KnownFormat
from adp.converters.registry import formats

KNOWN: tuple[KnownFormat, ...] = (
    *sessions.FORMATS,
    *benchmarks.FORMATS,
    *chats.FORMATS,
    *spans.FORMATS,
    *no_traces.FORMATS,
)
"""All of them. A file is of one kind only: the tests see to it that no two claim the same."""


def kinds_of(head: Head) -> list[KnownFormat]:
    """The kinds whose signature fits; more than one is a fault of the table."""
    return [kind for kind in KNOWN if kind.test(head)]


def recognise_known(path: Path, name: str = "") -> KnownFormat | None:
    """What a file is that no format reads, judged by its first part; None when nothing fits.

    Args:
        path: the file: absolute, and without links.
        name: what it is called, if not by its path.
    """
    try:
        head = read_head(path, name)
    except OSError:
        return None
    return next(iter(kinds_of(head)), None)


def outranks(kind: KnownFormat | None, formats: list[str]) -> bool:
    """Whether a file of this kind would be misread by these formats.

    Args:
        kind: what `recognise_known` said.
        formats: names of the formats that claim the file by its shape. A stamp always counts
            more than what is known here.
    """
    return kind is not None and bool(formats) and set(formats) <= kind.outranks


def looks_like(kind: KnownFormat) -> str:
    """Half a sentence for a message: what the file seems to be."""
    names = (kind.name, kind.name.rpartition("_")[0])  # such as crush_db, and crush
    reader = next((name for name in names if name in formats), None)
    if kind.is_trace and reader is not None:
        return f"it looks like {kind.title}, but the reader {reader} does not recognise it"
    if kind.is_trace:
        return f"it looks like {kind.title}, which this version cannot read yet"
    return f"it looks like {kind.title}, and holds no run of an agent"
