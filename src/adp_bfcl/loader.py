"""Where the questions of BFCL are found, and how they are read.

They come from the user: a folder, or the installed package ``bfcl-eval`` (`pip install --no-deps
bfcl-eval`), of which no code is run to read them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from adp.core.input_files import LARGEST_LIST, read_bytes
from adp_bfcl.categories import SUPPORTED, canonical, is_relevance
from adp_bfcl.entries import BadRowError, BfclEntry, entry_of
from adp_bfcl.installed_bfcl import BfclMissingError, installed_folder
from adp_bfcl.simulators import MODULES
from adp_schema.errors import InputError, UsageError

_FILE = re.compile(
    r"^(?P<answers>possible_answer[._])?BFCL_v(?P<version>\d+)_(?P<category>[a-z_]+?)"
    r"(?:\.[\w-]+)?\.jsonl?$"
)


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row that is no entry.

    Attributes:
        file: the file.
        line: number of the line, from 1.
        reason: what is wrong with it.
        entry_id: its id, where it has one.
    """

    file: str
    line: int
    reason: str
    entry_id: str | None = None

    def __str__(self) -> str:
        return f"{self.file}#{self.line}: {self.reason}"


@dataclass
class LoadedEntries:
    """What was read.

    Attributes:
        entries: the entries, in the order of the files.
        rejected: the rows that are none.
        missing: categories for which there is no file.
    """

    entries: list[BfclEntry] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def questions_folder(data: Path | str | None = None) -> Path:
    """The folder of questions: the one that is named, else that of the installed package.

    Args:
        data: a folder with files such as ``BFCL_v4_simple_python.json``.

    Raises:
        BfclMissingError: none is named and bfcl-eval is not installed.
        InputError: the named folder is not there.
    """
    if data is not None:
        folder = Path(data)
        if not folder.is_dir():
            raise InputError(f"{folder} is no folder; name one with files like BFCL_v4_*.json")
        child = folder / "bfcl_eval" / "data"
        return child if child.is_dir() else folder
    result = installed_folder()
    if result is None:
        raise BfclMissingError(
            "BFCL's questions are not here",
            "name a folder that holds them: data=FOLDER, or --data FOLDER of adp bfcl",
        )
    return result


def load(categories: Sequence[str] = SUPPORTED, data: Path | str | None = None) -> LoadedEntries:
    """Read the entries of categories, each with its possible answers.

    Args:
        categories: names since v4; see `adp_bfcl.categories.select`.
        data: a folder; None: the installed package.

    Returns:
        The entries; rows that are none; and categories without a file. A row with an id that was
        seen before is rejected.

    Raises:
        BfclMissingError: there is no folder.
        InputError: a folder or a file cannot be read.
        UsageError: none of the categories has a file.
    """
    folder = questions_folder(data)
    questions, answers = _files(folder)
    loaded_entries = LoadedEntries()
    docs = _Documents(folder)
    for category in categories:
        if category not in questions:
            loaded_entries.missing.append(category)
            continue
        known = _answers(answers.get(category, ()), loaded_entries)
        for file in questions[category]:
            _read(file, category, known, docs, loaded_entries)
    if len(loaded_entries.missing) == len(categories):
        raise UsageError(
            f"{folder} has no questions of {', '.join(categories)}; "
            f"it has: {', '.join(sorted(questions)) or 'none at all'}"
        )
    return loaded_entries


def _files(folder: Path) -> tuple[dict[str, list[Path]], dict[str, list[Path]]]:
    """Files of questions and of answers by category; of several versions the newest."""
    newest: dict[tuple[bool, str], tuple[int, list[Path]]] = {}
    places = (folder, folder / "possible_answer")
    for path in sorted(path for place in places if place.is_dir() for path in place.iterdir()):
        name = _FILE.match(path.name)
        if name is None or not path.is_file() or name["category"].endswith(("_score", "_result")):
            continue
        is_answers = bool(name["answers"]) or path.parent.name == "possible_answer"
        key, version = (is_answers, canonical(name["category"])), int(name["version"])
        if key not in newest or newest[key][0] < version:
            newest[key] = (version, [path])
        elif newest[key][0] == version:
            newest[key][1].append(path)
    questions = {key[1]: value[1] for key, value in newest.items() if not key[0]}
    return questions, {key[1]: value[1] for key, value in newest.items() if key[0]}


def _answers(files: Sequence[Path], loaded_entries: LoadedEntries) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for file in files:
        for number, row, reason in rows(file):
            entry_id = row.get("id") if isinstance(row, Mapping) else None
            if reason is None and not isinstance(entry_id, str):
                reason = "it has no id"
            if reason is None and isinstance(row, Mapping) and "ground_truth" not in row:
                reason = "it has no ground_truth"
            if reason is not None or entry_id is None:
                loaded_entries.rejected.append(
                    Rejected(str(file), number, reason or "it has no id")
                )
            else:
                answers[entry_id] = row["ground_truth"]
    return answers


def _read(
    file: Path,
    category: str,
    answers: Mapping[str, Any],
    docs: _Documents,
    loaded_entries: LoadedEntries,
) -> None:
    seen = {entry.entry_id for entry in loaded_entries.entries}
    for number, row, reason in rows(file):
        entry_id = row.get("id") if isinstance(row, Mapping) else None
        try:
            if reason is not None:
                raise BadRowError(reason)
            if entry_id in seen:
                raise BadRowError("another row has this id")
            truth = answers.get(entry_id) if isinstance(entry_id, str) else None
            entry = docs.complete(entry_of(row, category, truth))
            if not is_relevance(category) and entry.answers is None:
                raise BadRowError("there is no possible answer for it")
        except BadRowError as error:
            name = entry_id if isinstance(entry_id, str) else None
            loaded_entries.rejected.append(Rejected(str(file), number, str(error), name))
        else:
            seen.add(entry.entry_id)
            loaded_entries.entries.append(entry)


def rows(file: Path) -> Iterator[tuple[int, Any, str | None]]:
    """The rows of a file of JSON lines: number of the line, value, and what is wrong with it.

    A file that is one JSON list is read as its items, numbered from 1.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        text = read_bytes(file, LARGEST_LIST).decode("utf-8", "replace")
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error
    if text.lstrip().startswith("["):
        try:
            items = json.loads(text)
        except (ValueError, RecursionError):
            items = None
        if isinstance(items, list):
            yield from ((number, item, None) for number, item in enumerate(items, 1))
            return
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line), None
        except (ValueError, RecursionError) as error:
            yield number, None, f"it is no JSON: {error}"


class _Documents:
    """The documentation of the simulated services' functions."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, list[Mapping[str, Any]]] = {}

    def complete(self, entry: BfclEntry) -> BfclEntry:
        """The entry with the functions of its services, where its row has none.

        Raises:
            BadRowError: a service has no documentation.
        """
        if not entry.multi_turn or entry.functions:
            return entry
        functions = [document for name in entry.classes for document in self._of(name)]
        known = {function["name"] for function in functions}
        for names in entry.held_back.values():
            for name in names:
                if name not in known:
                    raise BadRowError(f"its missed_function names {name}, which no service has")
        return BfclEntry(
            entry_id=entry.entry_id,
            category=entry.category,
            question=entry.question,
            functions=functions,
            answers=entry.answers,
            classes=entry.classes,
            config=entry.config,
            held_back=entry.held_back,
        )

    def _of(self, name: str) -> list[Mapping[str, Any]]:
        if name not in self._known:
            if name not in MODULES:
                raise BadRowError(f"there is no simulated service {name}")
            self._known[name] = self._read(name)
        return self._known[name]

    def _read(self, name: str) -> list[Mapping[str, Any]]:
        for folder in (self._folder, installed_folder()):
            file = (folder or Path()) / "multi_turn_func_doc" / f"{MODULES[name]}.json"
            if folder is not None and file.is_file():
                return [row for _, row, reason in rows(file) if reason is None]
        raise BadRowError(
            f"there is no documentation multi_turn_func_doc/{MODULES[name]}.json of its service"
        )


@lru_cache(maxsize=4)
def by_id(data: Path | str | None = None) -> Mapping[str, BfclEntry]:
    """All entries by their id. See `load`."""
    return {entry.entry_id: entry for entry in load(SUPPORTED, data).entries}
