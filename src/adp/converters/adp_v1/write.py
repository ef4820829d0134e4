"""From trajectories to ADP v1 JSON.

A trajectory that was read from ADP v1 JSON is written in the version and the form that it came
in. From any other format it becomes version 1.5.0, and what that has no place for is reported.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from adp.converters.adp_v1 import images
from adp.converters.adp_v1.layout import arrange, write_number
from adp.converters.unwritten import REASON, report_columns
from adp_schema import jsontext, media, shape
from adp_schema.model import Observation, Row, Step, ToolCall, Trajectory
from adp_schema.parts import JOINT, Part, resolve
from adp_schema.protocols import Losses
from adp_schema.shape import Extra

VERSION = "1.5.0"

_TRAJECTORY = frozenset({"source_id"})
_SAID = frozenset({"source", "kind", "actor", "text", "content", "reward"})
_ACTED = frozenset({"source", "kind", "text", "reasoning", "content", "reward"})
_CALL = frozenset({"call_id", "name", "arguments", "arguments_raw"})
_TEXT = frozenset({"source", "text", "content", "call_id", "native_call_id", "name", "reward"})
_PAGE = frozenset({"html", "axtree", "url", "viewport_width", "viewport_height"})
_BOXES = frozenset({"annotations"})
_OWN = frozenset({"extra", "native_id"})

Item = dict[str, Any]


class Writer:
    """Writes one trajectory.

    Args:
        trajectory: with its steps.
        losses: takes what has no place in the record.
    """

    def __init__(self, trajectory: Trajectory, losses: Losses) -> None:
        self._trajectory = trajectory
        self._losses = losses
        self._own = trajectory.source_format == "adp_v1"
        self._carried = _OWN if self._own else frozenset()
        self._items: list[Item] = []
        self._ids = {} if self._own else _call_ids(trajectory)

    def record(self) -> Item:
        """The record."""
        run = self._trajectory
        report_columns(run, _TRAJECTORY | self._carried, "$", self._losses)
        for index, link in enumerate(run.links):
            report_columns(link, frozenset(), f"$.links[{index}]", self._losses)
        if run.task is not None:
            report_columns(run.task, frozenset({"task_id"}), "$.task", self._losses)
        for k, early in enumerate(run.early_observations):
            self._observation(early, f"$.early_observations[{k}]")
        for index, step in enumerate(run.steps):
            path = f"$.steps[{index}]"
            self._step(step, path)
            for k, observation in enumerate(step.observations):
                self._observation(observation, f"{path}.observations[{k}]")
        extra = self._extra(run)
        values: Item = {
            "schema_version": VERSION,
            "id": run.source_id if run.source_id is not None else run.trajectory_id or "",
            "content": self._items,
            "details": None if self._own else {},
        }
        if self._own:
            values["id"] = jsontext.string(shape.original(run, "source_id", extra) or "")
            undeclared = run.source_version == "1" and not extra.shape.get("declared")
            values["schema_version"] = None if undeclared else self._text(
                run, "source_version", extra
            )
        else:
            values["id"] = jsontext.string(values["id"])
        out = arrange("trajectory", values, extra)
        if "details" in out and out["details"] is None:
            out["details"] = {}
        return out

    # ---- values ----------------------------------------------------------------------------

    def _extra(self, row: Row) -> Extra:
        """The row's ``extra``; of other formats only what restores characters."""
        text: str | None = getattr(row, "extra", None)
        extra = shape.unpack(text)
        return extra if self._own else Extra(escaped=extra.escaped)

    def _put(self, name: str, values: Item, extra: Extra) -> None:
        """Add an object of a class, in the form of the source."""
        self._items.append(arrange(name, {"class_": name, **values}, extra))

    def _text(self, row: Row, column: str, extra: Extra) -> Any:
        """A column as the source wrote it; None when it is null."""
        value = shape.original(row, column, extra)
        return None if value is None else self._string(value)

    def _string(self, text: str) -> str | Raw:
        return jsontext.string(media.restore(text, self._trajectory.media))

    def _parts(self, row: Step | Observation, extra: Extra) -> list[Part]:
        """The parts of a row, with the characters of the source."""
        reasoning = shape.original(row, "reasoning", extra) if isinstance(row, Step) else None
        return resolve(row.content, shape.original(row, "text", extra), reasoning)

    def _image(self, part: Part, extra: Extra) -> Any:
        """What stands for an image in the record."""
        blob = self._trajectory.media.get(part.media_id or "")
        if blob is None:
            return ""
        reference = images.reference(blob, {k: _plain(v) for k, v in part.extra.items()})
        if "content" in extra.fields and blob.data is None:
            written = jsontext.sanitise(bytes(extra.fields["content"])).decode("utf-8")
            if jsontext.decode_value(jsontext.mend_text(written)[0]) == reference:
                return extra.fields["content"]
        return jsontext.string(reference)

    def _reward(self, row: Step | Observation, extra: Extra) -> Any:
        return write_number(row.reward, extra.shape.get("exact", {}).get("reward"))

    # ---- steps -----------------------------------------------------------------------------

    def _step(self, step: Step, path: str) -> None:
        extra = self._extra(step)
        if step.kind in ("context_edit", "event"):
            self._losses.add(f"{path}.kind", f"a step of kind {step.kind} is written as a message")
        copied = step.kind == "message" and step.is_copied_context
        if step.source == "agent" and not (copied and not step.calls):
            report_columns(step, _ACTED | self._carried, path, self._losses)
            self._acted(step, extra, path)
            return
        report_columns(step, _SAID | self._carried, path, self._losses)
        source, name = step.source or "user", self._text(step, "actor", extra)
        if source == "system":
            source = "environment"
            if step.actor not in (None, "system"):
                self._losses.add(f"{path}.actor", REASON)
            name = "system"
            if not self._own:
                self._losses.add(path, "a system step is written as an observation named system")
        values = {"source": source, "name": name, "reward": self._reward(step, extra)}
        self._said(step, values, extra, path)
        for j, call in enumerate(step.calls):
            self._call(call, {}, Extra(), f"{path}.calls[{j}]")

    def _said(self, row: Step | Observation, values: Item, extra: Extra, path: str) -> None:
        """Add texts and images; the first one carries the values and the ``extra`` of the row."""
        texts_and_images: list[tuple[str, Any, Any]] = []
        for n, part in enumerate(self._parts(row, extra)):
            if part.type == "media":
                boxes = extra.fields.get("annotations") if isinstance(row, Step) else None
                if isinstance(row, Observation) and row.annotations is not None:
                    boxes = jsontext.raw(shape.original(row, "annotations", extra))
                image = ("image_observation", self._image(part, extra), boxes)
                texts_and_images.append(image)
                self._part_extra(part, frozenset({"mime", "bare"}), f"{path}.content[{n}]")
            elif part.type == "text":
                texts_and_images.append(("text_observation", self._string(part.text), None))
                self._part_extra(part, frozenset(), f"{path}.content[{n}]")
            elif part.type == "opaque":
                self._losses.add(f"{path}.content[{n}]", REASON)
        if row.content is None or (row.text and not any(t[0][0] == "t" for t in texts_and_images)):
            text = self._text(row, "text", extra)
            texts_and_images.append(("text_observation", "" if text is None else text, None))
        named = False
        for n, (class_name, content, boxes) in enumerate(texts_and_images):
            item = {"content": content, "source": values["source"]}
            if class_name == "image_observation":
                item["annotations"] = boxes
            else:
                item["name"] = values["name"]
                named = True
            if n == 0:
                item |= {key: values.get(key) for key in ("tool_call_id", "reward")}
            self._put(class_name, item, extra if n == 0 else Extra())
        if values["name"] is not None and not named:
            column = "actor" if isinstance(row, Step) else "name"
            self._losses.add(f"{path}.{column}", "an image has no name")

    def _part_extra(self, part: Part, known: frozenset[str], path: str) -> None:
        for key in part.extra.keys() - known:
            self._losses.add(f"{path}.extra.{key}", REASON)

    def _acted(self, step: Step, extra: Extra, path: str) -> None:
        """Add what the agent said and did, in its order."""
        thought = extra.shape.get("thought") or ("" if self._own else "reasoning_content")
        values: Item = {"reward": self._reward(step, extra)}
        if step.content is not None and thought != "both":
            self._interleaved(step, values, extra, path)
            return
        text, reasoning = self._text(step, "text", extra), self._text(step, "reasoning", extra)
        for j, call in enumerate(step.calls):
            values["description"] = text if j == 0 else None
            values["reasoning_content"] = reasoning if j == 0 else None
            self._call(call, values if j == 0 else {}, extra if j == 0 else Extra(), path, j)
        if not step.calls:
            values["content"] = "" if text is None else text
            if thought == "both":
                first, *rest = [p.text for p in self._parts(step, extra) if p.type == "reasoning"]
                values["description"] = self._string(first)
                reasoning = self._string(JOINT.join(rest)) if rest else None
                thought = "reasoning_content"
            else:
                values["description"] = None
            values[thought or "description"] = reasoning
            self._put("message_action", values, extra)
