"""Trials of Harbor whose agent left its native log only: the outcome joins the log's trajectory.

A trial is a folder with ``result.json``, what the verifier wrote, and the agent's logs below
``agent``. Where ``agent/trajectory.json`` is there, the format ``atif`` reads all of it. Where it
is not, any format may read a log, and what the trial says of it is added here: rewards, errors,
times, tokens, who ran.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from adp.converters.atif import trial
from adp.converters.atif.keys import NAME
from adp.converters.json_objects import integer
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.losses import Losses
from adp_schema.model import Columns
from adp_schema.protocols import Converter

KEY = "harbor_trial"
"""The key of ``extra`` for the files of a trial."""
MAIN, RESULT = trial.MAIN, trial.OUTCOME[0]
_FOLDER = "agent/"
_SUBAGENTS = "/subagents/"
_ONE_RUN = frozenset({"session", "json", "text"})
"""Containers whose file is one run, which the outcome is of."""
_TOKENS = {
    "n_input_tokens": "total_tokens_in",
    "n_cache_tokens": "total_tokens_cached",
    "n_output_tokens": "total_tokens_out",
}


def trial_folder(source_file: str, converter: Converter) -> str | None:
    """The folder of the trial that a file may be the log of; None when it can be of none.

    Args:
        source_file: its path; the log of a subagent has no outcome of its own.
        converter: its format.
    """
    root, folder, rest = f"/{source_file}".partition(f"/{_FOLDER}")
    if not folder or not rest or _SUBAGENTS in rest or converter.container not in _ONE_RUN:
        return None
    if converter.name == NAME:
        return None  # it reads trials itself
    return f"{root}/".removeprefix("/")


def outcome_files(root: str) -> tuple[str, ...]:
    """Paths of the files that say how a trial ended."""
    return tuple(root + name for name in trial.OUTCOME)


def is_result(data: bytes) -> bool:
    """Whether the file ``result.json`` is that of a trial."""
    try:
        values = jsontext.decode_object(data)
    except (msgspec.DecodeError, RecursionError):
        return False
    named = {"task_name", "trial_name"} <= values.keys()
    return named and not values.keys().isdisjoint({"verifier_result", "agent_result"})


def taken_apart(
    source_file: str, converter: Converter, files: Mapping[str, bytes]
) -> tuple[Mapping[str, bytes], dict[str, bytes]]:
    """The files that a format asked for, and those of the trial.

    Args:
        source_file: path of the log.
        converter: its format.
        files: contents of all that belong to it.
    """
    root = trial_folder(source_file, converter) if files else None
    if root is None or f"{root}{RESULT}" not in files:
        return files, {}
    names = set(outcome_files(root)) - set(converter.side_files(source_file))
    outcome = {name: data for name, data in files.items() if name in names}
    return {name: data for name, data in files.items() if name not in names}, outcome


def join_outcome(
    source_file: str, converter: Converter, files: Mapping[str, bytes], builder: RowBuilder,
    losses: Losses,
) -> None:  # fmt: skip
    """Add what a trial says to the trajectories of a log; what they say themselves stays.

    Args:
        source_file: path of the log.
        converter: its format.
        files: contents of the files of the trial.
        builder: has the rows of the log.
        losses: takes what is wrong with the files.
    """
    root = trial_folder(source_file, converter) if files else None
    if root is None:
        return
    result = trial.read_files(root, files, losses)
    columns = {**_about(result.files.get(RESULT)), **result.columns}
    rows = [row for row in builder.made("trajectories") if row.get("parent_id") is None]
    if any(step.get("tokens_in") is not None for step in builder.made("steps")):
        # The log counts them itself; of several logs of a trial no sum would be true.
        columns = {name: it for name, it in columns.items() if not name.startswith("total_")}
    kept = jsontext.raw(jsontext.one_line(jsontext.encode(result.files)))
    for row in rows:
        for name, value in _fitting(columns, row).items():
            row[name] = value
        extra = row.get("extra")
        values = {} if extra is None else jsontext.decode_object(extra.encode("utf-8"))
        row["extra"] = jsontext.text_of({**values, KEY: kept})


def _fitting(columns: Columns, row: Columns) -> Columns:
    """The columns that a row has no value for; what belongs together comes together."""
    missing = {name: it for name, it in columns.items() if row.get(name) is None}
    for start in ("started", "ended"):
        if row.get(f"{start}_at") is not None:
            missing.pop(f"{start}_text", None)
    if row.get("error_type") is not None or row.get("error_message") is not None:
        missing = {name: it for name, it in missing.items() if not name.startswith("error_")}
    if "started_at" not in missing and "ended_at" not in missing:
        missing.pop("time_zone_known", None)
    return missing


def _about(result: Any) -> Columns:
    """Tokens, cost and the agent, as the result of a trial says them."""
    try:
        value = msgspec.json.decode(result) if result is not None else None
    except (msgspec.DecodeError, RecursionError):
        value = None
    columns: Columns = {}
    used, info = _object(value, "agent_result"), _object(value, "agent_info")
    for key, column in _TOKENS.items():
        if type(used.get(key)) is int and integer(str(used[key]), 64) is not None:
            columns[column] = used[key]
    if type(used.get("cost_usd")) in (int, float):
        columns["total_cost_usd"] = float(used["cost_usd"])
    model = _object(info, "model_info")
    for place, key, column in (
        (info, "name", "agent_name"),
        (info, "version", "agent_version"),
        (model, "name", "agent_model"),
    ):
        if isinstance(text := place.get(key), str):
            columns[column] = jsontext.replace_surrogates(text)
    return columns


def _object(value: Any, key: str) -> dict[str, Any]:
    child = value.get(key) if isinstance(value, dict) else None
    return child if isinstance(child, dict) else {}
