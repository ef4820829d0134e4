"""The recipes that come with the package, and those of the user's.

To recognise a file, only the part ``match`` of each is looked at; those of the package stand
together in `MATCHES`, as to read all recipes takes longer than a small conversion. A recipe is
checked when it is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from adp.converters.datasets.match import RowTest, tests_of
from adp_schema import jsontext
from adp_schema.errors import AmbiguousFormatError, UsageError
from adp_schema.protocols import Match

if TYPE_CHECKING:
    from adp.converters.datasets.dataset_format import DatasetFormat
    from adp.converters.frames import Frame
    from adp.converters.inputs import InputFile

OF_USER = "recipe:"
"""Begins the name of a format that a file of the user's describes; its path follows."""

_ENDING = ".yaml"
MATCHES = "matches.json"
"""The file that has ``match`` of all recipes of the package; ``make docs`` writes it."""


@dataclass(frozen=True)
class RecipeSignature:
    """How the rows of a data set are recognised.

    Attributes:
        name: name of its format.
        tests: one of these must hold.
    """

    name: str
    tests: tuple[RowTest, ...]

    def may_fit(self, keys: Set[str]) -> bool:
        """Whether the rows of a file have the keys of some test, seen at once for most files.

        Args:
            keys: all keys of the rows.
        """
        return any(test.keys <= keys for test in self.tests)

    def priority(
        self,
        rows: Sequence[Mapping[str, Raw]],
        source_file: str,
        *,
        is_known: bool,
        is_log: bool = False,
    ) -> int | None:
        """How special the test is that holds of some row of a file; None when none does.

        Args:
            rows: its rows.
            source_file: its path.
            is_known: whether a format recognises the file.
            is_log: whether it is surely the log of a session.
        """
        usable = [
            test
            for test in self.tests
            if test.fits_file(source_file)
            and not (is_known and test.gives_way)
            and (test.logs or not is_log)
        ]
        held = [test.priority for test in usable if test.fits_rows(rows)]
        return max(held, default=None)


def names() -> tuple[str, ...]:
    """Names of the recipes that come with the package, sorted."""
    return tuple(sorted(_files()))


def shipped(name: str) -> DatasetFormat:
    """The format of a recipe that comes with the package."""
    from adp.converters.datasets.dataset_format import DatasetFormat
    from adp.converters.datasets.recipe_file import check_recipe

    if name not in _formats:
        text = _files()[name].read_text(encoding="utf-8")
        _formats[name] = DatasetFormat(check_recipe(text, name + _ENDING))
    return _formats[name]


def of_user(path: str) -> DatasetFormat:
    """The format that a file of the user's describes.

    Raises:
        UsageError: the file cannot be read, or something in it is wrong.
    """
    try:
        status = Path(path).stat()
        return _of_user(path, (status.st_mtime_ns, status.st_size))
    except OSError as error:
        raise UsageError(f"cannot read the recipe {path}: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"cannot read the recipe {path}: {error}") from None


@cache
def _of_user(path: str, state: tuple[int, int]) -> DatasetFormat:
    """The same, read once while the file is unchanged."""
    from adp.converters.datasets.dataset_format import DatasetFormat
    from adp.converters.datasets.recipe_file import check_recipe, check_words
    from adp.core.input_files import read_text

    text, name = read_text(Path(path)), Path(path).name
    recipe = check_recipe(text, name)
    check_words(recipe, text, name)
    return DatasetFormat(recipe)


@cache
def signatures() -> tuple[RecipeSignature, ...]:
    """How the data sets that come with the package are recognised."""
    matches = msgspec.json.decode((_folder() / MATCHES).read_bytes())
    return tuple(RecipeSignature(name, tests_of(given)) for name, given in matches.items())


def matches_text() -> str:
    """What `MATCHES` has to hold: ``match`` of each recipe, as it stands in the YAML."""
    import yaml

    texts = {name: file.read_text(encoding="utf-8") for name, file in sorted(_files().items())}
    given = {name: yaml.safe_load(text).get("match") for name, text in texts.items()}
    return json.dumps(given, indent=1, ensure_ascii=False) + "\n"


@lru_cache(maxsize=256)
def _with_keys(keys: frozenset[str]) -> tuple[RecipeSignature, ...]:
    """The data sets whose rows may have some keys, which many files share."""
    return tuple(it for it in signatures() if it.may_fit(keys))


def recognise(
    rows: Sequence[Mapping[str, Raw]],
    item: InputFile,
    given: Sequence[str],
    level: Match,
    *,
    is_log: bool,
) -> str | None:
    """The data set that a file is of: its name as a format.

    Args:
        rows: its first records, the first level decoded.
        item: the file.
        given: names of the recipes that the user gave; they go before the others.
        level: how surely a format recognises it.
        is_log: whether it is surely the log of a session, which few recipes of the package are of.

    Raises:
        AmbiguousFormatError: two recipes fit, and none of them says that it is the more special.
        UsageError: a recipe of the user's cannot be used.
    """
    place = _place(item)
    paths = {name: name.removeprefix(OF_USER) for name in given}
    fitting = [name for name, path in paths.items() if of_user(path).fits(rows, place)]
    if len(fitting) > 1:
        both = " and ".join(paths[name] for name in fitting)
        raise AmbiguousFormatError(f"{item.label}: the recipes {both} fit; give one of them")
    if fitting or not rows:
        return fitting[0] if fitting else None
    held = {
        it.name: it.priority(rows, place, is_known=level > Match.NO, is_log=is_log)
        for it in _with_keys(frozenset().union(*rows))
    }
    best = max((level for level in held.values() if level is not None), default=None)
    chosen = [name for name, level in held.items() if level == best and level is not None]
    if len(chosen) > 1:
        raise AmbiguousFormatError(
            f"{item.label}: the recipes {' and '.join(chosen)} recognise it equally; choose one "
            "with --from, or give the more special one a higher priority under match"
        )
    return chosen[0] if chosen else None


def texts_of(head: Iterable[Frame]) -> list[dict[str, Raw]]:
    """Records that are strings, as recipes see them: under the key ``text``."""
    return [
        {"text": Raw(frame.data)}
        for frame in head
        if not frame.error and frame.data[:1] == b'"' and jsontext.is_valid(frame.data)
    ]


def _place(item: InputFile) -> str:
    """The path of a file with a folder at least, also of one that the user named alone."""
    if "/" in item.source_file or not item.path:
        return item.source_file
    return f"{Path(item.path).absolute().parent.name}/{item.source_file}"


def data_set_name(format_name: str | None) -> str | None:
    """The data set that a recipe puts its runs in; None when it says none."""
    if format_name is None or not (format_name.startswith(OF_USER) or format_name in names()):
        return None
    is_given = format_name.startswith(OF_USER)
    chosen = of_user(format_name.removeprefix(OF_USER)) if is_given else shipped(format_name)
    return chosen.recipe.dataset


def notes_on(format_name: str | None, head: Iterable[Frame], source_file: str) -> list[str]:
    """What a recipe of the user's names and none of the first records of a file has."""
    if format_name is None or not format_name.startswith(OF_USER):
        return []
    from adp.converters.datasets.unmet_keys import unmet_keys

    recipe = of_user(format_name.removeprefix(OF_USER)).recipe
    if recipe.overlaid is not None:
        return []
    records = [it.data for it in head if not it.error and jsontext.is_valid(it.data)]
    notes = unmet_keys(recipe, records, source_file)
    return [f"{recipe.name}: {note}" for note in notes]


def misfits(given: Sequence[str], rows: Sequence[Mapping[str, Raw]], item: InputFile) -> str:
    """Why none of the recipes that the user gave fits a file; empty where one does."""
    chosen = [of_user(name.removeprefix(OF_USER)) for name in given]
    if any(it.fits(rows, _place(item)) for it in chosen):
        return ""
    return "".join(
        f"; the recipe {it.name} does not fit: {it.why_not(rows, _place(item))}" for it in chosen
    )


_formats: dict[str, DatasetFormat] = {}


def _folder() -> Traversable:
    return files("adp.converters.datasets") / "recipes"


@cache
def _files() -> dict[str, Traversable]:
    return {
        item.name.removesuffix(_ENDING): item
        for item in _folder().iterdir()
        if item.name.endswith(_ENDING)
    }
