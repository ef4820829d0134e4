"""Scenarios of M3: which tools are on offer, what is said about their use, and how to give up.

Source: m3-train-eval. The wording is our own; names of policies and scenarios are M3's.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast, get_args

from pydantic import Field

from adp.core.answers.words import normalised
from adp.rollouts.answer_match import final_part
from adp.rollouts.environment import POLICY, Settings
from adp.rollouts.turns import Tool

Availability = Literal["only_rag", "only_api", "both_api_rag", "neither_api_rag"]
Ordering = Literal["api_before_rag", "rag_before_api"]

RETRIEVE = "retrieve_documents"
"""The name of the tool that retrieves documents; all others are called APIs."""

SYSTEM = """\
You answer the questions of a user step by step. At each step either call one tool, or give the \
final answer when you know enough. Call one tool at a time and wait for its result. Think before \
each step about what you know and what is missing."""

ORDERINGS: Mapping[str, str] = {
    "api_before_rag": "Call what you need of the other tools first and retrieve documents after "
    "that; once you have retrieved documents, call no other tool.",
    "rag_before_api": "Retrieve the documents that you need first and call the other tools after "
    "that; once you have called another tool, retrieve no documents.",
}

INSUFFICIENT = (
    'If what you found does not suffice for an answer, say "{answer}" and nothing else.',
    'When the tools on offer cannot give you what you need, your final answer is "{answer}".',
    'Do not guess. Without enough information the final answer is "{answer}".',
    'Answer from what the tools told you; if that is not enough, answer "{answer}".',
    'Should a part of the information be out of reach, answer with the words "{answer}".',
)
FALLBACKS = (
    "I cannot answer this.",
    "I do not know.",
    "There is no answer.",
    "I am unable to answer.",
    "There is not enough information to answer.",
)
_M3_FALLBACKS = (
    *("I can not answer", "I don't know", "No answer available"),
    *("I'm unable to answer", "Insufficient information to respond"),
)
_REFUSALS = frozenset(normalised(text) for text in (*FALLBACKS, *_M3_FALLBACKS))

DOCUMENTS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "collection": {"type": "string", "description": "The collection to search."},
        "query": {"type": "string", "description": "What is looked for."},
    },
    "required": ["collection", "query"],
}


class M3Settings(Settings):
    """Settings of the environment ``m3``."""

    store: str | None = None
    """Store of converted reference data, for its tasks."""
    inner: str | None = None
    """Spec of an environment whose tools are called instead."""
    api: str | None = None
    """Spec of an environment, such as openapi:file=..., that answers calls of its tools in place of
    the recording."""
    availability: Availability | None = None
    """Which tools are on offer; none: what the task says."""
    enforce: bool = False
    """Refuse calls of tools that are not on offer; M3 does not."""
    usage: str | None = None
    """What is said about the use of tools; none: the task's words."""
    ordering: Ordering | None = None
    """Which sort of tools is to be called first."""
    retrieve: str | None = None
    """Environment retrieve_documents with its settings, whose tool answers instead of records."""
    judge: str | None = Field(default=None, json_schema_extra=POLICY)
    """Policy that is asked whether an answer is right, such as openai:model=...; none: a rule."""
    judge_rubric: Literal["binary", "partial"] = "binary"
    """What it says: yes or no; or 0 to 3, of which 3 is right."""
    retrievers: tuple[str, ...] = (RETRIEVE,)
    """Tools that retrieve documents."""
    horizon: int = Field(default=10, ge=1)
    """Steps over all turns."""
    collapse: bool = True
    """Replace what was done in a turn by its golden answer."""
    refusals: bool = True
    """Giving up is right when a tool that is needed is missing."""
    results: Literal["m3", "plain"] = "m3"
    """Whether results begin with M3's words, such as ToolCallError."""


def retrieve_tool(collections: Iterable[str]) -> Tool:
    """The tool that retrieves documents from some collections."""
    names = list(collections)
    properties = {name: dict(schema) for name, schema in DOCUMENTS["properties"].items()}
    if names:
        properties["collection"]["enum"] = names
    function = {
        "name": RETRIEVE,
        "description": "Finds documents in a collection that fit a query.",
        "parameters": {**DOCUMENTS, "properties": properties},
    }
    return {"type": "function", "function": function}


def chosen_availability(name: str | None) -> Availability:
    """The policy of that name; both sorts of tools where there is none."""
    return cast(Availability, name) if name in get_args(Availability) else "both_api_rag"


def is_available(name: str, availability: Availability, retrievers: Iterable[str]) -> bool:
    """Whether a tool is on offer under a policy."""
    if availability == "both_api_rag":
        return True
    if availability == "neither_api_rag":
        return False
    return (name in retrievers) == (availability == "only_rag")


def answer_policy(seed: int | None, cutoff: str | None) -> tuple[str, str]:
    """What is said about the final answer, and the words with which to give up.

    Args:
        seed: chooses both.
        cutoff: a further instruction of the task.
    """
    draw = random.Random(f"m3/final_answer/{seed}")
    fallback = draw.choice(FALLBACKS)
    text = draw.choice(INSUFFICIENT).format(answer=fallback)
    return (f"{text} {cutoff.strip()}" if cutoff and cutoff.strip() else text), fallback


def is_refusal(answer: str) -> bool:
    """Whether an answer says no more than that there is none."""
    return normalised(final_part(answer)) in _REFUSALS


def system_text(usage: str | None, final_answer: str) -> str:
    """The message of the system."""
    parts = [SYSTEM]
    if usage:
        parts.append(f"How to use the tools: {usage}")
    parts.append(f"About the final answer: {final_answer}")
    return "\n\n".join(parts)


def followed(scenario: str | None, kinds: Sequence[str]) -> bool:
    """Whether actions follow a scenario: M3's check of their kinds in order.

    Args:
        scenario: its name ends with ``api_before_rag``, ``rag_before_api``, ``rag_only`` or
            ``api_only``, or is ``only_rag`` or ``only_api``; any other is always followed.
        kinds: ``API``, ``RETRIEVE``, ``FINAL`` or ``OTHER`` of each action.
    """
    name = scenario or ""
    if name.endswith(("rag_only", "only_rag")):
        return "API" not in kinds
    if name.endswith(("api_only", "only_api")):
        return "RETRIEVE" not in kinds
    for ending, first, second in (
        ("api_before_rag", "API", "RETRIEVE"),
        ("rag_before_api", "RETRIEVE", "API"),
    ):
        if name.endswith(ending):
            if first not in kinds or second not in kinds:
                return False
            return first not in kinds[kinds.index(second) :]
    return True
