"""The file of a method: what is selected of the data, and how a model is trained on it.

method: 1
about: "A random part, DoRA."
variables: {size: 100}
recipe:
  ops:
    - coreset: {method: random, size: "${size}"}
training:
  lora: {r: 16, use_dora: true}
  training: {num_train_epochs: 2}
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator

from adp.core.input_files import read_text
from adp.core.option_errors import names, sentence
from adp.core.options import OptionsModel
from adp.core.yaml_text import parse_yaml
from adp.workflows.loop.loop_file import NAME
from adp.workflows.loop.references import LoopNames
from adp_schema.errors import InputError, UsageError, unknown_name

_FILES = "adp.workflows.methods.files"

SETS = ("code", "doc", "quick")
"""Sets of methods that come with this package, each named by the files themselves."""

MOST_PARTS = 100
"""Parts in which data come, at most."""


class MethodFile(OptionsModel):
    """A method: a recipe and a training. ``${NAME}`` stands for a variable."""

    method: Literal[1]
    """Version of the form of these files."""
    name: str = ""
    """What to call it; empty: the name of its file."""
    about: str = ""
    """What it does, one sentence."""
    sets: tuple[str, ...] = ()
    """Sets that it belongs to."""
    variables: dict[str, Any] = Field(default_factory=dict)
    """Name -> value, which a call may change."""
    parts: int = Field(default=1, ge=1, le=MOST_PARTS)
    """The data come in so many parts, one after another: each is curated, with the replay buffer of
    the one before, and trained on, beginning with the model of the one before."""
    recipe: dict[str, Any] = Field(default_factory=dict)
    """A recipe of curation without its inputs. The data are the input data; with the op replay
    there is also the input buffer."""
    training: dict[str, Any] = Field(default_factory=dict)
    """A configuration of adp train, for SFT unless it names a method; without model and data."""

    @field_validator("recipe")
    @classmethod
    def _no_inputs(cls, value: dict[str, Any]) -> dict[str, Any]:
        if "inputs" in value:
            raise ValueError("the inputs are the data of the call; leave inputs out")
        return value

    @property
    def trains(self) -> str:
        """The training method, such as sft."""
        return str(self.training.get("method", "sft"))

    @property
    def ops(self) -> list[Any]:
        """The ops of the recipe, as they stand there."""
        ops = self.recipe.get("ops")
        return list(ops) if isinstance(ops, list | tuple) else []

    @property
    def replays(self) -> bool:
        """Whether its recipe has a replay buffer."""
        return any(isinstance(op, dict) and "replay" in op for op in self.ops)


def shipped_methods(of: str | None = None) -> dict[str, Path]:
    """The methods that come with this package.

    Args:
        of: only those of this set: code, doc or quick.

    Returns:
        Name -> file, in the order of the names.

    Raises:
        UsageError: there is no such set.
    """
    if of is not None and of not in SETS:
        raise UsageError(unknown_name("set of methods", of, SETS))
    folder = Path(str(resources.files(_FILES)))
    files = {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    if of is None:
        return files
    return {name: path for name, path in files.items() if of in read_method(path).sets}


def method_names(texts: Iterable[str]) -> list[str]:
    """What a call names as methods: names and files as they are, sets by their methods.

    Args:
        texts: names of methods, of sets, or YAML files; each counts once.
    """
    chosen: dict[str, None] = {}
    for text in texts:
        chosen.update(dict.fromkeys(shipped_methods(text) if text in SETS else [text]))
    return list(chosen)


def read_method(
    given: str | os.PathLike[str] | Mapping[str, Any], changes: Mapping[str, Any] | None = None
) -> MethodFile:
    """Read and check a method, with its variables put in.

    Args:
        given: the name of a shipped method, a YAML file, or what stands in one.
        changes: variable -> value in place of the file's; those that the file does not have are
            left to other methods.

    Raises:
        UsageError: something in it is wrong, or there is no such method.
        InputError: the file cannot be read.
    """
    if isinstance(given, Mapping):
        name, plain = str(given.get("name") or "method"), dict(given)
    else:
        path = _path(os.fspath(given))
        name, plain = path.stem, _load(path)
    try:
        return _resolved(name, plain, changes or {})
    except ValidationError as error:
        hint = "; write method: 1" if "method" not in plain else ""
        words = f"{name}: {sentence(error, names(MethodFile))}{hint}"
    except UsageError as error:
        words = f"{name}: {error}"
    raise UsageError(words) from None


def _resolved(name: str, plain: dict[str, Any], changes: Mapping[str, Any]) -> MethodFile:
    plain = {**plain, "name": plain.get("name") or name}
    variables = plain.get("variables") or {}
    if not isinstance(variables, Mapping):
        raise UsageError(f"variables takes name: value, not {variables!r}")
    variables = {key: changes.get(key, value) for key, value in variables.items()}
    known = LoopNames(variables, {}, "", None)
    for key in ("recipe", "training", "parts"):
        if key in plain:
            plain[key] = known.put_in(plain[key])
    method = MethodFile.model_validate({**plain, "variables": variables})
    if not NAME.fullmatch(method.name):
        raise UsageError("its name has to be letters, digits, _ or -, 64 at most; give it a name:")
    return method


def _path(text: str) -> Path:
    if text.endswith((".yaml", ".yml")):
        return Path(text)
    shipped = shipped_methods()
    if text not in shipped:
        known: Sequence[str] = [*SETS, *shipped]
        raise UsageError(
            f"{unknown_name('method', text, known)}; or name a file that ends in .yaml"
        )
    return shipped[text]


def _load(path: Path) -> dict[str, Any]:
    try:
        plain = parse_yaml(read_text(path), path.name, "method")
    except OSError as error:
        raise InputError(f"cannot read the method {path}: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"cannot read the method {path}: {error}") from None
    if not isinstance(plain, dict):
        raise UsageError(f"{path.name} is no method: it begins with keys such as recipe:")
    return plain
