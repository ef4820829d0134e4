"""Answers of ToolBench: a tree of thoughts, actions and their inputs, or single chains of them.

A thought, an action and its input are one turn, with the observation of the input. The way that
found the answer is the trajectory, or the last one that was tried; what leaves it are branches.
The messages that each turn was asked with are kept once, and referred to by their places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.chat import MessagePool, chat_message
from adp.converters.kit.drafts import StepDraft, TrajectoryDraft, append_extra, merge_extra
from adp.converters.kit.key_tables import take_tools
from adp.converters.kit.session import LogReader, SessionLog, inner
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.tree import EntryLine, split
from adp.converters.readers.toolbench_nodes import AnswerNode, chain_nodes, take_answer, tree_nodes
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.protocols import Match

_FINE = (0, 3, 4)
"""Codes of observations: an answer, the end, giving up; all others are errors."""
_TURN = frozenset({"Thought", "Action"})


class ToolBenchAnswer(SessionLog):
    """One answer."""

    agent = "toolbench"

    def line(self, source: SourceObject) -> None:
        """Read an answer.

        Raises:
            RecordError: there is no tree and no chain.
        """
        about = source.child("answer_generation")
        nodes = tree_nodes(source) if "tree" in source else chain_nodes(source)
        if not nodes:
            raise RecordError("there is neither a tree nor a chain")
        columns, finish = self.run.columns, about.text("finish_type")
        columns["stop_reason"] = finish
        columns["terminated"] = finish in ("give_answer", "give_up") if finish else None
        columns["final_answer"] = take_answer(about)
        offered = SourceObject(None, about.path, self.losses)
        if (functions := about.take("function")) is not None:
            offered.values["functions"] = functions
        take_tools(offered, columns)
        if "functions" in offered:
            about.values["function"] = offered.values["functions"]
        self._prompt(about)
        self._pooled(source, about, nodes)
        names = [str(place) for place in range(len(nodes))]
        parents = [None if node.parent is None else str(node.parent) for node in nodes]
        ends = [place for place, node in enumerate(nodes) if node.is_finished]
        self.nodes = nodes
        self._line(split(names, parents, ends[-1] if ends else None), 0)
        merge_extra(self.run.extra, source.rest())

    # ---- the prompt, and lists that repeat ------------------------------------------------

    def _prompt(self, about: SourceObject) -> None:
        """What the first turn was asked with: the system prompt and the query."""
        raw = next(iter(_lists(about.values.get("train_messages"))), [])
        query, is_known = about.word("query"), False
        for item in raw:
            message = SourceObject(item, "$.answer_generation.train_messages[0]", self.losses)
            if message.word("role") not in ("system", "user"):
                break
            is_known = is_known or query in message.word("content")
            chat_message(message, self.blocks)
        if query and not is_known:
            step = self.run.step("user")
            step.parts.text(self.builder.text(about.text("query") or ""))

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
        candidates = _lists(source.values.get("compare_candidates"))
        if candidates:
            source.drop("compare_candidates")
            lists = [[_compact(it) for it in candidate] for candidate in candidates]
            self.run.extra["compare_candidates"] = [written.references(it) for it in lists]

    # ---- turns -----------------------------------------------------------------------------

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
            self.run = self.blocks.run = TrajectoryDraft(keeps=kept, kind="alternate")
            self.run.columns["agent_name"] = self.agent
            self._line(branch, kept)
            main.branches.append(self.run)
            self.run = self.blocks.run = main

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
        if node.parent is None and not node.text:  # the beginning, where nobody said anything
            if rest := source.rest():
                self.run.extra["root"] = rest
            return None
        if node.kind in _TURN:
            step = self._add(node, step)
            source.text("description")
        else:
            step = step or self.run.step("agent", "llm_turn")
            self._input(node, step)
        step.columns.setdefault("native_id", str(place))
        if rest := source.rest():
            append_extra(step.extra, "nodes", rest)
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
        """The arguments of the call, and what came back."""
        source = node.source
        if not step.calls:
            step.call(call_columns(None, None, None))
        if node.kind == "Action Input":
            step.calls[-1].columns |= call_columns(
                step.calls[-1].columns["name"], None, source.take("description")
            )
        else:
            self.losses.unknown(f"node {node.kind or 'without a type'}")
        draft = self.run.observe({}, by_order=True)
        raw = source.values.get("observation")
        if raw is not None:
            self.blocks.result(source.take("observation"), draft, source.path)
        code = source.integer_at("observation_code")
        if code is not None:
            draft.columns["is_error"] = code not in _FINE
            draft.extra["observation_code"] = source.take("observation_code")


def _lists(raw: Raw | None) -> list[list[Raw]]:
    """The lists of a list that holds lists of objects only."""
    if raw is None or jsontext.first_byte(raw) != BRACKET:
        return []
    items = jsontext.decode_array(raw)
    if any(jsontext.first_byte(item) != BRACKET for item in items):
        return []
    lists: list[list[Raw]] = [jsontext.decode_array(item) for item in items]
    objects = all(jsontext.first_byte(it) == BRACE for part in lists for it in part)
    return lists if objects else []


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
