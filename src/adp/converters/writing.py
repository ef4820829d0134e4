"""What writers share: the rows of a run in order, what is beside it, and what a row says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from adp.converters.unwritten_columns import REASON, report_columns
from adp_schema import jsontext
from adp_schema.extra_column import Extra, original, unpack
from adp_schema.losses import Losses
from adp_schema.model import Observation, Step, Trajectory
from adp_schema.parts import Part, resolve


def string(text: Any) -> Any:
    """A text as the encoder takes it; any other value as it is."""
    return jsontext.string(text) if isinstance(text, str) else text


def rows_of(run: Trajectory) -> Iterator[tuple[Step | Observation, str]]:
    """The steps and observations of a run in order, each with its path."""
    yield from observations_of(run.early_observations, "$.early_observations")
    for index, step in enumerate(run.steps):
        path = f"$.steps[{index}]"
        yield step, path
        yield from observations_of(step.observations, f"{path}.observations")


def is_seen(step: Step) -> bool:
    """Whether a step is a message that a model saw or wrote."""
    return step.kind not in ("event", "context_edit") and step.visibility not in ("user", "none")


def leave_out(step: Step, path: str, losses: Losses) -> None:
    """Report a step that no model saw, which is not written, with all that it says."""
    if step.kind in ("event", "context_edit"):
        losses.add(f"{path}.kind", f"a step of kind {step.kind}, which no model saw, is left out")
    else:
        losses.add(f"{path}.visibility", "a step that no model saw is left out")
    report_columns(step, frozenset({"kind", "visibility"}), path, losses)
    report_left_parts(step, path, losses)


def report_left_parts(row: Step | Observation, path: str, losses: Losses) -> None:
    """Report media and other parts of a row that is left out, and the calls of a step."""
    for index, part in enumerate(parts_of(row, row.text, unpack(row.extra))):
        if part.type in ("media", "opaque"):
            losses.add(f"{path}.content[{index}]", REASON)
    for index, call in enumerate(row.calls if isinstance(row, Step) else ()):
        place = f"{path}.calls[{index}]"
        losses.add(f"{place}.name", "the call is left out with its step")
        report_columns(call, frozenset({"name"}), place, losses)


def report_left_call(row: Observation, path: str, losses: Losses) -> None:
    """Report the id of a call that is left out, at a result that answers it."""
    for column in ("call_id", "native_call_id"):
        if getattr(row, column) is not None:
            losses.add(f"{path}.{column}", "the call that it answers is left out")


def observations_of(rows: list[Observation], path: str) -> Iterator[tuple[Observation, str]]:
    """Observations with their paths."""
    for index, row in enumerate(rows):
        yield row, f"{path}[{index}]"


def report_beside(run: Trajectory, losses: Losses) -> None:
    """Report the links and the task of a run, for formats that have no place for them."""
    for index, link in enumerate(run.links):
        report_columns(link, frozenset(), f"$.links[{index}]", losses)
    if run.task is not None:
        report_columns(run.task, frozenset(), "$.task", losses)


def add_losses(losses: Losses, path: str, within: Losses) -> None:
    """Add the losses of a branch, which stands at a path."""
    for item in within.items:
        losses.add(f"{path}{item['path'][1:]}", item["reason"])


def spoken_text(row: Step | Observation, extra: Extra) -> str | None:
    """The text of a row for a format that has calls beside it: without those that stand in it."""
    text: str | None = original(row, "text", extra)
    if isinstance(row, Step) and row.prose is not None and row.content is None:
        text = original(row, "prose", extra) or None
    return text


def parts_of(
    row: Step | Observation, text: str | None, extra: Extra, *, exact: bool = False
) -> list[Part]:
    """The parts of a row.

    Args:
        row: the row.
        text: its text.
        extra: its unpacked column ``extra``.
        exact: whether parts have the characters of the source.
    """
    reasoning = original(row, "reasoning", extra) if isinstance(row, Step) else None
    content = original(row, "content", extra) if exact else row.content
    return resolve(content, text, reasoning)


def write_string(value: Any, layout: Mapping[str, Any]) -> Any:
    """JSON inside a string, in a layout from `adp.converters.reading.string_layout`."""
    indent = {"compact": -1, "indented": 2}.get(str(layout.get("layout")), 0)
    text = jsontext.relayout(jsontext.encode(value), indent).decode("utf-8")
    return jsontext.string(jsontext.escape_non_ascii(text) if layout.get("ascii") else text)


def arrange(
    known: Mapping[str, Any], kept: Mapping[str, Any], names: Iterable[str] | None
) -> dict[str, Any]:
    """Put the keys of an object in the order of the source.

    Args:
        known: values that come from columns.
        kept: keys of the source that ``extra`` holds.
        names: keys of the source in order, when they are not the usual ones; one that has no
            value was null.
    """
    full = {**known, **kept}
    if names is None:
        return full
    ordered = {name: full.pop(name, None) for name in names}
    return {**ordered, **{name: value for name, value in full.items() if value is not None}}


def in_order(known: dict[str, Any], order: Iterable[str]) -> dict[str, Any]:
    """The keys of an object in an order; those that it does not name come last, as they are."""
    rank = {name: index for index, name in enumerate(order)}
    return dict(sorted(known.items(), key=lambda item: rank.get(item[0], len(rank))))
