"""Reading a recipe: YAML, the files that it includes, what the command line sets."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from adp.core.input_files import read_text
from adp.core.option_errors import names, sentences
from adp.core.yaml_text import parse_yaml
from adp.curation.check_plan import plan_faults, raise_faults
from adp.curation.recipe import Recipe, Stage, StageFaults
from adp.curation.registry import OPS
from adp_schema.errors import AdpError, RecipeError, UsageError, unknown_name

_FILES = 100
"""Files that one recipe may include, each counted each time."""


def read_recipe(
    path: str | os.PathLike[str] | dict[str, Any], settings: Sequence[str] = ()
) -> Recipe:
    """Read and check a recipe.

    Args:
        path: the YAML file, or what stands in one; then paths are relative to the working folder.
        settings: changes, each ``path=value`` with the value as YAML: ``seed=5``,
            ``inputs.runs=other_store``, ``ops.filter.sql=...`` (an op by its name, its ``as`` or
            its number from 0).

    Raises:
        RecipeError: it cannot be read, or something in it is wrong.
    """
    if isinstance(path, dict):
        plain, name = copy.deepcopy(path), "the recipe"
    else:
        plain, name = _load(Path(path), (), []), Path(path).name
    for setting in settings:
        _set(plain, setting)
    return check(plain, name)


def check(plain: Any, name: str) -> Recipe:
    """Check a recipe.

    Args:
        plain: its keys and values.
        name: what errors call it.

    Raises:
        RecipeError: something in it is wrong; the message names the place.
    """
    try:
        return Recipe.model_validate(plain)
    except ValidationError as error:
        faults: list[AdpError] = []
        for fault, sentence in zip(
            error.errors(include_url=False),
            sentences(error, [*names(Recipe), "include"]),
            strict=True,
        ):
            reason = fault.get("ctx", {}).get("error")
            if isinstance(reason, StageFaults):
                faults += [*map(RecipeError, reason.faults), *_later_faults(reason.stages)]
            else:
                hint = "; write recipe: 1" if sentence == "recipe is missing" else ""
                faults.append(RecipeError(sentence + hint))
        if len(faults) == 1:
            faults = [RecipeError(f"{name}: {faults[0]}")]
        raise_faults(name, faults)
        raise


def _later_faults(stages: Sequence[Any]) -> list[AdpError]:
    """The faults that show beside stages that cannot be read: columns and SQL of the others."""
    readable: list[Stage | None] = []
    for stage in stages:
        try:
            readable.append(None if stage is None else Stage.model_validate(stage))
        except ValidationError:  # it is named once the rest is right
            readable.append(None)
    return plan_faults(readable, allow_python=True)


def _load(path: Path, above: tuple[Path, ...], read: list[Path]) -> dict[str, Any]:
    """Read a file and what it includes. Paths of stores become relative to nothing.

    Args:
        path: the file.
        above: the files that include it.
        read: all files that were read so far; it is added to them.
    """
    try:
        where = path.resolve()
        if where in above:
            raise RecipeError(f"{path.name} includes itself; remove the include")
        read.append(where)
        if len(read) > _FILES:
            raise RecipeError(f"{path.name} is one file too many; include {_FILES} at most")
        text = read_text(path)
    except OSError as error:
        raise RecipeError(f"cannot read the recipe {path}: {error.strerror}") from None
    except ValueError as error:
        raise RecipeError(f"cannot read the recipe {path}: {error}") from None
    plain = _parse(text, path.name)
    if not isinstance(plain, dict):
        raise RecipeError(f"{path.name} is no recipe: it has to begin with keys such as inputs:")
    included = plain.pop("include", [])
    names = [included] if isinstance(included, str) else included
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise RecipeError(f"{path.name}: include takes the name of a file, or a list of them")
    _anchor(plain, path.parent)
    full: dict[str, Any] = {}
    for name in names:
        full = _merged(full, _load(path.parent / name, (*above, where), read))
    return _merged(full, plain)


def _parse(text: str, name: str) -> Any:
    """Read YAML that is not larger, once its aliases are written out, than a recipe can be."""
    try:
        return parse_yaml(text, name, "recipe")
    except UsageError as error:
        raise RecipeError(str(error)) from None


def _anchor(plain: dict[str, Any], folder: Path) -> None:
    """Make local paths of inputs independent of the folder of the recipe."""
    inputs: Any = plain.get("inputs")
    for name, spec in list(inputs.items()) if isinstance(inputs, dict) else ():
        if isinstance(spec, str):
            inputs[name] = _joined(folder, spec)
        elif isinstance(spec, dict) and isinstance(spec.get("store"), str):
            spec["store"] = _joined(folder, spec["store"])


def _joined(folder: Path, path: str) -> str:
    return path if "://" in path else str(folder / path)


def _merged(base: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """Put a recipe on top of an included one: its ops come after, its other words win."""
    results = {**base, **fields}
    for name in ("inputs", "outputs"):
        if isinstance(base.get(name), dict) and isinstance(fields.get(name), dict):
            results[name] = {**base[name], **fields[name]}
    if isinstance(base.get("ops"), list) and isinstance(fields.get("ops"), list):
        results["ops"] = [*base["ops"], *fields["ops"]]
    return results


def _set(plain: dict[str, Any], setting: str) -> None:
    path, equals, text = setting.partition("=")
    if not equals or not path:
        raise RecipeError(f"--set takes path=value, such as seed=5, not {setting!r}")
    value = _parse(text, f"--set {path}")
    *way, last = path.split(".")
    place: Any = plain
    for name in way:
        place = _step(place, name, path)
    if isinstance(place, list):
        _set_stage(place, _place(place, last, path), value)
    elif isinstance(place, dict):
        place[last] = value
    else:
        raise RecipeError(f"--set {path}: there is nothing to set {last} in")


def _set_stage(stages: list[Any], number: int, value: Any) -> None:
    """Put another stage in the place of one; or only other options, where no op is named."""
    stage = stages[number]
    op = stage if isinstance(stage, str) else _op(stage)
    if isinstance(value, dict) and op is not None and not set(value) & set(OPS):
        value = {**(stage if isinstance(stage, dict) else {}), op: value}
    stages[number] = value


def _step(place: Any, name: str, path: str) -> Any:
    """Go one part of a ``--set`` path further down."""
    if isinstance(place, list):
        number = _place(place, name, path)
        if isinstance(place[number], str):
            place[number] = {place[number]: {}}
        stage = place[number]
        if not isinstance(stage, dict):
            raise RecipeError(f"--set {path}: stage {number} is no op with options")
        keys = [key for key in stage if key not in ("as", "where")]
        if name in keys or name == stage.get("as"):
            key = keys[0]
            stage[key] = stage[key] or {}
            return stage[key]
        return stage
    if isinstance(place, dict):
        if isinstance(place.get(name), str):  # an input in its short form
            place[name] = {"store": place[name]}
        return place.setdefault(name, {})
    raise RecipeError(f"--set {path}: there is no {name}")


def _place(stages: list[Any], name: str, path: str) -> int:
    """The number of the stage that a name stands for."""
    numbers = [str(number) for number in range(len(stages))]
    if name in numbers:
        return numbers.index(name)
    results = [
        number
        for number, stage in enumerate(stages)
        if stage == name or (isinstance(stage, dict) and (name in stage or stage.get("as") == name))
    ]
    if len(results) != 1:
        if results:
            text = f"{len(results)} stages are called {name}; use its number, from 0"
        else:
            known = [stage if isinstance(stage, str) else _called(stage) for stage in stages]
            text = unknown_name("stage", name, known)
        raise RecipeError(f"--set {path}: {text}")
    return results[0]


def _called(stage: Any) -> str:
    """What a stage is called: its label, else its op."""
    return str((isinstance(stage, dict) and stage.get("as")) or _op(stage) or stage)


def _op(stage: Any) -> str | None:
    """The op that a stage names."""
    plain = stage if isinstance(stage, dict) else {}
    return next((str(key) for key in plain if key not in ("as", "where")), None)
