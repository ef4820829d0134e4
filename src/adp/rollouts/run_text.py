"""A run as one text in tags, and what is malformed about its turns.

A run of ET-Agent is such a text by itself. Of another run what a store keeps apart is put between
tags: reasoning in ``<think>``, what came back in ``<result>``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adp.core.json_values import json_or_none
from adp.core.tagged_run import TAGS as RUN_TAGS
from adp.rollouts.trajectory_reading import AgentStep, agent_steps, cut
from adp.rollouts.turns import ErrorType
from adp_schema.model import Trajectory

TAGS = (
    "<tool_call>",
    "</tool_call>",
    "[TOOL_CALL]",
    "[/TOOL_CALL]",
    "[TOOL_CALLS]",
    "<function=",
    "<function_call>",
    "<function_calls>",
    "<invoke name=",
    "<|tool_call|>",
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>",
    "<|python_tag|>",
    "<\uff5ctool\u2581call\u2581begin\uff5c>",
)
"""Marks that models write around calls; in a text they say that a call was not read."""

_ACTS = ("<search>", "<python>", "<answer>")


def is_tagged(steps: Sequence[AgentStep]) -> bool:
    """Whether the agent calls or answers between ET-Agent's tags, in a text of any of its steps."""
    return any(tag in (step.row.text or "") for step in steps for tag in _ACTS)


def run_text(steps: Sequence[AgentStep]) -> str:
    """All that the agent wrote, with the results of its calls in ``<result>`` tags."""
    parts = []
    for step in steps:
        text = step.row.text or ""
        if step.row.reasoning and "<think>" not in text:
            parts.append(f"<think>{step.row.reasoning}</think>")
        parts.append(text)
        if "<result>" not in text:
            parts += [_result(result.text or "") for result in step.row.observations]
    return "".join(parts)


def _result(text: str) -> str:
    return text if text.lstrip().startswith("<result>") else f"<result>{text}</result>"


def has_tags(text: str) -> bool:
    """Whether a text holds a tag of ET-Agent's."""
    return RUN_TAGS.search(text) is not None


def run_fault(trajectory: Trajectory) -> str | None:
    """Why a run whose calls are data is malformed; None when it is well formed.

    It has an answer at its end, and no malformed turn.
    """
    steps = agent_steps(trajectory)
    if not steps:
        return "the agent made no turn"
    for step in steps:
        if (fault := turn_fault(step)) is not None:
            return fault
    last = steps[-1]
    answered = trajectory.final_answer is not None or (not last.calls and bool(last.row.text))
    return None if answered else "there is no final answer"


def turn_fault(step: AgentStep) -> str | None:
    """Why a turn of the agent is malformed; None when it is well formed."""
    extra = json_or_none(step.row.extra)
    malformed = extra.get("malformed") if isinstance(extra, Mapping) else None
    if malformed:
        return f"malformed: {malformed}"
    parsing = str(ErrorType.PARSING)
    for result in step.row.observations:
        if result.error_type == parsing and result.call is None and result.call_id is None:
            return "the environment could not read the turn"
    for call in step.calls:
        if call.arguments is None and call.kind in ("function", "mcp", None):
            return f"the arguments of {cut(call.name, 60)} are no JSON object"
    # A text whose calls were read from it still holds their tags; prose is what is left of it.
    read = any(call.origin == "parsed_from_text" for call in step.row.calls)
    text = step.row.prose if read else step.row.text
    tag = next((tag for tag in TAGS if text and tag in text), None)
    return f"the text holds {tag}, which no call was read from" if tag else None
