"""Conversations of gptme: ``conversation.jsonl``, a message a line, and branches beside it.

The model calls tools in its text: ``@tool(id): {...}``, which becomes a call, or a block of code,
which stays text. What a tool answers is a message of the role ``tool``, or of ``system`` after an
answer of the model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import StepDraft, merge_extra
from adp.converters.kit.session import LogReader, SessionLog, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.kit.usage import UsageKeys, set_usage, take_usage
from adp.converters.reading import QUOTE
from adp_schema import jsontext
from adp_schema.protocols import Match

USAGE = UsageKeys(
    prompt=("input_tokens",),
    written=("output_tokens",),
    cached=("cache_read_tokens",),
    cache_write=("cache_creation_tokens",),
    reasoning=("reasoning_tokens",),
    apart=True,
)
_CALL = re.compile(r"^@([\w.-]+)\(([\w.:-]+)\):[ \t]*(?=\{)", re.MULTILINE)
_ROLES = {"system": "system", "user": "user", "assistant": "agent"}
_KEYS = frozenset(
    {"role", "content", "timestamp", "files", "file_hashes", "pinned", "hide", "quiet", "ui_only",
     "ephemeral_ttl", "call_id", "metadata", "type"}
)  # fmt: skip
_MARKS = frozenset({"pinned", "hide", "ui_only", "file_hashes", "ephemeral_ttl"})


class GptmeSession(SessionLog):
    """One conversation."""

    agent: ClassVar[str | None] = "gptme"

    def read_lines(self) -> None:
        """The folder names the conversation, and a branch of it."""
        folders = self.record.source_file.split("/")[:-1]
        name = self.record.source_file.rpartition("/")[2]
        columns = self.run.columns
        if folders and name == "conversation.jsonl":
            columns["source_id"] = columns["session_id"] = folders[-1]
        elif len(folders) > 1 and folders[-1] == "branches":
            columns["session_id"] = folders[-2]
            columns["source_id"] = f"{folders[-2]}/branches/{name.removesuffix('.jsonl')}"
            self.run.link("fork", target_session_id=folders[-2])
        super().read_lines()

    def line(self, source: SourceObject) -> None:
        """A message, by its role."""
        role = source.word("role")
        if "content" not in source or not role:
            self.losses.unknown(f"record without a role: {next(iter(source.values), 'empty')}")
            self.other(source)
            return
        if role == "tool" or (role == "system" and self._answers(source)):
            self._result(source)
            return
        if role not in _ROLES:
            self.losses.unknown(f"role {role}")
        else:
            source.drop("role")
        agent = role == "assistant"
        step = self.run.step(_ROLES.get(role, "environment"), "llm_turn" if agent else "message")
        take_time(source, step.columns, "timestamp")
        if source.first("ui_only") == ord("t"):
            step.columns["visibility"] = "user"
        if agent:
            self._turn(source, step)
        else:
            self.blocks.content(source.take("content"), step, f"{source.path}.content")
        merge_extra(step.extra, source.rest())

    def _answers(self, source: SourceObject) -> bool:
        """Whether a message of the program is what a tool answered, or stands after an answer."""
        if source.first("ui_only") == ord("t"):
            return False
        last = self.run.steps[-1].columns["source"] if self.run.steps else ""
        return last == "agent" or bool(source.word("call_id"))

    def _turn(self, source: SourceObject, step: StepDraft) -> None:
        raw = source.take("content")
        if raw is not None and jsontext.first_byte(raw) == QUOTE:
            text = jsontext.decode_value(raw)
            step.parts.text(self.builder.text(text))
            rest, last = "", 0
            for name, call_id, start, at, end in calls_in(text):
                rest, last = rest + text[last:start], end
                arguments = jsontext.raw(text[at:end])
                columns = call_columns(name, call_id, arguments)
                columns |= {"origin": "parsed_from_text", "span_start": start, "span_end": end}
                step.call(columns)
            if step.calls:
                step.columns["prose"] = (rest + text[last:]).strip()
        else:
            self.blocks.content(raw, step, f"{source.path}.content")
        about = source.child("metadata")
        step.columns["model"] = about.text("model")
        if step.columns["model"]:
            self.run.columns["agent_model"] = step.columns["model"]
        step.columns["reasoning_effort"] = about.text("reasoning_effort")
        step.columns["cost_usd"] = about.number("cost")
        if "usage" in about:
            take_usage(about, "usage", step.columns, USAGE)
        else:
            set_usage(about, step.columns, USAGE)  # as older versions write it

    def _result(self, source: SourceObject) -> None:
        if source.word("role") == "tool":
            source.drop("role")
        draft = self.run.observe({}, answers=source.name("call_id"), by_order=True)
        draft.columns["name"] = source.child("metadata").text("tool")
        take_time(source, draft.columns, "timestamp")
        self.blocks.result(source.take("content"), draft, f"{source.path}.content")
        draft.extra.update(source.rest())


def calls_in(text: str) -> Iterator[tuple[str, str, int, int, int]]:
    """The calls that an answer makes: tool, id, and where call, arguments and their end are.

    Args:
        text: the answer.
    """
    if jsontext.has_mark(text) or ";base64," in text:
        return  # the text of the column is another one
    decoder = json.JSONDecoder()
    for match in _CALL.finditer(text):
        try:
            _, end = decoder.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            continue
        arguments = text[match.end() : end]
        if jsontext.is_valid(arguments):
            yield match[1], match[2], match.start(), match.end(), end


class GptmeReader(LogReader):
    """The format ``gptme``."""

    name = "gptme"
    title = "Conversations of gptme"
    recognised = "lines of a role, a content and a timestamp, with keys of gptme alone"
    versions = "reads conversation.jsonl with metadata of both forms, and branches"
    log = GptmeSession

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A message with marks or metadata of gptme; one without is of its shape."""
        keys = set(record)
        if not {"role", "content", "timestamp"} <= keys or not keys <= _KEYS:
            return Match.NO
        if word(record, "role") not in {*_ROLES, "tool"} or not word(record, "timestamp"):
            return Match.NO
        model = {"model", "cost"} <= set(inner(record, "metadata"))
        return Match.STAMP if keys & _MARKS or model else Match.SHAPE


CONVERTER = GptmeReader()
