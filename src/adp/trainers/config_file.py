"""Reading a training configuration: ours as YAML, those of other systems as they are."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from adp.core.input_files import read_text
from adp.core.option_errors import names, paths_of, sentence
from adp.core.yaml_text import measure, parse_yaml
from adp.trainers.config import TINY, TrainConfig
from adp.trainers.readers import read_foreign
from adp.trainers.readers.mapping import MappedConfig, put
from adp_schema.errors import UsageError


def read_config(
    path: str | os.PathLike[str] | Mapping[str, Any] | None,
    settings: Sequence[str] = (),
    more: Mapping[str, Any] | None = None,
) -> tuple[TrainConfig, MappedConfig | None]:
    """Read and check a configuration.

    Args:
        path: the file, or what stands in one; None begins with the defaults.
        settings: changes, each ``path=value`` with the value as YAML: ``lora.r=64``.
        more: values by path that stand in the file's place, such as ``method``.

    Returns:
        The configuration with paths that can be opened from the working folder; and what was
        mapped, when the file is another system's.

    Raises:
        UsageError: it cannot be read, or something in it is wrong.
    """
    other, name = None, "the configuration"
    if path is None:
        plain: Any = {}
    elif isinstance(path, Mapping):
        plain = copy.deepcopy(dict(path))
    else:
        name = Path(path).name
        plain = load_config(Path(path))
    other = read_foreign(plain, _method(settings, more or {}))
    if other is not None:
        plain = other.plain
    if isinstance(path, str | os.PathLike):
        _anchor(plain, Path(path).parent)
    for place, value in (more or {}).items():
        put(plain, place, value)
    for setting in settings:
        _set(plain, setting)
    try:
        return TrainConfig.model_validate(plain), other
    except ValidationError as error:
        raise UsageError(
            f"{name}: {sentence(error, names(TrainConfig), paths_of(TrainConfig))}"
        ) from None


def _method(settings: Sequence[str], more: Mapping[str, Any]) -> str | None:
    """The method that the call names, which wins over the file's; None when it names none."""
    named = [
        text
        for path, _, text in (setting.partition("=") for setting in settings)
        if path == "method"
    ]
    return named[-1].strip() if named else more.get("method")


def load_config(path: Path) -> dict[str, Any]:
    """What stands in a file of a configuration, ours or another system's.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        text = read_text(path, "utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read the configuration {path}: {error.strerror}") from None
    except ValueError as error:  # of the path
        raise UsageError(f"cannot read the configuration {path}: {error}") from None
    # JSON is read as such: YAML takes its 1e-5 for a text.
    plain = _json(text) if path.suffix == ".json" else None
    if plain is None:
        plain = parse_yaml(text, path.name, "configuration")
    if plain is None:
        return {}
    if not isinstance(plain, dict):
        raise UsageError(f"{path.name} is no configuration: it begins with keys such as model:")
    return plain


def _json(text: str) -> Any:
    """A file of JSON; None when it is none, and YAML has the better message."""
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError):
        return None
    measure(plain, "configuration")
    return plain


def _anchor(plain: dict[str, Any], folder: Path) -> None:
    """Make paths in a file independent of the folder that the command runs in."""
    if isinstance(plain.get("data"), str):
        plain["data"] = {"store": plain["data"]}
    data = plain.get("data")
    for key in ("store", "eval_store"):
        if isinstance(data, dict) and isinstance(data.get(key), str):
            data[key] = _joined(folder, data[key])
    _anchor_make(data.get("make") if isinstance(data, dict) else None, folder)
    replay = data.get("replay") if isinstance(data, dict) else None
    if isinstance(replay, dict) and isinstance(replay.get("store"), str):
        replay["store"] = _joined(folder, replay["store"])
    evaluate = plain.get("evaluate")
    for key in ("suite", "tasks"):
        value = evaluate.get(key) if isinstance(evaluate, dict) else None
        # Both have names, too: what is there is a file or a store.
        if isinstance(value, str) and (folder / Path(value).expanduser()).exists():
            plain["evaluate"][key] = _joined(folder, value)
    _anchor_tasks(plain.get("grpo"), folder)
    if isinstance(plain.get("output_dir"), str):
        plain["output_dir"] = _joined(folder, plain["output_dir"])
    if isinstance(plain.get("model"), str):
        plain["model"] = {"model_name_or_path": plain["model"]}
    model = plain.get("model")
    for key in ("model_name_or_path", "adapter_name_or_path", "tokenizer_name_or_path"):
        value = model.get(key) if isinstance(model, dict) else None
        # A name on the Hub looks like a path: what is there as a folder is one.
        if isinstance(value, str) and value != TINY and (folder / value).is_dir():
            plain["model"][key] = _joined(folder, value)
    distill, key = plain.get("distill"), "teacher_model_name_or_path"
    value = distill.get(key) if isinstance(distill, dict) else None
    if isinstance(value, str) and value != TINY and (folder / value).is_dir():
        plain["distill"][key] = _joined(folder, value)


def _anchor_make(make: Any, folder: Path) -> None:
    """Files that data are made of: as they stand in the section, and beside its tools."""
    if not isinstance(make, dict):
        return
    named = [(make, ("file", "test_cases"))]
    tools = make.get("tools")
    for tool in tools if isinstance(tools, list | tuple) else ():
        named += [(tool, ("corpus", "folder"))] if isinstance(tool, dict) else []
    for values, keys in named:
        for key in keys:
            if isinstance(values.get(key), str):
                values[key] = _joined(folder, values[key])


def _anchor_tasks(grpo: Any, folder: Path) -> None:
    """The tasks of an environment: a file or a store beside the configuration."""
    acting = grpo.get("environment") if isinstance(grpo, dict) else None
    tasks = acting.get("tasks") if isinstance(acting, dict) else None
    # ``train:100`` looks like a path: what is there is one.
    if isinstance(acting, dict) and isinstance(tasks, str) and (folder / tasks).exists():
        acting["tasks"] = _joined(folder, tasks)


def _joined(folder: Path, path: str) -> str:
    return path if "://" in path else str(folder / Path(path).expanduser())


def _set(plain: dict[str, Any], setting: str) -> None:
    path, equals, text = setting.partition("=")
    if not equals or not path:
        raise UsageError(f"--set takes path=value, such as lora.r=64, not {setting!r}")
    value = parse_yaml(text, f"--set {path}", "configuration")
    if isinstance(value, str):
        value = _number(value)
    first, _, rest = path.partition(".")
    short = {"model": "model_name_or_path", "data": "store"}.get(first)
    if rest and short and isinstance(plain.get(first), str):
        plain[first] = {short: plain[first]}
    put(plain, path, value)


def _number(text: str) -> Any:
    """``1e-4`` as a number: YAML 1.1 takes it for a text, for it has no point."""
    try:
        return float(text) if text[:1].isdigit() and "e" in text.lower() else text
    except ValueError:
        return text
