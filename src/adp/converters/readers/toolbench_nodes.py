"""Nodes of an answer of ToolBench, in one list: those of a tree, or of several chains."""

from __future__ import annotations

from dataclasses import dataclass

from adp.converters.kit.source_object import SourceObject, embedded
from adp_schema import jsontext


def take_answer(source: SourceObject) -> str | None:
    """The final answer: of the arguments of the call that gives it, the sentence in them.

    Those arguments stay in the source.
    """
    text = source.word("final_answer")
    arguments = embedded(text, source.path, source.losses) if text.lstrip()[:1] == "{" else None
    if arguments and "return_type" in arguments:
        return arguments.text("final_answer")
    return source.text("final_answer")


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


def tree_nodes(source: SourceObject) -> list[AnswerNode]:
    """The nodes of a tree, each before those that follow it.

    Args:
        source: the answer; the nodes are taken from it.
    """
    nodes: list[AnswerNode] = []
    todo: list[tuple[SourceObject, int | None]] = [(source.child("tree").take_child("tree"), None)]
    while todo:
        item, parent = todo.pop()
        place = len(nodes)
        nodes.append(AnswerNode(item, parent))
        todo += [(child, place) for child in reversed(item.objects("children"))]
        if bytes(item.values.get("children", b"")) == b"[]":
            item.drop("children")
    return nodes


def chain_nodes(source: SourceObject) -> list[AnswerNode]:
    """The nodes of single chains, which all follow a first node that says nothing.

    Args:
        source: the answer; the nodes are taken from it.
    """
    nodes = [AnswerNode(SourceObject(None, "$", source.losses), None)]
    tries = source.objects("trys")
    for item in tries:
        parent = 0
        for node in item.objects("chain"):
            nodes.append(AnswerNode(node, parent))
            parent = len(nodes) - 1
    if any(rests := [item.rest() for item in tries]):
        source.values["trys"] = jsontext.raw(jsontext.text_of(rests))
    return nodes if len(nodes) > 1 else []
