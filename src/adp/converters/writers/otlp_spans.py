"""Spans of one trace while they are written: their ids, and times that keep their order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from adp.converters.writers.otlp_values import attribute_list
from adp.converters.writing import string
from adp_schema.ids import digest
from adp_schema.losses import Losses
from adp_schema.model import Observation, Step, Trajectory

INTERNAL, CLIENT = 1, 3
"""Kinds of spans."""
ERROR = 2
"""Code of a status."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class WrittenSpans:
    """The spans of a trajectory: one around all others, which follow each other below it.

    Args:
        run: the trajectory. Where it knows no time, no span has one.
        losses: takes times that the order of the spans does not allow.
    """

    def __init__(self, run: Trajectory, losses: Losses) -> None:
        self._run = run
        self._losses = losses
        self._mark = digest((run.trajectory_id or "").encode("utf-8", "surrogatepass"))
        self._spans: list[dict[str, Any]] = []
        self._clock = _nanoseconds(run.started_at)
        times = (_nanoseconds(row.timestamp) for row in self._rows())
        self._first = self._clock
        if self._first is None:
            self._first = next((time for time in times if time is not None), None)

    def _rows(self) -> Iterator[Step | Observation]:
        for step in self._run.steps:
            yield step
            yield from step.observations

    def add(
        self,
        title: str,
        kind: int,
        attributes: Mapping[str, Any],
        row: Step | Observation,
        path: str,
    ) -> dict[str, Any]:
        """Add a span.

        Args:
            title: its name.
            kind: its kind.
            attributes: plain values; those that are None are left out.
            row: has its time. Without one it gets that of the span before it.
            path: where the row is.
        """
        span = self._span(len(self._spans) + 2, title, kind, attributes)
        span["parentSpanId"] = self._id(1)
        self._spans.append(span)
        if self._first is None:
            if row.duration_ms is not None:
                self._losses.add(f"{path}.duration_ms", "the trace has no times")
            return span
        wanted = _nanoseconds(row.timestamp)
        start = self._first if wanted is None else wanted
        if self._clock is not None:
            start = max(start, self._clock + 1)  # equal times would leave the order open
        if wanted is not None and start // 1000 != wanted // 1000:
            self._losses.add(f"{path}.timestamp", "spans stand in the order of time")
        self._clock = start
        end = start + round((row.duration_ms or 0) * 1e6)
        span |= {"startTimeUnixNano": str(start), "endTimeUnixNano": str(end)}
        return span

    def _id(self, number: int) -> str:
        return f"{self._mark[:8]}{number:08x}"

    def _span(
        self, number: int, title: str, kind: int, attributes: Mapping[str, Any]
    ) -> dict[str, Any]:
        known = {key: value for key, value in attributes.items() if value is not None}
        return {
            "traceId": self._mark[:32],
            "spanId": self._id(number),
            "name": string(title),
            "kind": kind,
            "attributes": attribute_list(known),
        }

    def whole(
        self, title: str, attributes: Mapping[str, Any], scores: Mapping[str, float]
    ) -> list[dict[str, Any]]:
        """All spans, in one that stands for the run, with its error and its scores.

        Args:
            title: name of the outer span.
            attributes: its attributes.
            scores: results of evaluations.
        """
        run = self._run
        root = self._span(1, title, INTERNAL, attributes)
        if scores:
            root["events"] = [_score(name, value) for name, value in scores.items()]
        if run.error_type is not None or run.error_message is not None:
            root["status"] = {"code": ERROR}
            if run.error_message is not None:
                root["status"]["message"] = string(run.error_message)
        wanted = _nanoseconds(run.ended_at)
        if self._first is None:
            if wanted is not None:
                self._losses.add("$.ended_at", "the trace has no times")
            return [root, *self._spans]
        start = min([self._first, *(int(it["startTimeUnixNano"]) for it in self._spans)])
        end = max([start, *(int(it["endTimeUnixNano"]) for it in self._spans), wanted or start])
        if wanted is not None and end // 1000 != wanted // 1000:
            self._losses.add("$.ended_at", "the last span ends later")
        root |= {"startTimeUnixNano": str(start), "endTimeUnixNano": str(end)}
        return [root, *self._spans]


def _nanoseconds(time: datetime | None) -> int | None:
    if time is None:
        return None
    zoned = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    past = zoned - _EPOCH
    return ((past.days * 86400 + past.seconds) * 1_000_000 + past.microseconds) * 1000


def _score(name: str, value: float) -> dict[str, Any]:
    """The result of an evaluation, as the event of a span."""
    attributes = {"gen_ai.evaluation.name": string(name), "gen_ai.evaluation.score.value": value}
    return {"name": "gen_ai.evaluation.result", "attributes": attribute_list(attributes)}
