"""Reading a recipe: YAML into the model, with one sentence for what is wrong."""

from __future__ import annotations

from typing import Any

import yaml
from pydantic import ValidationError

from adp.converters.datasets.recipe import DatasetRecipe
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
        return DatasetRecipe.model_validate(plain)
    except ValidationError as error:
        place = error.errors(include_url=False)[0]["loc"]
        sentence = sentences(error, names(DatasetRecipe))[0]
        raise RecipeError(f"{name}, line {_line_of(text, place)}: {sentence}") from None


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


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a recipe, for editors."""
    schema = DatasetRecipe.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "Recipe of a data set"
    return schema
