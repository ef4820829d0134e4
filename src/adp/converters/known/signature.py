"""What a signature is: a test of a file's head, put together of the words below.

A word makes a test of any JSON value; `first`, `some` and `every` also take a `Head` and look at
its records. Objects are what counts in a list: other items are passed over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from adp.converters.known.head import Head

Test = Callable[[Any], bool]

CHAT = frozenset({"openai_chat"})
SHAREGPT = frozenset({"sharegpt"})
LINES = frozenset({"mistral_vibe"})
"""Formats that read a chat whose messages are lines, and not the items of a list."""


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
    test: Test
    is_trace: bool = True
    outranks: frozenset[str] = frozenset()


# ---- values --------------------------------------------------------------------------------


def TEXT(value: Any) -> bool:
    """A string."""
    return isinstance(value, str)


def LIST(value: Any) -> bool:
    """A list."""
    return isinstance(value, list)


def FILLED(value: Any) -> bool:
    """An object that is not empty."""
    return isinstance(value, dict) and bool(value)


def word(*words: str) -> Test:
    """One of these strings."""
    return lambda value: isinstance(value, str) and value in words


def begins(start: str) -> Test:
    """A string that begins so."""
    return lambda value: isinstance(value, str) and value.startswith(start)


def ends(end: str) -> Test:
    """A string that ends so."""
    return lambda value: isinstance(value, str) and value.endswith(end)


# ---- objects -------------------------------------------------------------------------------


def has(*keys: str, **tests: Test) -> Test:
    """An object with all these keys, and with values that pass under those that have a test."""
    return lambda value: (
        isinstance(value, dict)
        and all(key in value for key in keys)
        and all(key in value and test(value[key]) for key, test in tests.items())
    )


def lacks(*keys: str) -> Test:
    """An object with none of these keys."""
    return lambda value: isinstance(value, dict) and not any(key in value for key in keys)


def only(*keys: str) -> Test:
    """An object with no other keys."""
    return lambda value: isinstance(value, dict) and set(value) <= set(keys)


def values(test: Test) -> Test:
    """An object whose values pass as a list."""
    return lambda value: isinstance(value, dict) and test(list(value.values()))


# ---- lists, and the records of a head ------------------------------------------------------


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list, or of the records of a head."""
    if isinstance(value, Head):
        return value.rows
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def first(test: Test) -> Test:
    """The first object passes."""
    return lambda value: any(map(test, objects(value)[:1]))


def some(test: Test) -> Test:
    """An object passes; for files that may begin with something else."""
    return lambda value: any(map(test, objects(value)))


def every(test: Test) -> Test:
    """There are objects, and all pass; the records of a head must all be objects."""
    return lambda value: (
        bool(objects(value))
        and all(map(test, objects(value)))
        and not (isinstance(value, Head) and len(value.rows) < len(value.records))
    )


def blocks(test: Test) -> Test:
    """The content blocks of messages pass as a list."""
    return lambda value: test(
        [block for message in objects(value) for block in objects(message.get("content"))]
    )


def flat(test: Test) -> Test:
    """A list passes with the items of the lists in it in their place."""
    return lambda value: (
        isinstance(value, list)
        and test(
            [entry for item in value for entry in (item if isinstance(item, list) else [item])]
        )
    )


# ---- heads ---------------------------------------------------------------------------------


def kept_as(container: str, test: Test) -> Test:
    """The file is laid out like this, and passes."""
    return lambda head: head.container == container and test(head)


def named(end: str) -> Test:
    """The name of the file ends so."""
    return lambda head: head.name.endswith(end)


def members(*names: str) -> Test:
    """A zip file has these members, or an SQLite file these columns."""
    return lambda head: head.members >= set(names)


# ---- several tests -------------------------------------------------------------------------


def both(*tests: Test) -> Test:
    """All of the tests are passed."""
    return lambda value: all(test(value) for test in tests)


def either(*tests: Test) -> Test:
    """One of the tests is passed."""
    return lambda value: any(test(value) for test in tests)


def no(test: Test) -> Test:
    """The test is not passed."""
    return lambda value: not test(value)
