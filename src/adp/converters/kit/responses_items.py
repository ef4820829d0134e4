"""Items of the Responses API, by their ``type``, into steps, calls and observations.

Items of the model that follow each other are one turn, which a prompt or a result ends. Within a
response only results of the caller's own tools end it: those of tools that the server runs stay in
the turn. Codex, the Agents SDK and NeMo Gym write the same items.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from adp.converters.kit.blocks import BlockReader, call_columns
from adp.converters.kit.chat import SOURCES, free_text
from adp.converters.kit.drafts import (
    ObservationDraft,
    StepDraft,
    TrajectoryDraft,
    append_extra,
    merge_extra,
)
from adp.converters.kit.source_object import SourceObject, one_line
from adp.converters.kit.times import take_time
from adp.converters.kit.token_columns import take_tokens
from adp.converters.reading import BRACE, BRACKET, NULL, QUOTE
from adp_schema import jsontext
from adp_schema.model import Columns

CALLS = {
    "function_call": "function",
    "custom_tool_call": "function",
    "mcp_call": "mcp",
    "mcp_approval_request": "mcp",
    "computer_call": "gui",
    "code_interpreter_call": "code",
    "program": "code",
    **dict.fromkeys(
        ("web_search_call", "file_search_call", "image_generation_call", "local_shell_call",
         "shell_call", "apply_patch_call", "tool_search_call"),
        "function",
    ),
}  # fmt: skip
"""Type of an item that is a call -> kind of the call."""
RESULTS = frozenset(
    {"function_call_output", "custom_tool_call_output", "computer_call_output",
     "local_shell_call_output", "shell_call_output", "apply_patch_call_output",
     "tool_search_output", "program_output", "mcp_approval_response", "function_call_result",
     "hosted_tool_call_output"}
)  # fmt: skip
"""Types of items that answer a call."""
_OF_SERVER = frozenset({"shell_call_output", "tool_search_output", "program_output"})
"""Results after which a response may go on, because the server ran the tool."""
_ARGUMENTS = ("arguments", "input", "action", "actions", "operation", "code")
_OUTPUTS = ("output", "outputs", "results", "result", "error")
_EVENTS = frozenset({"item_reference"})


class ResponseItems:
    """Reads items into the trajectory of a block reader.

    Args:
        blocks: reads the content of messages and results.

    Attributes:
        in_response: whether the items are the output of one response.
    """

    def __init__(self, blocks: BlockReader) -> None:
        self.blocks = blocks
        self.in_response = False
        self._turn: StepDraft | None = None

    @property
    def run(self) -> TrajectoryDraft:
        """The trajectory that is added to."""
        return self.blocks.run

    def read(self, raw: Raw | None, path: str, *, in_response: bool = False) -> list[StepDraft]:
        """Add a list of items, or a prompt that is a string.

        Args:
            raw: the value of ``input`` or ``output``.
            path: where it is.
            in_response: whether they are the output of one response.

        Returns:
            The model's turns among them.
        """
        self.end_turn()
        self.in_response = in_response
        before = len(self.run.steps)
        first = NULL if raw is None else jsontext.first_byte(raw)
        if raw is not None and first == BRACKET:
            for number, item in enumerate(jsontext.decode_array(raw)):
                self._any(item, f"{path}[{number}]")
        elif raw is not None and first != NULL:
            self._any(raw, path)
        self.end_turn()
        self.in_response = False
        return [step for step in self.run.steps[before:] if step.columns["source"] == "agent"]

    def _any(self, item: Raw, path: str) -> None:
        if jsontext.first_byte(item) == BRACE:
            self.item(SourceObject(item, path, self.blocks.losses))
        else:
            self.end_turn()
            self.blocks.content(item, self.run.step("user"), path)

    def end_turn(self) -> None:
        """What the model says next is a turn of its own."""
        self._turn = None

    def turn(self) -> StepDraft:
        """The model's turn at hand."""
        if self._turn is None:
            self._turn = self.run.step("agent", "llm_turn")
        return self._turn

    def item(self, source: SourceObject) -> None:
        """Add an item."""
        kind = source.word("type")
        if kind == "message" or (not kind and source.word("role")):
            self._message(source)
        elif kind == "reasoning":
            self._reasoning(source)
        elif kind in RESULTS or (kind.endswith("_output") and kind not in CALLS):
            self._output(source, kind)
        elif kind in CALLS or kind.endswith("_call"):
            self._call(source, kind)
        elif kind in ("compaction", "compaction_summary", "compaction_trigger"):
            self._compaction(source)
        elif kind == "mcp_list_tools":
            listed = self.run.observe({"name": kind, "structured": source.json_list("tools")})
            listed.extra = source.rest()
        else:
            if kind not in _EVENTS:
                self.blocks.losses.unknown(f"item {kind or 'without a type'}")
            self.end_turn()
            self.run.event(source)

    def _message(self, source: SourceObject) -> None:
        role = source.word("role")
        origin = SOURCES.get(role, "agent" if self.in_response and not role else "environment")
        if origin == "agent":
            step = self.turn()
        else:
            self.end_turn()
            step = self.run.step(origin)
        self._content(source, step)
        take_tokens(source, step.columns)
        if source.first("type") == QUOTE:
            source.drop("type")
        if role in ("user", "system", "assistant"):
            source.drop("role")
        if step.columns.get("native_id") is None:
            step.columns["native_id"] = source.name("id")
        take_time(source, step.columns, "created_at")
        if source.word("status") == "completed":
            source.drop("status")
        merge_extra(step.extra, source.rest())

    def _content(self, source: SourceObject, step: StepDraft) -> None:
        """The content of a message. Empty lists of citations are what the API always writes."""
        blocks = source.objects("content")
        if not blocks:
            self.blocks.content(source.take("content"), step, f"{source.path}.content")
        for block in blocks:
            for key in ("annotations", "logprobs"):
                if bytes(block.values.get(key, b"")) == b"[]":
                    block.drop(key)
            if block.word("type") == "refusal" and (text := block.text("refusal")) is not None:
                step.parts.text(self.blocks.builder.text(text), block.rest())
            else:
                self.blocks.block(block, step)

    def _reasoning(self, source: SourceObject) -> None:
        """Summaries and raw texts; what is only encrypted keeps its place among the parts."""
        step = self.turn()
        pieces = [*source.objects("summary"), *source.objects("content")]
        texts = [piece.text("text") for piece in pieces]
        if plain := source.text("content", "text"):
            texts.insert(0, plain)
        take_tokens(source, step.columns)
        rest = source.rest()
        for piece in pieces:
            if piece.word("type") in ("summary_text", "reasoning_text"):
                piece.drop("type")
        rests = [piece.rest() for piece in pieces]
        if any(rests):
            rest["pieces"] = rests
        if not pieces and not plain:
            if source.first("encrypted_content") == QUOTE:
                step.parts.opaque(_written(rest))
            else:
                append_extra(step.extra, "items", _written(rest))
            return
        rest.pop("type", None)
        for text in texts:
            step.parts.reasoning(self.blocks.builder.text(text or ""), _written(rest))
            rest = {}

    def _call(self, source: SourceObject, kind: str) -> None:
        if kind not in CALLS:
            self.blocks.losses.unknown(f"item {kind}")
        call_id, item_id = source.name("call_id", "callId"), source.name("id")
        answers: str | None = source.word("approval_request_id")
        outputs = [key for key in _OUTPUTS if source.first(key) not in (0, NULL)]
        if not answers or not self._is_known(answers):
            columns = self._columns(source, kind)
            columns["call_id"] = answers = call_id or item_id
            if call_id is not None and item_id is not None:
                # Not ``native_id``: results are looked up by that.
                source.values["id"] = jsontext.raw(jsontext.text_of(item_id))
            columns["status"] = source.text("status")
            take_tokens(source, self.turn().columns)
            call = self.turn().call(columns)
            if not outputs:
                call.extra = _without_type(source.rest())
                return
            taken = {key: source.values.pop(key) for key in outputs}
            call.extra = _without_type(source.rest())
            source = SourceObject(None, source.path, self.blocks.losses)
            source.values.update(taken)
        elif item_id is not None:
            source.values["id"] = jsontext.raw(jsontext.text_of(item_id))
        draft = self.run.observe({}, answers=answers, by_order=True)
        self._result(source, draft, kind)

    def _is_known(self, call_id: str) -> bool:
        calls = (call for step in self.run.steps for call in step.calls)
        return any(call.columns.get("call_id") == call_id for call in calls)

    def _columns(self, source: SourceObject, kind: str) -> Columns:
        """Name, kind and arguments of a call."""
        name = source.text("name")
        name = kind.removesuffix("_call") if name is None else name
        key = next((key for key in _ARGUMENTS if source.first(key) not in (0, NULL)), None)
        raw = None if key is None else source.take(key)
        if kind == "file_search_call" and "queries" in source:
            raw = jsontext.raw(jsontext.text_of({"queries": one_line(source.take("queries"))}))
        columns = call_columns(name, None, raw, CALLS.get(kind, "function"))
        if key in ("input", "code") and raw is not None and jsontext.first_byte(raw) == QUOTE:
            columns = free_text(columns, jsontext.decode_value(raw))
        if kind == "code_interpreter_call":
            columns["language"] = "python"
        return columns

    def _output(self, source: SourceObject, kind: str) -> None:
        """A result, as an item of its own."""
        if kind not in RESULTS:
            self.blocks.losses.unknown(f"item {kind}")
        if not (self.in_response and kind in _OF_SERVER):
            self.end_turn()
        keys = ("call_id", "callId", "approval_request_id")
        answers = source.name(*keys, *(["id"] if kind == "local_shell_call_output" else []))
        # Without an id it answers a call of its own kind.
        columns = {} if answers else {"name": kind.removesuffix("_output").removesuffix("_call")}
        draft = self.run.observe(columns, answers=answers, by_order=True)
        if kind == "mcp_approval_response":
            draft.columns["source"] = "user"
        self._result(source, draft, kind)

    def _result(self, source: SourceObject, draft: ObservationDraft, kind: str) -> None:
        builder, path = self.blocks.builder, source.path
        if source.word("status") in ("failed", "incomplete"):
            draft.columns["is_error"] = True
        if source.first("error") not in (0, NULL):
            draft.columns["is_error"] = True
            error = source.text("error")
            if error is not None:
                draft.parts.text(builder.text(error))
        for key in ("output", "outputs", "results", "result"):
            raw = source.values.get(key)
            if kind == "image_generation_call" and source.first(key) == QUOTE:
                if self.blocks.blob(jsontext.decode_value(raw or b'""'), None, draft.parts, {}):
                    source.drop(key)
            elif key == "results" and source.first(key) == BRACKET:
                draft.columns["structured"] = source.json(key)
            elif raw is not None:
                for piece, place in _pieces(source.take(key), f"{path}.{key}"):
                    self._piece(piece, place, draft)
        if source.first("tools") == BRACKET:
            draft.columns["structured"] = source.json("tools")
        take_time(source, draft.columns, "created_at")
        draft.extra.update(_without_type(source.rest()))

    def _piece(self, raw: Raw, path: str, draft: ObservationDraft) -> None:
        """A text, a block, or the end of a command: what it wrote, and its exit code."""
        piece = SourceObject(raw, path, self.blocks.losses)
        if "stdout" not in piece and "logs" not in piece:
            self.blocks.result(raw, draft, path)
            return
        status = piece.child("outcome").integer_at("exit_code", bits=32)
        if status is not None:
            draft.columns["exit_code"] = status
        error = piece.text("stderr") if piece.word("stderr") else None
        text = piece.text("stdout", "logs")
        draft.parts.text(self.blocks.builder.text(text or ""), piece.rest())
        if error is not None:
            draft.parts.text(self.blocks.builder.text(error), {"name": "stderr"})

    def _compaction(self, source: SourceObject) -> None:
        """What came before is replaced, by a text or by what only the provider can read."""
        self.end_turn()
        step = self.run.step("system", "context_edit", edit_boundary="replace")
        step.columns["native_id"] = source.name("id")
        step.columns["edit_summary"] = source.text("summary", "text")
        step.extra.update(source.rest())


def _pieces(raw: Raw | None, path: str) -> list[tuple[Raw, str]]:
    if raw is None or jsontext.first_byte(raw) == NULL:
        return []
    if jsontext.first_byte(raw) != BRACKET:
        return [(raw, path)]
    return [(item, f"{path}[{n}]") for n, item in enumerate(jsontext.decode_array(raw))]


def _written(values: dict[str, Any]) -> dict[str, Any]:
    return {key: one_line(value) for key, value in values.items()}


def _without_type(values: dict[str, Any]) -> dict[str, Any]:
    """The rest of an item; the type goes where the kind of the row says it."""
    if bytes(values.get("type", b"")) in (b'"function_call"', b'"function_call_output"'):
        del values["type"]
    return values
