"""Requests to models and their replies, in the four forms that providers have.

A request gives the prompt, a reply gives a turn of the model with its tokens. Gateways, log files
and traces wrap the same objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Raw

from adp.converters.exchanges.conversations import items_of
from adp.converters.kit.blocks import BlockReader
from adp.converters.kit.chat_messages import ChatMessages
from adp.converters.kit.drafts import StepDraft, TrajectoryDraft
from adp.converters.kit.gemini_contents import GeminiContents
from adp.converters.kit.key_tables import take_tools
from adp.converters.kit.responses_items import ResponseItems
from adp.converters.kit.session import word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.kit.token_columns import take_tokens
from adp.converters.kit.usage import ANTHROPIC, OPENAI, UsageKeys, set_usage, take_usage
from adp.converters.reading import BRACE, BRACKET, NULL, NUMBER, QUOTE, begins
from adp_schema import jsontext
from adp_schema.model import Columns

CHAT = UsageKeys(
    prompt=OPENAI.prompt,
    written=OPENAI.written,
    cached=(*OPENAI.cached, "input_token_details.cache_read", "cache_read_input_tokens",
            "prompt_cache_hit_tokens"),
    cache_write=(*OPENAI.cache_write, "input_token_details.cache_creation",
                 "prompt_tokens_details.cache_write_tokens", "cache_creation_input_tokens"),
    reasoning=(*OPENAI.reasoning, "output_token_details.reasoning", "reasoning_tokens"),
    cost=("cost", "total_cost"),
)  # fmt: skip
"""Usage of chat completions: of OpenAI, and what gateways and LangChain make of it."""
_LIMITS = frozenset({"length", "max_tokens", "max_output_tokens", "MAX_TOKENS"})


def reply_kind(values: Mapping[str, Raw]) -> str:
    """Which API a reply is of: chat, anthropic, responses or gemini; empty for none."""
    if _are_objects(values.get("choices")):
        return "chat"
    kind, form = word(values, "type"), word(values, "object")
    if kind == "message" and word(values, "role") == "assistant" and "content" in values:
        return "anthropic" if begins(values.get("content"), BRACKET) else ""
    if form == "response" and begins(values.get("output"), BRACKET):
        return "responses"
    if begins(values.get("candidates"), BRACKET) or (
        "promptFeedback" in values and "usageMetadata" in values
    ):
        return "gemini"
    return ""


def request_kind(values: Mapping[str, Raw]) -> str:
    """Which API a request is of, as `reply_kind`; ``messages`` alone are of chat."""
    if begins(values.get("messages"), BRACKET):
        return "anthropic" if is_anthropic(values) else "chat"
    if begins(values.get("contents"), BRACKET):
        return "gemini"
    if begins(values.get("input"), BRACKET) or begins(values.get("input"), QUOTE):
        return "responses" if "model" in values or "instructions" in values else ""
    return "chat" if "prompt" in values and "model" in values else ""


def is_anthropic(values: Mapping[str, Raw]) -> bool:
    """Whether messages are a request to Anthropic: by its tools, its system prompt, its blocks."""
    if "anthropic_version" in values or ("system" in values and "max_tokens" in values):
        return True
    for tool in _objects(values.get("tools")):
        if "input_schema" in tool:
            return True
    for message in _objects(values.get("messages"))[:40]:
        if any(word(block, "type") in _BLOCKS for block in _objects(message.get("content"))):
            return "tool_calls" not in message
    return False


_BLOCKS = frozenset({"tool_use", "tool_result", "server_tool_use", "redacted_thinking"})


def _are_objects(raw: Raw | None) -> bool:
    return begins(raw, BRACKET) and all(begins(item, BRACE) for item in items_of(raw))


def _objects(raw: Raw | None) -> list[dict[str, Raw]]:
    return [jsontext.decode_object(it) for it in items_of(raw) if begins(it, BRACE)]


class ModelApis:
    """Reads requests and replies into the trajectory of a block reader.

    Args:
        blocks: reads contents.
    """

    def __init__(self, blocks: BlockReader) -> None:
        self.blocks = blocks
        self.chat = ChatMessages(blocks)
        self.items = ResponseItems(blocks)
        self.contents = GeminiContents(blocks)

    @property
    def run(self) -> TrajectoryDraft:
        """The trajectory that is added to."""
        return self.blocks.run

    def request(self, source: SourceObject, kind: str, skip: int = 0) -> None:
        """Read a prompt; what is left of the request are its parameters.

        Args:
            source: the request.
            kind: its API, see `request_kind`.
            skip: number of messages or items at its beginning that the trajectory has.
        """
        take_tools(source, self.run.columns)
        if model := source.word("model"):
            # It stays in the request: the reply may be of another one.
            self.run.columns["agent_model"] = model
        if not skip:
            for key in ("system", "instructions", "systemInstruction", "system_instruction"):
                self._system(source, key)
        if kind == "responses":
            raw = _without_first(source.take("input"), skip)
            self.items.read(raw, f"{source.path}.input")
        elif kind == "gemini":
            self.contents.read(source.objects("contents")[skip:])
        elif "messages" in source:
            self._messages(source, skip)
        else:
            self._prompt(source)

    def _messages(self, source: SourceObject, skip: int) -> None:
        messages = source.objects("messages")
        self.chat.messages(messages[skip:])
        if not messages and source.first("messages") != BRACKET:
            self._prompt(source, "messages")

    def _prompt(self, source: SourceObject, key: str = "prompt") -> None:
        """A prompt that is a text, of the oldest API."""
        text = source.text(key)
        if text is not None:
            self.run.step("user").parts.text(self.blocks.builder.text(text))

    def _system(self, source: SourceObject, key: str) -> None:
        if source.first(key) == BRACE and "parts" in source.child(key):
            inner = source.child(key)
            step = self.run.step("system")
            self.blocks.content(inner.take("parts"), step, f"{inner.path}.parts")
            if inner.word("role") in ("user", "system"):
                inner.drop("role")
        elif bytes(source.values.get(key, b"")) == b"[]":
            source.drop(key)  # there is none
        elif source.first(key) in (QUOTE, BRACKET):
            self.chat.system(source.take(key), f"{source.path}.{key}")

    def reply(self, source: SourceObject, kind: str) -> StepDraft | None:
        """Read a reply as a turn of the model, and return its first step.

        Args:
            source: the reply.
            kind: its API, see `reply_kind`.
        """
        readers: dict[str, Callable[[SourceObject], StepDraft | None]] = {
            "chat": self._chat,
            "anthropic": self._anthropic,
            "responses": self._responses,
            "gemini": self.contents.reply,
        }
        step = readers[kind](source)
        if step is not None:
            self._after(step)
        return step

    def _after(self, step: StepDraft) -> None:
        """What a turn says about the run."""
        if step.columns.get("model") is not None:
            self.run.columns["agent_model"] = step.columns["model"]
        if step.columns.get("stop_reason") in _LIMITS:
            self.run.columns["truncated"] = True

    def _chat(self, source: SourceObject) -> StepDraft | None:
        """The first choice; each further one is a branch that begins at the same place."""
        columns: Columns = {"response_id": source.text("id"), "model": source.text("model")}
        created = source.integer_at("created")
        if created is not None and created > 0:
            take_time(source, columns, "created")
        take_usage(source, "usage", columns, CHAT)
        if "usage" not in columns:
            take_usage(source, "usage_metadata", columns, CHAT)
        take_tokens(source, columns)
        main, before = self.run, len(self.run.steps)
        first: StepDraft | None = None
        for choice in source.objects("choices"):
            if first is not None:
                self.blocks.run = main.branch(before, "alternate", agent_model=columns["model"])
            step = self._choice(choice)
            if first is None:
                first = step
            else:
                step.columns.update({"response_id": columns["response_id"],
                                     "model": columns["model"]})  # fmt: skip
        self.blocks.run = main
        if first is None:
            first = main.step("agent", "llm_turn")
        first.columns.update({key: it for key, it in columns.items() if it is not None})
        return first

    def _choice(self, choice: SourceObject) -> StepDraft:
        raw = choice.take("message") if choice.first("message") == BRACE else None
        step = self.chat.assistant(SourceObject(raw, f"{choice.path}.message", choice.losses))
        if raw is None and (text := choice.text("text")) is not None:
            step.parts.text(self.blocks.builder.text(text))
        reason = choice.text("finish_reason")
        if reason is None and choice.first("finish_reason") == BRACE:
            reason = choice.child("finish_reason").text("finish_reason")
        step.columns["stop_reason"] = reason
        take_tokens(choice, step.columns)
        content = SourceObject(choice.values.get("logprobs"), choice.path, choice.losses)
        numbers = [piece.number("logprob") for piece in content.objects("content")]
        if numbers and None not in numbers:
            step.columns["logprobs"] = numbers
        if choice.integer_at("index") == 0:
            choice.drop("index")
        step.extra.update(choice.rest())
        return step

    def _anthropic(self, source: SourceObject) -> StepDraft:
        columns: Columns = {"response_id": source.text("id"), "model": source.text("model")}
        columns["stop_reason"] = source.text("stop_reason")
        take_anthropic_usage(source, columns)
        edits = source.child("context_management")
        applied = edits.json("applied_edits") if edits.first("applied_edits") == BRACKET else None
        if applied not in (None, "[]"):
            edit = self.run.step("system", "context_edit", edit_boundary="truncate")
            edit.extra["applied_edits"] = jsontext.raw(applied or "")
        source.drop("type", "role")
        step = self.chat.assistant(source)
        step.columns.update(columns)
        return step

    def _responses(self, source: SourceObject) -> StepDraft | None:
        """The output of a response: mostly one turn, more when results stand in it."""
        if not self.run.steps:
            self._system(source, "instructions")
        take_tools(source, self.run.columns)
        columns: Columns = {"response_id": source.text("id"), "model": source.text("model")}
        if source.integer_at("created_at") != 0:
            take_time(source, columns, "created_at")
        self._state(source, columns)
        turns = self.items.read(source.take("output"), f"{source.path}.output", in_response=True)
        if not turns:
            turns = [self.run.step("agent", "llm_turn")]
        usage: Columns = {}
        take_usage(source, "usage", usage, OPENAI)
        if len(turns) == 1:
            columns |= usage
        elif usage:
            names = {"tokens_in": "total_tokens_in", "tokens_out": "total_tokens_out",
                     "tokens_cached": "total_tokens_cached", "usage": "final_metrics"}  # fmt: skip
            self.run.columns.update({names[k]: it for k, it in usage.items() if k in names})
        for turn in turns:
            turn.columns["model"] = columns["model"]
        turns[0].columns.update(columns)
        return turns[0]

    def _state(self, source: SourceObject, columns: Columns) -> None:
        """Whether it is whole, and what went wrong."""
        reason = source.child("incomplete_details").text("reason")
        columns["stop_reason"] = reason or source.text("status")
        effort = source.child("reasoning").text("effort")
        if effort is not None:
            columns["reasoning_effort"] = effort
        take_error(source, self.run.columns)
        previous = source.text("previous_response_id")
        if previous is not None:
            self.run.link("continuation", target_id=previous)
        talk = source.child("conversation")
        if self.run.columns.get("session_id") is None:
            self.run.columns["session_id"] = talk.text("id") or source.text("conversation")


def take_error(source: SourceObject, columns: Columns) -> None:
    """Fill the error of the run from ``error``, as providers write it.

    Args:
        source: the reply, or what holds it.
        columns: the row of the trajectory.
    """
    error = source.child("error")
    if error.first("error") == BRACE:
        error = error.child("error")
    kind = error.name("type", "code")
    message = error.text("message") if error else source.text("error")
    if kind is not None:
        columns["error_type"] = kind
    if message is not None:
        columns["error_message"] = message


def take_anthropic_usage(source: SourceObject, columns: Columns) -> None:
    """Fill the columns of tokens from ``usage``; compactions and advisors count, too.

    Args:
        source: the reply.
        columns: the row of its step.
    """
    record = SourceObject(source.values.get("usage"), source.path, source.losses)
    take_usage(source, "usage", columns, ANTHROPIC)
    iterations = record.objects("iterations")
    if not iterations:
        return
    sums: dict[str, Any] = {}
    for iteration in iterations:
        numbers: Columns = {}
        set_usage(iteration, numbers, ANTHROPIC)
        for name, value in numbers.items():
            sums[name] = sums.get(name, 0) + value
    columns.update(sums)
    columns["llm_call_count"] = len(iterations)


def _without_first(raw: Raw | None, count: int) -> Raw | None:
    """A list without its first items."""
    if raw is None or not count or jsontext.first_byte(raw) in (*NUMBER, NULL, QUOTE, BRACE):
        return raw
    return jsontext.raw(jsontext.text_of(jsontext.decode_array(raw)[count:]))
