"""What a check is, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from adp.stores.checks.scope import Scope
from adp.stores.visible_text import visible

SEVERITIES = ("error", "warning", "note")
"""From the worst: *error* breaks a reader or makes a trajectory useless, *warning* would teach a
model something wrong, *note* is worth knowing."""

EXCERPT = 120
"""Characters of an excerpt."""

STEP_TEXTS = (("steps", "text"), ("steps", "reasoning"))
ALL_TEXTS = (*STEP_TEXTS, ("observations", "text"))


@dataclass(frozen=True)
class Finding:
    """One place where a check found something.

    Attributes:
        trajectory_id: trajectory that it is in; None for something about the store.
        step: step that it is in or after; None for the whole trajectory.
        path: where it is, such as ``$.steps[3].calls[0].arguments``.
        excerpt: what stands there, in one line, control characters made visible.
    """

    trajectory_id: str | None
    step: int | None
    path: str
    excerpt: str

    @classmethod
    def at(cls, row: dict[str, Any]) -> Finding:
        """A finding from a row with the columns of `SqlCheck`."""
        text = excerpt(row["excerpt"] or "")
        return cls(row["trajectory_id"], row["step"], row["path"], text)


@dataclass(frozen=True)
class SqlCheck:
    """A check that is one SELECT.

    Attributes:
        query: SELECT of seq, trajectory_id, step, place (a number that orders the findings of a
            step), path and excerpt; one row a finding.
        whole_store: run it on the whole store at once, because it compares trajectories.
    """

    query: str
    whole_store: bool = False


@dataclass(frozen=True)
class TextRule:
    """A check of texts by a condition.

    Attributes:
        where: SQL condition; ``{x}`` is the text.
        pattern: regular expression of Python for the place that the excerpt shows.
        columns: tables and columns that it looks at.
        source: source of the steps that it looks at; None for any.
    """

    where: str
    pattern: str
    columns: Sequence[tuple[str, str]] = ALL_TEXTS
    source: str | None = None


@dataclass(frozen=True)
class CallRule:
    """A check of calls.

    Attributes:
        find: takes the calls of one trajectory and its tools; yields call, part of the path
            below the call, and excerpt.
    """

    find: Callable[[Any, Any], Iterator[tuple[Any, str, str]]]


@dataclass(frozen=True)
class FunctionCheck:
    """A check that is a function.

    Attributes:
        find: yields the findings in a part of the store, in order.
        whole_store: call it once, with the whole store.
    """

    find: Callable[[Scope], Iterator[Finding]]
    whole_store: bool = False


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        id: its name.
        severity: one of `SEVERITIES`.
        what: what it finds, in a sentence or two.
        remedy: what to do about it.
        how: how it looks.
        on_damage: whether it is run on a store whose files cannot be read, too.
    """

    id: str
    severity: str
    what: str
    remedy: str
    how: SqlCheck | TextRule | CallRule | FunctionCheck
    on_damage: bool = False


@dataclass
class CheckCounts:
    """What a check found in a part of a store.

    Attributes:
        findings: number of findings.
        trajectories: number of trajectories with one.
        examples: the first findings.
    """

    findings: int = 0
    trajectories: int = 0
    examples: list[Finding] = field(default_factory=list)

    def add(self, other: CheckCounts, limit: int) -> None:
        """Add what was found in the next part; of the examples the first are kept."""
        self.findings += other.findings
        self.trajectories += other.trajectories
        self.examples = (self.examples + other.examples)[:limit]


@dataclass(kw_only=True)
class CheckResult(CheckCounts):
    """A check with what it found in a store."""

    check: Check

    def as_json(self) -> dict[str, Any]:
        """The result for programs."""
        return {
            "check": self.check.id,
            "severity": self.check.severity,
            "what": self.check.what,
            "mend": self.check.remedy,
            "findings": self.findings,
            "trajectories": self.trajectories,
            "examples": [asdict(example) for example in self.examples],
        }


def tally(findings: Iterable[Finding], limit: int) -> CheckCounts:
    """Count findings, and keep the first ones."""
    total = CheckCounts()
    ids: set[str] = set()
    for finding in findings:
        total.findings += 1
        if finding.trajectory_id is not None:
            ids.add(finding.trajectory_id)
        if len(total.examples) < limit:
            total.examples.append(finding)
    total.trajectories = len(ids)
    return total


def excerpt(text: str, start: int = 0) -> str:
    """A piece of a text in one line, control characters made visible.

    Args:
        text: the text.
        start: the place that matters; a few characters before it are shown too.
    """
    first = max(0, start - 40) if start > 60 else 0
    piece = text[first : first + 4 * EXCERPT]
    line = visible(" ".join(piece.split(" ")).replace("\n", "⏎").replace("\t", " "))
    line = ("…" if first else "") + " ".join(line.split())
    return line if len(line) <= EXCERPT else line[: EXCERPT - 1] + "…"
