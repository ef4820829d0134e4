"""What a writer left behind: every filled column that the target format has no place for."""

from __future__ import annotations

import functools

from adp_schema import extra_column
from adp_schema.losses import Losses
from adp_schema.model import Row
from adp_schema.parts import Part

_REASONS = {
    "numbered anew by whoever reads the target": (
        *("seq", "trajectory_id", "step", "turn", "call", "order", "call_step", "pair_id"),
    ),
    "said by the place of a branch in its run; one that stands alone is reported as a whole": (
        *("parent_id", "parent_step", "branch_kind"),
    ),
    "where a call stands in a text; both are written": ("span_start", "span_end", "prose"),
    "how a value was found or spelled; the value itself is another column": (
        *("origin", "tools_origin", "arguments_kind"),
    ),
    "said of the whole data set by who converts it, and said again to convert the target": (
        *("dataset", "license"),
    ),
    "made from the bytes of a blob": ("media_id", "size"),
    "where the store has it from, and how": (
        *("source_format", "source_version", "source_file", "source_records", "source_offsets"),
        *("source_lengths", "source_hash", "converter", "converter_version", "losses"),
    ),
}

BOOKKEEPING = {column: reason for reason, columns in _REASONS.items() for column in columns}
"""Columns that describe the store, or repeat what others say -> why they are no losses."""

DEFAULTS = {
    **{"requestor": "agent", "visibility": "both", "is_copied_context": False, "synthetic": False},
    **{"timestamp_zone_known": True, "time_zone_known": True},
}
"""Values that say no more than a null in the same column."""

REASON = "the target format has no place for it"


RENUMBERED = "another call has this id, so a number is added to it"


def report_parts(parts: list[Part], path: str, losses: Losses, *joined: str) -> None:
    """Report what a message says beyond [reasoning, text, calls] in this order.

    Args:
        parts: its parts.
        path: where it is.
        losses: takes the reports.
        joined: kinds of parts of which the writer makes one.
    """
    ranks = [{"reasoning": 0, "tool_call": 2}.get(part.type, 1) for part in parts]
    if ranks != sorted(ranks):
        losses.add(f"{path}.content", "the order of reasoning, text and calls is not kept")
    for kind in joined:
        if sum(part.type == kind for part in parts) > 1:
            reason = f"several pieces of {kind} become one, joined by a blank line"
            losses.add(f"{path}.content", reason)


def report_columns(row: Row, carried: frozenset[str], path: str, losses: Losses) -> None:
    """Report each filled column of a row that a writer does not carry over.

    Args:
        row: a row of the store.
        carried: columns that the writer carries. Without ``extra`` in it each key of the
            source that ``extra`` keeps is reported.
        path: where the row is, such as ``$.steps[3]``.
        losses: takes the reports.
    """
    for name in _columns(type(row), carried):
        value = getattr(row, name)
        if value is None or DEFAULTS.get(name) == value:
            continue
        if name == "extra":
            for key in extra_column.unpack(value).fields:
                losses.add(f"{path}.extra.{key}", REASON)
        else:
            losses.add(f"{path}.{name}", REASON)


@functools.cache
def _columns(row_type: type[Row], carried: frozenset[str]) -> tuple[str, ...]:
    """The columns of a table that count as losses when they are filled."""
    return tuple(
        name
        for name, field in row_type.model_fields.items()
        if not field.exclude and name not in carried and name not in BOOKKEEPING
    )
