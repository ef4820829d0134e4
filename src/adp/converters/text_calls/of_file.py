"""The dialect that an input file is read in."""

from __future__ import annotations

from collections.abc import Sequence

from adp.converters.frames import Frame
from adp.converters.registry import formats
from adp.converters.text_calls.registry import DIALECTS, dialect

BY_RUN = "by run"
"""In the place of a dialect: the recipe of the data set says it for each run."""

NONE = "none"
"""Named in the place of a dialect: texts are left as they are."""


def check_dialect(name: str | None) -> None:
    """Check what the user named.

    Raises:
        UsageError: there is no such dialect.
    """
    if name not in (None, NONE):
        dialect(name)


def dialect_of_file(
    chosen: str | None, head: Sequence[Frame], named: str | None
) -> tuple[str, bool]:
    """The dialect of a file, empty for none; and whether it was found in its texts, not named.

    Args:
        chosen: its format.
        head: its first records.
        named: what the user named; None leaves it to the format, or to the texts.
    """
    if chosen is None or named == NONE:
        return "", False
    converter = formats.get(chosen)
    if named is not None:
        return named, False
    if (given := getattr(converter, "given_dialect", None)) is not None:
        return (given if given in (*DIALECTS, BY_RUN) else ""), False
    if not getattr(converter, "holds_text_actions", False):
        return "", False
    from adp.converters.text_calls.choose import dialect_of_records

    records = [frame.data for frame in head if not frame.error]
    return dialect_of_records(converter, records), True
