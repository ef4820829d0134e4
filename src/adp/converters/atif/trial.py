"""The files of a trial of Harbor beside its trajectory: rewards, times, errors, token ids.

A trial is a folder with ``agent/trajectory.json``, ``result.json`` and others. All of them stay
in the trajectory's ``extra`` under one key, as JSON or as text, and are written back from there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Raw

from adp.converters import json_layout as styles
from adp.converters.json_objects import read_time
from adp.converters.scalars import number_text
from adp_schema import extra_column, jsontext
from adp_schema.losses import Losses
from adp_schema.model import Columns, Trajectory

MAIN = "agent/trajectory.json"
OUTCOME = (
    *("result.json", "config.json", "lock.json", "exception.txt"),
    *("verifier/reward.json", "verifier/reward.txt", "verifier/ctrf.json"),
    *("verifier/test-stdout.txt", "verifier/test-stderr.txt", "trial.log"),
)
"""Files of a trial, but for those of the agent."""
_NAMES = (*OUTCOME, "agent/**/*.jsonl", "agent/*.trajectory.json")
"""The agent's own logs say the run a second time, so they are no other run."""
_TURN_KEYS = ("prompt_token_ids", "completion_token_ids", "logprobs")


def side_files(source_file: str) -> tuple[str, ...]:
    """Paths of the files of a trial, for its main trajectory."""
    root, main, rest = source_file.rpartition(MAIN)
    if not main or rest or (root and not root.endswith("/")):
        return ()
    return tuple(root + name for name in _NAMES)


@dataclass
class Trial:
    """What the files of a trial say.

    Attributes:
        files: name in the folder of the trial -> JSON, or the text of a file that is none.
        layouts: name of a JSON file -> how it was laid out, and what follows the value.
        columns: columns of the trajectory.
    """

    files: dict[str, Raw | str] = field(default_factory=dict)
    layouts: dict[str, list[Any]] = field(default_factory=dict)
    columns: Columns = field(default_factory=dict)
    _details: list[Any] = field(default_factory=list)

    def turns(self, count: int) -> list[Columns]:
        """Token ids and log probabilities of each turn, when there are as many as turns."""
        if len(self._details) != 1 or not isinstance(self._details[0], dict):
            return []
        lists = {
            key: values
            for key in _TURN_KEYS
            if isinstance(values := self._details[0].get(key), list) and len(values) == count
        }
        numbers = [{key: values[index] for key, values in lists.items()} for index in range(count)]
        return numbers if lists and all(map(_is_turn, numbers)) else []


def _is_turn(columns: Columns) -> bool:
    for key, values in columns.items():
        kinds = (int, float) if key == "logprobs" else (int,)
        if not isinstance(values, list):
            return False
        if any(type(value) not in kinds or abs(value) >= 2**31 for value in values):
            return False
    return True


def free_key(values: Mapping[str, Any]) -> str:
    """The key of ``extra`` for the files: ``trial``, when the record has no such key."""
    key = "trial"
    while key in values:
        key += "_"
    return key


def read_files(root: str, files: Mapping[str, bytes], losses: Losses) -> Trial:
    """Read the files of a trial; a wrong one is kept as text, and reported.

    Args:
        root: its folder, with a slash at its end; empty when that is the root of the conversion.
        files: contents by path.
        losses: takes what is wrong.
    """
    out = Trial()
    for path, data in files.items():
        name = path.removeprefix(root)
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            text = data.decode("utf-8", "replace")
            losses.add(f"$.extra.trial.{name}", "the file is not UTF-8; wrong bytes were replaced")
        if jsontext.has_mark(text):
            text = jsontext.mend_text(text)[0]
            losses.add(f"$.extra.trial.{name}", "characters from U+10F7FF on were replaced")
        out.files[name] = text
        if name.endswith(".json"):
            layout = styles.exact_layout(text)
            if layout is not None:
                out.files[name] = jsontext.raw(jsontext.one_line(text.strip().encode("utf-8")))
                out.layouts[name] = layout
            elif _parse(text) is None:
                losses.add(f"$.extra.trial.{name}", "not valid JSON; the file is kept as text")
    _fill(out)
    return out


def stored(trajectory: Trajectory) -> Trial:
    """The files of a trial that a trajectory of this format keeps."""
    extra = extra_column.unpack(trajectory.extra)
    form = extra.shape.get("trial")
    out = Trial()
    if not isinstance(form, dict) or form["key"] not in extra.fields:
        return out
    out.layouts = form["layouts"]
    for name, raw in jsontext.decode_exact(extra.fields[form["key"]]).items():
        out.files[name] = raw if name in out.layouts else jsontext.decode_value(raw)
    _fill(out)
    return out


def write_files(trajectory: Trajectory) -> dict[str, bytes]:
    """The files of a trial, by their paths beside the trajectory."""
    root = (trajectory.source_file or "").removesuffix(MAIN)
    trial, out = stored(trajectory), {}
    for name, value in trial.files.items():
        if isinstance(value, str):
            out[root + name] = value.encode("utf-8")
        else:
            layout, end = trial.layouts[name]
            data = styles.lay_out(value, {"layout": layout}, in_array=False)
            out[root + name] = data + end.encode("ascii")
    return out


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _object(value: Any, key: str) -> dict[str, Any]:
    """An object inside an object; empty when it is none."""
    child = value.get(key) if isinstance(value, dict) else None
    return child if isinstance(child, dict) else {}


def _fill(trial: Trial) -> None:
    """Fill the columns from the files."""
    parsed = {
        name: _parse(value if isinstance(value, str) else bytes(value).decode("utf-8"))
        for name, value in trial.files.items()
        if name.endswith(".json")
    }
    result = parsed.get("result.json")
    columns = trial.columns
    for key in ("task_id", "task_name"):
        if isinstance(task := _value(result, key), str):
            columns["task_id"] = task
    details = _object(result, "agent_result").get("rollout_details")
    trial._details = details if isinstance(details, list) else []
    _outcome(trial, result, parsed.get("verifier/reward.json"))
    _error(trial, result)
    for key, column in (("started_at", "started"), ("finished_at", "ended")):
        text = _value(result, key)
        if isinstance(text, str):
            columns[f"{column}_text"] = text
            columns[f"{column}_at"], known = read_time(text)
            columns["time_zone_known"] = columns.get("time_zone_known") is not False and known
    trial.columns = {
        name: jsontext.replace_surrogates(value) if isinstance(value, str) else value
        for name, value in columns.items()
        if value is not None
    }


def _value(result: Any, key: str) -> Any:
    return result.get(key) if isinstance(result, dict) else None


def _outcome(trial: Trial, result: Any, reward: Any) -> None:
    """Rewards: those of the result, else those that the verifier wrote."""
    rewards: Any = _object(result, "verifier_result").get("rewards")
    if not isinstance(rewards, dict) or not rewards:
        rewards = reward if isinstance(reward, dict) else {"reward": reward}
    rewards = {name: value for name, value in rewards.items() if value is not None}
    if not rewards:
        try:
            rewards = {"reward": float(str(trial.files.get("verifier/reward.txt", "")))}
        except ValueError:
            return
    numbers = {name: value for name, value in rewards.items() if _is_number(value)}
    if not numbers:
        return
    texts = {name: jsontext.raw(number_text(value)) for name, value in numbers.items()}
    trial.columns["rewards"] = jsontext.text_of(texts)
    single = next(iter(numbers.values())) if len(numbers) == 1 else None
    main = numbers.get("reward", single)
    if main is not None:
        trial.columns["reward"] = float(main)
    if single in (0, 1):
        trial.columns["success"] = single == 1


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 1e300


def _error(trial: Trial, result: Any) -> None:
    """The error that ended the trial, from the result or from the last line of a traceback."""
    info = _object(result, "exception_info")
    kind, message = info.get("exception_type"), info.get("exception_message")
    if not info:
        text = trial.files.get("exception.txt")
        lines = text.strip().splitlines() if isinstance(text, str) else []
        if not lines:
            return
        name, colon, rest = lines[-1].partition(": ")
        named = bool(colon) and name.replace(".", "").isidentifier()
        kind, message = (name, rest) if named else (None, lines[-1])
    trial.columns["error_type"] = kind if isinstance(kind, str) else None
    trial.columns["error_message"] = message if isinstance(message, str) else None
