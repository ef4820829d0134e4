"""One file of a session of Claude Code, read into a trajectory and its branches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.drafts import (
    ObservationDraft,
    StepDraft,
    merge_extra,
)
from adp.converters.kit.key_tables import exit_code
from adp.converters.kit.lines import log_lines
from adp.converters.kit.logged_calls import LoggedCall
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.readers.claude_code.ending import complete
from adp.converters.readers.claude_code.identity import Identity
from adp.converters.readers.claude_code.names import (
    CONSTANT,
    EXIT_CODE,
    KEPT,
    NULL_KEYS,
    PERSISTED_OUTPUT,
)
from adp.converters.readers.claude_code.notes import ClaudeNotes
from adp.converters.readers.claude_code.records import TRUE, blocks_of, place_of, set_origin
from adp.converters.readers.claude_code.tokens import set_tokens
from adp.converters.readers.claude_code.tree import lines_of
from adp.converters.reading import BRACE, BRACKET, NULL, NULL_VALUE, QUOTE
from adp_schema import jsontext
from adp_schema.model import Columns


class ClaudeSession(ClaudeNotes):
    """A session, or one of its subagents."""

    handlers: ClassVar[Mapping[str, str]] = {
        "user": "user",
        "assistant": "assistant",
        "system": "system",
        "attachment": "attachment",
        "continued-in": "continued",
        "cost-state": "cost",
    }
    kept: ClassVar[frozenset[str]] = KEPT
    constants: ClassVar[tuple[str, ...]] = CONSTANT

    def read_lines(self) -> None:
        """Find out which session it is and which records belong together, and read them."""
        sources = self._sources()
        self.calls: dict[str, LoggedCall] = {}
        self._turns: dict[tuple[int, str, bool], StepDraft] = {}
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

    def user(self, source: SourceObject) -> None:
        """A prompt, the results of calls, or both."""
        message = source.child("message")
        if message.word("role") == "user":
            message.drop("role")
        content = message.take("content")
        if source.first("isCompactSummary") == TRUE:
            self.add_summary(source, content)
            return
        step, results = None, []
        for raw in blocks_of(content):
            answer = self.blocks.usual_answer(raw, f"{message.path}.content")
            if answer is not None:
                results.append((answer, raw))
                continue
            block = SourceObject(raw, f"{message.path}.content", self.losses)
            if block.word("type") == "tool_result":
                results.append((self.blocks.answer(block), raw))
                continue
            step = step or self.begin_step(source, "user")
            self.blocks.content(raw, step, block.path)
        if step is None and not results:
            step = self.begin_step(source, "user")
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
            text = draft.parts.words("text")
            if text.startswith(PERSISTED_OUTPUT):
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
        if (status := exit_code(outcome)) is not None:
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
        if call := self.calls.get(call_id):
            call.link_subagent(**columns)
        else:
            self.run.link("subagent", self.run.steps[-1] if self.run.steps else None, **columns)

    def assistant(self, source: SourceObject) -> None:
        """A block of a response of the model; the blocks of one response are one step."""
        message = source.child("message")
        turn = (id(self.run), message.word("id"), self.copied)
        step = self._turns.get(turn) if turn[1] else None
        if step is None:
            is_synthetic = (
                source.first("isApiErrorMessage") == TRUE
                or message.word("model") == _SYNTHETIC_MODEL
            )
            step = self.begin_step(source, "agent", "message" if is_synthetic else "llm_turn")
            step.columns["response_id"] = message.text("id")
            step.columns["model"] = message.text("model")
            if is_synthetic:
                step.columns |= {"synthetic": True, "llm_call_count": 0, "loss_weight": 0.0}
            else:
                self.run.columns.setdefault("agent_model", step.columns["model"])
            if turn[1]:
                self._turns[turn] = step
        else:
            message.drop("id")
            message.drop_text("model", step.columns["model"])
        self.blocks.content(message.take("content"), step, f"{message.path}.content")
        for call in step.calls:
            if name := call.columns.get("call_id"):
                self.calls.setdefault(name, LoggedCall(self.run, step, call))
        self._end_turn(source, message, step)

    def _end_turn(self, source: SourceObject, message: SourceObject, step: StepDraft) -> None:
        """What each block of a response says again; the last one is right."""
        for key, word in (("role", "assistant"), ("type", "message")):
            message.drop_text(key, word)
        for key in NULL_KEYS:
            if message.values.get(key) == NULL_VALUE:
                message.drop(key)
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
        self.retract(source, "supersedesUuids")
        merge_extra(step.extra, source.rest())

    def finish(self) -> None:
        """Mark retracted records, link the sessions of copies, and set times and the ending."""
        for name in self.retracted & self.steps.keys():
            step = self.steps[name]
            if step.columns["kind"] != "event":
                step.columns["loss_weight"] = 0.0
                step.columns["labels"] = ["retracted"]
        self.identity.link_origins(self.run)
        complete(self.run)


_INT32 = 1 << 31
_SYNTHETIC_MODEL = "<synthetic>"
