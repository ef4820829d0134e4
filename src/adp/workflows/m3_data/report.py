"""What became of the samples of a run, counted by file and by reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from adp.workflows.m3_data.raw import LeftOutError


@dataclass
class M3DataReport:
    """Counts of the samples of a run: total = kept + left out.

    Attributes:
        total: file -> its samples.
        kept: file -> those that are in the store.
        left_out: reason -> samples that are not.
        lines: file, record, sample_id, reason, path and state of each of these.
        answer_lengths: file -> items of a turn's raw answer -> turns; 1 for what is no list.
        turns: turns of a sample -> samples.
        hops: hops of a turn -> turns.
        with_retrieval: samples with a call that retrieves documents.
        truncated: turns whose answer names a part of the raw answer only.
        costs: what the model was asked, in words.
        tokens_in: tokens of the questions of this run.
        tokens_out: tokens of the answers.
        cost_usd: what they cost; None where nobody says.
    """

    total: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    lines: list[dict[str, Any]] = field(default_factory=list)
    answer_lengths: dict[str, Counter[int]] = field(default_factory=dict)
    turns: Counter[int] = field(default_factory=Counter)
    hops: Counter[int] = field(default_factory=Counter)
    with_retrieval: int = 0
    truncated: int = 0
    costs: str | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None

    def keep(self, file: str, record: dict[str, Any], lengths: list[int]) -> None:
        """Count a sample that is kept.

        Args:
            file: its file.
            record: its ground truth.
            lengths: items of the raw answer of each turn.
        """
        self.kept[file] += 1
        self.answer_lengths.setdefault(file, Counter()).update(lengths)
        self.turns[len(record["trajectory"])] += 1
        self.hops.update(sum("output" in item for item in turn) for turn in record["trajectory"])
        self.with_retrieval += any(
            item.get("agent") == "rag_agent" for turn in record["trajectory"] for item in turn
        )
        self.truncated += sum(
            turn.get("was_raw_answer_truncated") is True for turn in record.get("turns", [])
        )

    def leave_out(self, file: str, number: int, sample: Any, error: LeftOutError) -> None:
        """Count a sample that is not kept, and note why."""
        self.left_out[error.reason] += 1
        sample_id = sample.get("sample_id") if isinstance(sample, dict) else None
        line = {
            "file": file,
            "record": number,
            "sample_id": sample_id,
            "state": "dropped" if error.dropped else "error",
            "reason": error.reason,
            "path": error.path,
        }
        if error.text is not None:
            line["text"] = error.text
        self.lines.append(line)

    def plain(self) -> dict[str, Any]:
        """The statistics, as JSON; the first five have M3's names."""
        lengths = sum(self.answer_lengths.values(), Counter[int]())
        plain: dict[str, Any] = {
            "num_domains": len(self.total),
            "total_samples": self.total.total(),
            "train_samples": self.kept.total(),
            "total_samples_per_domain": dict(sorted(self.total.items())),
            "train_samples_per_domain": {name: self.kept[name] for name in sorted(self.total)},
            "left_out": dict(sorted(self.left_out.items())),
            "with_retrieval": self.with_retrieval,
            "turns_per_sample": _sorted(self.turns),
            "hops_per_turn": _sorted(self.hops),
            "answer_lengths": _sorted(lengths),
            "answer_lengths_per_domain": {
                name: _sorted(counts) for name, counts in sorted(self.answer_lengths.items())
            },
        }
        return plain


def _sorted(counts: Counter[int]) -> dict[str, int]:
    return {str(length): count for length, count in sorted(counts.items())}
