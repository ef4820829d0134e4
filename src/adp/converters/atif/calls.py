"""Writing the calls of a step, and results with the step of their call."""

from __future__ import annotations

from typing import Any

from adp.converters.atif import keys as k
from adp.converters.atif.extra_keys import adp_columns, write_beside
from adp.converters.atif.write_parts import AtifParts, Item
from adp.converters.call_ids import CallIds
from adp.converters.json_objects import arrange
from adp.converters.reading import BRACE, BRACKET
from adp.converters.writing import string
from adp_schema import jsontext, media
from adp_schema.extra_column import Extra, original
from adp_schema.model import Observation, ToolCall


class Calls:
    """Writes the calls and the results of one trajectory."""

    def __init__(self, atif_parts: AtifParts) -> None:
        self._parts_writer = atif_parts
        self._run = atif_parts.run
        self._losses = atif_parts.losses
        self.native = atif_parts.native
        self._ids = CallIds(self._run, self._losses, native=self.native)
        self._placed: dict[int, list[tuple[Observation, str]]] = {}
        self._place_results()

    def results(self, index: int) -> list[Item]:
        """The results that go with the step of this index."""
        return [self.result(row, path) for row, path in self._placed.get(index, [])]

    def call(self, call: ToolCall, path: str) -> Item:
        """A call; ``path`` is where it is in the trajectory."""
        extra = self._parts_writer.extra(call)
        known: Item = {"function_name": self._parts_writer.text(call, "name", extra)}
        known["tool_call_id"] = string(self._ids.of(call, extra, path))
        if known["function_name"] is None and not self.native:
            kind = "" if call.kind in (None, "function") else call.kind
            known["function_name"] = call.language or kind
            if not known["function_name"]:
                self._losses.add(f"{path}.name", "ATIF needs a name; an empty one is written")
        known["arguments"] = self._arguments(call, extra, path)
        adp = adp_columns(call, extra, {"kind": "function"}, self._run.media)
        child, adp_extra = self._parts_writer.split(extra)
        known["extra"] = write_beside(call, child, extra, adp, self._run.media)
        return arrange(known, adp_extra, extra.shape, k.CALL)

    def _arguments(self, call: ToolCall, extra: Extra, path: str) -> Any:
        text = original(call, "arguments", extra)
        loose = original(call, "arguments_raw", extra)
        if call.arguments_kind == "object" and text is None and loose is not None:
            if jsontext.is_nearly_valid(loose):
                return jsontext.raw(loose)
            self._losses.add(f"{path}.arguments_raw", "it is not JSON, and is written as a text")
            return {"arguments": jsontext.string(media.restore(loose, self._run.media))}
        written = loose if text is None else text
        blobs = self._run.media
        if call.kind == "code" and written is not None and (text is None or not _is_object(text)):
            return {"code": jsontext.string(media.restore(written, blobs))}
        if self.native:
            if text is not None and call.arguments_kind != "json_string":
                return jsontext.raw(text)
            return string(written)
        if text is not None and _is_object(text):
            return jsontext.raw(media.restore(text, blobs))
        if written is None:
            self._losses.add(f"{path}.arguments", "ATIF needs an object; an empty one is written")
            return None
        column = "arguments_raw" if text is None else "arguments"
        reason = "it is not a JSON object and is written under the key arguments"
        self._losses.add(f"{path}.{column}", reason)
        full = media.restore(written, blobs)
        return {"arguments": jsontext.string(full) if text is None else jsontext.raw(full)}

    def result(self, row: Observation, path: str) -> Item:
        """A result; ``path`` is where it is in the trajectory."""
        extra = self._parts_writer.extra(row)
        known: Item = {"source_call_id": string(self._ids.answered(row, extra, path))}
        known["content"], opaque = self._parts_writer.content(row, extra, path)
        child, adp_extra = self._parts_writer.split(extra)
        if row.subagent is not None:
            refs = jsontext.raw(original(row, "subagent", extra))
            listed = self.native or jsontext.first_byte(refs) == BRACKET
            known["subagent_trajectory_ref"] = refs if listed else [refs]
        if opaque:
            child = {**(child or {}), "opaque": opaque}
        extra_keys = self._parts_writer.extra_keys(row, extra)
        adp = adp_columns(
            row, extra, {"source": "environment"}, self._run.media, extra_keys=extra_keys
        )
        known["extra"] = write_beside(row, child, extra, adp, self._run.media)
        return arrange(known, adp_extra, extra.shape, k.RESULT)

    def _place_results(self) -> None:
        """Which results go with which step: a result belongs to the step of its call."""
        places = {step.step: index for index, step in enumerate(self._run.steps)}
        for index, step in enumerate(self._run.steps):
            for n, row in enumerate(step.observations):
                path, target = f"$.steps[{index}].observations[{n}]", index
                if not self.native and row.call_step is not None:
                    target = places.get(row.call_step, index)
                if target != index:
                    reason = "it is written with the step of its call, before later steps"
                    self._losses.add(path, reason)
                self._placed.setdefault(target, []).append((row, path))


def _is_object(text: str) -> bool:
    return jsontext.first_byte(text.strip().encode("utf-8")) == BRACE
