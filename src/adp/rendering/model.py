"""The tokenizer of a model, by a folder, a name on the Hub, or ``tiny``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from adp.rendering.tiny import NAME, tiny_tokenizer
from adp_schema.errors import MissingExtraError, UsageError


def load_tokenizer(
    model: str, *, trust_remote_code: bool = False, revision: str | None = None
) -> Any:
    """Load a tokenizer.

    Args:
        model: a folder, a name on the Hugging Face Hub, or ``tiny``.
        trust_remote_code: run the tokenizer code that the model brings with it.
        revision: revision on the Hub; None: the newest.

    Raises:
        UsageError: there is none; says what to do.
        MissingExtraError: transformers is not installed.
    """
    if model == NAME and not Path(model).exists():
        return tiny_tokenizer()
    if not Path(model).exists() and (model.startswith((".", "/", "~")) or model.count("/") > 1):
        raise UsageError(f"there is no folder {model}; give that of a model, or a name on the Hub")
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise MissingExtraError("transformers", "train") from error
    try:
        return AutoTokenizer.from_pretrained(
            model, trust_remote_code=trust_remote_code, revision=revision
        )
    except (OSError, ValueError, KeyError) as error:
        words = " ".join(str(error).split())[:300]
        raise UsageError(
            f"no tokenizer could be loaded for '{model}' ({words}); give the folder of a model, "
            f"a name on the Hugging Face Hub, or {NAME}"
        ) from error


def stop_ids(model: str) -> tuple[int, ...]:
    """The end-of-sequence tokens that the generation config of a model names.

    Args:
        model: a folder, a name on the Hugging Face Hub, or ``tiny``.

    Returns:
        Their ids; empty when the model has no such file, or it cannot be read.
    """
    name = "generation_config.json"
    if model == NAME and not Path(model).exists():
        return ()
    path: str | None = str(Path(model, name))
    if not Path(model).exists():
        from transformers.utils import cached_file

        path = cached_file(
            model,
            name,
            _raise_exceptions_for_gated_repo=False,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )
    try:
        eos_token_id = json.loads(Path(path or "").read_text(encoding="utf-8")).get("eos_token_id")
    except (OSError, ValueError, AttributeError):
        return ()
    numbers = eos_token_id if isinstance(eos_token_id, list) else [eos_token_id]
    return tuple(sorted({number for number in numbers if type(number) is int}))
