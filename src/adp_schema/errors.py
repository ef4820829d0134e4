"""Every error that this project raises on purpose.

    AdpError                    base; ``exit_code`` is what the command line returns
    |-- NothingNewError         all inputs are in an earlier store; no fault (0)
    |-- UsageError              the call itself is wrong: unknown name, bad option (2)
    |   `-- RecipeError         a recipe cannot be carried out as it is written (2)
    |-- MissingExtraError       an optional package is not installed (2)
    |-- InputError              an input cannot be read at all: missing, empty, not text (3)
    |   |-- AmbiguousFormatError   two formats claim the input, or none does (3)
    |   `-- ChangedInputError   a file is not what it was when the run was planned (3)
    |-- RecordError             one record is wrong; the runner quarantines it (4)
    |-- ConversionLossError     ``--strict`` and something would be lost (4)
    |-- StoreError              a path is not a store, or the store is damaged (5)
    |   |-- DamagedStoreError   files of a store are not those of its manifest (5)
    |   |-- StoreVersionError   written by a newer version of this package (5)
    |   |-- OutputExistsError   the output is there already (5)
    |   |-- SealedError         a growing store was ended while it was appended to (5)
    |   `-- IdTakenError        another trajectory has this id (5)
    |-- QueryError              SQL that the gate refuses or that the engine rejects (6)
    |   `-- QueryTimeoutError   a query took longer than it may (6)
    |-- SchemaError             a row does not fit the schema: a bug in a converter (7)
    |-- FindingsError           checks found what the call said to fail on (8)
    |-- EmptyResultError        a recipe leaves nothing; nothing was written (10)
    |-- HubError                the Hugging Face Hub refuses, or cannot be reached (9)
    |-- TrainingError           a training run stopped on an error (11)
    |-- RolloutError            a run of episodes stopped, since all of them broke (12)
    `-- EngineError             a cluster cannot do the work that it was given (13)

A message is one sentence that says what is wrong and what to do about it. Errors about a
record read ``file#record: reason - at $.json.path``. Plug-in authors raise plain Python
exceptions; the runner that called them turns those into a `RecordError`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class AdpError(Exception):
    """Base class of all errors that are shown to the user as one sentence."""

    exit_code = 1


class NothingNewError(AdpError):
    """All inputs of a conversion are in the earlier store that was named; nothing was written."""

    exit_code = 0


class UsageError(AdpError):
    """The call is wrong: an unknown name, a missing argument, options that exclude each other."""

    exit_code = 2


class RecipeError(UsageError):
    """A recipe of curation is wrong, or asks for what its inputs do not have."""


class MissingExtraError(AdpError):
    """A feature needs an optional package that is not installed."""

    exit_code = 2

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"this needs the package '{package}', which is not installed; "
            f"run: pip install 'adp[{extra}]'"
        )


class InputError(AdpError):
    """An input file or folder cannot be read."""

    exit_code = 3


class AmbiguousFormatError(InputError):
    """No format, or more than one, claims an input."""


class ChangedInputError(InputError):
    """A file is gone, or is not what it was when the run was planned.

    Args:
        path: the file.
        reason: what happened to it.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        """The file, what happened to it, and what to do."""
        return f"{self.path}: {self.reason}; convert it again"


class RecordError(AdpError):
    """One record cannot be converted.

    Args:
        reason: what is wrong, in a few words.
        path: JSON path inside the record, such as ``$.messages[3].role``.
    """

    exit_code = 4

    def __init__(self, reason: str, path: str = "$") -> None:
        super().__init__(reason, path)
        self.reason = reason
        self.path = path

    def __str__(self) -> str:
        return f"{self.reason} - at {self.path}"


class ConversionLossError(AdpError):
    """With ``--strict``, the target format cannot hold everything."""

    exit_code = 4


class StoreError(AdpError):
    """A path is not a store, or the store is incomplete or damaged."""

    exit_code = 5


class DamagedStoreError(StoreError):
    """Files of a store are missing, or are not those that its manifest names."""


class StoreVersionError(StoreError):
    """The store was written by a newer version of this package."""


class OutputExistsError(StoreError):
    """The output path holds something already."""


class SealedError(StoreError):
    """A growing store was ended; it takes no more trajectories."""


class IdTakenError(StoreError):
    """A growing store holds another trajectory of the same id."""


class QueryError(AdpError):
    """SQL that is not allowed or not valid."""

    exit_code = 6


class QueryTimeoutError(QueryError):
    """A query took longer than it may."""


class SchemaError(AdpError):
    """A row does not fit the schema."""

    exit_code = 7


class FindingsError(AdpError):
    """Something was found that the call said to fail on, or that must not be published."""

    exit_code = 8


class EmptyResultError(AdpError):
    """What was asked for is empty, so nothing was written."""

    exit_code = 10


class HubError(AdpError):
    """The Hugging Face Hub refuses a call, or cannot be reached."""

    exit_code = 9


class TrainingError(AdpError):
    """A training run stopped on an error: memory, a loss that is no number, a lost process."""

    exit_code = 11


class RolloutError(AdpError):
    """A run of episodes stopped, since one after the other broke for the same reason."""

    exit_code = 12


class EngineError(AdpError):
    """A cluster cannot be joined, or one of its machines cannot do the work of a stage."""

    exit_code = 13


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """Return the sentence for an unknown name: the nearest known ones first, then all.

    Args:
        kind: what the name names, such as ``"format"``.
        name: the name that was not found.
        known: all names that exist.
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names) or 'none'}"
    return f"unknown {kind} '{name}'; {hint}"
