"""What the system refuses to write: a full disk, a quota, a limit, a place that is read-only.

Libraries tell it in many ways: as an `OSError`, or as an error of their own with the number of the
system's in its text (Polars, safetensors, torch).
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence

_ADVICE = {
    errno.ENOSPC: "make room, and call it again",
    errno.EDQUOT: "make room, and call it again",
    errno.EFBIG: "files of that size are not allowed here; raise the limit, and call it again",
    errno.EROFS: "choose another place",
}

_NUMBER = re.compile(r"\(os error (\d+)\)|\[[Ee]rrno (\d+)\]")
_OUT = ("-o", "--out")


def explain(error: BaseException, words: Sequence[str]) -> str | None:
    """One sentence for an error that comes of a full disk, a limit or a read-only place.

    Args:
        error: what a command raised.
        words: the words of the command, which name its output.

    Returns:
        The sentence; None when the error is another one.
    """
    number = next((n for item in chain(error) if (n := _number(item)) in _ADVICE), None)
    if number is None:
        return None
    out = _output(words) or getattr(error, "filename", None)
    place = f" to {out}" if out else ""
    return f"cannot write{place}: {os.strerror(number)}; {_ADVICE[number]}"


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and those that led to it, the last one first."""
    for _ in range(20):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _number(error: BaseException) -> int | None:
    if isinstance(error, OSError) and error.errno:
        return error.errno
    match = _NUMBER.search(str(error))
    if match:
        return int(match[1] or match[2])
    texts = {os.strerror(number): number for number in _ADVICE}
    return next((number for text, number in texts.items() if text in str(error)), None)


def _output(words: Sequence[str]) -> str | None:
    """What a command was told to write to."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word in _OUT:
            return following or None
        name, equals, value = word.partition("=")
        if equals and name in _OUT:
            return value
    return None
