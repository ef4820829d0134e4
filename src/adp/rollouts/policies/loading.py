"""Loading a model and its adapter for a policy in process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from adp.rendering.model import load_tokenizer
from adp.rendering.tiny import NAME, tiny_model
from adp.rollouts.policies.settings import ModelSettings
from adp_schema.errors import MissingExtraError, UsageError

_ADAPTER, _TOKENIZER = "adapter_config.json", "tokenizer_config.json"


def load_for_generation(settings: ModelSettings) -> tuple[Any, Any]:
    """Load a model, with its adapter merged into it, and its tokenizer.

    Returns:
        The model in evaluation mode on its device, and the tokenizer.

    Raises:
        UsageError: there is no such model or adapter, or it cannot be loaded.
        MissingExtraError: torch, transformers or peft is not installed.
    """
    base, adapter = places(settings)
    tokenizer = load_tokenizer_of(settings)
    model = _load(base, settings)
    if adapter is not None:
        model = _adapted(model, adapter)
    return model.eval(), tokenizer


def load_tokenizer_of(settings: ModelSettings) -> Any:
    """Load the tokenizer alone.

    Raises:
        UsageError: there is none.
        MissingExtraError: transformers is not installed.
    """
    base, adapter = places(settings)
    named = settings.tokenizer or next(
        (place for place in (adapter, base) if place and (Path(place) / _TOKENIZER).exists()), base
    )
    return load_tokenizer(
        named,
        trust_remote_code=settings.trust_remote_code,
        revision=settings.revision if named == settings.model else None,
    )


def places(settings: ModelSettings) -> tuple[str, str | None]:
    """The base model, and the adapter if there is one.

    Raises:
        UsageError: an adapter names no base model, or there are two adapters.
    """
    place = Path(settings.model)
    # What a training run leaves: the adapter, or the whole model, in a folder of its own.
    for child in (place / "model", place / "adapter"):
        if not (place / "config.json").exists() and not (place / _ADAPTER).exists():
            place = child if child.is_dir() else place
    if not (place / _ADAPTER).is_file():
        return (str(place) if place.exists() else settings.model), settings.adapter
    if settings.adapter is not None:
        raise UsageError(f"{place} is an adapter already; name its base model as model")
    try:
        base = json.loads((place / _ADAPTER).read_text(encoding="utf-8"))["base_model_name_or_path"]
    except (OSError, ValueError, KeyError, TypeError):
        raise UsageError(
            f"{place / _ADAPTER} names no base model; give model and adapter"
        ) from None
    if base == NAME and (place.parent / "base").is_dir():
        base = str(place.parent / "base")
    return str(base), str(place)


def _load(name: str, settings: ModelSettings) -> Any:
    try:
        import torch
        from transformers import AutoModelForCausalLM
    except ImportError as error:
        raise MissingExtraError("torch", "train") from error
    device = settings.device or ("cuda" if torch.cuda.is_available() else "cpu")
    dtype = settings.dtype if settings.dtype == "auto" else getattr(torch, settings.dtype)
    try:
        if name == NAME and not Path(name).exists():
            model = tiny_model()
            return model.to(device) if dtype == "auto" else model.to(device, dtype)
        given = {"attn_implementation": settings.attn_implementation, "revision": settings.revision}
        return AutoModelForCausalLM.from_pretrained(
            name,
            dtype=dtype,
            trust_remote_code=settings.trust_remote_code,
            **{key: value for key, value in given.items() if value is not None},
        ).to(device)
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        raise UsageError(unloadable("model", name, error)) from error


def _adapted(model: Any, adapter: str) -> Any:
    try:
        from peft import PeftModel
    except ImportError as error:
        raise MissingExtraError("peft", "train") from error
    try:
        return PeftModel.from_pretrained(model, adapter).merge_and_unload(safe_merge=True)
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise UsageError(unloadable("adapter", adapter, error)) from error


def unloadable(what: str, name: str, error: Exception) -> str:
    """The sentence for a model or an adapter that cannot be loaded."""
    reason = " ".join(str(error).split())[:300].rstrip(".")
    return f"the {what} {name} cannot be loaded: {reason}; give a folder or a name on the Hub"
