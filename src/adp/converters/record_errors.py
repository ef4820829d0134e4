"""What a converter raised, as the error of a record."""

from __future__ import annotations

import msgspec

from adp_schema import jsontext
from adp_schema.errors import RecordError, SchemaError


def as_record_error(error: Exception) -> RecordError:
    """Classify what a converter raised; plug-in authors raise plain Python exceptions."""
    if isinstance(error, RecordError):
        return error
    if isinstance(error, SchemaError):
        return RecordError(str(error))
    if isinstance(error, UnicodeDecodeError):
        return RecordError(f"not valid UTF-8 at byte {error.start} of the record")
    if isinstance(error, RecursionError):
        return RecordError(f"nested deeper than {jsontext.MAX_DEPTH} levels")
    if isinstance(error, msgspec.ValidationError):
        reason, _, path = str(error).partition(" - at `")
        return RecordError(reason, path.rstrip("`") or "$")
    if isinstance(error, msgspec.DecodeError):
        return RecordError(f"not valid JSON: {error}")
    if isinstance(error, KeyError):
        return RecordError(f"the reader looks for {error}, which is not there (KeyError)")
    return RecordError(f"{type(error).__name__}: {error}")
