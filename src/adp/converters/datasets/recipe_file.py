"""Reading a recipe: YAML into the model, with one sentence for what is wrong."""

from __future__ import annotations

from typing import Any

import yaml
from pydantic import ValidationError

from adp.converters.datasets.recipe import DatasetRecipe
from adp.converters.datasets.recipe_checks import faults
from adp.core.option_errors import names, sentences
from adp.core.yaml_text import parse_yaml
from adp_schema.errors import RecipeError


def check_recipe(text: str, name: str) -> DatasetRecipe:
    """Read and check a recipe.

    Args:
        text: its YAML.
        name: name of its file, for errors.

    Raises:
        RecipeError: something in it is wrong; the sentence names line and key.
    """
    plain = parse_yaml(text, name, "recipe")
    if not isinstance(plain, dict):
        raise RecipeError(f"{name} is no recipe: it has to begin with keys such as name:")
    try:
        recipe = DatasetRecipe.model_validate(plain)
    except ValidationError as error:
        place = error.errors(include_url=False)[0]["loc"]
        sentence = sentences(error, names(DatasetRecipe))[0]
        place = place or tuple(sentence.partition(":")[0].split("."))
        raise RecipeError(f"{name}, line {_line_of(text, place)}: {sentence}") from None
    return recipe


def check_words(recipe: DatasetRecipe, text: str, name: str) -> None:
    """Check that what a recipe names is there, and that its values are of use.

    Args:
        recipe: the recipe.
        text: its YAML.
        name: name of its file, for errors.

    Raises:
        RecipeError: something is not.
    """
    for place, fault in faults(recipe):
        line = _line_of(text, place)
        raise RecipeError(f"{name}, line {line}: {'.'.join(place)}: {fault}")


def _line_of(text: str, place: tuple[Any, ...]) -> int:
    """The line of a key of YAML, or of the last part of its path that is there."""
    node = yaml.compose(text, yaml.SafeLoader)
    line = 1
    for key in place:
        if isinstance(node, yaml.MappingNode):
            pair = next((it for it in node.value if it[0].value == str(key)), None)
            if pair is not None:
                line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            node = node.value[key]
            line = node.start_mark.line + 1
    return line


_MATCH = {"$ref": "#/$defs/MatchSpec"}
_PATHS = [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a recipe, for editors."""
    schema: dict[str, Any] = _with_short_forms(DatasetRecipe.model_json_schema())
    about = schema["properties"]["match"]["description"]
    forms = [_MATCH, {"type": "array", "items": _MATCH}]
    schema["properties"]["match"] = {"anyOf": forms, "description": about}
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "Recipe of a data set"
    return schema


def _with_short_forms(node: Any) -> Any:
    """A schema in which a path alone, or several, may stand for a field."""
    if isinstance(node, list):
        return [_with_short_forms(item) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("$ref") in ("#/$defs/FieldSpec", "#/$defs/PartOfTask"):
        return {"anyOf": [*_PATHS, node]}
    return {key: _with_short_forms(value) for key, value in node.items()}
