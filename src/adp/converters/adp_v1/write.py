"""From trajectories to ADP v1 JSON.

A trajectory that was read from ADP v1 JSON is written in the version and the form that it came
in. From any other format it becomes version 1.5.0, and what that has no place for is reported.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from adp.converters.adp_v1.layout import arrange, write_number
from adp.converters.adp_v1.turn import AdpV1Turn
from adp.converters.adp_v1.write_parts import AdpV1Parts, Item
from adp.converters.unwritten_columns import REASON, report_columns
from adp.converters.writing import (
    is_seen,
    leave_out,
    report_beside,
    report_left_call,
    rows_of,
    string,
)
from adp_schema import extra_column, jsontext
from adp_schema.extra_column import Extra
from adp_schema.losses import Losses
from adp_schema.model import Observation, Step, ToolCall, Trajectory
from adp_schema.parts import JOINT, Part, resolve

VERSION = "1.5.0"

_TRAJECTORY = frozenset({"source_id"})
_WRITTEN_COLUMNS = frozenset({"source", "kind", "actor", "text", "content", "reward"})
_ACTED = frozenset({"source", "kind", "text", "reasoning", "content", "reward"})
_CALL = frozenset({"kind", "call_id", "name", "arguments", "arguments_raw", "native_id"})
_SEEN = frozenset({"source", "text", "content", "call_id", "native_call_id", "name", "reward"})
_PAGE = frozenset({"html", "axtree", "url", "viewport_width", "viewport_height"})
_BOXES = frozenset({"annotations"})


class AdpV1Writer:
    """Writes one trajectory.

    Args:
        trajectory: with its steps.
        losses: takes what has no place in the record.
    """

    def __init__(self, trajectory: Trajectory, losses: Losses) -> None:
        self._run = trajectory
        self._losses = losses
        self._parts_writer = AdpV1Parts(trajectory, losses)
        self._carried = frozenset({"extra"} if self._parts_writer.keeps else ())
        self._left_out: set[tuple[int | None, int | None]] = set()

    def record(self) -> Item:
        """The record."""
        run, losses, parts_writer = self._run, self._losses, self._parts_writer
        report_columns(run, _TRAJECTORY | self._carried, "$", losses)
        report_beside(run, losses)
        for row, path in rows_of(run):
            if isinstance(row, Step) and not parts_writer.keeps and not is_seen(row):
                self._left_out.update((call.step, call.call) for call in row.calls)
                leave_out(row, path, losses)
            elif isinstance(row, Step):
                self._step(row, path)
            else:
                self._observation(row, path)
        extra = parts_writer.extra(run)
        source_id = parts_writer.text(run, "source_id", extra)
        version: str | Raw | None = VERSION
        if parts_writer.native:
            declared = run.source_version != "1" or extra.shape.get("declared")
            version = parts_writer.text(run, "source_version", extra) if declared else None
        values: Item = {
            "schema_version": version,
            "id": (run.trajectory_id or "") if source_id is None else source_id,
            "content": parts_writer.items,
            "details": None if parts_writer.native or "details" in extra.fields else {},
        }
        out = arrange("trajectory", values, extra)
        if "details" in out and out["details"] is None:
            out["details"] = {}
        return out

    # ---- steps -----------------------------------------------------------------------------

    def _step(self, step: Step, path: str) -> None:
        parts_writer = self._parts_writer
        extra = parts_writer.extra(step)
        if step.kind in ("context_edit", "event"):
            self._losses.add(f"{path}.kind", f"a step of kind {step.kind} becomes a message")
        plain_message = not step.calls and (step.kind == "message" or step.reasoning is None)
        copied = step.is_copied_context and plain_message
        if step.source == "agent" and not copied:
            report_columns(step, _ACTED | self._carried, path, self._losses)
            self._acted(step, extra, path)
            return
        written_columns = (
            _WRITTEN_COLUMNS | {"is_copied_context"} if step.source == "agent" else _WRITTEN_COLUMNS
        )
        report_columns(step, written_columns | self._carried, path, self._losses)
        values: Item = {"source": step.source, "name": parts_writer.text(step, "actor", extra)}
        if step.source == "system":
            if step.actor is not None:
                self._losses.add(f"{path}.actor", REASON)
            values = {"source": "environment", "name": "system"}
            if not parts_writer.keeps:
                self._losses.add(path, "a system step becomes an observation named system")
        values["reward"] = parts_writer.reward(step, extra)
        self._stated(step, values, extra, path)
        for j, call in enumerate(step.calls):
            self._call(call, {}, Extra(), f"{path}.calls[{j}]")

    def _acted(self, step: Step, extra: Extra, path: str) -> None:
        """Add what the agent said and did."""
        parts_writer = self._parts_writer
        thought = extra.shape.get("thought") or (
            "description" if parts_writer.keeps else "reasoning_content"
        )
        values: Item = {"reward": parts_writer.reward(step, extra)}
        parts = [part for _, part in parts_writer.parts(step, extra, path)]
        if parts and thought != "both":
            AdpV1Turn(parts_writer, self._call).write(step, parts, (values, extra), path)
            return
        # Calls that stand in the text are written as actions.
        spoken = "text" if step.prose is None else "prose"
        text, reasoning = (
            parts_writer.text(step, spoken, extra),
            parts_writer.text(step, "reasoning", extra),
        )
        if step.calls:
            text = None if step.prose == "" else text
            values |= {"description": text, "reasoning_content": reasoning}
            for j, call in enumerate(step.calls):
                self._call(call, values, extra, f"{path}.calls[{j}]")
                values, extra = {}, Extra()
            return
        values |= {"content": "" if text is None else text, "description": None}
        if thought == "both":
            words = [part.text for part in parts if part.type == "reasoning"]
            values["description"] = parts_writer.string(words[0]) if words else None
            values["reasoning_content"] = (
                parts_writer.string(JOINT.join(words[1:])) if words[1:] else None
            )
        else:
            values[thought] = reasoning
        parts_writer.put("message_action", values, extra)

    def _call(self, call: ToolCall, values: Item, extra: Extra, path: str) -> None:
        """Add an action; ``values`` and ``extra`` are those of its step."""
        parts_writer = self._parts_writer
        call_extra = parts_writer.extra(call)
        name = parts_writer.text(call, "name", call_extra)
        values = {
            "description": None,
            **values,
            "tool_call_id": string(parts_writer.ids.of(call, call_extra, path)),
        }
        carried = _CALL | self._carried
        if call.kind == "code":
            language = parts_writer.text(call, "language", call_extra)
            # What was read from this format has the language as its name, so an edit of the
            # name is an edit of the language.
            first, second = (name, language) if parts_writer.native else (language, name)
            if None not in (first, second) and first != second:
                self._losses.add(f"{path}.{'language' if parts_writer.native else 'name'}", REASON)
            column = "arguments" if call.arguments_raw is None else "arguments_raw"
            code = parts_writer.text(call, column, call_extra)
            values["language"] = first if first is not None else second or "text"
            values["content"] = "" if code is None else code
            parts_writer.put("code_action", values, extra)
            carried |= {"language"}
        else:
            if call.kind not in (None, "function"):
                self._losses.add(f"{path}.kind", f"a call of kind {call.kind} becomes api_action")
            values["function"] = "" if name is None else name
            values["kwargs"] = parts_writer.kwargs(call, call_extra, path)
            parts_writer.put("api_action", values, extra)
        report_columns(call, carried, path, self._losses)

    # ---- texts, images and pages -----------------------------------------------------------

    def _stated(self, row: Step | Observation, values: Item, extra: Extra, path: str) -> None:
        """Add texts and images; the first one carries the values and the ``extra`` of the row.

        Args:
            row: a step that is no action, or an observation.
            values: source and name, and what only the first item has.
            extra: the row's ``extra``.
            path: where the row is.
        """
        parts_writer = self._parts_writer
        items: list[tuple[str, Item]] = []
        for _, part in parts_writer.parts(row, extra, path):
            if part.type == "media":
                image = {
                    "content": parts_writer.image(part, extra),
                    "annotations": _boxes(row, part, extra),
                }
                items.append(("image_observation", image))
            elif part.type == "text":
                items.append(("text_observation", {"content": parts_writer.string(part.text)}))
        texts = sum(name == "text_observation" for name, _ in items)
        if not items or (row.text and not texts):
            text = parts_writer.text(row, "text", extra)
            items.append(("text_observation", {"content": "" if text is None else text}))
            texts += 1
        if values["name"] is not None and not texts:
            column = "actor" if isinstance(row, Step) else "name"
            self._losses.add(f"{path}.{column}", "an image has no name")
        if len(items) > 1 and not parts_writer.native:
            self._losses.add(f"{path}.content", "each of its parts becomes an item by itself")
        answered = values.get("tool_call_id")
        for name, item in items:
            item["source"] = values["source"]
            if name == "text_observation":
                item["name"] = values["name"]
            item |= {key: values.pop(key, None) for key in ("tool_call_id", "reward")}
            if not parts_writer.native:
                item["tool_call_id"] = answered
            parts_writer.put(name, item, extra)
            extra = Extra()

    def _observation(self, row: Observation, path: str) -> None:
        parts_writer = self._parts_writer
        extra = parts_writer.extra(row)
        values: Item = {
            "source": row.source or "environment",
            "name": parts_writer.text(row, "name", extra),
            "tool_call_id": self._answered(row, extra, path),
            "reward": parts_writer.reward(row, extra),
        }
        carried = _SEEN | self._carried
        if any(part.type == "media" for part in resolve(row.content, row.text)):
            carried |= _BOXES
        if "class" in extra.shape or any(getattr(row, column) is not None for column in _PAGE):
            report_columns(row, carried | _PAGE | _BOXES, path, self._losses)
            self._page(row, values, extra, path)
        else:
            report_columns(row, carried, path, self._losses)
            self._stated(row, values, extra, path)

    def _answered(self, row: Observation, extra: Extra, path: str) -> str | Raw | None:
        """The id of the call that a result answers; None where that is left out."""
        if row.call_step is None or (row.call_step, row.call) not in self._left_out:
            return self._parts_writer.answered_id(row, extra, path)
        report_left_call(row, path, self._losses)
        return None

    def _page(self, row: Observation, values: Item, extra: Extra, path: str) -> None:
        """Add a web observation; what it has no key for follows as a text or an image."""
        parts_writer = self._parts_writer
        parts = parts_writer.parts(row, extra, path)
        images = [part for _, part in parts if part.type == "media"]
        fields = dict(extra.fields)
        nested = Extra(shape=extra.shape.get("image") or {})
        if "image_observation" in fields:
            nested.fields = jsontext.decode_exact(fields.pop("image_observation"))
        image: Item | None = None
        if images:
            image = {
                "class_": "image_observation",
                "content": parts_writer.image(images[0], nested),
                "annotations": _boxes(row, images[0], extra),
                "source": nested.shape.get("source", "environment"),
            }
            if "class_" not in nested.shape.get("keys", ("class_",)):
                del image["class_"]
            image |= dict.fromkeys(nested.shape.get("null", ()))
            image = arrange("image_observation", image, nested)
        page: Item = {
            column: parts_writer.text(row, column, extra) for column in ("html", "axtree", "url")
        }
        page |= {"image_observation": image, "viewport_size": self._viewport(row, extra, path)}
        page |= {key: values[key] for key in ("tool_call_id", "reward")}
        parts_writer.put("web_observation", page, Extra(fields=fields, shape=extra.shape))
        speaker = {"source": values["source"], "name": values["name"]}
        if not parts_writer.native:
            speaker["tool_call_id"] = values["tool_call_id"]
            if row.text or images[1:]:
                self._losses.add(f"{path}.content", "each of its parts becomes an item by itself")
        if row.text:
            item = {**speaker, "content": parts_writer.text(row, "text", extra)}
            parts_writer.put("text_observation", item, Extra())
        elif values["name"] is not None:
            self._losses.add(f"{path}.name", "a web observation has no name")
        for part in images[1:]:
            item = {"content": parts_writer.image(part, extra), **speaker, "annotations": None}
            del item["name"]
            parts_writer.put("image_observation", item, Extra())

    def _viewport(self, row: Observation, extra: Extra, path: str) -> list[Any] | None:
        exact = extra.shape.get("exact", {})
        sizes: list[Any] = []
        for key in ("width", "height"):
            value = getattr(row, f"viewport_{key}")
            if value is not None and key not in exact and value.is_integer():
                value = int(value)
            sizes.append(write_number(value, exact.get(key)))
        if None in sizes:
            for key, size in zip(("width", "height"), sizes, strict=True):
                if size is not None:
                    self._losses.add(f"{path}.viewport_{key}", "the other size is missing")
            return None
        return sizes


def _boxes(row: Step | Observation, part: Part, extra: Extra) -> Raw | None:
    """The labelled boxes of an image, as the source wrote them."""
    if isinstance(row, Observation) and row.annotations is not None:
        return jsontext.raw(extra_column.original(row, "annotations", extra))
    return extra.fields.get("annotations", part.extra.get("annotations"))
