"""What a model is called in reports and stores."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath, PureWindowsPath

from adp.core.code_files import CODE_NAME
from adp.rendering.tiny import NAME as TINY
from adp.rollouts.policy import POLICIES

_PARTS = frozenset({"adapter", "model", "merged"})


def model_name(model: str) -> str:
    """What to call a model in reports and stores: of a folder its name, without its place.

    Args:
        model: a folder, or a name on the Hub or of a server.
    """
    if not (model.startswith(("/", ".", "~")) or "\\" in model or Path(model).is_dir()):
        return model
    path = PureWindowsPath(model) if "\\" in model else PurePosixPath(model)
    if not path.name or path.name in (".", "..", "~"):
        path = PurePosixPath(Path(model).resolve())
    # Of what a training run left, the name of the run says more.
    return "/".join(path.parts[-2:]).lstrip("/") if path.name in _PARTS else path.name


def policy_spec(text: str) -> str:
    """The spec of a policy that is named by its model alone; any other spec as it is.

    Args:
        text: ``tiny``, the folder of a model or an adapter, the name of a model on the Hub, or a
            spec such as ``openai:model=m``.
    """
    known = text.partition(":")[0] in POLICIES or CODE_NAME.match(text)
    if known or text.endswith((".yaml", ".yml")):
        return text
    if text == TINY or "/" in text or Path(text).is_dir():
        return f"transformers:model={json.dumps(text)}"
    return text
