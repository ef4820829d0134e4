"""The items of a Codex conversation (those of the Responses API), as steps, calls and results."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

from adp.converters.kit.blocks import BlockReader, call_columns
from adp.converters.kit.drafts import ObservationDraft, StepDraft, TrajectoryDraft, append_extra
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.readers.codex.executions import Executions
from adp.converters.readers.codex.history import History
from adp.converters.readers.codex.outputs import read_output
from adp.converters.readers.codex.repeated_items import RepeatedItems, reasoning_texts
from adp.converters.readers.codex.subagents import link_spawned
from adp.converters.readers.codex.turns import ModelTurns, rest_of
from adp.converters.reading import NULL

_INJECTED = re.compile(r"\s*<[a-z][a-z_ -]*>|# AGENTS\.md instructions")
"""How messages begin that Codex writes in the name of the user."""


class Items:
    """Reads items into the run.

    Attributes:
        turn_id: the user's turn at hand, which most items repeat.
        confirmed: places of messages that an event shows to be the user's own.
        doubtful: messages that look as if Codex wrote them, by their places.
    """

    METHODS: ClassVar[dict[str, str]] = {
        "message": "message",
        "reasoning": "reasoning",
        "agent_message": "agent_message",
        **dict.fromkeys(
            ("function_call", "custom_tool_call", "tool_call", "tool_search_call"), "call"
        ),
        **dict.fromkeys(
            ("local_shell_call", "web_search_call", "image_generation_call"), "hosted_call"
        ),
        **dict.fromkeys(
            ("function_call_output", "custom_tool_call_output", "tool_search_output",
             "local_shell_call_output", "mcp_tool_call_output", "tool_result"), "output",
        ),
    }  # fmt: skip
    KEPT: ClassVar[frozenset[str]] = frozenset(
        {"ghost_snapshot", "compaction", "compaction_summary", "context_compaction",
         "compaction_trigger", "other", "trae_extra_info", "additional_tools"}
    )  # fmt: skip

    def __init__(
        self,
        run: TrajectoryDraft,
        blocks: BlockReader,
        turns: ModelTurns,
        executions: Executions,
        repeated: RepeatedItems,
        history: History,
    ) -> None:
        self.run, self.blocks, self.turns = run, blocks, turns
        self.executions, self.repeated, self.history = executions, repeated, history
        self.turn_id = ""
        self.confirmed: set[int] = set()
        self.doubtful: dict[int, StepDraft] = {}

    def read(self, line: SourceObject, item: SourceObject, place: int) -> bool:
        """Read the item of a line; False when it is of a kind that is kept as it is."""
        kind = item.word("type") or ("message" if "role" in item else "")
        name = self.METHODS.get(kind)
        if name is None:
            if kind not in self.KEPT:
                self.blocks.losses.unknown(f"item {kind or 'without a type'}")
            return False
        key = self.history.key(item) if self.history.wanted else None
        for holder in ("internal_chat_message_metadata_passthrough", "metadata"):
            if holder not in item.values:
                continue
            inner = item.child(holder)
            if self.turn_id and inner.word("turn_id") == self.turn_id:
                inner.drop("turn_id")
        method: Callable[..., Any] = getattr(self, name)
        step, observation = method(line, item, place)
        if key is not None:
            self.history.put(key, step, observation)
        self.repeated.put(place, step)
        return True

    def _agent(self, line: SourceObject) -> StepDraft:
        """The step of the model that an item belongs to; the first item gives it its time."""
        step = self.turns.item()
        if "timestamp" not in step.columns:
            take_time(line, step.columns, "timestamp")
        return step

    def _add_rest(self, step: StepDraft, rest: dict[str, Any]) -> None:
        """Keep what is left of an item of a step that has several."""
        if rest or "items" in step.extra:
            append_extra(step.extra, "items", rest)

    def message(self, line: SourceObject, item: SourceObject, place: int) -> tuple[StepDraft, None]:
        """A message of the user, of the model, or of Codex itself."""
        role = item.word("role")
        if item.word("type"):
            item.drop("type")
        if role == "assistant":
            step = self._agent(line)
            item.drop("role")
            self.blocks.content(item.take("content"), step, item.path)
            self._add_rest(step, rest_of(line))
            return step, None
        self.turns.end()
        source = "system" if role in ("developer", "system") else "user"
        step = self.run.step(source, native_id=item.name("id"))
        passed = item.child("internal_chat_message_metadata_passthrough")
        kinds = passed.words("content_item_kinds")
        if role in ("user", "system"):
            item.drop("role")
        take_time(line, step.columns, "timestamp")
        self.blocks.content(item.take("content"), step, item.path)
        if role == "user":
            self._judge(step, kinds, place)
        step.extra = rest_of(line)
        return step, None

    def _judge(self, step: StepDraft, kinds: list[str], place: int) -> None:
        """Mark a message that Codex wrote in the name of the user."""
        if kinds and kinds != ["unknown"]:
            if not any(kind.startswith("user.") for kind in kinds):
                step.columns["synthetic"] = True
        elif _INJECTED.match(step.parts.columns().get("text", "")):
            self.doubtful[place] = step

    def finish(self) -> None:
        """Mark the doubtful messages that no event shows to be the user's own."""
        for place, step in self.doubtful.items():
            if place not in self.confirmed:
                step.columns["synthetic"] = True

    def agent_message(
        self, line: SourceObject, item: SourceObject, place: int
    ) -> tuple[StepDraft, None]:
        """A message from one agent to another."""
        self.turns.end()
        step = self.run.step("user", native_id=item.name("id"), actor=item.text("author"))
        take_time(line, step.columns, "timestamp")
        self.blocks.content(item.take("content"), step, item.path)
        step.extra = rest_of(line)
        return step, None

    def reasoning(
        self, line: SourceObject, item: SourceObject, place: int
    ) -> tuple[StepDraft, None]:
        """Reasoning: a summary, sometimes the words, often only what is encrypted."""
        step = self._agent(line)
        item.drop("type")
        for key in ("summary", "content"):
            texts = [self.blocks.builder.text(text) for text in reasoning_texts(item, key)]
            for text in texts:
                step.parts.reasoning(text)
        rest = {"type": "reasoning", **rest_of(line)}
        self._add_rest(step, rest)
        return step, None

    def call(self, line: SourceObject, item: SourceObject, place: int) -> tuple[StepDraft, None]:
        """A call of a function, or of a tool that takes any text."""
        kind = item.word("type")
        inner = item.child("function") if "function" in item else None
        name = item.text("name") or (inner.text("name") if inner else None)
        if kind == "tool_search_call":
            name = name or "tool_search"
        keys = ("input", "arguments") if kind == "custom_tool_call" else ("arguments", "input")
        raw = next((item.take(key) for key in keys if item.first(key) not in (0, NULL)), None)
        if raw is None and inner:
            raw = inner.take("arguments")
        columns = call_columns(name, item.name("call_id"), raw)
        if kind == "custom_tool_call" and columns.get("arguments_kind") == "invalid":
            columns["arguments_kind"] = "text"
        if name is not None and name.startswith("mcp__"):
            columns["kind"] = "mcp"
        columns["status"] = item.text("status")
        if kind in ("function_call", "tool_call"):
            item.drop("type")
        step = self._agent(line)
        self.executions.add(step, columns, rest_of(line))
        return step, None

    def hosted_call(
        self, line: SourceObject, item: SourceObject, place: int
    ) -> tuple[StepDraft, None]:
        """A call of a tool that the provider, or Codex, carries out by itself."""
        name = item.word("type").removesuffix("_call")
        call_id = item.name("call_id") or item.name("id")
        columns = call_columns(name, call_id, item.take("action"))
        columns["status"] = item.text("status")
        step = self._agent(line)
        picture = item.word("result")
        known = self.executions.add(step, columns, {})
        if picture:
            draft = self.run.observe({}, answers=call_id, by_order=True)
            raw = item.values.pop("result")
            known.observation, known.result = draft, bytes(raw)
            if not self.blocks.blob(picture, None, draft.parts, {}):
                draft.parts.text(picture)
        known.draft.extra = rest_of(line)
        return step, None

    def output(
        self, line: SourceObject, item: SourceObject, place: int
    ) -> tuple[StepDraft, ObservationDraft]:
        """The result of a call."""
        kind = item.word("type")
        if not self.run.steps:
            self.run.step("environment", "event", visibility="none")
        call_id = item.name("call_id")
        draft = self.run.observe({}, answers=call_id, by_order=True)
        draft.columns["name"] = item.text("name")
        take_time(line, draft.columns, "timestamp")
        raw = item.take("output" if "output" in item else "result")
        read_output(self.blocks, raw, draft, item)
        if kind == "tool_search_output":
            draft.columns["structured"] = item.json("tools")
        if kind.endswith("_call_output") or kind == "tool_result":
            item.drop("type")
        draft.extra = rest_of(line)
        self.turns.result()
        known = self.executions.of(call_id)
        if known is not None and known.observation is None:
            known.observation = draft
            link_spawned(self.run, known, draft)
        return self.run.steps[-1], draft
