"""The interlingua and its store.

The names below are loaded when they are first used, so ``import adp_schema`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adp_schema.builder import Origin, RowBuilder
    from adp_schema.errors import (
        AdpError,
        AmbiguousFormatError,
        ChangedInputError,
        ConversionLossError,
        DamagedStoreError,
        EmptyResultError,
        EngineError,
        FindingsError,
        HubError,
        IdTakenError,
        InputError,
        MissingExtraError,
        NothingNewError,
        OutputExistsError,
        QueryError,
        QueryTimeoutError,
        RecipeError,
        RecordError,
        RolloutError,
        SchemaError,
        SealedError,
        StoreError,
        StoreVersionError,
        TrainingError,
        UsageError,
    )
    from adp_schema.growing import GrowingStore
    from adp_schema.losses import Losses
    from adp_schema.manifest import Manifest
    from adp_schema.model import (
        Link,
        Media,
        Observation,
        Pair,
        Row,
        Step,
        Task,
        ToolCall,
        Trajectory,
    )
    from adp_schema.protocols import Converter, Match, RawRecord, SkipRecordError
    from adp_schema.store import Store
    from adp_schema.tables import SCHEMA_VERSION, TABLES

__all__ = [
    "SCHEMA_VERSION",
    "TABLES",
    "AdpError",
    "AmbiguousFormatError",
    "ChangedInputError",
    "ConversionLossError",
    "Converter",
    "DamagedStoreError",
    "EmptyResultError",
    "EngineError",
    "FindingsError",
    "GrowingStore",
    "HubError",
    "IdTakenError",
    "InputError",
    "Link",
    "Losses",
    "Manifest",
    "Match",
    "Media",
    "MissingExtraError",
    "NothingNewError",
    "Observation",
    "Origin",
    "OutputExistsError",
    "Pair",
    "QueryError",
    "QueryTimeoutError",
    "RawRecord",
    "RecipeError",
    "RecordError",
    "RolloutError",
    "Row",
    "RowBuilder",
    "SchemaError",
    "SealedError",
    "SkipRecordError",
    "Step",
    "Store",
    "StoreError",
    "StoreVersionError",
    "Task",
    "ToolCall",
    "TrainingError",
    "Trajectory",
    "UsageError",
]

_NAMES = {
    "builder": ("Origin", "RowBuilder"),
    "errors": (
        *("AdpError", "AmbiguousFormatError", "ChangedInputError", "ConversionLossError"),
        *("FindingsError", "HubError"),
        *("DamagedStoreError", "EmptyResultError", "IdTakenError", "RecipeError", "SealedError"),
        *("InputError", "MissingExtraError", "NothingNewError", "OutputExistsError"),
        *("QueryError", "QueryTimeoutError", "RecordError", "SchemaError", "StoreError"),
        "StoreVersionError",
        *("EngineError", "RolloutError", "TrainingError", "UsageError"),
    ),
    "growing": ("GrowingStore",),
    "manifest": ("Manifest",),
    "model": (
        *("Link", "Media", "Observation", "Pair", "Row", "Step", "Task", "ToolCall"),
        "Trajectory",
    ),
    "losses": ("Losses",),
    "protocols": ("Converter", "Match", "RawRecord", "SkipRecordError"),
    "store": ("Store",),
    "tables": ("SCHEMA_VERSION", "TABLES"),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"adp_schema.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
