"""The parts of a sample of Inspect AI: which agent, tool or scorer an event belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_INSIDE = frozenset({"agent", "tool", "handoff", "subtask"})


@dataclass
class SamplePart:
    """A part of a sample: a solver, an agent, a tool, a scorer."""

    parent: str
    kind: str
    name: str


class SpanTree:
    """The spans of a sample, and the steps that logs had before them.

    Attributes:
        spans: by their ids.
    """

    def __init__(self) -> None:
        self.spans: dict[str, SamplePart] = {}
        self._stack: list[str] = []

    @property
    def current(self) -> str:
        """The step that events without a span are in."""
        return self._stack[-1] if self._stack else ""

    def begin(self, name: str, parent: str, kind: str, title: str) -> None:
        """Note a span."""
        self.spans.setdefault(name, SamplePart(parent or self.current, kind, title))

    def enter(self, kind: str, title: str) -> None:
        """Go into a step."""
        name = f"step-{len(self.spans)}"
        self.spans[name] = SamplePart(self.current, kind, title)
        self._stack.append(name)

    def leave(self) -> None:
        """Leave the step."""
        if self._stack:
            self._stack.pop()

    def owner(self, name: str) -> str:
        """The span that a trajectory of its own belongs to; empty for the main one."""
        for at, span in self._path(name):
            if span.kind in ("scorer", "branch"):
                return at
            inside = any(it.kind in _INSIDE for _, it in self._path(span.parent))
            if span.kind in ("agent", "subtask") and inside:
                return at
        return ""

    def _path(self, name: str) -> Iterator[tuple[str, SamplePart]]:
        seen: set[str] = set()
        while name not in seen and (span := self.spans.get(name)) is not None:
            yield name, span
            seen.add(name)
            name = span.parent
