"""What a conversion could not carry over, by path and reason; and what it kept unread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field


@dataclass
class Losses:
    """What a conversion could not carry over, by path and reason.

    ``items`` holds those of the trajectory at hand, ``counts`` those of the whole run with
    list indices replaced by ``*``. ``unknown_items`` and ``unknown_counts`` are the same for kinds
    of records, blocks and items that a reader has never seen: they are kept, but not understood.
    """

    items: list[dict[str, str]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    unknown_items: list[str] = field(default_factory=list)
    unknown_counts: Counter[str] = field(default_factory=Counter)

    def add(self, path: str, reason: str) -> None:
        """Report a loss.

        Args:
            path: where it is in the source or the store, such as ``$.content[2].html``.
            reason: what is lost and why, in a few words.
        """
        self.items.append({"path": path, "reason": reason})

    def drop(self, paths: Collection[str]) -> None:
        """Take back losses of the trajectory at hand: what was at these paths is kept after all."""
        self.items = [item for item in self.items if item["path"] not in paths]

    def unknown(self, kind: str) -> None:
        """Count something that is kept as the source wrote it, because nobody knows its kind.

        Args:
            kind: what it is, such as ``record type x``; the same words each time.
        """
        self.unknown_items.append(kind)

    def take(self, origin: str = "") -> list[dict[str, str]]:
        """Count the losses at hand, and return and forget them.

        Args:
            origin: format and version that unknown kinds are counted by.
        """
        items, self.items = self.items, []
        for item in items:
            self.counts[f"{general_path(item['path'])}: {item['reason']}"] += 1
        if self.unknown_items:
            self.unknown_counts.update(f"{origin}: {kind}" for kind in self.unknown_items)
            self.unknown_items = []
        return items

    def forget(self) -> None:
        """Forget the losses at hand: their record is put aside or read again."""
        self.items.clear()
        self.unknown_items.clear()


def general_path(path: str) -> str:
    """A JSON path with its list indices replaced by ``*``."""
    out = []
    for piece in path.split("["):
        index, bracket, rest = piece.partition("]")
        out.append(f"*]{rest}" if bracket and index.isdigit() else piece)
    return "[".join(out)
