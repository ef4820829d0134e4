"""The stage ``python``: a function of the user's own, such as one that makes the first model.

    def make_base(out: Path, seed: int, *, width: int) -> dict: ...

It is called with a folder that is not there yet, in which it leaves what it makes, the seed of the
loop, and its options by name. What it returns, if anything, are counts for the ledger.
"""

from __future__ import annotations

import inspect
import json
import shutil
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from adp.core.code_files import load_code
from adp.core.options import OptionsModel
from adp.rollouts.plugin_errors import error_text, stops
from adp.workflows.loop.hashes import combined, model_hash, store_hash
from adp.workflows.loop.stage_kind import (
    ModelPlace,
    StageContext,
    StageFacts,
    StageKind,
    given_spec,
)
from adp_schema.errors import AdpError, InputError, UsageError
from adp_schema.ids import digest_file
from adp_schema.manifest import write_atomic

_RESULT = "stage.json"


class PythonStage(OptionsModel):
    """Options of a stage ``python``; it needs --allow-python."""

    function: str
    """FILE.py:NAME, or package.module:NAME."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Given to the function by name."""
    makes: Literal["store", "model", "files"] = "files"
    """What it leaves: a finished store, a model that later stages call last, or any files."""


def _function(options: PythonStage, context: StageContext) -> Any:
    function, _ = load_code(given_spec(options.function, context))
    if not callable(function):
        raise UsageError(f"{options.function} is no function")
    return function


def _check(options: PythonStage, context: StageContext) -> None:
    function = _function(options, context)
    try:
        inspect.signature(function).bind(Path(), 0, **options.options)
    except TypeError as error:
        words = f"{options.function} cannot be called with these options"
        raise UsageError(f"{words}: {error}") from None


def _run(options: PythonStage, context: StageContext, out: Path) -> None:
    shutil.rmtree(out, ignore_errors=True)
    function = _function(options, context)
    try:
        result = function(out, context.seed, **options.options)
    except AdpError:
        raise
    except BaseException as error:
        if stops(error):
            raise
        raise InputError(f"{options.function} failed: {error_text(error)}") from error
    if not out.is_dir():
        words = f"{options.function} has left no folder {out.name}"
        raise InputError(f"{words}; let it make what its first argument names")
    counts = result if isinstance(result, dict) else {}
    write_atomic(out / _RESULT, json.dumps(counts, default=str) + "\n")


def _facts(options: PythonStage, folder: Path) -> StageFacts:
    counts = json.loads((folder / _RESULT).read_text(encoding="utf-8"))
    line = ", ".join(f"{name} {value}" for name, value in counts.items()) or "done"
    return StageFacts(_hash(options, folder), counts, line=line)


def _hash(options: PythonStage, folder: Path) -> str:
    if options.makes == "store":
        return store_hash(folder)
    if options.makes == "model":
        return model_hash(folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != _RESULT)
    return combined({str(path.relative_to(folder)): digest_file(str(path)) for path in files})


def _model(options: PythonStage, context: StageContext) -> ModelPlace | None:
    return ModelPlace(context.path) if options.makes == "model" else None


KIND = StageKind(
    name="python",
    about="A function of the user's own makes a store, a model or files.",
    options=PythonStage,
    run=_run,
    facts=_facts,
    check=_check,
    model=_model,
)
