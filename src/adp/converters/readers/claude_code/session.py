"""One file of a session of Claude Code, read into a trajectory and its branches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.drafts import (
    ObservationDraft,
    StepDraft,
    TrajectoryDraft,
    merge_extra,
)
from adp.converters.kit.lines import log_lines
from adp.converters.kit.session import TreeLog
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.readers.claude_code.ending import complete
from adp.converters.readers.claude_code.identity import Identity
from adp.converters.readers.claude_code.names import (
    ATTACHMENTS,
    CONSTANT,
    EDITS,
    EXIT_CODE,
    KEPT,
    NOISE,
    STUB,
    SUBTYPES,
)
from adp.converters.readers.claude_code.records import TRUE, blocks_of, place_of, set_origin, words
from adp.converters.readers.claude_code.tokens import set_tokens
from adp.converters.readers.claude_code.tree import lines_of
from adp.converters.reading import BRACE, BRACKET, NULL, QUOTE
from adp_schema import jsontext
from adp_schema.model import Columns


class ClaudeSession(TreeLog):
    """A session, or one of its subagents."""

    agent: ClassVar[str | None] = "claude-code"
    id_key: ClassVar[str] = "uuid"
    handlers: ClassVar[Mapping[str, str]] = {
        "user": "user",
        "assistant": "assistant",
        "system": "system",
        "attachment": "attachment",
        "continued-in": "continued",
        "cost-state": "cost",
    }
    kept: ClassVar[frozenset[str]] = KEPT

    def read_lines(self) -> None:
        """Find out which session it is and which records belong together, and read them."""
        sources = self._sources()
        self.steps: dict[str, StepDraft] = {}
        self.calls: dict[str, tuple[StepDraft, int, TrajectoryDraft]] = {}
        self._turns: dict[tuple[int, str, bool], StepDraft] = {}
        self._prompts: set[bytes] = set()
        self._retracted: set[str] = set()
        self._previous = (0, "")
        self.identity = Identity([source for source, _ in sources], self.record)
        self.identity.describe(self.run)
        places = [place_of(source, self.identity) for source, _ in sources]
        self._threads = {place.thread for place in places}
        self._read_line(lines_of(places), sources, 0)

    def _sources(self) -> list[tuple[SourceObject, str]]:
        """The records: lines, or the ``loglines`` of one document."""
        sources = list(log_lines(self.record, self.builder, self.losses))
        if len(sources) > 1 or sources[0][0].first("loglines") != BRACKET:
            return sources
        document = sources[0][0]
        items = []
        for number, raw in enumerate(document.items("loglines")):
            path, broken = f"$.loglines[{number}]", ""
            if jsontext.first_byte(raw) != BRACE:
                self.losses.add(path, "the line is no object; its text is kept in an event")
                broken = bytes(raw).decode("utf-8")
            items.append((SourceObject(raw, path, self.losses), broken))
        self.run.extra.update(document.rest())
        return items

    def kind_of(self, source: SourceObject) -> str:
        """The type; of a record without one, as logs of usage have it, the role."""
        if "type" in source:
            return source.word("type")
        return source.child("message").word("role")

    def line(self, source: SourceObject) -> None:
        """Take what nearly every record repeats, and then the record."""
        self.copied = self.identity.is_copy(source)
        self.identity.join(source, self.run)
        name = source.word("uuid")
        self.run.constant(source, *CONSTANT)
        version = source.word("version")
        if version and self.run.columns.setdefault("agent_version", version) == version:
            source.drop("version")
        parent = source.word("parentUuid")
        if (id(self.run), parent) == self._previous or source.first("parentUuid") == NULL:
            source.drop("parentUuid")
        if name:
            self._previous = (id(self.run), name)
        super().line(source)
        if name and self.run.steps:
            self.steps.setdefault(name, self.run.steps[-1])

    def begin(self, source: SourceObject, role: str, kind: str = "message") -> StepDraft:
        """A step with the id and the time of its record."""
        step = self.run.step(role, kind, native_id=source.name("uuid"))
        take_time(source, step.columns, "timestamp")
        if self.copied:
            step.columns["is_copied_context"] = True
        return step

    # ---- messages -------------------------------------------------------------------------

    def user(self, source: SourceObject) -> None:
        """A prompt, the results of calls, or both."""
        message = source.child("message")
        if message.word("role") == "user":
            message.drop("role")
        content = message.take("content")
        if source.first("isCompactSummary") == TRUE:
            self._summary(source, content)
            return
        step, results = None, []
        for raw in blocks_of(content):
            block = SourceObject(raw, f"{message.path}.content", self.losses)
            if block.word("type") == "tool_result":
                results.append((self.blocks.answer(block), raw))
                continue
            step = step or self.begin(source, "user")
            self.blocks.content(raw, step, block.path)
        if step is None and not results:
            step = self.begin(source, "user")
        if step is not None:
            set_origin(source, step.columns)
            self._results(source, results, step.columns)
            merge_extra(step.extra, source.rest())
            return
        when: Columns = {}
        take_time(source, when, "timestamp")
        self._results(source, results, when)
        merge_extra(results[0][0].extra, source.rest())

    def _results(
        self, source: SourceObject, results: list[tuple[ObservationDraft, Raw]], when: Columns
    ) -> None:
        """Complete results with what their record says beside the message."""
        for draft, _ in results:
            draft.columns |= {key: value for key, value in when.items() if key.startswith("time")}
            text = draft.parts.columns().get("text", "")
            if text.startswith(STUB):
                draft.columns["truncated"] = True
            code = EXIT_CODE.match(text) if draft.columns.get("is_error") else None
            if code and int(code[1]) < _INT32:
                draft.columns["exit_code"] = int(code[1])
        if len(results) != 1:
            return
        draft, raw = results[0]
        if denial := source.text("toolDenialKind"):
            draft.columns["error_type"] = denial
        key = next((it for it in ("toolUseResult", "tool_use_result") if it in source), "")
        if source.first(key) in (QUOTE, BRACE, BRACKET):
            call_id = SourceObject(raw, "", self.losses).word("tool_use_id")
            self._outcome(SourceObject(source.values[key], key, self.losses), draft, call_id)
            draft.columns["structured"] = source.json(key)

    def _outcome(self, outcome: SourceObject, draft: ObservationDraft, call_id: str) -> None:
        """What the harness kept of a result: exit status, time, the subagent that it ran."""
        for key in ("exitCode", "exit_code", "returnCode"):
            status = outcome.integer_at(key, 32)
            if status is not None:
                draft.columns["exit_code"] = status
        for key in ("totalDurationMs", "durationMs"):
            duration = outcome.number(key)
            if duration is not None:
                draft.columns["duration_ms"] = duration
        target = self.identity.target(outcome)
        if target is None:
            return
        if call_id in self._threads:  # its records are in this file, and are linked there
            target = f"{self.identity.session}/{call_id}"
        else:
            self.link_agent(call_id, target)
        draft.columns["subagent"] = jsontext.text_of({"target_id": target})

    def link_agent(self, call_id: str, target: str) -> None:
        """Link the call that started an agent, or the last step, with the agent's trajectory."""
        columns = {"target_id": target, "target_session_id": self.identity.owner}
        known = self.calls.get(call_id)
        if known is not None:
            known[2].link("subagent", known[0], call=known[1], **columns)
        else:
            self.run.link("subagent", self.run.steps[-1] if self.run.steps else None, **columns)

    def assistant(self, source: SourceObject) -> None:
        """A block of a response of the model; the blocks of one response are one step."""
        message = source.child("message")
        turn = (id(self.run), message.word("id"), self.copied)
        step = self._turns.get(turn) if turn[1] else None
        if step is None:
            made_up = source.first("isApiErrorMessage") == TRUE or message.word("model") == _NOBODY
            step = self.begin(source, "agent", "message" if made_up else "llm_turn")
            step.columns["response_id"] = message.text("id")
            step.columns["model"] = message.text("model")
            if made_up:
                step.columns |= {"synthetic": True, "llm_call_count": 0, "loss_weight": 0.0}
            else:
                self.run.columns.setdefault("agent_model", step.columns["model"])
            if turn[1]:
                self._turns[turn] = step
        else:
            message.drop("id")
            if message.word("model") == step.columns["model"]:
                message.drop("model")
        self.blocks.content(message.take("content"), step, f"{message.path}.content")
        for number, call in enumerate(step.calls):
            if name := call.columns.get("call_id"):
                self.calls.setdefault(name, (step, number, self.run))
        self._end_turn(source, message, step)

    def _end_turn(self, source: SourceObject, message: SourceObject, step: StepDraft) -> None:
        """What each block of a response says again; the last one is right."""
        for key, word in (("role", "assistant"), ("type", "message")):
            if message.word(key) == word:
                message.drop(key)
        message.drop(*(key for key in (*NOISE, "stop_reason") if message.first(key) == NULL))
        effort = source.text("effort")
        columns = {
            "stop_reason": message.text("stop_reason"),
            "reasoning_effort": effort,
            "duration_ms": source.number("durationMs"),
        }
        for name, value in columns.items():
            old = step.columns.get(name)
            if value is not None:
                step.columns[name] = value
                if old not in (None, value):
                    merge_extra(step.extra, {name: old})
        earlier = step.columns.get("usage")
        set_tokens(source, message, step.columns, counted=not self.copied)
        if earlier not in (None, step.columns.get("usage")):
            merge_extra(step.extra, {"usage": jsontext.raw(str(earlier))})
        self._retract(source, "supersedesUuids")
        merge_extra(step.extra, source.rest())

    # ---- system, attachments --------------------------------------------------------------

    def system(self, source: SourceObject) -> None:
        """An edit of the context, or a note of the harness."""
        subtype = source.word("subtype")
        if subtype not in EDITS:
            if subtype not in SUBTYPES:
                self.losses.unknown(f"system subtype {subtype}")
            self._note(source)
            return
        step = self.begin(source, "system", "context_edit")
        step.columns["edit_boundary"] = EDITS[subtype]
        for key in ("compactMetadata", "compact_metadata"):
            self._kept_range(source.child(key), step)
        step.extra.update(source.rest())

    def _note(self, source: SourceObject) -> None:
        self._retract(source, "retractedMessageUuids")
        columns: Columns = {"text": source.text("content")}
        take_time(source, columns, "timestamp")
        columns["duration_ms"] = source.number("durationMs")
        self.run.event(source, {**columns, "native_id": source.name("uuid")})

    def _kept_range(self, metadata: SourceObject, step: StepDraft) -> None:
        """The records that a compaction keeps as they are."""
        segment = metadata.child("preservedSegment")
        ends = (segment.word("headUuid"), segment.word("tailUuid"))
        if not ends[0]:
            names = words(metadata.child("preservedMessages").values.get("uuids"))
            ends = (names[0], names[-1]) if names else ends
        steps = self.run.steps
        head, tail = self.steps.get(ends[0]), self.steps.get(ends[1])
        places = {id(it): number for number, it in enumerate(steps)}
        if head is not None and tail is not None and {id(head), id(tail)} <= set(places):
            step.columns["edit_from"] = head
            step.columns["edit_to"] = steps[places[id(tail)] + 1]

    def _summary(self, source: SourceObject, content: Raw | None) -> None:
        """The text that stands for what a compaction took away."""
        last = next((it for it in reversed(self.run.steps)
                     if it.columns["kind"] != "event"), None)  # fmt: skip
        if (
            last is None
            or last.columns["kind"] != "context_edit"
            or (last.columns.get("edit_summary") is not None)
        ):
            last = self.begin(source, "system", "context_edit")
            last.columns["edit_boundary"] = "replace"
        draft = ObservationDraft()
        self.blocks.result(content, draft, f"{source.path}.message.content")
        columns = draft.parts.columns()
        last.columns["edit_summary"] = columns.pop("text", "")
        merge_extra(last.extra, {"summary": source.rest(), **columns})

    def attachment(self, source: SourceObject) -> None:
        """What the harness adds to a request; ``rendered`` is what the model saw of it."""
        inner = source.child("attachment")
        kind = inner.word("type")
        if kind not in ATTACHMENTS:
            self.losses.unknown(f"attachment type {kind or 'without a type'}")
        if kind == "prompt_snapshot":
            self._snapshot(source, inner)
            return
        rendered = source.objects("rendered")
        prompt = inner.take("prompt") if kind == "queued_command" and not rendered else None
        if not rendered and prompt is None:
            self.other(source)
            return
        role = source.word("renderedRole")
        step = self.begin(source, "system" if role == "system" else "user")
        if prompt is not None:
            self.blocks.content(prompt, step, f"{inner.path}.prompt")
            set_origin(inner, step.columns)
        else:
            step.columns["synthetic"] = True
        for item in rendered:
            self.blocks.content(item.take("content"), step, f"{item.path}.content")
        if any(rests := [item.rest() for item in rendered]):
            step.extra["rendered"] = rests
        step.extra.update(source.rest())

    def _snapshot(self, source: SourceObject, inner: SourceObject) -> None:
        """The system prompt and the tools of the requests that follow; it is often repeated."""
        tools = inner.json_list("tools")
        if tools is not None:
            known = self.run.columns.setdefault("tools", tools)
            self.run.columns["tools_origin"] = "recorded"
            if known != tools:
                inner.values["tools"] = Raw(tools.encode("utf-8"))
        prompt = inner.take("systemPrompt")
        if prompt is None or bytes(prompt) in self._prompts:
            self.other(source)
            return
        self._prompts.add(bytes(prompt))
        first = all(step.columns["kind"] == "event" for step in self.run.steps)
        step = self.begin(source, "system")
        if first:
            self.run.steps.insert(0, self.run.steps.pop())
        self.blocks.content(prompt, step, f"{inner.path}.systemPrompt")
        step.extra.update(source.rest())

    def continued(self, source: SourceObject) -> None:
        """The session goes on in another file."""
        target = source.word("continuedInSessionId")
        source.values["type"] = Raw(b'"continued-in"')
        self.other(source)
        if target:
            self.run.link("continuation", self.run.steps[-1], target_session_id=target,
                          target_id=target)  # fmt: skip

    def cost(self, source: SourceObject) -> None:
        """What the session cost so far; the event keeps it, too."""
        copy = SourceObject(None, source.path, self.losses)
        copy.values = dict(source.values)
        total = copy.number("totalCostUSD")
        if total is not None:
            self.run.columns["total_cost_usd"] = total
        source.values["type"] = Raw(b'"cost-state"')
        self.other(source)

    # ---- the end --------------------------------------------------------------------------

    def _retract(self, source: SourceObject, key: str) -> None:
        """Remember records that later ones take back; the list stays in ``extra``."""
        self._retracted.update(words(source.values.get(key)))

    def finish(self) -> None:
        """Mark what was taken back, and say when the run was and how it ended."""
        for name in self._retracted & self.steps.keys():
            step = self.steps[name]
            if step.columns["kind"] != "event":
                step.columns["loss_weight"] = 0.0
                step.columns["labels"] = ["retracted"]
        self.identity.link_origins(self.run)
        complete(self.run)


_INT32 = 1 << 31
_NOBODY = "<synthetic>"
