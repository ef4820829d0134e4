"""What is known of a model before its weights are loaded: a hash of them, and its context."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

from adp.rendering.tiny import NAME, SHAPE
from adp.rollouts.policies.loading import places, unloadable
from adp.rollouts.policies.settings import ModelSettings
from adp_schema.errors import MissingExtraError, UsageError
from adp_schema.ids import digest, digest_file

_WEIGHTS = (".safetensors", ".bin", ".pt")
_SETTINGS = ("config.json", "adapter_config.json")


def model_hash(settings: ModelSettings) -> str:
    """A hash of what decides a model's numbers: base, adapter, number format, kind of attention.

    Files of a folder are hashed by their content (about a second for a gigabyte); of a model of the
    Hub the commit counts.

    Args:
        settings: which model.

    Raises:
        UsageError: there is no such model or adapter.
        MissingExtraError: torch or transformers is not installed.
    """
    base, adapter = places(settings)
    facts = {
        "base": _content("model", base, settings.revision),
        "adapter": None if adapter is None else _content("adapter", adapter, None),
        "dtype": settings.dtype,
        "attention": settings.attn_implementation,
    }
    return digest(json.dumps(facts, sort_keys=True).encode())


def context_length(settings: ModelSettings) -> int | None:
    """Tokens that a model was made for; None when it does not say.

    Args:
        settings: which model.
    """
    base, _ = places(settings)
    if _built(base):
        return int(SHAPE["max_position_embeddings"])
    from transformers import AutoConfig

    try:
        shape = AutoConfig.from_pretrained(
            base, revision=settings.revision, trust_remote_code=settings.trust_remote_code
        )
    except (OSError, ValueError):
        return None  # loading the model will say what is wrong
    length = getattr(shape.get_text_config(), "max_position_embeddings", None)
    return length if isinstance(length, int) and length > 0 else None


def _built(name: str) -> bool:
    return name == NAME and not Path(name).exists()


def _content(what: str, name: str, revision: str | None) -> str:
    """A hash of a model or an adapter."""
    try:
        if _built(name):
            # Its weights are random numbers of torch.
            return digest(json.dumps([dict(SHAPE), version("torch")]).encode())
        folder = Path(name)
        if not folder.is_dir():
            return f"{name}@{_commit(name, revision)}"
        files = sorted(
            path
            for path in folder.iterdir()
            if path.suffix in _WEIGHTS or path.name in _SETTINGS or path.suffix == ".py"
        )
        if not any(path.suffix in _WEIGHTS for path in files):
            raise UsageError(unloadable(what, name, ValueError("there are no weights in it")))
        return digest(json.dumps([(path.name, digest_file(str(path))) for path in files]).encode())
    except OSError as error:
        raise UsageError(unloadable(what, name, error)) from error
    except ImportError as error:
        raise MissingExtraError("torch", "train") from error


def _commit(name: str, revision: str | None) -> str:
    """The commit of a model of the Hub; its configuration is fetched when it is not there."""
    from transformers.utils import cached_file

    for file in _SETTINGS:
        path = cached_file(
            name, file, revision=revision, _raise_exceptions_for_missing_entries=False
        )
        if path is not None:
            return Path(path).parent.name
    raise OSError("it has no config.json")
