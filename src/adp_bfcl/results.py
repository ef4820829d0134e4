"""BFCL's folders of results: written from trajectories, and read.

    result/<model>/<group>/BFCL_v4_<category>_result.json

The files are JSON lines; ``bfcl evaluate`` reads them. `adp_bfcl.scores` judges them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adp.rendering.arguments import whole_text
from adp.stores.locks import alone
from adp_bfcl.answers import given
from adp_bfcl.categories import AGENTIC, canonical, group_of, of_id, order_of
from adp_bfcl.decoding import Mode
from adp_bfcl.entries import BfclEntry
from adp_bfcl.loader import Rejected, rows
from adp_bfcl.tasks import entry_from
from adp_schema.errors import EmptyResultError, InputError, OutputExistsError, UsageError
from adp_schema.manifest import write_atomic
from adp_schema.model import Step, Trajectory

_GROUPS = ("non_live", "live", "multi_turn", "agentic", "format_sensitivity")
_RESULT = re.compile(r"^BFCL_v\d+_(?P<category>\w+)_result\.json$")


@dataclass(frozen=True)
class Answered:
    """One row of a result file.

    Attributes:
        entry_id: id of the entry.
        category: its category, by the name since v4.
        result: what was answered.
        model: name of the folder of the model.
        row: the whole row.
    """

    entry_id: str
    category: str
    result: Any
    model: str
    row: Mapping[str, Any] = field(default_factory=dict)


def model_folder(model: str) -> str:
    """The name of a model as a folder: no slashes, and nothing that leads elsewhere."""
    name = model.replace("/", "_").replace("\\", "_").replace("\0", "_").strip()
    return name if name.strip(".") else "unknown"


@dataclass
class WrittenResults:
    """What was written as result files, and what was not. All of it together is what was read.

    Attributes:
        files: the files and their numbers of rows.
        left_out: why trajectories were left out, and how many.
        modes: form of the answers by name of the model's folder.
    """

    files: dict[Path, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    modes: dict[str, Mode] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Number of rows that were written."""
        return sum(self.files.values())

    @property
    def trajectories(self) -> int:
        """Number of trajectories that were read."""
        return self.rows + sum(self.left_out.values())


NO_QUESTION = "no question of BFCL"
BRANCH = "a branch"
BROKE = "broke, not by the agent's fault"
SILENT = "the agent did not answer"
ATTEMPT = "another attempt at the same question"
"""Why a trajectory is not among the results."""


@alone
def write_results(
    trajectories: Iterable[Trajectory], out: Path, *, model: str | None = None
) -> WrittenResults:
    """Write answers as BFCL's result files.

    Of several attempts at an entry the first is written, for a result file has one row an entry.
    What broke for a reason that is not the model's is left out, so that `bfcl generate` or another
    run can fill it in; `bfcl evaluate --partial-eval` judges the rest.

    Args:
        trajectories: trajectories with tasks of BFCL; others are left out.
        out: the folder ``result``; each model gets a folder in it.
        model: name of the model; None: that of the trajectory.

    Returns:
        The files, and what was left out.

    Raises:
        EmptyResultError: no trajectory is an answer to BFCL.
        UsageError: one folder would get the answers of two models, or of both modes.
        OutputExistsError: the folder has results of the model already.
        InputError: a file cannot be written.
        StoreError: another run writes there.
    """
    gathered = _Gathered(model)
    for trajectory in trajectories:
        gathered.add(trajectory)
    if not gathered.rows:
        why = "; ".join(f"{count:,}: {reason}" for reason, count in gathered.left_out.items())
        raise EmptyResultError(
            f"no trajectory is an answer to a question of BFCL ({why or 'there is none'}); "
            "make some with: adp collect --env bfcl"
        )
    for place in sorted({place for place, _ in gathered.rows}):
        if (out / place).exists():
            raise OutputExistsError(
                f"{out / place} is there already; remove it, or choose another folder or model"
            )
    modes = {place: mode for place, (_, mode) in gathered.modes_of.items()}
    written = WrittenResults(left_out=dict(gathered.left_out), modes=modes)
    for (place, category), by_id in gathered.rows.items():
        file = out / place / group_of(category) / f"BFCL_v4_{category}_result.json"
        write_lines(file, [by_id[name][1] for name in sorted(by_id, key=order_of)])
        written.files[file] = len(by_id)
    return written


class _Gathered:
    """The rows of result files, by folder of the model and category.

    Args:
        model: name of the model; None: that of the trajectory.
    """

    def __init__(self, model: str | None) -> None:
        self._model = model
        self.rows: dict[tuple[str, str], dict[str, tuple[int, dict[str, Any]]]] = {}
        self.modes_of: dict[str, tuple[str, Mode]] = {}
        self.left_out: Counter[str] = Counter()

    def add(self, trajectory: Trajectory) -> None:
        """Take the answer of a trajectory.

        Raises:
            UsageError: see `write_results`.
        """
        entry = entry_from(trajectory.task)
        reason = NO_QUESTION if entry is None else None
        if reason is None and trajectory.parent_id:
            reason = BRANCH
        elif reason is None and trajectory.error_type:
            reason = BROKE
        row = None if entry is None or reason else result_row(entry, trajectory)
        if entry is None or row is None:
            self.left_out[reason or SILENT] += 1
            return
        by_id = self.rows.setdefault((self._place(entry, trajectory), entry.category), {})
        attempt = trajectory.attempt or 0
        if entry.entry_id in by_id:
            self.left_out[ATTEMPT] += 1
        if entry.entry_id not in by_id or attempt < by_id[entry.entry_id][0]:
            by_id[entry.entry_id] = (attempt, row)

    def _place(self, entry: BfclEntry, trajectory: Trajectory) -> str:
        """The folder of the model, of which there is one mode alone."""
        name = trajectory.agent_model or trajectory.agent_name or "unknown"
        place = model_folder(self._model or name)
        mode = given(trajectory, multi_turn=entry.multi_turn)[1] or "fc"
        other, before = self.modes_of.setdefault(place, (name, mode))
        if other != name:
            raise UsageError(
                f"the folder {place} would get answers of two models, {other} and {name}; "
                "give --model with the runs of one model alone, or not at all"
            )
        if before != mode:
            raise UsageError(
                f"the runs of {name} are of both modes, fc and prompt, which one folder cannot "
                "hold; give the runs of one mode, and name each with --model"
            )
        return place


def result_row(entry: BfclEntry, trajectory: Trajectory) -> dict[str, Any] | None:
    """A trajectory as a row of a result file; None when nothing was answered."""
    answer, _, _ = given(trajectory, multi_turn=entry.multi_turn)
    if answer is None:
        return None
    steps = [
        step
        for step in trajectory.steps
        if step.source == "agent" and step.kind in (None, "llm_turn") and not step.is_copied_context
    ]
    row: dict[str, Any] = {"id": entry.entry_id, "result": whole(answer)}
    if not entry.multi_turn:
        steps = steps[:1]
        first = steps[0] if steps else Step()
        row["input_token_count"] = first.tokens_in or 0
        row["output_token_count"] = first.tokens_out or 0
        row["latency"] = _seconds(first)
        if first.reasoning:
            row["reasoning_content"] = whole(first.reasoning)
        return row
    nested = _by_turn(steps, [len(turn) if isinstance(turn, list) else 0 for turn in answer])
    row["input_token_count"] = [[step.tokens_in or 0 for step in turn] for turn in nested]
    row["output_token_count"] = [[step.tokens_out or 0 for step in turn] for turn in nested]
    row["latency"] = [[_seconds(step) for step in turn] for turn in nested]
    if any(step.reasoning for step in steps):
        row["reasoning_content"] = whole(
            [[step.reasoning or "" for step in turn] for turn in nested]
        )
    return row


def whole(value: Any) -> Any:
    """A value without half characters, on which ``bfcl evaluate`` stops when it writes its scores.

    Half a character in JSON inside a text is mended, too.
    """
    if isinstance(value, list):
        return [whole(item) for item in value]
    if isinstance(value, Mapping):
        return {whole(key): whole(item) for key, item in value.items()}
    if not isinstance(value, str):
        return value
    if "\\u" in value:
        try:
            child = json.loads(value)
            result = whole(child)
            if result != child:
                return json.dumps(result)
        except (ValueError, RecursionError):
            pass
    return whole_text(value)


def _by_turn(steps: list[Step], sizes: list[int]) -> list[list[Step]]:
    result, index = [], 0
    for size in sizes:
        result.append(steps[index : index + size])
        index += size
    return result


def _seconds(step: Step) -> float:
    """How long the answer took, as far as it is known."""
    return round((step.duration_ms or 0) / 1000, 3)


def read_results(folder: Path, rejected: list[Rejected] | None = None) -> Iterator[Answered]:
    """Read a folder of results of one or of several models.

    Files are found at every depth, by both layouts: that of v4 with a folder for each group, and
    the flat one of older versions. Older names of categories are read, too.

    Args:
        folder: ``result``, or the folder of one model in it.
        rejected: where rows that cannot be read are put.

    Raises:
        InputError: there is no result file.
    """
    files = sorted(path for path in folder.rglob("BFCL_v*_result.json") if path.is_file())
    if not files:
        raise InputError(f"{folder} has no file like BFCL_v4_simple_python_result.json")
    seen: set[tuple[str, str]] = set()
    for file in files:
        name, model = _RESULT.match(file.name), _model_of(file, folder)
        for number, row, reason in rows(file):
            entry_id = row.get("id") if isinstance(row, Mapping) else None
            if reason is None and (model, since_v4(str(entry_id))) in seen:
                reason = f"another row has the id {entry_id}"
            if reason is not None or not isinstance(entry_id, str) or "result" not in row:
                if rejected is not None:
                    reason_text = reason or "it has no id or no result"
                    rejected.append(Rejected(str(file), number, reason_text, _text(entry_id)))
                continue
            seen.add((model, since_v4(entry_id)))
            category = canonical(name["category"]) if name else of_id(entry_id)
            yield Answered(entry_id, category, row["result"], model, row)


def _model_of(file: Path, folder: Path) -> str:
    """The name of the model whose folder a file lies in."""
    parts = file.relative_to(folder).parts[:-1]
    group = next((number for number, part in enumerate(parts) if part in _GROUPS), len(parts))
    if parts[:group]:
        return parts[0]
    place = folder.resolve()
    return (place.parent if place.name in _GROUPS else place).name


def since_v4(entry_id: str) -> str:
    """An id with the name of its category since v4."""
    category, _, number = entry_id.rpartition("_")
    return f"{canonical(category)}_{number}"


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def question_of(value: Answered, entries: Mapping[str, BfclEntry]) -> BfclEntry | None:
    """The entry that a row answers; ids of older versions are found by their name since v4."""
    return entries.get(value.entry_id) or entries.get(since_v4(value.entry_id))


def unknown(value: Answered) -> str:
    """Why there is no entry for a row."""
    if value.category in AGENTIC:
        return f"{value.category} is not evaluated here"
    return "there is no question with this id"


def modes_of(answered: Collection[Answered], mode: Mode | None = None) -> dict[str, Mode]:
    """The form of each model's answers; see `adp_bfcl.scores.judge_results`."""
    return {name: mode or _mode(name, answered) for name in {item.model for item in answered}}


def _mode(model: str, answered: Iterable[Answered]) -> Mode:
    if "-FC" in model:
        return "fc"
    for item in answered:
        if item.model == model and _has_calls(item.result):
            return "fc"
    return "prompt"


def _has_calls(result: Any) -> bool:
    if isinstance(result, Mapping):
        return True
    return isinstance(result, list) and any(map(_has_calls, result))


def write_lines(file: Path, values: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON lines; the folders are made.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(value, ensure_ascii=True) + "\n" for value in values)
        write_atomic(file, text)
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error}") from error
