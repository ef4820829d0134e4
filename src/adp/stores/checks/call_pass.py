"""One pass over the calls of a store for all checks that look into arguments and tools."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any

import msgspec

from adp.stores.checks.model import CallRule, CheckCounts, Finding, excerpt
from adp.stores.checks.scope import Scope
from adp.stores.checks.tool_schema import ArgumentSchemas, read_tools

_COLUMNS = (
    *("seq", "trajectory_id", "step", "call", "kind", "name"),
    *("arguments", "arguments_raw", "arguments_kind"),
)
_decode = msgspec.json.Decoder().decode
INVALID = object()
"""Value of arguments that are no JSON."""


@dataclass
class CheckedCall:
    """One call, with its arguments decoded when they are asked for."""

    seq: int
    trajectory_id: str
    step: int
    call: int
    kind: str | None
    name: str | None
    arguments: str | None
    arguments_raw: str | None
    arguments_kind: str | None

    @cached_property
    def value(self) -> Any:
        """The arguments; `INVALID` when there are none that are JSON."""
        if self.arguments is None:
            return INVALID
        try:
            return _decode(self.arguments)
        except (msgspec.DecodeError, RecursionError):
            return INVALID

    @property
    def fields(self) -> dict[str, Any]:
        """The arguments by name; empty when they are no object."""
        return self.value if isinstance(self.value, dict) else {}


def run(
    rules: Mapping[str, CallRule], scope: Scope, limit: int
) -> Iterator[tuple[str, CheckCounts]]:
    """Give the calls of each trajectory to each rule.

    Args:
        rules: the rules by name.
        scope: where to look.
        limit: how many examples to keep.
    """
    results = {name: CheckCounts() for name in rules}
    offers = _Offers(scope)
    every = itertools.starmap(CheckedCall, scope.rows("tool_calls", _COLUMNS))
    for seq, group in itertools.groupby(every, key=attrgetter("seq")):
        calls = list(group)
        tools = offers.of(seq)
        for name, rule in rules.items():
            total, before = results[name], results[name].findings
            for call, part, text in rule.find(calls, tools):
                total.findings += 1
                if len(total.examples) < limit:
                    path = f"$.steps[{call.step}].calls[{call.call}]{part}"
                    place = Finding(call.trajectory_id, call.step, path, excerpt(text))
                    total.examples.append(place)
            total.trajectories += total.findings > before
    yield from results.items()


class _Offers:
    """The tools of trajectories, read side by side with the calls, which have the same order."""

    def __init__(self, scope: Scope) -> None:
        self._rows = scope.rows("trajectories", ("seq", "tools"))
        self._seq, self._tools = -1, ""

    def of(self, seq: int) -> ArgumentSchemas | None:
        """Tools of a trajectory; None when it lists none."""
        while self._seq < seq and (row := next(self._rows, None)) is not None:
            self._seq, self._tools = row[0], row[1] or ""
        return read_tools(self._tools) if self._seq == seq and self._tools else None
