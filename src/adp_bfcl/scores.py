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
        result: dict[str, list[bool]] = defaultdict(list)
        for item in self.judged:
            if item.answered.model == model and item.verdict is not None:
                result[item.answered.category].append(item.verdict.valid)
        return {name: sum(values) / len(values) for name, values in result.items()}

    def counts(self, model: str) -> dict[str, int]:
        """Number of judged answers by category."""
        result: dict[str, int] = defaultdict(int)
        for item in self.judged:
            if item.answered.model == model and item.verdict is not None:
                result[item.answered.category] += 1
        return dict(result)

    def unjudged(self, model: str) -> dict[str, int]:
        """Number of answers without a verdict, by category."""
        without = [item for item in self.judged if item.verdict is None]
        return dict(
            Counter(item.answered.category for item in without if item.answered.model == model)
        )

    def categories(self, model: str) -> list[str]:
        """Categories of which there are answers, in BFCL's order."""
        categories = {
            item.answered.category for item in self.judged if item.answered.model == model
        }
        order = {name: number for number, name in enumerate(SUPPORTED)}
        return sorted(categories, key=lambda name: (order.get(name, len(order)), name))

    @property
    def rows(self) -> int:
        """Number of rows in the files."""
        return len(self.judged) + len(self.rejected)

    @property
    def judged_rows(self) -> int:
        """Number of rows with a verdict."""
        return sum(item.verdict is not None for item in self.judged)

    @property
    def left_out(self) -> dict[str, int]:
        """Why rows have no verdict, and how many."""
        reasons = Counter(
            f"unjudged: {item.reason}" for item in self.judged if item.verdict is None
        )
        return {**reasons, **({"rejected": len(self.rejected)} if self.rejected else {})}

    def plain(self) -> dict[str, Any]:
        """All counts and figures as JSON."""
        return {
            "rows": self.rows,
            "judged": self.judged_rows,
            "left_out": self.left_out,
            "models": {model: self._plain(model) for model in self.models()},
            "unjudged": [
                {"model": item.answered.model, "id": item.answered.entry_id, "reason": item.reason}
                for item in self.judged
                if item.verdict is None
            ],
            "rejected": [str(item) for item in self.rejected],
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
        return sorted({item.answered.model for item in self.judged})

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
    for item in sorted(answered, key=lambda result: (result.model, order_of(result.entry_id))):
        report.judged.append(_judged(item, entries, report.modes[item.model], rules))
    return report


def _judged(
    value: Answered, entries: Mapping[str, BfclEntry], mode: Mode, rules: Rules
) -> JudgedRow:
    entry = question_of(value, entries)
    if entry is None:
        return JudgedRow(value, None, unknown(value))
    verdict = judge_entry(entry, value.result, mode=mode, rules=rules)
    if verdict.error_type == CHECKER_ERROR:
        return JudgedRow(value, None, CRASH, entry)
    return JudgedRow(value, verdict, None, entry)


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
    result: dict[Path, list[JudgedRow]] = defaultdict(list)
    for item in report.judged:
        if item.verdict is not None:
            place = out / model_folder(item.answered.model) / group_of(item.answered.category)
            result[place / f"BFCL_v4_{item.answered.category}_score.json"].append(item)
    for file, judged in result.items():
        wrong = [entry for entry in judged if entry.verdict is not None and not entry.verdict.valid]
        right = len(judged) - len(wrong)
        head = {
            "accuracy": right / len(judged),
            "correct_count": right,
            "total_count": len(judged),
        }
        failures = [
            _failure(entry, report.modes.get(entry.answered.model, "fc")) for entry in wrong
        ]
        write_lines(file, [head, *failures])
    return {file: len(judged) for file, judged in result.items()}


def _failure(judged_row: JudgedRow, mode: Mode) -> dict[str, Any]:
    """A wrong answer as a row of a score file."""
    answered = judged_row.answered
    row: dict[str, Any] = {
        "id": answered.entry_id,
        "model_name": answered.model,
        "test_category": answered.category,
        "valid": False,
    }
    entry, verdict = judged_row.entry, judged_row.verdict
    if entry is None or verdict is None:
        return row
    if entry.multi_turn:
        failure = _turns_failure(entry, answered, verdict, mode)
    elif is_relevance(entry.category):
        failure = _relevance_failure(entry, answered, verdict, mode)
    else:
        failure = _call_failure(entry, answered, verdict, mode)
    score_row: dict[str, Any] = plain({**row, **failure})
    return score_row


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
