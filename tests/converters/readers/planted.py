"""Calls that tests plant in made-up logs, and whether each is found exactly once."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import adp

_CALLS = """
    SELECT c.arguments AS text, s.is_copied_context AS copied
    FROM tool_calls c LEFT JOIN steps s ON s.seq = c.seq AND s.step = c.step"""
_RESULTS = """
    SELECT o.text AS text, s.is_copied_context AS copied
    FROM observations o LEFT JOIN steps s ON s.seq = o.seq AND s.step = o.step"""


class Planter:
    """Makes up calls with arguments and results that occur nowhere else.

    Attributes:
        planted: the words of the calls so far.
        tokens: written tokens of the turns so far.
    """

    def __init__(self) -> None:
        self.planted: list[str] = []
        self.tokens = 0

    def word(self) -> str:
        """The word of a new call."""
        self.planted.append(f"planted_{len(self.planted)}_")
        return self.planted[-1]

    def check(self, folder: Path, out: Path, copies: int = 0) -> Any:
        """Convert a folder: each call and each result is there once, and all tokens are.

        Args:
            folder: the logs.
            out: folder of the store.
            copies: calls that stand in the logs a second time, and are marked.
        """
        store = adp.convert(str(folder), str(out), workers=1)
        counts = store.manifest.counts
        assert counts.used == counts.records > 0
        for sql in (_CALLS, _RESULTS):
            rows = store.query(sql).to_pylist()
            words = Counter(
                word for row in rows if not row["copied"]
                for word in re.findall(r"planted_\d+_", row["text"] or "")
            )  # fmt: skip
            assert words == Counter(self.planted), sql
            assert sum(bool(row["copied"]) for row in rows) == copies, sql
        (row,) = store.query("SELECT sum(tokens_out) AS total FROM steps").to_pylist()
        assert (row["total"] or 0) == self.tokens
        (row,) = store.query(
            "SELECT count(*) AS lonely FROM observations WHERE call IS NULL"
        ).to_pylist()
        assert row["lonely"] == 0
        return store


def links_of(store: Any) -> set[tuple[str, str, str]]:
    """Each link that leads to a trajectory: from, kind, to."""
    rows = store.query(
        "SELECT t.source_id AS origin, l.kind AS kind, x.source_id AS target FROM links l"
        " JOIN all_trajectories t ON t.seq = l.seq JOIN all_trajectories x"
        " ON x.source_id = l.target_id"
    ).to_pylist()
    return {(row["origin"], row["kind"], row["target"]) for row in rows}


def write_lines(path: Path, lines: list[dict[str, Any]]) -> None:
    """Write a log."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
