"""Runs of LangSmith as it exports and receives them: lines, trees, and batches of updates."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Raw

from adp.converters.kit.conversations import items_of, raw_leaves
from adp.converters.kit.drafts import StepDraft
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_end, take_start, take_time, time_of
from adp.converters.reading import BRACE, BRACKET, NULL, QUOTE
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.model import Columns

_TOTALS = {"prompt_tokens": "total_tokens_in", "completion_tokens": "total_tokens_out"}


def traces(data: bytes, losses: Losses) -> list[list[SourceObject]]:
    """The runs of a record, each trace by itself, in the order in which they began.

    Args:
        data: a run, a batch, an object with ``runs``, or a list of those.
        losses: takes keys that occur twice.

    Raises:
        RecordError: there is no run.
    """
    runs: list[SourceObject] = []
    items = [data] if jsontext.first_byte(data) == BRACE else jsontext.decode_array(data)
    for number, item in enumerate(items):
        path = "$" if jsontext.first_byte(data) == BRACE else f"$[{number}]"
        if jsontext.first_byte(item) != BRACE:
            raise RecordError("expected a run", path)
        _collect(SourceObject(item, path, losses), runs)
    if not runs:
        raise RecordError("there is no run")
    groups: dict[str, list[SourceObject]] = {}
    parents = {run.word("id"): run.word("parent_run_id") for run in runs}
    for run in runs:
        groups.setdefault(run.word("trace_id") or _root(run.word("id"), parents), []).append(run)
    return [_ordered(group) for group in groups.values()]


def head_columns(root: SourceObject, columns: Columns) -> None:
    """Fill the row of a trajectory from the run at the root of a trace.

    Args:
        root: the run.
        columns: the row.
    """
    columns["source_id"] = root.word("trace_id") or root.word("id") or None
    columns["agent_name"] = root.word("name") or None
    metadata = root.child("extra").child("metadata")
    keys = ("session_id", "thread_id", "conversation_id")
    columns["session_id"] = next((metadata.word(key) for key in keys if key in metadata), None)
    columns["error_message"] = root.text("error")
    columns["task_id"] = root.text("reference_example_id")
    columns["stop_reason"] = root.text("status")
    take_start(root, columns, "start_time")
    take_end(root, columns, "end_time")
    names = [it for it in items_of(root.values.get("tags")) if jsontext.first_byte(it) == QUOTE]
    tags = [jsontext.decode_value(name) for name in names]
    if tags and not any(map(jsontext.has_mark, tags)):
        columns["tags"] = tags
    for key, column in _TOTALS.items():
        if root.integer_at(key) is not None:
            columns[column] = root.integer_at(key)
    _scores(root, columns)


def take_run_times(run: SourceObject, columns: Columns) -> None:
    """Fill the time and the duration of a step, or the duration of a call, from its run."""
    started, ended = (time_of(run.values.get(key))[0] for key in ("start_time", "end_time"))
    if started is not None and ended is not None:
        columns["duration_ms"] = (ended - started).total_seconds() * 1000
    if "timestamp" not in columns and "source" in columns:
        take_time(run, columns, "start_time")


def is_answer(step: StepDraft, name: str, leaves: set[str]) -> bool:
    """Whether a turn is what a run of a model gave.

    Args:
        step: the turn.
        name: id of the run.
        leaves: the scalars of its outputs.
    """
    if name and name in str(step.columns.get("native_id")):
        return True
    ids = {call.columns.get("call_id") for call in step.calls} - {None}
    text = step.parts.columns().get("text")
    return ids <= leaves if ids else text is not None and text in leaves


def _scores(root: SourceObject, columns: Columns) -> None:
    """Feedback: its mean is a reward; the record of it stays."""
    stats = SourceObject(root.values.get("feedback_stats"), root.path, root.losses)
    rewards = {}
    for name in stats.values:
        value = SourceObject(stats.values[name], root.path, root.losses).number("avg")
        if value is not None:
            rewards[name] = value
    if rewards:
        columns["rewards"] = jsontext.text_of(rewards)


def _root(name: str, parents: dict[str, str]) -> str:
    seen: set[str] = set()
    while parents.get(name) in parents and name not in seen:
        seen.add(name)
        name = parents[name]
    return name


def _ordered(group: list[SourceObject]) -> list[SourceObject]:
    if all(run.word("dotted_order") for run in group):
        return sorted(group, key=lambda run: run.word("dotted_order"))
    return group


def _collect(source: SourceObject, runs: list[SourceObject]) -> None:
    """Add a run with its children, or the runs of a batch."""
    batches = [key for key in ("post", "patch", "runs") if source.first(key) == BRACKET]
    if not batches or "run_type" in source:
        if "run_type" not in source and not {"inputs", "outputs"} & set(source.values):
            raise RecordError("expected a run with its type, or a batch", source.path)
        runs.append(source)
        for child in source.objects("child_runs"):
            _collect(child, runs)
        return
    for key in batches:
        for run in source.objects(key):
            known = _same(run, runs) if key == "patch" else None
            if known is None:
                runs.append(run)
            else:
                _update(known, run)
    rest = source.rest()
    if rest and runs:
        runs[-1].values["batch"] = jsontext.raw(jsontext.text_of(rest))


def _same(patch: SourceObject, runs: list[SourceObject]) -> SourceObject | None:
    for key in ("id", "dotted_order"):
        name = patch.word(key)
        for run in runs:
            if name and run.word(key) == name:
                return run
    return None


def _update(run: SourceObject, patch: SourceObject) -> None:
    """What an update says last counts; what it says in another way than before is kept, too."""
    for key, value in patch.values.items():
        before = run.values.get(key)
        if before is not None and jsontext.first_byte(before) != NULL:
            old, new = raw_leaves(before), raw_leaves(value)
            if not new or not old <= new:
                run.values[f"{key}_before"] = before
        run.values[key] = value


def walk(raw: Raw | None) -> Iterator[Raw]:
    """The lists of objects in a value, from the outside: where messages may be.

    Args:
        raw: the inputs or the outputs of a run.
    """
    if raw is None or jsontext.first_byte(raw) not in (BRACE, BRACKET):
        return
    if jsontext.first_byte(raw) == BRACKET:
        items = jsontext.decode_array(raw)
        if len(items) == 1 and jsontext.first_byte(items[0]) == BRACKET:
            yield from walk(items[0])
        elif items:
            yield raw
        return
    values = jsontext.decode_object(raw)
    for key in ("messages", "chat_history", "input", "output"):
        yield from walk(values.get(key))
