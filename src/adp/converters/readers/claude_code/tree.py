"""The lines of a Claude Code session: what the model saw in one context, and what leaves it.

Records point to the one before (``parentUuid``), but not every second child is a branch: each
block of a response is a record, each result of parallel calls points to its own call, and hooks
and attachments hang wherever they came in. So only prompts and turns of the model are nodes; any
other record belongs to the node that it comes after.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from adp.converters.kit.tree import EntryLine


class Record(NamedTuple):
    """What decides where a record belongs.

    Attributes:
        uuid: its id.
        parent: id of the record that it follows.
        node: "prompt" or "turn", for a record that can begin a branch; else empty.
        turn: id of the response that it is a block of.
        thread: the agent that it belongs to; empty for the main one.
        side: whether it belongs to an agent that nothing names but the chain of records.
        calls: ids of the calls in it.
        after_call: id of the call that it answers, or that started its agent.
    """

    uuid: str = ""
    parent: str = ""
    node: str = ""
    turn: str = ""
    thread: str = ""
    side: bool = False
    calls: tuple[str, ...] = ()
    after_call: str = ""


class Threads:
    """Finds for each record its thread, the record that it follows, and its node."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records
        self.threads: list[str] = []
        self.after: list[int | None] = []
        self.nodes: list[int] = []
        self._places: dict[str, int] = {}
        self._calls: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._turns: dict[tuple[str, str], int] = {}
        for place, record in enumerate(records):
            self._add(place, record)

    def _add(self, place: int, record: Record) -> None:
        parent = self._places.get(record.parent) if record.parent else None
        thread = record.thread
        if record.side and not thread:
            thread = self._side(place, record, parent)
        call = self._calls.get(record.after_call) if record.after_call else None
        if thread in self._last and (parent is None or self.threads[parent] != thread):
            follows_call = call is not None and self.threads[call] == thread
            parent = call if follows_call else self._last[thread]
        elif parent is None:
            parent = call if call is not None else self._last.get("")
        self.threads.append(thread)
        self.after.append(parent)
        self.nodes.append(self._node(place, record, thread, parent))
        self._last[thread] = place
        if record.uuid:
            self._places[record.uuid] = place
        for name in record.calls:
            self._calls.setdefault(name, place)

    def _side(self, place: int, record: Record, parent: int | None) -> str:
        """The thread of a subagent without a name: that of its chain, or a new one."""
        if parent is not None and self.threads[parent]:
            return self.threads[parent]
        if record.parent and parent is None:  # a piece of the chain is missing
            return next((it for it in reversed(self._last) if it.startswith("side ")), "side 0")
        return f"side {place}"

    def _node(self, place: int, record: Record, thread: str, parent: int | None) -> int:
        if record.node:
            return self._turns.setdefault((thread, record.turn), place) if record.turn else place
        if parent is None or self.threads[parent] != thread:
            return place
        return self.nodes[parent]

    def before(self, node: int) -> int | None:
        """The node that a node follows."""
        parent = self.after[node]
        return None if parent is None else self.nodes[parent]

    def leaf(self) -> int:
        """The last node of the main thread; of any, when it has none."""
        order = range(len(self.records) - 1, -1, -1)
        main = [place for place in order if self.threads[place] == ""]
        nodes = [place for place in main if self.records[place].node]
        return self.nodes[(nodes or main or list(order))[0]]


def lines_of(records: Sequence[Record]) -> EntryLine:
    """Cut the records of a file into the line of the last prompt, and the lines that leave it.

    Args:
        records: in the order of the file.

    Returns:
        The main line; subagents and abandoned lines as its branches, and theirs.
    """
    if not records:
        return EntryLine()
    threads = Threads(records)
    lines: dict[int, EntryLine] = {}
    tops: list[tuple[int, EntryLine]] = []
    for end in (threads.leaf(), *sorted(set(threads.nodes), reverse=True)):
        line, top = EntryLine(), end
        at: int | None = end
        if end in lines:
            continue
        while at is not None and at not in lines and threads.threads[at] == threads.threads[end]:
            lines[at], top = line, at
            at = threads.before(at)
        tops.append((top, line))
    for place, node in enumerate(threads.nodes):
        lines[node].entries.append(place)
    main = tops[0][1]
    turns = Counter(threads.before(node) for node in lines if records[node].node == "turn")
    for top, line in sorted(tops[1:], key=lambda item: item[0]):
        before = threads.before(top)
        outer = main if before is None else lines[before]
        line.after = None if before is None else threads.after[top]
        if threads.threads[top] and (
            before is None or threads.threads[before] != threads.threads[top]
        ):
            line.kind = "subagent"
        else:
            again = records[top].node == "turn" and turns[before] > 1
            line.kind = "alternate" if again else "rewind"
        outer.branches.append(line)
    return main
