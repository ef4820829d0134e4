"""Tasks out of files: JSON lines, JSON, CSV, TSV and Parquet; what is no task is refused.

A record has the columns of a `Task`, or other names for them: ``question``, ``prompt``, ``input``,
... for the instruction, ``answer``, ``gold``, ... for the answers. Whatever else it says is kept in
``extra``.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adp.core.answers.sources import rule_of
from adp.core.input_files import LARGEST_LIST, read_bytes
from adp.rendering.arguments import whole_text
from adp.rollouts.collecting.question_sets import as_task_record, parquet_records
from adp.rollouts.csv_delimiters import delimiter_of
from adp_schema.arrow import json_columns
from adp_schema.errors import InputError
from adp_schema.ids import digest
from adp_schema.model import Task

ENDINGS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")

INSTRUCTION = ("instruction", "question", "problem", "query", "prompt", "goal", "input", "task")
"""Names of the instruction; the first one that a record has is taken."""
ANSWERS = ("answers", "answer", "gold", "golden_answers", "gold_answer", "target", "expected")
"""Names of the answers; a single one becomes a list of one."""
IDS = ("task_id", "id", "sample_id", "question_id", "qid")
"""Names of the id; without one it is a hash of the record."""
_LISTS = ("tasks", "data", "test_cases", "questions", "examples", "rows")

_MOST_NAMED = 8
MOST_REFUSED = 1_000
"""Refused records of which the reason is kept."""


@dataclass
class TaskSet:
    """Tasks and what was no task: ``records = len(tasks) + refused``.

    Attributes:
        tasks: the tasks, in order.
        records: records that were read.
        refused: records that are no task.
        reasons: ``file#record: reason``, the first `MOST_REFUSED`.
        notes: what else to say about them.
    """

    tasks: list[Task] = field(default_factory=list)
    records: int = 0
    refused: int = 0
    reasons: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def refuse(self, reason: str) -> None:
        """Count a record that is no task."""
        self.refused += 1
        if len(self.reasons) < MOST_REFUSED:
            self.reasons.append(reason)

    def leave(self, kept: list[Task], reasons: Iterable[str]) -> None:
        """Leave tasks out.

        Args:
            kept: the others.
            reasons: why, one for each that is left out.

        Raises:
            InputError: none is kept.
        """
        self.tasks = kept
        for reason in reasons:
            self.refuse(reason)
        if not kept:
            raise InputError(f"no task can be done: {self.reasons[-1]}")


def read_task_file(path: Path, split: str | None = None) -> TaskSet:
    """Read a file of tasks.

    Args:
        path: the file; its ending says what it is.
        split: only tasks of this split.

    Raises:
        InputError: it cannot be read, or holds no task.
    """
    task_set = TaskSet()
    seen: dict[str, int] = {}
    others: Counter[str] = Counter()
    for number, record in _records(path):
        task_set.records += 1
        place = f"{path.name}#{number}"
        try:
            if isinstance(record, ValueError):
                raise record
            task = task_of(record)
        except (ValueError, RecursionError) as error:
            task_set.refuse(f"{place}: {error}")
            continue
        if split is not None and task.split != split:
            task_set.refuse(f"{place}: it is of the split {task.split!r}, not {split!r}")
            continue
        first = seen.setdefault(task.task_id or "", number)
        if first != number:
            same = not _first(dict(as_task_record(record)), IDS)
            text = f"it is the same as record {first}; give each an id to run both"
            taken = f"record {first} has the id '{task.task_id}' already"
            task_set.refuse(f"{place}: {text if same else taken}")
            continue
        if task.dataset is None and rule_of(path.stem) is not None:
            # A known set is known by the name of its file: scorers choose their rule by it.
            task.dataset = path.stem
        others.update(_kept_apart(record) if task.answers is None else ())
        task_set.tasks.append(task)
    if not task_set.tasks:
        why = f": {task_set.reasons[0]}" if task_set.reasons else ""
        raise InputError(
            f"{path} holds no task{why}; rows that a recipe reads become a store, which --tasks "
            f"takes: adp convert {path} --recipe my.yaml -o tasks_store"
        )
    if others:
        names = ", ".join(f"'{name}'" for name, _ in others.most_common(_MOST_NAMED))
        task_set.notes.append(
            f"tasks without answers have columns of other names, kept in extra: {names}"
        )
    return task_set


def _kept_apart(record: Mapping[str, Any]) -> Iterator[str]:
    """Names in a record that are no column of a task, and no other name of one."""
    known = {*INSTRUCTION, *ANSWERS, *IDS, *Task.model_fields, "expected_tool", "expected_params"}
    return (str(name) for name in record if name not in known)


def task_of(record: Any) -> Task:
    """A record as a task.

    Raises:
        ValueError: it is none; the message says why.
    """
    if not isinstance(record, Mapping):
        raise ValueError("it is no JSON object")
    known = as_task_record(record)
    rest = {key: value for key, value in known.items() if key is not None}
    columns: dict[str, Any] = {}
    instruction = _first(rest, INSTRUCTION)
    if isinstance(instruction, list) and len(instruction) > 1:
        # What stands before the question, such as a system prompt, is kept, too.
        rest["prompt_messages"] = instruction
    columns["instruction"] = _instruction(instruction)
    answers = _first(rest, ANSWERS)
    if answers is not None:
        columns["answers"] = _json(_listed(answers))
    number = _first(rest, IDS)
    if "expected_tool" in rest and "expected_calls" not in rest:
        call = {"name": rest.pop("expected_tool"), "arguments": rest.pop("expected_params", {})}
        columns["expected_calls"] = _json([call])
    extra = rest.pop("extra", None)
    for name in [name for name in rest if name in Task.model_fields]:
        value = rest.pop(name)
        if value is not None:
            columns[name] = _column(name, value)
    given = _object(extra)
    if rest or given:
        columns["extra"] = _json({**given, **rest})
    if not any(columns.get(name) for name in ("instruction", "turns", "environment_config")):
        raise ValueError(f"it has no instruction: none of {', '.join(INSTRUCTION)}")
    if number is None or number == "" or isinstance(number, dict | list):
        columns["task_id"] = digest(_json(record).encode())
    else:
        columns["task_id"] = whole_text(str(number))
    return Task(**columns)


def _first(record: dict[str, Any], names: tuple[str, ...]) -> Any:
    """Take out the value of the first name that has one."""
    for name in names:
        if record.get(name) is not None:
            return record.pop(name)
    return None


def _instruction(value: Any) -> str | None:
    """The text of an instruction; of messages, that of the last one of the user."""
    if value is None:
        return None
    if isinstance(value, str):
        return whole_text(value) if value.strip() else None
    if isinstance(value, list):
        for message in reversed(value):
            if isinstance(message, Mapping) and message.get("role") == "user":
                return _instruction(message.get("content"))
    raise ValueError("its instruction is neither a text nor a list of messages")


def _listed(value: Any) -> list[Any]:
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            read = _load(value)
        except ValueError:
            return [value]
        return read if isinstance(read, list) else [value]
    return value if isinstance(value, list) else [value]


def _column(name: str, value: Any) -> str:
    """A value as the text of a column."""
    if name not in json_columns("tasks"):
        if isinstance(value, dict | list):
            raise ValueError(f"its {name} is no text")
        return whole_text(str(value))
    if isinstance(value, str):
        try:
            return _json(_load(value))
        except ValueError:
            pass
    return _json(value)


def _object(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = _load(value)
        except ValueError:
            return {"extra": value}
    if value is None:
        return {}
    return dict(value) if isinstance(value, Mapping) else {"extra": value}


def _json(value: Any) -> str:
    return whole_text(json.dumps(value, ensure_ascii=True, allow_nan=False, default=str))


def _refuse_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _load(text: str) -> Any:
    return json.loads(text, parse_constant=_refuse_number)


def _records(path: Path) -> Iterator[tuple[int, Any]]:
    """The records of a file with their numbers: of JSON lines and CSV, those of the lines."""
    if path.suffix.lower() == ".parquet":
        return parquet_records(path)
    try:
        data = read_bytes(path, LARGEST_LIST)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    data = data.removeprefix(b"\xef\xbb\xbf")
    ending = path.suffix.lower()
    if ending in (".csv", ".tsv"):
        return _of_csv(path, data)
    if ending == ".json":
        try:
            return _of_document(path, _load(data.decode("utf-8")))
        except (ValueError, RecursionError) as error:
            if b"\n" not in data.strip():
                raise InputError(f"{path} is no JSON: {error}") from error
    return _of_lines(data)


def _of_lines(data: bytes) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            yield number, _load(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            yield number, ValueError(f"it is not UTF-8: {error.reason} at byte {error.start}")
        except (ValueError, RecursionError) as error:
            yield number, ValueError(f"it is no JSON: {error}")


def _of_document(path: Path, value: Any) -> Iterator[tuple[int, Any]]:
    if isinstance(value, Mapping):
        child = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), None)
        value = [value] if child is None else child
    if not isinstance(value, list):
        raise InputError(f"{path} holds neither a list of tasks nor a task")
    return iter(list(enumerate(value, 1)))


def _of_csv(path: Path, data: bytes) -> Iterator[tuple[int, Any]]:
    csv.field_size_limit(1 << 30)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from error
    delimiter = "\t" if path.suffix.lower() == ".tsv" else delimiter_of(text)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        for row in reader:
            if None in row or None in row.values():
                yield reader.line_num, ValueError("it has another number of cells than the head")
            else:
                yield reader.line_num, {key: value for key, value in row.items() if value != ""}
    except csv.Error as error:
        yield reader.line_num + 1, ValueError(f"it is no CSV: {error}")
