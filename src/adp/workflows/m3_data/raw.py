"""One sample of M3's raw benchmark as a record of ground truth, without thoughts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adp.rollouts.environments.m3_scenario import DOCUMENTS, RETRIEVE

NO_TOOLS = "no tools"
NO_CALL = "a hop without a tool call"
SEVERAL = "several outputs at one hop"

COLLECTION = "clapnq-"
"""Begins the name of a collection of documents; the domain follows."""


class LeftOutError(Exception):
    """A sample is left out.

    Args:
        reason: why, in words that are the same for the same cause.
        path: where in the sample.
        dropped: it is complete and of no use; else it is wrong.
        text: what a model said last, where that is the cause.
    """

    def __init__(
        self, reason: str, path: str = "$", *, dropped: bool = False, text: str | None = None
    ) -> None:
        super().__init__(reason)
        self.reason, self.path, self.dropped, self.text = reason, path, dropped, text


def value_at(item: Any, key: str, path: str, *kinds: type) -> Any:
    """A value of an object.

    Raises:
        LeftOutError: it is no object, has no such key, or the value is of another type.
    """
    if not isinstance(item, Mapping):
        raise LeftOutError("not an object", path)
    if key not in item:
        raise LeftOutError(f"no {key}", path)
    if kinds and not isinstance(item[key], kinds):
        raise LeftOutError(f"{key} has another type", f"{path}.{key}")
    return item[key]


def ground_truth_of(sample: Any) -> dict[str, Any]:
    """The record of ground truth of a raw sample.

    Args:
        sample: the JSON value; ``turns`` with ``query``, ``answer`` and ``gold_sequence``, whose
            hops have ``question``, ``question_type`` and either ``output`` and
            ``OUTPUT_AFTER_EXECUTING_API`` or ``db_id`` and ``rag_doc``.

    Raises:
        LeftOutError: it has no tools, a hop has no call or several, or something is missing.
    """
    sample_id = value_at(sample, "sample_id", "$", str, int)
    tools = sample.get("tools")
    if not tools:
        raise LeftOutError(NO_TOOLS, dropped=True)
    tools = [
        _tool(tool, f"$.tools[{n}]") for n, tool in enumerate(value_at(sample, "tools", "$", list))
    ]
    listed = sample.get("retrievers") or []
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise LeftOutError("retrievers has another type", "$.retrievers")
    collections = list(dict.fromkeys(listed))
    turns = value_at(sample, "turns", "$", list)
    if not turns:
        raise LeftOutError("no turns", "$.turns")
    trajectory = [_turn(turn, collections, f"$.turns[{n}]") for n, turn in enumerate(turns)]
    record: dict[str, Any] = {
        "sample_id": str(sample_id),
        "tools": [*tools, _retrieve(collections)] if collections else tools,
        "doc_collections": collections,
        "num_turns": len(trajectory),
        "num_hops": [len(turn) // 2 - 1 for turn in trajectory],
    }
    if isinstance(sample.get("type"), str):
        record["type"] = sample["type"]
    return {**record, "trajectory": trajectory}


def _tool(tool: Any, path: str) -> dict[str, Any]:
    """A tool without the path of its endpoint."""
    value_at(tool, "name", path, str)
    return {key: value for key, value in tool.items() if key != "path"}


def _retrieve(collections: list[str]) -> dict[str, Any]:
    """The tool that retrieves, in the form of M3's files: its parameters are a whole schema."""
    properties = {name: dict(schema) for name, schema in DOCUMENTS["properties"].items()}
    properties["collection"]["enum"] = collections
    schema = {"type": "object", "required": list(DOCUMENTS["required"]), "properties": properties}
    description = "Finds documents in a collection that fit a query."
    return {"name": RETRIEVE, "description": description, "parameters": schema}


def _turn(turn: Any, collections: list[str], path: str) -> list[dict[str, Any]]:
    """The items of a turn: the query, call and response of each hop, the answer."""
    items: list[dict[str, Any]] = [{"input": value_at(turn, "query", path, str)}]
    for n, hop in enumerate(value_at(turn, "gold_sequence", path, list)):
        items += _hop(hop, collections, f"{path}.gold_sequence[{n}]")
    return [*items, {"plan": None, "answer": value_at(turn, "answer", path)}]


def _hop(hop: Any, collections: list[str], path: str) -> list[dict[str, Any]]:
    question = value_at(hop, "question", path, str)
    agent = "api_agent" if value_at(hop, "question_type", path) == "API" else "rag_agent"
    if agent == "api_agent":
        output, response = _api(hop, path)
    else:
        collection = COLLECTION + value_at(hop, "db_id", path, str)
        if collection not in collections:
            raise LeftOutError("a collection that the sample does not list", f"{path}.db_id")
        output = {"name": RETRIEVE, "arguments": {"collection": collection, "query": question}}
        response = _documents(value_at(hop, "rag_doc", path, str, list), f"{path}.rag_doc")
    call = {"plan": None, "question": question, "agent": agent, "output": output}
    return [call, {"response": response}]


def _api(hop: Mapping[str, Any], path: str) -> tuple[dict[str, Any], Any]:
    """The call of a hop, and what came back."""
    if not hop.get("output"):
        raise LeftOutError(NO_CALL, f"{path}.output", dropped=True)
    outputs = value_at(hop, "output", path, list)
    if len(outputs) > 1:
        raise LeftOutError(SEVERAL, f"{path}.output")
    value_at(outputs[0], "name", f"{path}.output[0]", str)
    response = value_at(hop, "OUTPUT_AFTER_EXECUTING_API", path)
    if response is None:
        raise LeftOutError("no OUTPUT_AFTER_EXECUTING_API", path)
    return outputs[0], response


def _documents(documents: str | list[Any], path: str) -> str:
    if isinstance(documents, str):
        return documents
    if not documents or not all(isinstance(text, str) for text in documents):
        raise LeftOutError("rag_doc has another type", path)
    return "\n".join(documents)
