"""Putting an adapter into its base model."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from adp.core.extras import need
from adp.stores.locks import alone
from adp.trainers.config import TINY
from adp.trainers.library_output import quiet
from adp_schema.errors import InputError, OutputExistsError, UsageError

_CONFIG = "adapter_config.json"
_TYPES = ("float32", "bfloat16", "float16")


@alone
def merge(
    adapter: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    base: str | None = None,
    dtype: str | None = None,
) -> dict[str, Any]:
    """Write the whole model.

    Args:
        adapter: folder of an adapter, or of a run with one.
        out: folder for the model; it must not be there.
        base: the base model; None takes the one that the adapter names.
        dtype: float32, bfloat16 or float16; None keeps that of the base.

    Returns:
        ``parameters`` and ``dtype``.

    Raises:
        InputError: there is no adapter, or its base cannot be loaded.
        OutputExistsError: the output is there already.
        StoreError: another run writes there.
        UsageError: the type is unknown.
    """
    need("train")
    if dtype is not None and dtype not in _TYPES:
        raise UsageError(f"--dtype takes {', '.join(_TYPES)}, not {dtype}")
    target = Path(out)
    if target.exists():
        raise OutputExistsError(f"{out} is there already; choose another name")
    place = _adapter_folder(Path(adapter))
    name = base or _base_of(place)
    with quiet():
        return _write(place, name, target, dtype)


def _adapter_folder(path: Path) -> Path:
    for place in (path, path / "adapter"):
        if (place / _CONFIG).is_file():
            return place
    if (path / "model").is_dir():
        raise InputError(
            f"{path} holds a whole model in its folder model; there is nothing to merge"
        )
    raise InputError(f"{path} holds no adapter: there is no {_CONFIG} in it")


def _base_of(place: Path) -> str:
    """What the adapter names; of the model ``tiny``, the one beside it."""
    try:
        plain = json.loads((place / _CONFIG).read_text(encoding="utf-8"))
        name = plain.get("base_model_name_or_path")
    except (OSError, ValueError, AttributeError):
        raise InputError(f"{place / _CONFIG} cannot be read") from None
    if name == TINY and (place.parent / "base").is_dir():
        return str(place.parent / "base")
    if not isinstance(name, str) or name == TINY:
        raise InputError("the adapter does not say which model it belongs to; give --base MODEL")
    return name


def _gives_numbers(place: Path) -> bool:
    """Whether an adapter is that of a reward model."""
    plain = json.loads((place / _CONFIG).read_text(encoding="utf-8"))
    return bool(plain.get("task_type") == "SEQ_CLS")


def _write(place: Path, name: str, target: Path, dtype: str | None) -> dict[str, Any]:
    import torch
    from peft import PeftModel
    from transformers import (
        AutoModelForCausalLM,
        AutoModelForSequenceClassification,
        AutoTokenizer,
    )

    kind = "auto" if dtype is None else getattr(torch, dtype)
    try:
        if _gives_numbers(place):
            model = AutoModelForSequenceClassification.from_pretrained(
                name, dtype=kind, num_labels=1
            )
            # Where a row ends in padding, the last token before it gives the number.
            model.config.pad_token_id = AutoTokenizer.from_pretrained(str(place)).pad_token_id
        else:
            model = AutoModelForCausalLM.from_pretrained(name, dtype=kind)
        merged: Any = PeftModel.from_pretrained(model, str(place)).merge_and_unload(safe_merge=True)
    except (OSError, ValueError, RuntimeError) as error:
        message = " ".join(str(error).split())[:300]
        raise InputError(f"{place} cannot be merged into {name}: {message}") from None
    staged = target.with_name(f".{target.name}.part")
    shutil.rmtree(staged, ignore_errors=True)
    try:
        merged.save_pretrained(staged)
        tokens = place if (place / "tokenizer_config.json").exists() else name
        AutoTokenizer.from_pretrained(str(tokens)).save_pretrained(staged)
        staged.rename(target)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return {
        "parameters": sum(parameter.numel() for parameter in merged.parameters()),
        "dtype": str(merged.dtype).removeprefix("torch."),
    }
