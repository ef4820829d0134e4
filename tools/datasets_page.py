"""The page of the data sets that have a recipe, and the JSON Schema of recipes."""

from __future__ import annotations

import json
from collections import Counter

from adp.converters.datasets.catalogue import names, shipped
from adp.converters.datasets.recipe import DatasetRecipe
from adp.converters.datasets.recipe_file import json_schema
from tools.markdown import NOTE, cell

_ROWS = {
    "seen": "rows of the data set were read when the recipe was written",
    "fixture": "rows that others made in its shape were read, and none of its own",
    "described": "no row was seen: it follows a description, or code that loads the rows",
}


def datasets_page() -> str:
    """One line a data set."""
    recipes = [shipped(name).recipe for name in names()]
    count = Counter(recipe.rows for recipe in recipes)
    lines = ["# Data sets that have a recipe", "", NOTE, ""]
    lines += [f"{len(recipes)} data sets; [datasets.md](datasets.md) says what a recipe is.", ""]
    lines += [f"- **{word}** ({count[word]}): {text}." for word, text in _ROWS.items()]
    lines += [
        "",
        "| name | data set | rows | license | reader | dialect |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join([*lines, *map(_line, recipes)]) + "\n"


def _line(recipe: DatasetRecipe) -> str:
    title = cell(recipe.title)
    about = f"[{title}]({recipe.source})" if recipe.source else title
    about += " (evaluation set)" if recipe.purpose == "test" else ""
    license_name = recipe.license or "not stated"
    license_name += ", not to be published" if recipe.may_publish is False else ""
    dialect = "by run" if isinstance(recipe.dialect, tuple) else recipe.dialect or ""
    columns = (f"`{recipe.name}`", about, recipe.rows, license_name, recipe.reader, dialect)
    return f"| {' | '.join(columns)} |"


def datasets_schema() -> str:
    """The JSON Schema of recipes, for editors."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
