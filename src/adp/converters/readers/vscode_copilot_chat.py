"""Sessions of Copilot Chat in VS Code: a document of requests.

A request has what the user wrote, what the editor shows of the response, and, in the metadata of
its result, what the model really saw and did: rendered messages, rounds of calls, and results.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import StepDraft, merge_extra
from adp.converters.kit.session import LogReader, SessionLog
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_end, take_start, take_time
from adp.converters.kit.usage import UsageKeys, set_usage
from adp.converters.reading import BRACE, BRACKET, QUOTE
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.protocols import Match

USAGE = UsageKeys(prompt=("promptTokens",), written=("completionTokens", "outputTokens"))
_SHOWN = frozenset(
    ("mcpServersStarting", "progressTaskSerialized", "progressMessage", "inlineReference",
     "codeblockUri", "textEditGroup", "notebookEditGroup", "undoStop", "prepareToolInvocation",
     "confirmation", "elicitation", "elicitationSerialized", "warning", "command", "treeData",
     "extensions", "pullRequest", "multiDiffData", "questionCarousel", "todoList")
)  # fmt: skip
"""Items of a response that are known, and kept as they are."""


class ChatSession(SessionLog):
    """One session."""

    agent: ClassVar[str | None] = "vscode-copilot-chat"

    def line(self, source: SourceObject) -> None:
        """The document."""
        if source.first("requests") != BRACKET or "source_id" in self.run.columns:
            if not self.run.steps:
                raise RecordError("expected a list of requests", f"{source.path}.requests")
            self.other(source)
            return
        columns = self.run.columns
        columns["source_id"] = columns["session_id"] = source.name("sessionId")
        if source.integer_at("version") is not None:
            columns["source_version"] = source.name("version")
        take_start(source, columns, "creationDate")
        take_end(source, columns, "lastMessageDate")
        for request in source.objects("requests"):
            self.request(request)
        self.run.extra.update(source.rest())

    def request(self, request: SourceObject) -> None:
        """What the user wrote, and all that the model did then."""
        result = request.child("result")
        metadata = result.child("metadata")
        self._global_context(metadata)
        step = self.run.step("user", native_id=request.name("requestId"))
        take_time(request, step.columns, "timestamp")
        self._user(request.child("message"), metadata, step)
        agent = SourceObject(request.values.get("agent"), request.path, self.losses)
        if version := agent.word("extensionVersion"):
            self.run.columns["agent_version"] = version
        self.run.constant(request, "agent")
        model = request.text("modelId")
        if model:
            self.run.columns["agent_model"] = model
        before = len(self.run.steps)
        for number, done in enumerate(metadata.objects("toolCallRounds")):
            self._round(done, metadata, model, number)
        if len(self.run.steps) == before:
            self._shown(request, model)
        turns = [it for it in self.run.steps[before:] if it.columns["kind"] == "llm_turn"]
        if turns:
            self._end(request, result, metadata, turns[-1])
        self._note_error(result.child("errorDetails"))
        merge_extra(step.extra, request.rest())

    def _global_context(self, metadata: SourceObject) -> None:
        """What the model saw before the first request of the session."""
        if metadata.first("renderedGlobalContext") == BRACKET:
            step = self.run.step("user", visibility="llm")
            step.extra["type"] = "renderedGlobalContext"
            self._rendered(metadata, "renderedGlobalContext", step)

    def _user(self, message: SourceObject, metadata: SourceObject, step: StepDraft) -> None:
        """The text that the model saw; the one that was written stays beside it."""
        if metadata.first("renderedUserMessage") == BRACKET:
            self._rendered(metadata, "renderedUserMessage", step)
        if not step.parts.columns().get("text"):
            text = message.text("text")
            if text is not None:
                step.parts.text(self.builder.text(text))

    def _rendered(self, metadata: SourceObject, key: str, step: StepDraft) -> None:
        """Parts of a prompt: type 1 is text, 2 an image, 3 a break point of the cache."""
        for part in metadata.objects(key):
            text = part.text("text") if part.integer_at("type") == 1 else None
            if text is None:
                step.parts.opaque(part.rest())
                continue
            part.drop("type")
            step.parts.text(self.builder.text(text), part.rest())

    def _round(
        self, done: SourceObject, metadata: SourceObject, model: str | None, number: int
    ) -> None:
        """One answer of the model, with its calls and their results."""
        step = self.run.step("agent", "llm_turn", native_id=done.name("id"), model=model)
        take_time(done, step.columns, "timestamp")
        thinking = done.child("thinking")
        thought = thinking.text("text") if thinking else None
        if thought:
            step.parts.reasoning(self.builder.text(thought))
        if text := done.text("response"):
            step.parts.text(self.builder.text(text))
        results = metadata.child("toolCallResults")
        calls = done.objects("toolCalls")
        for call in calls:
            name, call_id = call.text("name"), call.name("id")
            step.call(call_columns(name, call_id, call.take("arguments")), call.rest())
        for draft in step.calls:
            self._result(results, draft.columns["call_id"], draft.columns["name"])
        step.extra.update(done.rest())

    def _result(self, results: SourceObject, call_id: str | None, name: str | None) -> None:
        if call_id is None or results.first(call_id) != BRACE:
            return
        result = results.take_child(call_id)
        draft = self.run.observe({"name": name}, answers=call_id)
        content = result.values.get("content")
        texts = [] if content is None else _texts(json.loads(bytes(content)))
        if texts:
            draft.parts.text(self.builder.text("\n".join(texts)))
        if result.flag("isError") is True or result.first("hasError") == ord("t"):
            draft.columns["is_error"] = True
        draft.columns["structured"] = jsontext.text_of(result.rest())

    def _shown(self, request: SourceObject, model: str | None) -> None:
        """What the editor shows of a response, where nothing says what the model wrote."""
        items = request.objects("response")
        if not items:
            return
        step = self.run.step("agent", "llm_turn", model=model)
        texts: list[str] = []
        for item in items:
            kind = item.word("kind")
            if kind in ("", "markdownContent") and self._markdown(item, texts, step):
                continue
            if kind == "thinking" and (item.first("value") == QUOTE):
                item.drop("kind")
                step.parts.reasoning(self.builder.text(item.text("value") or ""), item.rest())
            elif kind in ("toolInvocationSerialized", "toolInvocation"):
                self._invocation(item, step)
            else:
                if kind not in _SHOWN:
                    self.losses.unknown(f"content block {kind or 'without a type'}")
                step.parts.opaque(item.rest())

    def _markdown(self, item: SourceObject, texts: list[str], step: StepDraft) -> bool:
        holder = item if item.first("value") == QUOTE else item.child("content")
        text = holder.text("value")
        if text is None:
            return False
        item.drop_text("kind", item.word("kind"))
        step.parts.text(self.builder.text(text), item.rest())
        return True

    def _invocation(self, item: SourceObject, step: StepDraft) -> None:
        call_id, name = item.name("toolCallId"), item.text("toolId")
        data = item.child("toolSpecificData")
        raw = data.take("rawInput")
        call = step.call(call_columns(name, call_id, raw))
        if item.first("resultDetails") not in (0, ord("n")):
            draft = self.run.observe({"name": name}, answers=call_id, by_order=True)
            draft.columns["structured"] = item.json("resultDetails")
        call.extra = item.rest()

    def _end(
        self, request: SourceObject, result: SourceObject, metadata: SourceObject, turn: StepDraft
    ) -> None:
        turn.columns["response_id"] = request.name("responseId")
        for holder in (
            SourceObject(result.values.get("usage"), result.path, self.losses),
            metadata,
        ):
            set_usage(holder, turn.columns, USAGE)
            if "tokens_in" in turn.columns:
                break
        if request.first("response") == BRACKET:
            merge_extra(turn.extra, {"response": request.take("response")})

    def _note_error(self, error: SourceObject) -> None:
        self.run.columns["error_message"] = error.word("message") or None
        self.run.columns["error_type"] = error.word("code") or None


def _texts(content: Any) -> list[str]:
    """The texts of a result: strings, and trees of nodes whose leaves have a text."""
    texts = []
    for item in content if isinstance(content, list) else [content]:
        value = item.get("value") if isinstance(item, dict) else None
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, dict):
            pieces: list[str] = []
            _gather(value.get("node"), pieces)
            texts += ["".join(pieces)] if pieces else []
    return texts


def _gather(node: Any, pieces: list[str]) -> None:
    """The texts of a tree in order; a node that begins a line is put on one."""
    todo = [node]
    while todo:
        node = todo.pop()
        if not isinstance(node, dict):
            continue
        if isinstance(node.get("text"), str):
            if node.get("lineBreakBefore") and pieces and not pieces[-1].endswith("\n"):
                pieces.append("\n")
            pieces.append(node["text"])
        children = node.get("children")
        todo.extend(reversed(children if isinstance(children, list) else []))


class ChatReader(LogReader):
    """The format ``vscode_copilot_chat``."""

    name = "vscode_copilot_chat"
    title = "Sessions of Copilot Chat in VS Code"
    container = "json"
    recognised = "a document of requests with a responderUsername or a requesterUsername"
    versions = "reads exported chats and kept sessions of version 3"
    log = ChatSession

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A document with requests and who answers them."""
        names = {"responderUsername", "requesterUsername", "initialLocation"}
        return Match.STAMP if "requests" in record and names & set(record) else Match.NO


CONVERTER = ChatReader()
