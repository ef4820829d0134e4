"""Benchmark items: reading the files, and finding the fields."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from adp.core.input_files import LARGEST_LIST, read_bytes
from adp.curation.ops.decontaminate.options import Against
from adp_schema.errors import RecipeError

GUESSES: Mapping[str, tuple[str, ...]] = {
    "id": ("instance_id", "id", "_id", "task_id", "question_id", "qid", "uuid"),
    "text": (
        *("problem_statement", "question", "problem", "query", "instruction", "prompt", "task"),
        *("goal", "user_scenario", "input", "text", "messages", "conversations", "description"),
    ),
    "repo": ("repo", "repo_name", "repository"),
    "commit": ("base_commit", "base_sha", "commit"),
    "patch": ("patch", "gold_patch", "golden_patch"),
    "answer": ("answer", "answers", "golden_answers", "expected_answer", "ground_truth"),
}
"""Names that fields go by, best first: of SWE-bench, BFCL, HotpotQA, Bamboogle, AIME, tau-bench."""

_ASKED = frozenset({"user", "human", ""})
"""Roles whose messages are the task."""

_SHOWN_FIELDS = 12


@dataclass(frozen=True)
class BenchmarkTask:
    """One task of a benchmark.

    Attributes:
        benchmark: name of the benchmark.
        id: its id there, or null.
        label: what it is called in reports: ``benchmark/id``, or ``benchmark#row`` without an id.
        texts: its messages.
        repo: repository as ``owner/name``, in small letters.
        commit: commit that the task starts at, in small letters.
        patch: the reference patch.
        answers: right answers.
    """

    benchmark: str
    id: str | None
    label: str
    texts: tuple[str, ...] = ()
    repo: str | None = None
    commit: str | None = None
    patch: str | None = None
    answers: tuple[str, ...] = ()


@dataclass
class Benchmark:
    """The items of one `Against`.

    Attributes:
        name: its name.
        items: the items, in the order of the file.
        fields: field that was taken -> its name in the file.
        unreadable: rows that are no objects, or cannot be read.
    """

    name: str
    items: list[BenchmarkTask] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)
    unreadable: int = 0


def read_benchmark(against: Against, folder: Path) -> Benchmark:
    """Read the items.

    Args:
        against: what to read.
        folder: what a relative path is relative to.

    Raises:
        RecipeError: there is no such file, it holds no items, or a field is not in it.
    """
    path = folder / against.file
    if (path / "adp.json").is_file():
        rows: list[Any] = list(_store_rows(str(path)))
        paths = [path]
    else:
        paths = [path] if path.is_file() else sorted(path.parent.glob(path.name))
        if not paths or not all(item.is_file() for item in paths):
            raise RecipeError(f"decontaminate finds no file {against.file}; correct the path")
        rows = [row for item in paths for row in _file_rows(item, against.file)]
    good = [row for row in rows if isinstance(row, Mapping)]
    if not good:
        raise RecipeError(f"decontaminate finds no item in {against.file}; give another file")
    name = against.name or (_stem(paths[0]) if len(paths) == 1 else paths[0].parent.name)
    benchmark = Benchmark(name, unreadable=len(rows) - len(good))
    fields = _fields(against, good)
    benchmark.fields = {part: " + ".join(names) for part, names in fields.items()}
    benchmark.items = [_item(name, number, row, fields) for number, row in enumerate(good, 1)]
    return benchmark


# ---- files --------------------------------------------------------------------------------------


def _stem(path: Path) -> str:
    name = path.name.removesuffix(".gz")
    return name.rpartition(".")[0] or name


def _file_rows(path: Path, shown: str) -> Iterable[Any]:
    kind = path.name.removesuffix(".gz").rpartition(".")[2].lower()
    reader = _READERS.get(kind)
    if reader is None:
        kinds = ", ".join(f".{known}" for known in _READERS)
        raise RecipeError(f"decontaminate reads {kinds}, not {shown}")
    try:
        data = read_bytes(path, LARGEST_LIST)
        data = gzip.decompress(data) if path.name.endswith(".gz") else data
        return reader(data)
    except (OSError, EOFError, ValueError, RecursionError, zlib.error, csv.Error) as error:
        raise RecipeError(f"decontaminate cannot read {shown}: {error}") from None


def _json_lines(data: bytes) -> Iterable[Any]:
    rows: list[Any] = []
    for line in data.removeprefix(b"\xef\xbb\xbf").splitlines():
        if line.strip():
            try:
                rows.append(_decoded(line))
            except (ValueError, RecursionError):
                rows.append(None)
    return rows


def _decoded(data: bytes) -> Any:
    """JSON; also what is nearly JSON, with NaN or half a surrogate pair."""
    try:
        return msgspec.json.decode(data)
    except msgspec.MsgspecError:
        return json.loads(data)


def _json(data: bytes) -> Iterable[Any]:
    """A list of items, an object of lists (``{"data": [...]}``), or one of items by their id."""
    value = _decoded(data.removeprefix(b"\xef\xbb\xbf"))
    if isinstance(value, Mapping):
        lists = [item for item in value.values() if isinstance(item, list)]
        if len(lists) == 1:
            return lists[0]
        if value and all(isinstance(item, Mapping) for item in value.values()):
            return [{"id": key, **result} for key, result in value.items()]
        return [value]
    return value if isinstance(value, list) else [value]


def _separated(delimiter: str) -> Callable[[bytes], Iterable[Any]]:
    def rows(data: bytes) -> Iterable[Any]:
        text = data.decode("utf-8-sig", "replace")
        csv.field_size_limit(1 << 30)
        return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))

    return rows


def _text_lines(data: bytes) -> Iterable[Any]:
    lines = data.decode("utf-8-sig", "replace").splitlines()
    return [{"text": line} for line in lines if line.strip()]


def _parquet(data: bytes) -> Iterable[Any]:
    try:
        rows: list[Any] = pq.read_table(io.BytesIO(data)).to_pylist()
    except pa.ArrowException as error:
        raise ValueError(error) from None
    return rows


_READERS: Mapping[str, Callable[[bytes], Iterable[Any]]] = {
    "jsonl": _json_lines,
    "ndjson": _json_lines,
    "json": _json,
    "csv": _separated(","),
    "tsv": _separated("\t"),
    "parquet": _parquet,
    "txt": _text_lines,
}


def _store_rows(root: str) -> Iterator[dict[str, Any]]:
    """The tasks of a store: its instructions, else what the user says before the agent."""
    from adp.stores.tasks import task_index
    from adp_schema.store import Store

    store = Store.open(root)
    runs = (
        store.scan("trajectories").filter(pl.col("parent_id").is_null())
        .select("seq", pl.coalesce("task_id", "source_id").alias("id")).collect().sort("seq")
    )  # fmt: skip
    result = task_index(store).rows
    words = store.scan("tasks").select("instruction").collect()["instruction"].gather(result["row"])
    frame = result.select("seq", words).filter(pl.col("instruction").is_not_null())
    frame = frame.with_columns(pl.concat_list("instruction"))
    steps = store.scan("steps").select("seq", "step", "source", "text").collect()
    first = steps.filter(pl.col("source") == "agent").group_by("seq").agg(pl.col("step").min())
    asked = (
        steps.filter((pl.col("source") == "user") & pl.col("text").is_not_null())
        .join(first.rename({"step": "first"}), on="seq", how="left")
        .filter(pl.col("first").is_null() | (pl.col("step") < pl.col("first")))
        .sort("seq", "step").group_by("seq", maintain_order=True).agg(pl.col("text"))
    )  # fmt: skip
    rows = runs.join(frame, on="seq", how="left").join(asked, on="seq", how="left").sort("seq")
    rows = rows.with_columns(pl.coalesce("instruction", "text").alias("text"))
    known: set[tuple[Any, ...]] = set()
    for name, texts in rows.select("id", "text").iter_rows():
        key = (name, *(texts or ()))
        if key not in known:
            known.add(key)
            yield {"id": name, "text": list(texts or ())}


# ---- fields -------------------------------------------------------------------------------------


def _fields(against: Against, rows: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """Part of an item -> the fields that hold it; the guessed ones may be in some rows only."""
    results: dict[str, tuple[str, ...]] = {}
    for part, guesses in GUESSES.items():
        given = getattr(against, part)
        if given is None:
            results[part] = _guessed(part, guesses, rows)
            continue
        names = (given,) if isinstance(given, str) else tuple(given)
        for name in names:
            if not any(_value(row, name) is not None for row in rows):
                fields = ", ".join(str(key) for key in list(rows[0])[:_SHOWN_FIELDS])
                raise RecipeError(
                    f"the field {name} is in no item of {against.file}; its fields are: {fields}"
                )
        results[part] = names
    if not any(results[part] for part in ("id", "text", "patch")):
        fields = ", ".join(str(key) for key in list(rows[0])[:_SHOWN_FIELDS])
        raise RecipeError(
            f"decontaminate cannot tell which field of {against.file} holds the task; "
            f"give text, one of: {fields}"
        )
    return {part: names for part, names in results.items() if names}


def _guessed(
    part: str, guesses: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> tuple[str, ...]:
    for name in guesses:
        if any(_is_filled(part, row.get(name)) for row in rows):
            return (name,)
    return ()


def _is_filled(part: str, value: Any) -> bool:
    if part in ("text", "patch"):
        return bool(texts_of(value))
    return bool(_answers(value)) if part == "answer" else _plain(value) is not None


def _value(row: Mapping[str, Any], name: str) -> Any:
    """A field of an item; ``a.b`` is b inside a, unless there is a field of that name."""
    if name in row:
        return row[name]
    value: Any = row
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def texts_of(value: Any, depth: int = 0) -> list[str]:
    """The texts in a value, each a message of its own; of messages with roles, the user's."""
    if isinstance(value, str):
        return [value] if value.strip() else []
    if depth > 8:
        return []
    if isinstance(value, Mapping):
        for role, content in (("role", "content"), ("from", "value")):
            if role in value and content in value:
                asked = str(value[role] or "").lower() in _ASKED
                return texts_of(value[content], depth + 1) if asked else []
        if value.get("type") == "text" and "text" in value:
            return texts_of(value["text"], depth + 1)
        value = list(value.values())
    if isinstance(value, list):
        return [text for item in value for text in texts_of(item, depth + 1)]
    return []


def _plain(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    # Half a surrogate pair is no text that can be stored.
    return str(value).strip().encode("utf-8", "replace").decode("utf-8") or None


def _answers(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [text for item in values if (text := _plain(item))]


def _item(
    benchmark: str, number: int, row: Mapping[str, Any], fields: Mapping[str, Sequence[str]]
) -> BenchmarkTask:
    def first(part: str) -> Any:
        return next((_value(row, name) for name in fields.get(part, ())), None)

    name = _plain(first("id"))
    patch = first("patch")
    repo, commit = _plain(first("repo")), _plain(first("commit"))
    return BenchmarkTask(
        benchmark=benchmark,
        id=name,
        label=f"{benchmark}/{name}" if name else f"{benchmark}#{number}",
        texts=tuple(
            text for part in fields.get("text", ()) for text in texts_of(_value(row, part))
        ),
        repo=_repo(repo) or _repo_of_id(name),
        commit=commit.lower() if commit and re.fullmatch(r"[0-9a-fA-F]{12,64}", commit) else None,
        patch=patch if isinstance(patch, str) and patch.strip() else None,
        answers=tuple(_answers(first("answer"))),
    )


def _repo(text: str | None) -> str | None:
    """``owner/name`` from that or from an address of GitHub."""
    if text is None:
        return None
    plain = re.sub(r"^(?:https?://|git@)?(?:www\.)?[\w-]+\.(?:com|org)[/:]", "", text.lower())
    match = re.fullmatch(r"([\w.-]+)(?:/|__)([\w.-]+?)(?:\.git)?/?", plain)
    return f"{match[1]}/{match[2]}" if match else None


def _repo_of_id(name: str | None) -> str | None:
    match = re.fullmatch(r"([\w.-]+?)__([\w.-]+)-\d+", (name or "").lower())
    return f"{match[1]}/{match[2]}" if match else None
