"""Answers of ToolBench: a tree of thoughts, actions and their inputs, or single chains of them.

A thought, an action and its input are one turn, with the observation of the input. The way that
found the answer is the trajectory, or the last one that was tried; what leaves it are branches.
The messages that each turn was asked with are kept once, and referred to by their places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.chat import MessagePool, chat_message
from adp.converters.kit.conversations import items_of
from adp.converters.kit.drafts import StepDraft
from adp.converters.kit.key_tables import take_tools
from adp.converters.kit.session import LogReader, SessionLog, inner
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.tree import EntryLine, split
from adp.converters.reading import BRACE, BRACKET, begins
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.protocols import Match

_FINE = (0, 3, 4)
"""Codes of observations: an answer, the end, giving up; all others are errors."""
_TURN = frozenset({"Thought", "Action"})


@dataclass
class AnswerNode:
    """A node of the tree.

    Attributes:
        source: what it says.
        parent: place of the node that it follows; None for the first one.
        kind: its type.
        text: its description.
        is_finished: whether the answer was found below it.
    """

    source: SourceObject
    parent: int | None
    kind: str = ""
    text: str = ""
    is_finished: bool = False

    def __post_init__(self) -> None:
        self.kind = self.source.word("node_type")
        self.text = self.source.word("description")
        self.is_finished = bytes(self.source.values.get("finished", b"")) == b"true"


class ToolBenchAnswer(SessionLog):
    """One answer."""

    agent = "toolbench"

    def line(self, source: SourceObject) -> None:
        """Read an answer.

        Raises:
            RecordError: there is no tree and no chain.
        """
        about = source.child("answer_generation")
        nodes = self.nodes = self._tree(source) if "tree" in source else self._chains(source)
        if not nodes:
            raise RecordError("there is neither a tree nor a chain")
        columns, finish = self.run.columns, about.text("finish_type")
        columns["stop_reason"] = finish
        columns["terminated"] = finish in ("give_answer", "give_up") if finish else None
        columns["final_answer"] = about.text("final_answer")
        about.values["tools"] = about.values.pop("function", Raw(b"null"))
        take_tools(about, columns)
        self._prompt(about)
        self._pooled(source, about, nodes)
        parents = [None if node.parent is None else str(node.parent) for node in nodes]
        ends = [place for place, node in enumerate(nodes) if node.is_finished]
        line = split(list(map(str, range(len(nodes)))), parents, ends[-1] if ends else None)
        self._line(line, 0)
        self.run.extra.update(source.rest())

    def _tree(self, source: SourceObject) -> list[AnswerNode]:
        """The nodes of a tree, each before those that follow it."""
        tree = source.child("tree")
        nodes: list[AnswerNode] = []
        todo: list[tuple[SourceObject, int | None]] = [(tree.take_child("tree"), None)]
        while todo:
            item, parent = todo.pop()
            todo += [(child, len(nodes)) for child in reversed(item.objects("children"))]
            nodes.append(AnswerNode(item, parent))
            if bytes(item.values.get("children", b"")) == b"[]":
                item.drop("children")
        return nodes

    def _chains(self, source: SourceObject) -> list[AnswerNode]:
        """The nodes of single chains, which all begin with the same prompt."""
        nodes = [AnswerNode(SourceObject(None, "$", self.losses), None)]
        tries = source.objects("trys")
        for item in tries:
            parent = 0
            for node in item.objects("chain"):
                nodes.append(AnswerNode(node, parent))
                parent = len(nodes) - 1
        if any(rests := [item.rest() for item in tries]):
            source.values["trys"] = jsontext.raw(jsontext.text_of(rests))
        return nodes if len(nodes) > 1 else []

    def _prompt(self, about: SourceObject) -> None:
        """What the first turn was asked with: the system prompt and the query."""
        query, is_known = about.word("query"), False
        for item in next(iter(_lists(about.values.get("train_messages"))), []):
            message = SourceObject(item, "$.answer_generation.train_messages[0]", self.losses)
            if message.word("role") not in ("system", "user"):
                break
            is_known = is_known or query in message.word("content")
            chat_message(message, self.blocks)
        if query and not is_known:
            self.blocks.take_text(about, self.run.step("user").parts, "query")

    def _pooled(
        self, source: SourceObject, about: SourceObject, nodes: Sequence[AnswerNode]
    ) -> None:
        """Lists that repeat messages and nodes, as references to them."""
        pool, messages = MessagePool(), []
        turns = _lists(about.values.get("train_messages"))
        for message in (message for turn in turns for message in turn):
            if not pool.has(jsontext.one_line(message)):
                pool.add(message)
                messages.append(message)
        if messages:
            about.drop("train_messages")
            self.run.extra["messages"] = messages
            self.run.extra["train_messages"] = [pool.references(turn) for turn in turns]
        written = MessagePool()
        for node in nodes:
            written.add(jsontext.encode(node.source.values))
        if candidates := _lists(source.values.get("compare_candidates")):
            source.drop("compare_candidates")
            lists = [[_compact(it) for it in part] for part in candidates]
            self.run.extra["compare_candidates"] = [written.references(it) for it in lists]

    def _line(self, line: EntryLine, before: int) -> None:
        """Read the nodes of a line; a branch that leaves inside a turn says it again."""
        nodes, counts = self.nodes, {}
        step = self._again(line)
        for place in line.entries:
            counts[place] = before + len(self.run.steps) - (step is not None)
            step = self._node(nodes[place], place, step)
            if step is None:
                counts[place] = before + len(self.run.steps)
        for branch in line.branches:
            main, kept = self.run, before if branch.after is None else counts[branch.after]
            self.run = main.branch(kept, "alternate", agent_name=self.agent)
            self._line(branch, kept)
            self.run = main

    def _again(self, line: EntryLine) -> StepDraft | None:
        """The turn that a branch goes on with, when it leaves after a thought or an action."""
        before: list[AnswerNode] = []
        at = line.after
        while at is not None and self.nodes[at].kind in _TURN:
            before.insert(0, self.nodes[at])
            at = self.nodes[at].parent
            if before[0].kind == "Thought":
                break
        step: StepDraft | None = None
        for node in before:
            step = self._add(node, step)
        return step

    def _node(self, node: AnswerNode, place: int, step: StepDraft | None) -> StepDraft | None:
        """Add a node to the turn at hand, and return it while it goes on."""
        source = node.source
        if node.parent is None and not node.text:  # the root of the tree has no text
            if rest := source.rest():
                self.run.extra["root"] = rest
            return None
        if node.kind in _TURN:
            step = self._add(node, step)
            source.drop("description")
        else:
            step = step or self.run.step("agent", "llm_turn")
            self._input(node, step)
        step.columns.setdefault("native_id", str(place))
        if rest := source.rest():
            step.extra.setdefault("nodes", []).append(rest)
        return step if node.kind in _TURN else None

    def _add(self, node: AnswerNode, step: StepDraft | None) -> StepDraft:
        if step is None or step.calls or node.kind == "Thought":
            step = self.run.step("agent", "llm_turn")
        if node.kind == "Thought":
            step.parts.text(self.builder.text(node.text))
        else:
            step.call(call_columns(node.text, None, None))
        return step

    def _input(self, node: AnswerNode, step: StepDraft) -> None:
        """The arguments of the call, and their observation."""
        source = node.source
        if not step.calls:
            step.call(call_columns(None, None, None))
        if node.kind == "Action Input":
            call = step.calls[-1].columns
            call |= call_columns(call["name"], None, source.take("description"))
        else:
            self.losses.unknown(f"node {node.kind or 'without a type'}")
        draft = self.run.observe({}, by_order=True)
        self.blocks.result(source.take("observation"), draft, source.path)
        if (code := source.integer_at("observation_code")) is not None:
            draft.columns["is_error"] = code not in _FINE
            draft.extra["observation_code"] = source.take("observation_code")


def _lists(raw: Raw | None) -> list[list[Raw]]:
    """The lists of a list that holds lists of objects only."""
    items = items_of(raw)
    if not all(begins(item, BRACKET) for item in items):
        return []
    lists = [items_of(item) for item in items]
    return lists if all(begins(it, BRACE) for part in lists for it in part) else []


def _compact(raw: Raw) -> Raw:
    return jsontext.raw(jsontext.text_of(jsontext.decode_object(raw)))


class ToolBenchReader(LogReader):
    """The format ``toolbench``."""

    name = "toolbench"
    title = "Answers of ToolBench"
    container = "json"
    recognised = "answer_generation with a query, beside a tree or tries"
    versions = "reads trees of a depth-first search, and chains"
    log = ToolBenchAnswer

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """An answer with the tree that it was found in."""
        about: dict[str, Any] = inner(record, "answer_generation")
        is_answer = "query" in about and ("tree" in record or "trys" in record)
        return Match.STAMP if is_answer else Match.NO


CONVERTER = ToolBenchReader()
