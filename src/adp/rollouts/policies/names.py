"""What a model is called in reports and stores."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath

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
