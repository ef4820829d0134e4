"""Which format a file of plain text has, such as a log in Markdown.

Formats whose container is ``text`` get a whole file as one record, ``{"text": ...}``. They alone
are asked about a file that is no JSON, and they are asked about no other file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from adp.converters.files.limits import ConvertLimits
from adp.converters.files.streams import InputPlace, beginning
from adp.converters.framing import text_as_record
from adp_schema import jsontext
from adp_schema.protocols import Converter, Match

TEXT = "text"
"""The container, and the framing, of such formats."""

_HEAD = 1 << 16
_SUFFIXES = frozenset({".md", ".markdown", ".txt", ".log"})


def text_format(
    place: InputPlace,
    name: str,
    kind: str | None,
    converters: Sequence[Converter],
    limits: ConvertLimits,
) -> str | None:
    """The name of the format that a text is of; None when it is of none, or no text.

    Args:
        place: the file.
        name: its name.
        kind: how it would be cut as JSON; None when that is not possible.
        converters: the formats to choose from: one, when the user named it.
        limits: limits of the conversion.
    """
    is_text = kind is None or PurePosixPath(name).suffix.lower() in _SUFFIXES
    if not (is_text or len(converters) == 1):
        return None
    candidates = [it for it in converters if it.container == TEXT]
    if not candidates:
        return None
    if len(converters) == 1:
        return candidates[0].name
    data = text_as_record(beginning(place, limits, _HEAD))
    try:
        record = jsontext.decode_object(jsontext.sanitise(data))
    except ValueError:  # the text has the characters that serve as marks
        return None
    matches = {it.name: it.sniff(record) for it in candidates}
    best = max(sorted(matches), key=lambda name: matches[name])
    return best if matches[best] > Match.NO else None
