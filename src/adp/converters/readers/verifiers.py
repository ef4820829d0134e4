"""Traces of verifiers (version 1), and the rows of results that came before them.

A trace is a graph of messages, each with its parent and the tokens that it adds. The way to the
last message is the trajectory; other leaves are branches, and further roots are subagents. Of a
sampled message the written tokens are in columns, and what its template put before them is
``token_ids`` of ``extra``, as are the tokens of other messages. Sources: verifiers 0.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Raw

from adp.converters.kit.chat import chat_message
from adp.converters.kit.drafts import StepDraft, TrajectoryDraft, append_extra, merge_extra
from adp.converters.kit.key_tables import take_tools
from adp.converters.kit.rewards import set_weighted
from adp.converters.kit.session import LogReader, first_item, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_start, take_time
from adp.converters.kit.token_columns import take_span
from adp.converters.kit.tree import EntryLine, split
from adp.converters.kit.usage import OPENAI, take_usage
from adp.converters.readers.verifiers_results import ResultRow
from adp.converters.reading import BRACE, BRACKET, NULL, QUOTE
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.protocols import Match

_OF_RESULTS = frozenset(
    {"example_id", "metrics", "task", "info", "answer", "timing", "stop_condition", "state"}
)


class VerifiersRow(ResultRow):
    """One trace, or one row of results."""

    def line(self, source: SourceObject) -> None:
        """Read a row."""
        if "nodes" in source:
            self._trace(source)
        elif "completion" in source:
            self.read_result(source)
        else:
            raise RecordError("there are neither nodes nor a completion")
        merge_extra(self.run.extra, source.rest())

    def read_lines(self) -> None:
        """Keep what is known of the whole evaluation; the first row has it."""
        for _, source in self.side_objects():
            self.run.extra["evaluation"] = source.rest()
        super().read_lines()

    def _trace(self, source: SourceObject) -> None:
        columns, agent = self.run.columns, source.child("agent")
        columns["source_id"] = source.name("id")
        columns["source_version"] = source.name("version")
        columns["agent_name"] = word(agent.values, "name") or self.agent
        columns["agent_model"] = word(inner(agent.values, "config"), "model") or None
        take_tools(source, columns)
        self._calls: dict[int, list[SourceObject]] = {}
        for call in source.objects("calls"):
            self._calls.setdefault(call.integer_at("node", 32) or 0, []).append(call)
        self._is_trained = bytes(agent.values.get("trainable", b"true")) != b"false"
        self._graph(source.objects("nodes"))
        if lone := [call.rest() for calls in self._calls.values() for call in calls]:
            self.run.extra["calls"] = lone
        task = source.child("task")
        data = task.child("data")
        self.take_task(task.name("key") or data.name("id", "example_id", "idx"), data)
        take_start(source.child("timing"), columns, "start")
        self.take_outcome(source)
        set_weighted(columns, inner(source.values, "rewards"), self.losses)

    def _graph(self, nodes: Sequence[SourceObject]) -> None:
        """Read the graph: a tree for each root, of which one has the trajectory."""
        parents = [_parent(node, place) for place, node in enumerate(nodes)]
        roots: list[int] = []
        trees: dict[int, list[int]] = {}
        self._compacted: set[int] = set()
        for place, parent in enumerate(parents):
            roots.append(place if parent is None else roots[parent])
            trees.setdefault(roots[-1], []).append(place)
            link = first_item(nodes[place].values, "semantic_parents")
            if parent is not None and word(link, "type").startswith("compaction"):
                self._compacted.add(parent)
        main, queries = self.run, {root: _query(nodes, trees[root]) for root in trees}
        same = [root for root in trees if queries[root] == queries[0] or root == 0]
        for root in sorted(trees, key=lambda it: it != same[-1]):
            places = trees[root]
            names = [str(place) for place in places]
            line = split(names, [str(parents[place]) for place in places])
            if root != same[-1]:
                self._begin_branch(main, 0, "alternate" if root in same else "subagent")
            self._line(line, [(nodes[place], place) for place in places], 0)
            self.run = self.blocks.run = main

    def _begin_branch(self, main: TrajectoryDraft, kept: int, kind: str) -> None:
        self.run = self.blocks.run = TrajectoryDraft(keeps=kept, kind=kind)
        names = ("agent_name", "agent_model", "source_version")
        self.run.columns = {name: main.columns[name] for name in names}
        main.branches.append(self.run)

    def _line(
        self, line: EntryLine, nodes: Sequence[tuple[SourceObject, int]], before: int
    ) -> None:
        counts = {}
        for at in line.entries:
            self._node(*nodes[at])
            counts[at] = before + len(self.run.steps)
        for branch in line.branches:
            main, kept = self.run, before if branch.after is None else counts[branch.after]
            is_edit = branch.after is not None and nodes[branch.after][1] in self._compacted
            self._begin_branch(main, kept, "continuation" if is_edit else "alternate")
            self._line(branch, nodes, kept)
            self.run = self.blocks.run = main

    def _node(self, node: SourceObject, place: int) -> None:
        """A message with its tokens."""
        sampled = node.flag("sampled")
        draft = chat_message(node.take_child("message"), self.blocks)
        take_time(node, draft.columns, "timestamp")
        if isinstance(draft, StepDraft):
            draft.columns["native_id"] = str(place)
        if isinstance(draft, StepDraft) and draft.columns["source"] == "agent":
            if sampled:
                self._turn(node, draft, place)
            else:
                draft.columns["llm_call_count"] = 0  # a prompt supplied it
        elif sampled:
            node.values["sampled"] = jsontext.raw("true")
        rest = node.rest()  # empty lists are what every node has
        merge_extra(draft.extra, {key: it for key, it in rest.items() if it != Raw(b"[]")})

    def _turn(self, node: SourceObject, step: StepDraft, place: int) -> None:
        take_span(node, step.columns)
        calls = self._calls.pop(place, [])
        step.extra.update({"calls": [call.rest() for call in calls[:-1]]} if calls[1:] else {})
        for call in calls[-1:]:
            self._call(call, step)
        if not self._is_trained:
            step.columns["loss_weight"] = 0.0

    def _call(self, call: SourceObject, step: StepDraft) -> None:
        call.drop("node")
        columns = step.columns
        columns["model"] = call.text("model") or columns.get("model")
        if columns["model"] and self.run.columns.get("agent_model") is None:
            self.run.columns["agent_model"] = columns["model"]
        columns["stop_reason"] = call.text("finish_reason")
        take_usage(call, "usage", columns, OPENAI)
        span = SourceObject(call.values.get("time"), call.path, self.losses)
        start, end = span.number("start"), span.number("end")
        if start and end:
            columns["duration_ms"] = (end - start) * 1000
        if rest := call.rest():
            append_extra(step.extra, "calls", rest)


def _query(nodes: Sequence[SourceObject], places: Sequence[int]) -> bytes:
    """The first message of a user below a root: an agent whose system prompt changes keeps it."""
    messages = (inner(nodes[place].values, "message") for place in places)
    first = next((it for it in messages if word(it, "role") == "user"), {})
    return bytes(first.get("content", b""))


def _parent(node: SourceObject, place: int) -> int | None:
    """The node that a node follows; None for a root. One that is not there stays in the node."""
    parent = node.integer_at("parent", 32)
    is_known = parent is not None and 0 <= parent < place
    if is_known or node.first("parent") == NULL:
        node.drop("parent")
    return parent if is_known else None


class VerifiersReader(LogReader):
    """The format ``verifiers``."""

    name = "verifiers"
    title = "Traces and results of verifiers"
    container = "jsonl"
    recognised = "nodes and calls beside verifiers or rewards; prompt, completion and reward"
    versions = "reads traces of version 1, and rows of results with prompt and completion"
    log = VerifiersRow

    def side_files(self, source_file: str) -> tuple[str, ...]:
        """What is known of the evaluation."""
        folder, slash, name = source_file.rpartition("/")
        return (f"{folder}{slash}metadata.json",) if name == "results.jsonl" else ()

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A graph of messages, or a prompt and a completion with their reward."""
        starts = {key: jsontext.first_byte(raw) for key, raw in record.items()}
        trace = starts.get("nodes") == starts.get("calls") == BRACKET
        if trace and ("verifiers" in record or starts.get("rewards") == BRACE):
            return Match.STAMP
        row = {"prompt", "completion", "reward"} <= set(record) and "messages" not in record
        known = _OF_RESULTS & set(record)
        chat = "role" in first_item(record, "completion") or starts.get("completion") == QUOTE
        return Match.STAMP if row and known and chat else Match.NO


CONVERTER = VerifiersReader()
