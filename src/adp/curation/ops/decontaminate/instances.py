"""Ids, issues, commits and repositories of benchmark items in trajectories.

An id is *specific* when it has at least eight characters, with a letter and a digit among them:
``django__django-11099`` is, ``12`` is not. Specific ids count wherever they stand by themselves;
the others only as the task_id of a data set that is called like the benchmark.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from adp.curation.ops.decontaminate.items import BenchmarkTask
from adp.curation.ops.decontaminate.scan import TASK_VIEWS, texts
from adp.curation.partitions import Partition

INSTANCE, REPOSITORY = "instance", "repository"

COMMIT_CHARACTERS = 12
"""So many characters of a commit name it."""

_ID_CHARACTERS = 8
_COLUMNS = ("task_id", "source_id", "extra")
_TASK_COLUMNS = ("environment", "environment_config", "extra")


@dataclass(frozen=True)
class Names:
    """What to look for.

    Attributes:
        patterns: text in small letters -> (level, numbers of the items).
        unspecific: (data set, id), both as `slug` -> numbers of the items.
    """

    patterns: dict[str, tuple[str, tuple[int, ...]]]
    unspecific: dict[tuple[str, str], tuple[int, ...]]


def slug(text: str) -> str:
    """Letters and digits alone, small."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def is_specific(name: str) -> bool:
    """Whether an id says enough to be looked for anywhere."""
    return (
        len(name) >= _ID_CHARACTERS
        and re.search(r"[a-zA-Z]", name) is not None
        and re.search(r"[0-9]", name) is not None
    )


def names_of(items: Sequence[BenchmarkTask], *, instances: bool, repositories: bool) -> Names:
    """What to look for, for some items."""
    patterns: dict[str, tuple[str, list[int]]] = {}
    unspecific: dict[tuple[str, str], list[int]] = {}
    for number, item in enumerate(items):
        for level, pattern in _patterns(item):
            if instances if level == INSTANCE else repositories:
                patterns.setdefault(pattern, (level, []))[1].append(number)
        if instances and item.id is not None and not is_specific(item.id):
            unspecific.setdefault((slug(item.benchmark), item.id.lower()), []).append(number)
    return Names(
        {text: (level, tuple(numbers)) for text, (level, numbers) in patterns.items()},
        {key: tuple(numbers) for key, numbers in unspecific.items()},
    )


def _patterns(item: BenchmarkTask) -> Iterator[tuple[str, str]]:
    if item.id is not None and is_specific(item.id):
        yield INSTANCE, item.id.lower()
    issue = re.fullmatch(r"([\w.-]+?)__([\w.-]+)-(\d+)", (item.id or "").lower())
    if issue:
        owner, name, number = issue.groups()
        yield INSTANCE, f"{owner}_1776_{name}-{number}"  # in names of container images
        for middle in ("#", "/issues/", "/pull/"):
            yield INSTANCE, f"{owner}/{name}{middle}{number}"
    if item.commit is not None:
        yield INSTANCE, item.commit[:COMMIT_CHARACTERS]
    if item.repo is not None:
        owner, _, name = item.repo.partition("/")
        for middle in ("/", "__", "_1776_"):
            yield REPOSITORY, f"{owner}{middle}{name}"


def search(partition: Partition, names: Names) -> pl.DataFrame:
    """Find the names in the trajectories of a partition.

    Looked at are the ids, what a task says about its environment, ``extra``, and the task's text.

    Returns:
        ``seq``, ``level``, ``item`` (its number), ``found_in``, ``step``, ``start``, ``end``,
        ``text`` (what stood there): the first place of each level in each trajectory, instances
        before repositories.
    """
    rows = [*_by_dataset(partition, names), *_by_text(partition, names)]
    schema = {"seq": pl.Int64, "level": pl.String, "item": pl.Int64, "found_in": pl.String}
    schema |= {"step": pl.Int32, "start": pl.Int64, "end": pl.Int64, "text": pl.String}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return frame.unique(["seq", "level"], keep="first", maintain_order=True).sort("seq", "level")


Row = tuple[int, str, int, str, int | None, int | None, int | None, str]


def _by_dataset(partition: Partition, names: Names) -> Iterator[Row]:
    if not names.unspecific:
        return
    runs = partition.read("trajectories", ["dataset", "task_id"])
    task_rows = partition.task_columns(["dataset"]).rename({"dataset": "of"})
    runs = runs.join(task_rows, on="seq", how="left", maintain_order="left")
    for seq, dataset, task, of in runs.iter_rows():
        for name in dict.fromkeys((dataset, of)):
            items = names.unspecific.get((slug(name or ""), (task or "").lower()), ())
            if items:
                yield seq, INSTANCE, items[0], "dataset and task_id", None, None, None, task
                break


def _by_text(partition: Partition, names: Names) -> Iterator[Row]:
    if not names.patterns:
        return
    nowhere = pl.lit(None, pl.Int32).alias("step")
    runs = partition.read("trajectories", _COLUMNS)
    tasks = partition.task_columns(_TASK_COLUMNS)
    parts = [
        table.select(
            "seq", nowhere, pl.lit(prefix + column).alias("kind"), pl.col(column).alias("text")
        )
        for table, prefix, columns in ((runs, "", _COLUMNS), (tasks, "tasks.", _TASK_COLUMNS))
        for column in columns
    ]
    parts.append(texts(partition, TASK_VIEWS))
    patterns = list(names.patterns)
    for part in parts:
        small = part.with_columns(pl.col("text").str.to_lowercase())
        hit = small["text"].str.contains_any(patterns).fill_null(False)
        original = part.filter(hit)["text"].to_list()
        small = small.filter(hit)
        lists = small["text"].str.extract_many(patterns, overlapping=True).to_list()
        for (seq, step, kind, text), result, full in zip(
            small.iter_rows(), lists, original, strict=True
        ):
            yield from _verified(names, (seq, kind, step), text, result, full)


def _verified(
    names: Names, at: tuple[int, str, int | None], text: str, value: Sequence[str], full: str
) -> Iterator[Row]:
    """The names of ``value`` that stand in the text by themselves; instances first."""
    seq, kind, step = at
    # Some capital letters have no small letter of one character, so the places may differ.
    shown = full if len(full) == len(text) else text
    for pattern in sorted(set(value), key=lambda item: (names.patterns[item][0], -len(item), item)):
        level, items = names.patterns[pattern]
        match = _alone(pattern, level).search(text)
        if match:
            start, end = match.span(1)
            yield seq, level, items[0], kind, step, start, end, shown[start:end]


@functools.lru_cache(maxsize=1 << 16)
def _alone(pattern: str, level: str) -> re.Pattern[str]:
    """A name by itself, not as a part of a longer word or path."""
    literal = re.escape(pattern)
    if re.fullmatch(r"[0-9a-f]{12}", pattern):
        return re.compile(rf"(?<![0-9a-z])({literal}[0-9a-f]*)(?![0-9a-z])")
    if level == REPOSITORY and "/" in pattern:
        address = r"(?<=github\.com[/:])"
        path = rf"(?<![\w./-])(?!{literal}/)"
        return re.compile(rf"(?:{address}|{path})({literal})(?!\w|-\w|\.(?!git\b)\w)")
    if level == REPOSITORY:
        return re.compile(rf"(?<![a-z0-9_])({literal})(?![a-z0-9_]|-[a-z])")
    # The number of an attempt may follow an id that ends in an issue; others go on: q-1, q-1-2.
    longer = "" if re.search(r"(__|/|_1776_).*\d$", pattern) else "|[.-][0-9]"
    return re.compile(rf"(?<![a-z0-9_])({literal})(?![a-z0-9]{longer})")
