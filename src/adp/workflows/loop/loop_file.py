"""A file of a loop: rounds of stages, checked word by word.

loop: 1
seed: 17
model: tiny
variables: {n: 8}
rounds:
  repeat: 3
  values: {sigma: [0.2, 0.1, 0.0]}
  stages:
    - collect: {env: toolworld, policy: {name: transformers, model: last}, n: "${n}"}
      as: rollouts
    - train: {method: sft, store: "${rollouts}"}
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from adp.core.input_files import read_text
from adp.core.option_errors import names, sentence
from adp.core.options import OptionsModel
from adp.core.yaml_text import parse_yaml
from adp_schema.errors import InputError, UsageError, unknown_name

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
"""What stages and variables may be called."""

RESERVED = frozenset({"base", "here", "last", "name", "previous", "round", "seed"})
"""Names that mean something in every loop."""

MOST_ROUNDS = 1000
"""Rounds of a loop, at most."""


class StageEntry(OptionsModel):
    """A stage as it stands in the file: ``KIND: {options}``, and ``as`` for its name."""

    kind: str
    """What it does, by the name of the command."""
    options: dict[str, Any]
    """Options of that command, with references that are not yet put in."""
    label: str | None = None
    """Its name; else that of its kind."""

    @property
    def name(self) -> str:
        """What the stage is called, and its folder."""
        return self.label or self.kind


class RoundEntry(OptionsModel):
    """Stages that are done once, or several times with other values."""

    stages: tuple[StageEntry, ...] = Field(min_length=1)
    """What is done, in this order."""
    repeat: int = Field(default=1, ge=1, le=MOST_ROUNDS)
    """How many rounds of these stages there are."""
    values: dict[str, Any] = Field(default_factory=dict)
    """Name -> a value for each of these rounds as a list, or one value for all of them."""

    @field_validator("stages", mode="before")
    @classmethod
    def _read_stages(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return value
        return [_stage(given, number) for number, given in enumerate(value)]

    @model_validator(mode="after")
    def _fits(self) -> RoundEntry:
        labels = [stage.name for stage in self.stages]
        for name in labels:
            if labels.count(name) > 1:
                raise ValueError(f"two stages are called {name}; name one of them with as:")
            _check_name("stage", name)
        for name, value in self.values.items():
            _check_name("value", name)
            if isinstance(value, list) and len(value) != self.repeat:
                raise ValueError(
                    f"values.{name} has {len(value)} values for {self.repeat} rounds; "
                    "give one for each"
                )
        return self

    def values_of(self, number: int) -> dict[str, Any]:
        """The values of one of the rounds, counted from 0."""
        return {
            name: value[number] if isinstance(value, list) else value
            for name, value in self.values.items()
        }


class LoopFile(OptionsModel):
    """A loop, as it stands in its file."""

    loop: Literal[1]
    """Version of the form of these files."""
    name: str = "loop"
    """What to call it in its report."""
    about: str = ""
    """What it does, one sentence."""
    seed: int = Field(default=0, ge=0, lt=1 << 32)
    """Seed of every stage that names none."""
    model: str = "tiny"
    """The model that it begins with: a folder, a name on the Hub, or tiny, which is made."""
    variables: dict[str, Any] = Field(default_factory=dict)
    """Name -> value; ${NAME} stands for it in the options of stages."""
    scales: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Name -> variables that a run of that scale has instead."""
    scale: str | None = None
    """The scale of this run; null: the variables as they are."""
    rounds: tuple[RoundEntry, ...] = Field(min_length=1)
    """The rounds; a single entry may stand without a list."""

    @field_validator("rounds", mode="before")
    @classmethod
    def _single_entry(cls, value: Any) -> Any:
        return [value] if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _fits(self) -> LoopFile:
        for name in self.variables:
            _check_name("variable", name)
        for scale, values in self.scales.items():
            for name in values:
                if name not in self.variables:
                    raise ValueError(
                        f"scales.{scale}: {unknown_name('variable', name, list(self.variables))}"
                    )
        for entry in self.rounds:
            for name in (*entry.values, *(stage.name for stage in entry.stages)):
                if name in self.variables:
                    raise ValueError(f"{name} is a variable already; give the other another name")
            if both := set(entry.values).intersection(stage.name for stage in entry.stages):
                raise ValueError(f"{min(both)} is a value and a stage; rename one of them")
        if self.scale is not None and self.scale not in self.scales:
            raise ValueError(unknown_name("scale", self.scale, list(self.scales)))
        count = sum(entry.repeat for entry in self.rounds)
        if count > MOST_ROUNDS:
            raise ValueError(f"there are {count:,} rounds; {MOST_ROUNDS:,} are the most")
        return self

    @property
    def values(self) -> dict[str, Any]:
        """The variables, with those of the scale."""
        return {**self.variables, **(self.scales[self.scale] if self.scale else {})}


def _check_name(what: str, name: str) -> None:
    if not NAME.fullmatch(name):
        raise ValueError(f"the {what} {name!r} has to be letters, digits, _ or -")
    if name in RESERVED or re.fullmatch(r"round-\d+", name):
        raise ValueError(f"a {what} cannot be called {name}, which means something else")


def _stage(given: Any, number: int) -> Any:
    """Turn ``{KIND: {options}, as: NAME}`` into the fields of a stage."""
    if isinstance(given, StageEntry):
        return given
    if not isinstance(given, dict):
        raise ValueError(f"stages[{number}]: a stage is written as KIND: {{options}}")
    named = [str(name) for name in given if name != "as"]
    if len(named) != 1:
        written = " and ".join(named) or "no kind"
        raise ValueError(
            f"stages[{number}]: a stage is written as KIND: {{options}}, not {written}"
        )
    options = given[named[0]]
    if options is not None and not isinstance(options, dict):
        raise ValueError(f"stages[{number}].{named[0]} takes options by name, not {options!r}")
    return {"kind": named[0], "options": options or {}, "label": given.get("as")}


def read_loop(
    path: str | os.PathLike[str] | dict[str, Any], settings: Sequence[str] = ()
) -> LoopFile:
    """Read and check the file of a loop; its stages are checked by `adp.workflows.loop.plan`.

    Args:
        path: the YAML file, or what stands in one.
        settings: changes, each ``NAME=VALUE`` with the value as YAML: a variable, or ``seed``,
            ``model``, ``name``, ``scale``.

    Raises:
        UsageError: something in it is wrong; the message names the place.
        InputError: the file cannot be read.
    """
    if isinstance(path, dict):
        plain, name = copy.deepcopy(path), "the loop"
    else:
        name = Path(path).name
        plain = _load(Path(path))
    for setting in settings:
        _set(plain, setting)
    try:
        return LoopFile.model_validate(plain)
    except ValidationError as error:
        hint = "; write loop: 1" if "loop" not in plain else ""
        raise UsageError(f"{name}: {sentence(error, [*names(LoopFile), 'as'])}{hint}") from None


def _load(path: Path) -> dict[str, Any]:
    try:
        text = read_text(path)
    except OSError as error:
        raise InputError(f"cannot read the loop {path}: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"cannot read the loop {path}: {error}") from None
    plain = parse_yaml(text, path.name, "loop")
    if not isinstance(plain, dict):
        raise UsageError(f"{path.name} is no loop: it has to begin with keys such as rounds:")
    return plain


def _set(plain: dict[str, Any], setting: str) -> None:
    name, equals, text = setting.partition("=")
    if not equals or not name:
        raise UsageError(f"--set takes name=value, such as n=4, not {setting!r}")
    value = parse_yaml(text, f"--set {name}", "loop")
    variables = plain.get("variables")
    known = list(variables) if isinstance(variables, dict) else []
    bare = name.removeprefix("variables.")
    if bare in known:
        variables[bare] = value  # type: ignore[index]
        for scale in (plain.get("scales") or {}).values():
            scale.pop(bare, None)  # what the call says wins over a scale
    elif name in ("seed", "model", "name", "scale"):
        plain[name] = value
    else:
        every = ["seed", "model", "name", "scale", *known]
        raise UsageError(f"--set: {unknown_name('variable', name, every)}")
