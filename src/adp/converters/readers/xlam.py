"""Rows of xLAM: a query, the tools on offer, and the calls that answer it.

Tools and answers are lists, or strings of them. The calls are what the model is to say, so they
are its turn. Sources: the columns of xlam-function-calling-60k and of the tests of Hammer.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.chat import chat_message
from adp.converters.kit.drafts import StepDraft, merge_extra
from adp.converters.kit.session import LogReader, SessionLog
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE, BRACKET, QUOTE, tools_text
from adp_schema import jsontext
from adp_schema.protocols import Match


class XlamRow(SessionLog):
    """One row."""

    def line(self, source: SourceObject) -> None:
        """Read a row."""
        columns = self.run.columns
        columns["source_id"] = source.name("id")
        tools = tools_text(source.values.get("tools"))
        if tools is not None:
            columns["tools"], columns["tools_origin"] = tools, "recorded"
            if source.first("tools") == QUOTE:
                self.run.extra["tools"] = "json_string"
            source.drop("tools")
        query = source.text("query")
        if query is not None:
            self.run.step("user").parts.text(self.builder.text(query))
        for message in source.objects("query"):
            if message.word("role") == "agent":
                message.values["role"] = jsontext.raw('"assistant"')
            chat_message(message, self.blocks)
        self._answers(source)
        merge_extra(self.run.extra, source.rest())

    def _answers(self, source: SourceObject) -> None:
        step = self.run.step("agent", "llm_turn")
        raw = source.values.get("answers")
        text = tools_text(raw)
        items = jsontext.decode_array(text.encode("utf-8")) if text is not None else []
        if text is None or any(jsontext.first_byte(item) != BRACE for item in items):
            answer = source.text("answers")
            if answer is not None:
                step.parts.text(self.builder.text(answer))
            return
        if source.first("answers") == QUOTE:
            step.extra["answers"] = "json_string"
        source.drop("answers")
        for number, item in enumerate(items):
            _call(SourceObject(item, f"$.answers[{number}]", self.losses), step)


def _call(call: SourceObject, step: StepDraft) -> None:
    key = next((key for key in ("arguments", "parameters") if key in call), None)
    arguments = None if key is None else call.take(key)
    step.call(call_columns(call.text("name"), call.name("id"), arguments), call.rest())


class XlamReader(LogReader):
    """The format ``xlam``."""

    name = "xlam"
    title = "Rows of xLAM: query, tools and answers"
    container = "json_array"
    recognised = "query beside tools and answers that are lists, or strings of lists"
    versions = "reads rows whose tools and answers are lists or strings, queries of one or more"
    log = XlamRow

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A query with tools, and answers that are calls."""
        if not {"query", "tools", "answers"} <= set(record) or "messages" in record:
            return Match.NO
        lists = all(tools_text(record[key]) is not None for key in ("tools", "answers"))
        query = jsontext.first_byte(record["query"]) in (QUOTE, BRACKET)
        return Match.STAMP if lists and query else Match.NO


CONVERTER = XlamReader()
