"""A turn of the agent whose texts, images and calls come in an order of their own."""

from __future__ import annotations

from collections.abc import Callable

from adp.converters.adp_v1.write_parts import AdpV1Parts, Item
from adp_schema import extra_column
from adp_schema.extra_column import Extra
from adp_schema.model import Step, ToolCall
from adp_schema.parts import JOINT, Part

CallWriter = Callable[[ToolCall, Item, Extra, str], None]


class AdpV1Turn:
    """Writes one step by its parts; a text belongs to the call after it.

    Args:
        parts_writer: takes the items.
        call: adds the action of a call, with the values and the ``extra`` of its step.
    """

    def __init__(self, parts_writer: AdpV1Parts, call: CallWriter) -> None:
        self._parts_writer = parts_writer
        self._call = call
        self._words: dict[str, list[str]] = {"text": [], "reasoning": []}
        self._head: list[tuple[Item, Extra]] = []
        self._path = ""

    def write(self, step: Step, parts: list[Part], head: tuple[Item, Extra], path: str) -> None:
        """Add the items of a step.

        Args:
            step: the step.
            parts: its parts with their words.
            head: what only its first item carries: values, and the ``extra`` of the step.
            path: where the step is.
        """
        self._head = [head]
        self._path = path
        kinds = {part.type for part in parts}
        for column, words in self._words.items():
            # An edit may have added words to a step that had no part for them.
            if column not in kinds and getattr(step, column):
                words.append(extra_column.original(step, column, extra_column.unpack(step.extra)))
        waiting = {call.call: (j, call) for j, call in enumerate(step.calls)}
        for part in parts:
            if part.type in self._words:
                self._words[part.type].append(part.text)
            elif part.type == "tool_call" and part.call in waiting:
                j, call = waiting.pop(part.call)
                self._call(call, *self._take(), f"{path}.calls[{j}]")
            elif part.type == "media":
                self._image(part)
        for j, call in waiting.values():
            self._call(call, *self._take(), f"{path}.calls[{j}]")
        if self._head or any(self._words.values()):
            self._speak()

    def _first(self) -> tuple[Item, Extra]:
        return self._head.pop() if self._head else ({}, Extra())

    def _take(self) -> tuple[Item, Extra]:
        """The values of the next action: the words that wait for it."""
        values, extra = self._first()
        keys = {"text": "description", "reasoning": "reasoning_content"}
        for column, words in self._words.items():
            if len(words) > 1 and not self._parts_writer.native:
                reason = f"several pieces of {column} become one, joined by a blank line"
                self._parts_writer.losses.add(f"{self._path}.content", reason)
            values = {
                **values,
                keys[column]: self._parts_writer.string(JOINT.join(words)) if words else None,
            }
            words.clear()
        return values, extra

    def _speak(self) -> None:
        """Add a message of the words that wait."""
        values, extra = self._take()
        description = values["description"]
        values |= {"content": "" if description is None else description, "description": None}
        self._parts_writer.put("message_action", values, extra)

    def _image(self, part: Part) -> None:
        if any(self._words.values()):
            self._speak()
        values, extra = self._first()
        image = {
            "content": self._parts_writer.image(part, extra),
            "annotations": part.extra.get("annotations"),
            "source": "agent",
        }
        self._parts_writer.put("image_observation", {**values, **image}, extra)
