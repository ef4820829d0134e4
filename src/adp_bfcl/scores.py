"""BFCL's folders of results judged, and written as folders of scores.

    score/<model>/<group>/BFCL_v4_<category>_score.json

The files are JSON lines as ``bfcl evaluate`` writes them; the leaderboard's tools read them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adp.stores.locks import alone
from adp_bfcl.categories import (
    SUPPORTED,
    group_of,
    is_relevance,
    language_of,
    order_of,
)
from adp_bfcl.decoding import Mode, decode
from adp_bfcl.entries import BfclEntry
from adp_bfcl.figures import FigurePart, aggregate
from adp_bfcl.judge import judge_entry
from adp_bfcl.loader import Rejected
from adp_bfcl.multi_turn import decoded_turns
from adp_bfcl.python_calls import DecodeError
from adp_bfcl.results import (
    Answered,
    model_folder,
    modes_of,
    question_of,
    read_results,
    unknown,
    write_lines,
)
from adp_bfcl.verdict import CHECKER_ERROR, CheckerVerdict, Rules
from adp_schema.errors import OutputExistsError

_UNREAD = ("multi_turn:inference_error", "multi_turn:force_terminated")
"""Errors of answers that were not looked into."""

_UNDECODED = "ast_decoder:decoder_failed"
_STRANGE = "ast_decoder:decoder_wrong_output_format"


@dataclass(frozen=True)
class JudgedRow:
    """A row of a result file and its verdict; None where it could not be judged.

    Attributes:
        answered: the row.
        verdict: the verdict.
        reason: why there is none.
        entry: the question; None: it is not known.
    """

    answered: Answered
    verdict: CheckerVerdict | None
    reason: str | None = None
    entry: BfclEntry | None = None


@dataclass
class VerdictReport:
    """Verdicts of a folder of results.

    Attributes:
        judged: a row and its verdict, in BFCL's order.
        rejected: rows that could not be read.
        modes: form of the answers by model.
    """

    judged: list[JudgedRow] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    modes: dict[str, Mode] = field(default_factory=dict)

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

    def unjudged(self, model: str) -> dict[str, int]:
        """Number of answers without a verdict, by category."""
        without = [one for one in self.judged if one.verdict is None]
        return dict(
            Counter(one.answered.category for one in without if one.answered.model == model)
        )

    def categories(self, model: str) -> list[str]:
        """Categories of which there are answers, in BFCL's order."""
        found = {one.answered.category for one in self.judged if one.answered.model == model}
        order = {name: number for number, name in enumerate(SUPPORTED)}
        return sorted(found, key=lambda name: (order.get(name, len(order)), name))

    @property
    def rows(self) -> int:
        """Number of rows in the files."""
        return len(self.judged) + len(self.rejected)

    @property
    def judged_rows(self) -> int:
        """Number of rows with a verdict."""
        return sum(one.verdict is not None for one in self.judged)

    @property
    def left_out(self) -> dict[str, int]:
        """Why rows have no verdict, and how many."""
        reasons = Counter(f"unjudged: {one.reason}" for one in self.judged if one.verdict is None)
        return {**reasons, **({"rejected": len(self.rejected)} if self.rejected else {})}

    def plain(self) -> dict[str, Any]:
        """All counts and figures as JSON."""
        return {
            "rows": self.rows,
            "judged": self.judged_rows,
            "left_out": self.left_out,
            "models": {model: self._plain(model) for model in self.models()},
            "unjudged": [
                {"model": one.answered.model, "id": one.answered.entry_id, "reason": one.reason}
                for one in self.judged
                if one.verdict is None
            ],
            "rejected": [str(one) for one in self.rejected],
        }

    def _plain(self, model: str) -> dict[str, Any]:
        accuracy, counts, without = self.accuracy(model), self.counts(model), self.unjudged(model)
        return {
            "mode": self.modes.get(model),
            "categories": {
                name: {
                    "accuracy": accuracy.get(name),
                    "judged": counts.get(name, 0),
                    "unjudged": without.get(name, 0),
                }
                for name in self.categories(model)
            },
            "v4": {
                name: {"value": part.value, "missing": list(part.missing)}
                for name, part in self.overall(model).items()
            },
        }

    def models(self) -> list[str]:
        """Names of the models."""
        return sorted({one.answered.model for one in self.judged})

    def overall(self, model: str, *, missing_as_zero: bool = False) -> dict[str, FigurePart]:
        """The figures of BFCL v4. See `adp_bfcl.figures.aggregate`."""
        return aggregate(self.accuracy(model), self.counts(model), missing_as_zero=missing_as_zero)


def judge_results(
    folder: Path,
    entries: Mapping[str, BfclEntry],
    *,
    mode: Mode | None = None,
    rules: Rules = "official",
) -> VerdictReport:
    """Judge a folder of results.

    Args:
        folder: see `read_results`.
        entries: the entries by id; see `adp_bfcl.loader.by_id`.
        mode: form of the answers; None: ``fc`` for a model in whose answers there is a list of
            calls or whose name ends in ``-FC``, else ``prompt``.
        rules: whose verdicts.

    Raises:
        InputError: there is no result file.
        BfclMissingError: there are several turns, and bfcl-eval is not installed.
        MissingExtraError: there are calls in Java's or JavaScript's syntax, and tree-sitter is not
            installed.
    """
    report = VerdictReport()
    answered = list(read_results(folder, report.rejected))
    report.modes = modes_of(answered, mode)
    for one in sorted(answered, key=lambda one: (one.model, order_of(one.entry_id))):
        report.judged.append(_judged(one, entries, report.modes[one.model], rules))
    return report


def _judged(one: Answered, entries: Mapping[str, BfclEntry], mode: Mode, rules: Rules) -> JudgedRow:
    entry = question_of(one, entries)
    if entry is None:
        return JudgedRow(one, None, unknown(one))
    verdict = judge_entry(entry, one.result, mode=mode, rules=rules)
    if verdict.error_type == CHECKER_ERROR:
        return JudgedRow(one, None, CRASH, entry)
    return JudgedRow(one, verdict, None, entry)


CRASH = "the official checker stops with an exception here"
"""Why a row with a question has no verdict."""


@alone
def write_scores(report: VerdictReport, out: Path) -> dict[Path, int]:
    """Write verdicts as BFCL's score files: a line with the accuracy, then the wrong answers.

    Keys and their order are those of ``bfcl evaluate``; the words about what is wrong are ours, and
    states of the services are left out.

    Args:
        report: the verdicts.
        out: the folder ``score``; each model gets a folder in it.

    Returns:
        The files and their numbers of judged answers.

    Raises:
        OutputExistsError: the folder has scores of a model already.
        InputError: a file cannot be written.
        StoreError: another run writes there.
    """
    for model in report.models():
        place = out / model_folder(model)
        if place.exists():
            raise OutputExistsError(f"{place} is there already; remove it, or choose another -o")
    found: dict[Path, list[JudgedRow]] = defaultdict(list)
    for one in report.judged:
        if one.verdict is not None:
            place = out / model_folder(one.answered.model) / group_of(one.answered.category)
            found[place / f"BFCL_v4_{one.answered.category}_score.json"].append(one)
    for file, judged in found.items():
        wrong = [one for one in judged if one.verdict is not None and not one.verdict.valid]
        right = len(judged) - len(wrong)
        head = {
            "accuracy": right / len(judged),
            "correct_count": right,
            "total_count": len(judged),
        }
        failures = [_failure(one, report.modes.get(one.answered.model, "fc")) for one in wrong]
        write_lines(file, [head, *failures])
    return {file: len(judged) for file, judged in found.items()}


def _failure(one: JudgedRow, mode: Mode) -> dict[str, Any]:
    """A wrong answer as a row of a score file."""
    answered = one.answered
    row: dict[str, Any] = {
        "id": answered.entry_id,
        "model_name": answered.model,
        "test_category": answered.category,
        "valid": False,
    }
    entry, verdict = one.entry, one.verdict
    if entry is None or verdict is None:
        return row
    if entry.multi_turn:
        found = _turns_failure(entry, answered, verdict, mode)
    elif is_relevance(entry.category):
        found = _relevance_failure(entry, answered, verdict, mode)
    else:
        found = _call_failure(entry, answered, verdict, mode)
    whole_row: dict[str, Any] = plain({**row, **found})
    return whole_row


def _call_failure(
    entry: BfclEntry, answered: Answered, verdict: CheckerVerdict, mode: Mode
) -> dict[str, Any]:
    row = {
        "error": [verdict.detail],
        "error_type": verdict.error_type,
        "prompt": _prompt(entry),
        "model_result_raw": answered.result,
    }
    if verdict.error_type != _UNDECODED:
        row["model_result_decoded"] = _decoded(entry, answered, mode)
    if verdict.error_type == _STRANGE:
        # The official program writes texts here, lest a value cannot be written.
        row["model_result_raw"] = str(row["model_result_raw"])
        row["model_result_decoded"] = str(row["model_result_decoded"])
    return {**row, "possible_answer": entry.answers}


def _relevance_failure(
    entry: BfclEntry, answered: Answered, verdict: CheckerVerdict, mode: Mode
) -> dict[str, Any]:
    return {
        "prompt": _prompt(entry),
        "model_result": answered.result,
        "decoded_result": _decoded(entry, answered, mode),
        "error": [verdict.detail],
        "error_type": verdict.error_type,
    }


def _turns_failure(
    entry: BfclEntry, answered: Answered, verdict: CheckerVerdict, mode: Mode
) -> dict[str, Any]:
    unread = verdict.error_type in _UNREAD
    row: dict[str, Any] = {
        "error": {
            "error_message": [verdict.detail] if unread else verdict.detail,
            "error_type": verdict.error_type,
        },
        "prompt": _prompt(entry),
    }
    if unread:
        row["model_result"] = answered.result
    else:
        row["model_result_raw"] = answered.result
        row["model_result_decoded"] = decoded_turns(answered.result, mode)
    row["possible_answer"] = entry.answers
    row["inference_log"] = answered.row.get("inference_log", "")
    return row


def _prompt(entry: BfclEntry) -> dict[str, Any]:
    """The question as in BFCL's files; of several turns without the functions, as they are long."""
    row: dict[str, Any] = {"id": entry.entry_id, "question": entry.question}
    if not entry.multi_turn:
        return {**row, "function": entry.functions}
    return {**row, "initial_config": entry.config, "involved_classes": entry.classes}


def _decoded(entry: BfclEntry, answered: Answered, mode: Mode) -> Any:
    try:
        return decode(answered.result, mode, language_of(entry.category))
    except DecodeError:
        return None


def plain(value: Any) -> Any:
    """A value as JSON has it; what JSON does not have is its text in Python."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if value is None or isinstance(value, str | int | float):
        return value
    return str(value)
