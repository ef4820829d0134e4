"""What a signature is, and the words that signatures are written in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from adp.converters.known.head import Head

Row = dict[str, Any]
RowTest = Callable[[Row], bool]
HeadTest = Callable[[Head], bool]

CHAT = frozenset({"openai_chat"})
SHAREGPT = frozenset({"sharegpt"})


@dataclass(frozen=True)
class KnownFormat:
    """A kind of file that is recognised by name and not read.

    Attributes:
        name: short name.
        title: what it is, for "it looks like ...".
        test: whether the head of a file is of this kind.
        is_trace: False for files that hold no run of an agent, such as configurations.
        outranks: formats that only recognise such a file by its shape, and would read it wrong.
    """

    name: str
    title: str
    test: HeadTest
    is_trace: bool = True
    outranks: frozenset[str] = frozenset()


def has(row: Row, *keys: str) -> bool:
    """Whether a row has all these keys."""
    return all(key in row for key in keys)


def text(row: Row, key: str) -> str:
    """The string under a key; empty when it is none."""
    value = row.get(key)
    return value if isinstance(value, str) else ""


def inner(row: Row, key: str) -> Row:
    """The object under a key; empty when it is none."""
    value = row.get(key)
    return value if isinstance(value, dict) else {}


def items(row: Row, key: str) -> list[Row]:
    """The objects of the list under a key."""
    value = row.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def blocks(messages: list[Row]) -> list[Row]:
    """The content blocks of messages whose content is a list."""
    return [block for message in messages for block in items(message, "content")]


def is_text(row: Row, *keys: str) -> bool:
    """Whether the values of these keys are strings."""
    return all(isinstance(row.get(key), str) for key in keys)


def first(test: RowTest) -> HeadTest:
    """The first object among the records passes the test."""
    return lambda head: bool(head.rows) and test(head.rows[0])


def some(test: RowTest) -> HeadTest:
    """One of the first objects passes the test; for files that may begin with something else."""
    return lambda head: any(test(row) for row in head.rows)


def every(test: RowTest) -> HeadTest:
    """All of the first records are objects that pass the test."""
    return lambda head: (
        bool(head.records)
        and len(head.rows) == len(head.records)
        and all(test(row) for row in head.rows)
    )


def kept_as(container: str, test: HeadTest) -> HeadTest:
    """The file is laid out like this, and passes the test."""
    return lambda head: head.container == container and test(head)


def members(test: Callable[[frozenset[str]], bool]) -> HeadTest:
    """The member names of a zip file, or the columns of an SQLite file, pass the test."""
    return lambda head: test(head.members)
