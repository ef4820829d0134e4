"""Rows of published question sets as records of tasks: those of verl, and SAGE's benchmark.

A row of verl has a prompt of messages and ``reward_model.ground_truth``: a text, a list, an object,
or JSON of one in a text; id, split and question stand in ``extra_info``. A row of SAGE's
``agent_benchmark`` says in ``ground_truth`` which tools a right answer names. All that a row says
beside the columns of a task goes to ``extra``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from adp_schema.errors import InputError

TRUTHS = ("ground_truth", "target", "targets", "answers", "answer", "golden_answers", "expected")
"""Keys of an object that holds reference answers."""

_DEEPEST = 8
_ROWS = 256


def as_task_record(record: Any) -> Any:
    """A row with the names that tasks have; anything but a row of a known set as it is."""
    if not isinstance(record, Mapping):
        return record
    if isinstance(_opened(record.get("reward_model")), Mapping) and "prompt" in record:
        return _of_verl(dict(record))
    truth = _opened(record.get("ground_truth"))
    if isinstance(truth, Mapping) and "instruction" in record and "task_type" in record:
        return _of_sage(dict(record), truth)
    return record


def parquet_records(path: Path) -> Iterator[tuple[int, Any]]:
    """The rows of a Parquet file with their numbers.

    Raises:
        InputError: it is no Parquet file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            number = 0
            for batch in file.iter_batches(_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} is no Parquet file that can be read: {error}") from error


def _of_verl(record: dict[str, Any]) -> dict[str, Any]:
    about = _opened(record.get("extra_info"))
    about = about if isinstance(about, Mapping) else {}
    prompt = _opened(record["prompt"])
    if isinstance(prompt, list) and all(isinstance(item, Mapping) for item in prompt):
        record["prompt"] = prompt
    question = about.get("question")
    out: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    if isinstance(question, str) and question:
        out["instruction"] = question
        # Messages are more than the question: they hold the system prompt.
        extra["prompt"] = record.pop("prompt")
    out["reward_spec"] = _opened(record["reward_model"])
    if answers := reference_answers(out["reward_spec"].get("ground_truth")):
        out["answers"] = answers
    index = about.get("index")
    if record.get("id") is None and not isinstance(index, dict | list | None):
        # Sources and splits of one file number their rows by themselves.
        words = (record.get("data_source"), about.get("split"), index)
        out["id"] = "_".join(str(word) for word in words if word is not None)
    if isinstance(about.get("split"), str) and record.get("split") is None:
        out["split"] = about["split"]
    kept = {key: value for key, value in record.items() if key not in ("reward_model", "extra")}
    if "question" in kept:
        extra["question"] = kept.pop("question")
    return {**out, **kept, "extra": _joined(record.get("extra"), extra)}


def _opened(value: Any) -> Any:
    """What JSON of a list or an object in a text holds, as tables keep it; else the value."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _joined(given: Any, more: Mapping[str, Any]) -> dict[str, Any]:
    if given is None:
        return dict(more)
    return {**more, **given} if isinstance(given, Mapping) else {**more, "extra": given}


def reference_answers(value: Any, depth: int = 0) -> list[Any]:
    """The reference answers that a ground truth is, in whatever form it was written.

    Args:
        value: a text, a number, a list, an object, or JSON of a list or an object in a text.
        depth: how deep it lies in another one.
    """
    if value is None:
        return []
    opened = _opened(value)
    if opened is not value and depth < _DEEPEST:
        return reference_answers(opened, depth + 1)
    if isinstance(value, Mapping) and depth < _DEEPEST:
        key = next((key for key in TRUTHS if value.get(key) is not None), None)
        return [dict(value)] if key is None else reference_answers(value[key], depth + 1)
    return list(value) if isinstance(value, list | tuple) else [value]


def _of_sage(record: dict[str, Any], truth: Mapping[str, Any]) -> dict[str, Any]:
    if names := _texts(truth.get("tool_sequence")):
        record["expected_calls"] = [{"name": name, "arguments": {}} for name in names]
    if names := _texts(truth.get("top_k")):
        record["answers"] = names
    elif isinstance(truth.get("direct_answer"), str):
        record["answers"] = [truth["direct_answer"]]
    return record


def _texts(value: Any) -> list[str]:
    """The texts of a list that holds nothing else."""
    whole = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return list(value) if whole else []
