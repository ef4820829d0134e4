"""What was rendered: counts, and the files."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adp.rendering.options import RenderOptions
from adp_schema.errors import UsageError

MANIFEST = "render.json"

NO_END = "steps that train no end of turn"
"""The note that counts them: a model that is trained on them may not learn to stop."""


def check_ends(notes: Counter[str], options: RenderOptions) -> None:
    """Refuse to train on steps that do not teach the model to stop, unless that is allowed.

    Args:
        notes: of the rows to train on.
        options: how they were rendered.

    Raises:
        UsageError: there are such steps; says what to do.
    """
    count = notes[NO_END]
    if count and options.end_of_turn == "require":
        raise UsageError(
            f"{count:,} {NO_END}: after them the chat template writes no token at which generation "
            "stops, so the model may not learn to stop; use a template that ends turns with such a "
            "token, or train nevertheless: end_of_turn=allow (of adp train: render.end_of_turn)"
        )


@dataclass
class RenderReport:
    """What was rendered.

    Attributes:
        folder: where it is.
        trajectories: trajectories that were looked at.
        rows: rows written.
        tokens: their tokens.
        trained_tokens: tokens under the loss.
        longest: tokens of the longest row.
        fractional: whether a weight is neither 0 nor 1.
        steps: steps that have a weight in the store.
        trained: steps that are trained in a row.
        lost: reason -> number of the other ones.
        notes: what was written differently, or drifts -> how often.
        branches: branches that were left out.
        tokenizer: hash of the tokenizer.
        template: hash of the chat template and of what it was given.
        store: hash of the store's manifest.
        key: names the content: store, tokenizer, template, options and versions.
        parts: its files of rows, with their bytes.
        cached: whether it was there already.
    """

    folder: str = ""
    trajectories: int = 0
    rows: int = 0
    tokens: int = 0
    trained_tokens: int = 0
    longest: int = 0
    fractional: bool = False
    steps: int = 0
    trained: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    branches: int = 0
    tokenizer: str = ""
    template: str = ""
    store: str = ""
    key: str = ""
    parts: dict[str, int] = field(default_factory=dict)
    cached: bool = False

    def files(self) -> list[Path]:
        """The files of rows, in order."""
        return [Path(self.folder, "rows", name) for name in sorted(self.parts)]

    def whole(self) -> bool:
        """Whether all files are there, as they were written."""
        sizes = (path.stat().st_size if path.is_file() else -1 for path in self.files())
        return bool(self.parts) and list(sizes) == [self.parts[name] for name in sorted(self.parts)]

    def take(self, facts: dict[str, Any]) -> None:
        """Add the counts of a job."""
        self.longest = max(self.longest, facts.pop("longest"))
        self.fractional = self.fractional or facts.pop("fractional")
        self.lost += Counter(facts.pop("lost"))
        self.notes += Counter(facts.pop("notes"))
        for name, value in facts.items():
            setattr(self, name, getattr(self, name) + value)


def read_report(folder: Path) -> RenderReport | None:
    """The report of what a folder holds; None when that is not finished, or damaged."""
    try:
        plain = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        plain.pop("made_from")
        plain |= {"folder": str(folder), "lost": Counter(plain["lost"])}
        return RenderReport(**{**plain, "notes": Counter(plain["notes"])})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
