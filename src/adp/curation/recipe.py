"""A recipe of curation: what stands in the YAML file, checked word by word.

recipe: 1
seed: 17
inputs:
runs: ../runs                  # a store; paths are relative to the recipe
ops:
- measure: {}
- filter: {sql: "success AND tokens < 32000"}
- dedup_near: {threshold: 0.8}
where: "dataset = 'chat'"    # the others pass
outputs:
train: {where: "split = 'train'"}
"""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath
from typing import Any, Literal

from pydantic import (
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from adp.core.option_errors import names, sentences
from adp.core.options import OptionsModel
from adp.curation.op import OpOptions
from adp.curation.registry import OPS
from adp_schema.errors import RecipeError, UsageError
from adp_schema.ids import digest

VERSION = 1

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
"""What inputs and outputs may be called."""

_RESERVED = frozenset({"curation", "buffer"})


class InputSpec(OptionsModel):
    """A store that the recipe reads."""

    store: str
    """Path or URL of the store; relative to the recipe."""
    reserve: bool = False
    """Its trajectories are out until an op admits them, such as replay."""
    optional: bool = False
    """It may be missing, as a replay buffer is in the first round."""


class Stage(OptionsModel):
    """One op of the recipe.

    Attributes:
        op: name of the op.
        options: its options, checked.
    """

    op: str
    """Name of the op."""
    options: OpOptions
    """Its options."""
    label: str | None = Field(None, alias="as")
    """Name of this stage; it is put before its columns."""
    where: str | None = None
    """SQL condition over the view pool: the op sees only these; others pass."""

    @property
    def name(self) -> str:
        """What the stage is called in reports."""
        return self.label or self.op

    def column(self, name: str) -> str:
        """What a column of the op is called in the pool."""
        return f"{self.label}_{name}" if self.label else name

    def plain(self) -> dict[str, Any]:
        """As it stands in a recipe, with all options."""
        results: dict[str, Any] = {self.op: self.options.model_dump(mode="json")}
        results.update({"as": self.label} if self.label else {})
        results.update({"where": self.where} if self.where else {})
        return results


class Output(OptionsModel):
    """A store that the recipe writes."""

    take: Literal["selected", "pairs"] = "selected"
    """selected: the trajectories that are still in at the end, and the pairs among them; pairs:
    the pairs and every trajectory that they name, in or out."""
    where: str | None = None
    """SQL condition over the view pool."""
    branches: bool = True
    """selected: keep the branches of the trajectories, such as alternates."""

    @model_validator(mode="after")
    def _fits(self) -> Output:
        if self.take == "pairs" and self.where is not None:
            raise ValueError("an output of pairs takes no where; filter before the op pairs")
        return self


class StageFaults(ValueError):
    """Some stages cannot be read.

    Attributes:
        faults: a sentence for each fault.
        stages: the stages; None for those with a fault.
    """

    def __init__(self, faults: list[str], stages: list[Any]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults
        self.stages = stages


class Recipe(OptionsModel):
    """A recipe, resolved: included files are in it, every option is there."""

    recipe: Literal[1]
    """Version of the form of recipes."""
    name: str | None = None
    """Name of the data set that is made."""
    seed: int = Field(0, ge=0, lt=1 << 63, strict=True)
    """Seed of all that is random."""
    inputs: dict[str, InputSpec] = Field(min_length=1)
    """Name -> store."""
    ops: tuple[Stage, ...] = ()
    """What is done, in this order."""
    outputs: dict[str, Output] = Field(
        default_factory=lambda: {"": Output.model_validate({})}, min_length=1
    )
    """Name -> store to write, each in a folder of its name; without it, the folder itself is the
    one store."""

    @field_validator("inputs", mode="before")
    @classmethod
    def _short_inputs(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        for name, given in value.items():
            if not isinstance(given, str | dict | InputSpec):
                raise ValueError(f"{name} takes the path of a store, not {given!r}")
        return {k: {"store": v} if isinstance(v, str) else v for k, v in value.items()}

    @field_validator("outputs", mode="before")
    @classmethod
    def _short_outputs(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {k: {} if v is None else v for k, v in value.items()}

    @field_validator("ops", mode="before")
    @classmethod
    def _stages(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return value
        stages: list[Any] = []
        faults: list[str] = []
        for number, given in enumerate(value):
            try:
                stages.append(_stage(given, number))
            except (RecipeError, StageFaults) as error:
                stages.append(None)
                faults += error.faults if isinstance(error, StageFaults) else [str(error)]
        if faults:
            raise StageFaults(faults, stages)
        return stages

    @model_validator(mode="after")
    def _names(self) -> Recipe:
        for name in (*self.inputs, *(name for name in self.outputs if name)):
            if not NAME.fullmatch(name):
                raise ValueError(f"the name {name!r} has to be letters, digits, _ or -")
        if "" in self.outputs and len(self.outputs) > 1:
            raise ValueError("one of several outputs has no name; give it one")
        if taken := _RESERVED & set(self.outputs):
            raise ValueError(f"an output cannot be called {min(taken)}; choose another name")
        labels = [stage.label for stage in self.ops if stage.label]
        for label in labels:
            if not re.fullmatch(r"[a-z][a-z0-9_]*", label):
                raise ValueError(f"as: {label} has to be lower-case letters, digits and _")
            if labels.count(label) > 1 or label in {s.op for s in self.ops if not s.label}:
                raise ValueError(f"two stages are called {label}; give one of them another as:")
        return self

    def plain(self) -> dict[str, Any]:
        """As JSON, with every option; paths of inputs only by their last part."""
        fields = self.model_dump(mode="json", exclude={"ops"}, exclude_none=True)
        for spec in fields["inputs"].values():
            spec["store"] = PurePosixPath(spec["store"]).name
        fields["ops"] = [stage.plain() for stage in self.ops]
        return fields

    def hash(self) -> str:
        """Hash of what it says; where the inputs lie is not part of it."""
        plain = self.plain()
        for spec in plain["inputs"].values():
            del spec["store"]
        return digest(json.dumps(plain, sort_keys=True, ensure_ascii=False).encode("utf-8"))


def _stage(given: Any, number: int) -> Any:
    """Turn ``{op: options, as: ..., where: ...}`` into the fields of a stage."""
    if isinstance(given, Stage):
        return given
    if isinstance(given, str):
        given = {given: {}}
    if not isinstance(given, dict):
        raise RecipeError(f"ops[{number}]: an op is written as NAME: {{options}}")
    rest = {name: value for name, value in given.items() if name in ("as", "where")}
    named = [str(name) for name in given if name not in rest]
    if len(named) != 1:
        written = " and ".join(named) or "no name"
        raise RecipeError(f"ops[{number}]: an op is written as NAME: {{options}}, not {written}")
    if ":" in named[0]:  # code of the user's own goes by the op that needs --allow-python
        given = {"python": {"function": named[0], "options": given[named[0]] or {}}, **rest}
        named = ["python"]
    try:
        model = OPS.get(named[0]).options
    except UsageError as error:
        raise RecipeError(f"ops[{number}]: {error}") from None
    try:
        written_options = given[named[0]]
        options = model.model_validate({} if written_options is None else written_options)
    except ValidationError as error:
        place = f"ops[{number}].{named[0]}"
        faults = [f"{place}: {fault}" for fault in sentences(error, names(model))]
        raise StageFaults(faults, []) from None
    return {"op": named[0], "options": options, **rest}


def json_schema() -> dict[str, Any]:
    """The JSON Schema of recipes, for editors."""
    ops = []
    definitions: dict[str, Any] = {}
    for op in OPS.all():
        schema = op.options.model_json_schema(ref_template="#/$defs/{model}")
        definitions.update(schema.pop("$defs", {}))
        schema["description"] = op.title
        schema.pop("title", None)
        more = {
            "as": {"type": "string", "description": Stage.model_fields["label"].description},
            "where": {"type": "string", "description": Stage.model_fields["where"].description},
        }
        ops.append(
            {
                "type": "object",
                "properties": {op.name: {"anyOf": [schema, {"type": "null"}]}, **more},
                "required": [op.name],
                "additionalProperties": False,
            }
        )
    plain = {"type": "string", "enum": sorted(op.name for op in OPS.all())}
    recipes = Recipe.model_json_schema(ref_template="#/$defs/{model}")
    recipes["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    recipes["$defs"] = {**recipes.get("$defs", {}), **definitions}
    for name in ("Stage", "OpOptions"):
        recipes["$defs"].pop(name, None)
    properties = recipes["properties"]
    properties["ops"] = {
        "type": "array",
        "items": {"anyOf": [plain, *ops]},
        "description": Recipe.model_fields["ops"].description,
    }
    store = {"type": "string", "description": "Path or URL of the store."}
    properties["inputs"]["additionalProperties"] = {"anyOf": [store, {"$ref": "#/$defs/InputSpec"}]}
    properties["include"] = {
        "description": "Recipes that this one begins with: their inputs, ops and outputs.",
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
    }
    return recipes
