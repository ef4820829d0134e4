"""What a conversion could not carry over, by path and reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Losses:
    """What a conversion could not carry over, by path and reason.

    ``items`` holds those of the trajectory at hand, ``counts`` those of the whole run with
    list indices replaced by ``*``.
    """

    items: list[dict[str, str]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, path: str, reason: str) -> None:
        """Report a loss.

        Args:
            path: where it is in the source or the store, such as ``$.content[2].html``.
            reason: what is lost and why, in a few words.
        """
        self.items.append({"path": path, "reason": reason})

    def take(self) -> list[dict[str, str]]:
        """Count the losses at hand, and return and forget them."""
        items, self.items = self.items, []
        for item in items:
            self.counts[f"{general_path(item['path'])}: {item['reason']}"] += 1
        return items


def general_path(path: str) -> str:
    """A JSON path with its list indices replaced by ``*``."""
    out = []
    for piece in path.split("["):
        index, bracket, rest = piece.partition("]")
        out.append(f"*]{rest}" if bracket and index.isdigit() else piece)
    return "[".join(out)
