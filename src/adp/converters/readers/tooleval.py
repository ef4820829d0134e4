"""Answers as ToolEval judges them: an object of queries, each with the way to its answer.

The way is a tree of messages, each with what comes ``next``. Messages of a tool say the call and
its response in a text of Python, which stays as it is. Sources: the data of ToolEval.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.drafts import ObservationDraft, StepDraft, TrajectoryDraft, emit
from adp.converters.kit.session import LogReader, SessionLog, first_item, inner
from adp.converters.kit.source_object import SourceObject
from adp.converters.readers.toolbench_nodes import take_answer
from adp.converters.reading import BRACE, tools_text
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.protocols import Match

_SOURCES = {"system": "system", "user": "user", "assistant": "agent"}
_ANSWER = frozenset({"query", "available_tools", "answer"})


class ToolEvalAnswers(SessionLog):
    """All answers of a file."""

    agent: ClassVar[str | None] = "toolbench"

    def read(self) -> None:
        """Read each answer.

        Raises:
            RecordError: there is none.
        """
        number = 0
        for source, _ in self.sources():
            for name in list(source.values):
                answer = source.take_child(name)
                if not answer:
                    continue
                self._answer(name, answer)
                if not number and (rest := source.rest()):
                    others = {key: raw for key, raw in rest.items() if not _is_object(raw)}
                    self.run.extra.update(others)
                emit(self.run, self.builder)
                number += 1
        if not number:
            raise RecordError("there is no answer")

    def _answer(self, name: str, source: SourceObject) -> None:
        self.run = self.blocks.run = TrajectoryDraft()
        columns, answer = self.run.columns, source.child("answer")
        columns["source_id"] = columns["task_id"] = name
        columns["agent_name"] = answer.text("method") or self.agent
        columns["final_answer"] = take_answer(answer)
        tools = tools_text(source.values.get("available_tools"))
        if tools is not None:
            columns["tools"], columns["tools_origin"] = tools, "recorded"
            source.drop("available_tools")
        if source.word("query"):
            self.builder.task({"task_id": name, "instruction": source.text("query")})
        main = self.run
        for number, node in enumerate(answer.objects("answer_details")):
            if number:
                self._branch(main, 0)
            self._way(node)
        self.run = self.blocks.run = main
        self.run.extra.update(source.rest())

    def _branch(self, main: TrajectoryDraft, kept: int) -> None:
        self.run = self.blocks.run = TrajectoryDraft(keeps=kept)
        self.run.columns["agent_name"] = main.columns["agent_name"]
        main.branches.append(self.run)

    def _way(self, node: SourceObject) -> None:
        """A node and what comes after it; of several ways the last one goes on."""
        way: list[SourceObject] = [node]
        todo: list[tuple[TrajectoryDraft, int, SourceObject]] = []
        before = 0
        while way:
            node = way.pop()
            following = node.objects("next")
            self._message(node)
            at = before + len(self.run.steps)
            todo += [(self.run, at, other) for other in reversed(following[:-1])]
            way += following[-1:]
            if not way and todo:
                main, before, other = todo.pop()
                self._branch(main, before)
                way.append(other)

    def _message(self, node: SourceObject) -> None:
        role, text = node.word("role"), node.text("message")
        draft: StepDraft | ObservationDraft
        if role == "tool":
            draft = self.run.observe({})
        else:
            source = _SOURCES.get(role, "environment")
            draft = self.run.step(source, "llm_turn" if source == "agent" else "message")
            if source == "environment":
                self.losses.unknown(f"role {role or 'without a name'}")
        if role in _SOURCES or role == "tool":
            node.drop("role")
        if text is not None:
            draft.parts.text(self.builder.text(text))
        if bytes(node.values.get("next", b"")) == b"[]":
            node.drop("next")
        draft.extra.update(node.rest())


def _is_object(raw: object) -> bool:
    return isinstance(raw, Raw) and jsontext.first_byte(raw) == BRACE


class ToolEvalReader(LogReader):
    """The format ``tooleval``."""

    name = "tooleval"
    title = "Answers that ToolEval judges"
    container = "json"
    recognised = "an object of objects with query, available_tools and answer.answer_details"
    versions = "reads the converted answers of all methods"
    log = ToolEvalAnswers

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """The first answer has the tree of its messages."""
        name = next(iter(record), "")
        values = inner(record, name)
        details = first_item(inner(values, "answer"), "answer_details")
        return Match.STAMP if set(values) >= _ANSWER and "role" in details else Match.NO


CONVERTER = ToolEvalReader()
