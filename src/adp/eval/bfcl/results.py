"""BFCL's folders of results and scores: written from trajectories, and read into scores.

    result/<model>/<group>/BFCL_v4_<category>_result.json
    score/<model>/<group>/BFCL_v4_<category>_score.json

Both are JSON lines. ``bfcl evaluate`` reads the first, the leaderboard's tools read the second.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adp.eval.bfcl.answers import given
from adp.eval.bfcl.categories import canonical, group_of, of_id, order_of
from adp.eval.bfcl.decoding import Mode
from adp.eval.bfcl.entries import Entry
from adp.eval.bfcl.figures import Part, aggregate
from adp.eval.bfcl.judge import judge_entry
from adp.eval.bfcl.loader import Rejected, rows
from adp.eval.bfcl.tasks import entry_from
from adp.eval.bfcl.verdict import Rules, Verdict
from adp_schema.errors import InputError, UsageError
from adp_schema.model import Step, Trajectory

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


@dataclass(frozen=True)
class Judged:
    """A row of a result file and its verdict; None where it could not be judged.

    Attributes:
        answered: the row.
        verdict: the verdict.
        reason: why there is none.
    """

    answered: Answered
    verdict: Verdict | None
    reason: str | None = None


@dataclass
class Report:
    """Verdicts of a folder of results.

    Attributes:
        judged: a row and its verdict, in BFCL's order.
        rejected: rows that could not be read.
    """

    judged: list[Judged] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)

    def accuracy(self, model: str) -> dict[str, float]:
        """Share of right answers by category."""
        found: dict[str, list[bool]] = defaultdict(list)
        for one in self.judged:
            if one.answered.model == model and one.verdict is not None:
                found[one.answered.category].append(one.verdict.valid)
        return {name: sum(values) / len(values) for name, values in found.items()}

    def counts(self, model: str) -> dict[str, int]:
        """Number of judged answers by category."""
        found: dict[str, int] = defaultdict(int)
        for one in self.judged:
            if one.answered.model == model and one.verdict is not None:
                found[one.answered.category] += 1
        return dict(found)

    def models(self) -> list[str]:
        """Names of the models."""
        return sorted({one.answered.model for one in self.judged})

    def overall(self, model: str, *, missing_as_zero: bool = False) -> dict[str, Part]:
        """The figures of BFCL v4. See `adp.eval.bfcl.figures.aggregate`."""
        return aggregate(self.accuracy(model), self.counts(model), missing_as_zero=missing_as_zero)


def model_folder(model: str) -> str:
    """The name of a model as a folder: no slashes, and nothing that leads elsewhere."""
    name = model.replace("/", "_").replace("\\", "_").replace("\0", "_").strip()
    return name if name.strip(".") else "unknown"


def write_results(
    trajectories: Iterable[Trajectory], folder: Path, *, model: str | None = None
) -> dict[Path, int]:
    """Write answers as BFCL's result files.

    Of several attempts at an entry the first is written, for a result file has one row an entry.
    What broke for a reason that is not the model's is left out, so that `bfcl generate` or another
    run can fill it in; `bfcl evaluate --partial-eval` judges the rest.

    Args:
        trajectories: trajectories with tasks of BFCL; others are left out.
        folder: the folder ``result``.
        model: name of the model; None: that of the trajectory.

    Returns:
        The files and their numbers of rows.

    Raises:
        UsageError: no trajectory is an answer to BFCL.
        InputError: a file cannot be written.
    """
    found: dict[Path, dict[str, tuple[int, dict[str, Any]]]] = defaultdict(dict)
    for trajectory in trajectories:
        entry = entry_from(trajectory.task)
        if entry is None or trajectory.error_type or trajectory.parent_id:
            continue
        row = result_row(entry, trajectory)
        if row is None:
            continue
        name = model or trajectory.agent_model or trajectory.agent_name or "unknown"
        place = folder / model_folder(name) / group_of(entry.category)
        file = place / f"BFCL_v4_{entry.category}_result.json"
        attempt = trajectory.attempt or 0
        if entry.entry_id not in found[file] or attempt < found[file][entry.entry_id][0]:
            found[file][entry.entry_id] = (attempt, row)
    if not found:
        raise UsageError("no trajectory is an answer to a question of BFCL")
    for file, by_id in found.items():
        _write(file, [by_id[name][1] for name in sorted(by_id, key=order_of)])
    return {file: len(by_id) for file, by_id in found.items()}


def result_row(entry: Entry, trajectory: Trajectory) -> dict[str, Any] | None:
    """A trajectory as a row of a result file; None when nothing was answered."""
    answer, _, _ = given(trajectory, multi_turn=entry.multi_turn)
    if answer is None:
        return None
    steps = [
        step
        for step in trajectory.steps
        if step.source == "agent" and step.kind in (None, "llm_turn") and not step.is_copied_context
    ]
    row: dict[str, Any] = {"id": entry.entry_id, "result": answer}
    if not entry.multi_turn:
        steps = steps[:1]
        first = steps[0] if steps else Step()
        row["input_token_count"] = first.tokens_in or 0
        row["output_token_count"] = first.tokens_out or 0
        row["latency"] = _seconds(first)
        if first.reasoning:
            row["reasoning_content"] = first.reasoning
        return row
    nested = _by_turn(steps, [len(turn) if isinstance(turn, list) else 0 for turn in answer])
    row["input_token_count"] = [[step.tokens_in or 0 for step in turn] for turn in nested]
    row["output_token_count"] = [[step.tokens_out or 0 for step in turn] for turn in nested]
    row["latency"] = [[_seconds(step) for step in turn] for turn in nested]
    if any(step.reasoning for step in steps):
        row["reasoning_content"] = [[step.reasoning or "" for step in turn] for turn in nested]
    return row


def _by_turn(steps: list[Step], sizes: list[int]) -> list[list[Step]]:
    found, index = [], 0
    for size in sizes:
        found.append(steps[index : index + size])
        index += size
    return found


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
    groups = ("non_live", "live", "multi_turn", "agentic", "format_sensitivity")
    for file in files:
        name = _RESULT.match(file.name)
        parts = [part for part in file.relative_to(folder).parts[:-1] if part not in groups]
        model = parts[0] if parts else (folder if folder.name not in groups else folder.parent).name
        seen: set[str] = set()
        for number, row, reason in rows(file):
            entry_id = row.get("id") if isinstance(row, Mapping) else None
            if reason is None and entry_id in seen:
                reason = "another row has this id"
            if reason is not None or not isinstance(entry_id, str) or "result" not in row:
                if rejected is not None:
                    told = reason or "it has no id or no result"
                    rejected.append(Rejected(str(file), number, told, None))
                continue
            seen.add(entry_id)
            category = canonical(name["category"]) if name else of_id(entry_id)
            yield Answered(entry_id, category, row["result"], model, row)


def judge_results(
    folder: Path,
    entries: Mapping[str, Entry],
    *,
    mode: Mode | None = None,
    rules: Rules = "official",
) -> Report:
    """Judge a folder of results.

    Args:
        folder: see `read_results`.
        entries: the entries by id; see `adp.eval.bfcl.loader.by_id`.
        mode: form of the answers; None: ``fc`` for a model in whose answers there is a list of
            calls or whose name ends in ``-FC``, else ``prompt``.
        rules: whose verdicts.

    Raises:
        InputError: there is no result file.
        BfclMissingError: there are several turns, and bfcl-eval is not installed.
        MissingExtraError: there are calls in Java's or JavaScript's syntax, and tree-sitter is not
            installed.
    """
    report = Report()
    answered = list(read_results(folder, report.rejected))
    modes = modes_of(answered, mode)
    for one in sorted(answered, key=lambda one: (one.model, order_of(one.entry_id))):
        entry = question_of(one, entries)
        if entry is None:
            report.judged.append(Judged(one, None, "there is no question with this id"))
            continue
        verdict = judge_entry(entry, one.result, mode=modes[one.model], rules=rules)
        report.judged.append(Judged(one, verdict))
    return report


def question_of(one: Answered, entries: Mapping[str, Entry]) -> Entry | None:
    """The entry that a row answers; ids of older versions are found by their name since v4."""
    category, _, number = one.entry_id.rpartition("_")
    return entries.get(one.entry_id) or entries.get(f"{canonical(category)}_{number}")


def modes_of(answered: Collection[Answered], mode: Mode | None = None) -> dict[str, Mode]:
    """The form of each model's answers; see `judge_results`."""
    return {name: mode or _mode(name, answered) for name in {one.model for one in answered}}


def _mode(model: str, answered: Iterable[Answered]) -> Mode:
    if "-FC" in model:
        return "fc"
    for one in answered:
        if one.model == model and _has_calls(one.result):
            return "fc"
    return "prompt"


def _has_calls(result: Any) -> bool:
    if isinstance(result, Mapping):
        return True
    return isinstance(result, list) and any(map(_has_calls, result))


def write_scores(report: Report, folder: Path) -> dict[Path, int]:
    """Write verdicts as BFCL's score files: a line with the accuracy, then the wrong answers.

    Args:
        report: the verdicts.
        folder: the folder ``score``.

    Returns:
        The files and their numbers of judged answers.

    Raises:
        InputError: a file cannot be written.
    """
    found: dict[Path, list[Judged]] = defaultdict(list)
    for one in report.judged:
        if one.verdict is not None:
            place = folder / model_folder(one.answered.model) / group_of(one.answered.category)
            found[place / f"BFCL_v4_{one.answered.category}_score.json"].append(one)
    for file, judged in found.items():
        right = sum(one.verdict is not None and one.verdict.valid for one in judged)
        head = {
            "accuracy": right / len(judged),
            "correct_count": right,
            "total_count": len(judged),
        }
        _write(file, [head, *(_failure(one) for one in judged if not _valid(one))])
    return {file: len(judged) for file, judged in found.items()}


def _valid(one: Judged) -> bool:
    return one.verdict is not None and one.verdict.valid


def _failure(one: Judged) -> dict[str, Any]:
    verdict, answered = one.verdict or Verdict(False), one.answered
    row: dict[str, Any] = {
        "id": answered.entry_id,
        "model_name": answered.model,
        "test_category": answered.category,
        "valid": False,
    }
    if "multi_turn" in answered.category:
        row["error"] = {"error_message": verdict.detail, "error_type": verdict.error_type}
    else:
        row["error"], row["error_type"] = [verdict.detail], verdict.error_type
    row["model_result_raw"] = answered.result
    return row


def _write(file: Path, values: Iterable[Mapping[str, Any]]) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(value, ensure_ascii=True) + "\n" for value in values)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error}") from error
