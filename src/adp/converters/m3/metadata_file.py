"""The file with the outcome of a run: ``metadata_{i}.json`` in one of three places."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from msgspec import Raw

from adp.converters import json_layout as styles
from adp.converters.reading import BRACE, begins
from adp.converters.scalars import is_null
from adp_schema import jsontext
from adp_schema.extra_column import unpack
from adp_schema.losses import Losses
from adp_schema.model import Columns, Trajectory

KEY = "run_metadata"
"""The key of ``extra`` that holds the file."""

_NAME = re.compile(r"trajectory_(\d+)\.json")
_FLAGS = {"success": "success", "terminated": "terminated", "truncated": "truncated"}


def side_files(source_file: str) -> tuple[str, ...]:
    """Where the outcome of a run may be, the likeliest place first."""
    path = PurePosixPath(source_file)
    match = _NAME.fullmatch(path.name)
    if match is None:
        return ()
    name = f"metadata_{match.group(1)}.json"
    folder = path.parent
    places = [folder / name, folder / "metadata" / name]
    if folder.name == "trajectories":
        places += [folder.parent / name, folder.parent / "metadata" / name]
    return tuple(map(str, places))


def id_of_file(source_file: str) -> str | None:
    """The id of a run: its path in the data set, when its name is one of a run."""
    path = PurePosixPath(source_file)
    if _NAME.fullmatch(path.name) is None:
        return None
    return str(PurePosixPath(*path.with_suffix("").parts[1:])) if path.parts[1:] else path.stem


def read_side(files: Mapping[str, bytes], taken: Mapping[str, Any], losses: Losses) -> Columns:
    """The columns that the first of the files fills, and ``side``: what is kept of it.

    Args:
        files: path -> content.
        taken: keys of ``extra`` that are not free.
        losses: takes what is wrong with a file.
    """
    for path, data in files.items():
        text = data.decode("utf-8", "replace")
        if jsontext.has_mark(text):
            text = jsontext.mend_text(text)[0]
        exact = text.encode("utf-8") == data
        if not exact:
            losses.add(f"$.extra.{KEY}", "the file is not UTF-8; wrong bytes were replaced")
        key = KEY
        while key in taken:
            key += "_"
        form: dict[str, Any] = {"name": path, "key": key}
        layout = styles.exact_layout(text)
        if layout is None:
            if exact and not jsontext.is_nearly_valid(text):
                losses.add(f"$.extra.{KEY}", "not valid JSON; the file is kept as text")
            return {"side": (key, text, form)}
        form["layout"] = layout
        kept = jsontext.raw(jsontext.one_line(text.strip().encode("utf-8")))
        return {**_outcome(kept), "side": (key, kept, form)}
    return {}


def _outcome(kept: Raw) -> Columns:
    """The columns that the file fills."""
    if jsontext.first_byte(kept) != 0x7B:
        return {}
    values = jsontext.decode_object(kept)
    columns: Columns = {}
    task = values.get("sample_id", Raw())
    if jsontext.first_byte(task) == 0x22:
        columns["task_id"] = jsontext.decode_value(task)
    elif jsontext.first_byte(task) and jsontext.first_byte(task) in b"-0123456789":
        columns["task_id"] = bytes(task).decode("ascii")
    for key, column in _FLAGS.items():
        if bytes(values.get(key, b"")) in (b"true", b"false"):
            columns[column] = bytes(values[key]) == b"true"
    return columns


def stored_side(run: Trajectory) -> tuple[str, Raw | str, dict[str, Any]] | None:
    """The file that a run keeps: its key in ``extra``, its content and its form."""
    extra = unpack(run.extra)
    form = extra.shape.get("side")
    if not isinstance(form, dict) or form.get("key") not in extra.fields:
        return None
    key = form["key"]
    kept = extra.fields[key]
    if "layout" not in form:
        return key, str(jsontext.decode_value(kept)), form
    return key, kept, form


def carried(run: Trajectory) -> frozenset[str]:
    """Columns that the file says."""
    result = stored_side(run)
    if result is None or isinstance(result[1], str):
        return frozenset()
    return frozenset(_edited(run, result[1])[1])


def _edited(run: Trajectory, kept: Raw) -> tuple[dict[str, Any], set[str]]:
    """The values of the file with what was edited since, and the columns that they carry."""
    if jsontext.first_byte(kept) != 0x7B:
        return {}, set()
    values: dict[str, Any] = dict(jsontext.decode_exact(kept))
    before = _outcome(kept)
    reported: set[str] = set()
    for key, column in {"sample_id": "task_id", **_FLAGS}.items():
        value = getattr(run, column)
        if value is None and column not in before:
            continue
        reported.add(column)
        if value != before.get(column):
            number = key == "sample_id" and not is_null(values.get(key)) and _is_number(value)
            values[key] = jsontext.raw(value) if number else value
    return values, reported


def _is_number(text: Any) -> bool:
    return isinstance(text, str) and re.fullmatch(r"-?(0|[1-9]\d*)", text) is not None


def write_side(run: Trajectory) -> dict[str, bytes]:
    """The file, by its path."""
    result = stored_side(run)
    if result is None:
        return {}
    _, kept, form = result
    if isinstance(kept, str):
        return {form["name"]: kept.encode("utf-8")}
    values, _ = _edited(run, kept)
    same = not values or json.loads(jsontext.encode(values)) == json.loads(bytes(kept))
    layout, end = form["layout"]
    data = styles.lay_out(kept if same else values, {"layout": layout}, in_array=False)
    return {form["name"]: data + end.encode("ascii")}


def outcome_of(
    run: Trajectory, record: Mapping[str, Any], name: str
) -> tuple[str, bytes, tuple[str, ...]] | None:
    """The file with the outcome of a run of another format.

    Args:
        run: the run.
        record: what is written of it.
        name: the file that it is written to.

    Returns:
        Its name, its bytes, and the paths of what it says; None for a file of several runs.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    turns = list(record["interactions"].values())
    kept = unpack(run.extra).fields.get(KEY)
    assist, task = _assistance(kept), run.task_id or ""
    values = {
        "sample_id": jsontext.raw(task) if _is_number(task) else run.task_id,
        "truncated": run.truncated,
        "terminated": run.terminated,
        "success": run.success,
        "total_time_steps": len(turns),
        "expert_assistance": assist,
    }
    assist.setdefault("tracker", [int(turn.get("actor") == "expert") for turn in turns])
    paths = [f"$.{column}" for column in ("task_id", *_FLAGS.values())]
    if kept is not None and list(jsontext.decode_object(kept)) == ["expert_assistance"]:
        paths.append(f"$.extra.{KEY}")
    data = styles.lay_out(values, {"layout": 2}, in_array=False)
    return f"metadata_{match.group(1)}.json", data, tuple(paths)


def _assistance(kept: Raw | None) -> dict[str, Any]:
    """How an expert helped, with the keys that runs of M3 have."""
    given = jsontext.decode_object(kept) if begins(kept, BRACE) else {}
    raw = given.get("expert_assistance")
    values: dict[str, Any] = dict(jsontext.decode_object(raw)) if begins(raw, BRACE) else {}
    for key, value in values.items():
        if isinstance(value, Raw):
            values[key] = jsontext.decode_value(value)
    probability, recent = values.get("expert_probability"), values.get("recent_limit")
    if isinstance(recent, int) and recent > 0:
        values["recent_limit"] = -recent  # M3 counts from the end
    if isinstance(probability, int | float):
        values["random_epsilon"] = 1 - probability  # of the agent, not of the expert
    usual = {"mode": None, "init_limit": None, "recent_limit": None, "random_epsilon": 1.0}
    return {**usual, **values}
