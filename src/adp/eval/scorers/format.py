r"""Whether the agent wrote what can be read.

Three styles, because three systems mean different things by it:

- **structured** (the default): a turn of the agent is malformed when the rollout could not read it,
  when the arguments of one of its calls are no JSON object, or when its text holds the tags of a
  call that no call was read from;
- **playground** (LLM Tool Use Training Playground, ``format_correctness``): the text holds
  ``[TOOL_CALL]{"name": ..., "parameters": ...}[/TOOL_CALL]`` with a tool on offer; calls that were
  read already count by the same rule;
- **et_agent** (ET-Agent, ``validate_format``): as many ``<think>`` as ``</think>``, at least one;
  exactly one ``<answer>`` that holds ``\boxed{}``; each ``<search>`` and ``<python>`` is closed and
  followed by ``<result>`` and its end.

``format_correct`` is 1 when the whole run is well formed; ``turns_correct`` is the share of turns
(only for structured).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from adp.core.json_values import json_or_none
from adp.eval.metrics import evidence_figure
from adp.eval.scorer import Figure, Item, Score, Scored, ScorerKind
from adp.eval.scorers.base import PerTrajectory, unscored
from adp.eval.scorers.tool_schemas import ToolSchema, schemas_of
from adp.eval.scorers.trajectory_reading import SHOWN, AgentStep, agent_steps, cut
from adp.rendering.arguments import object_of
from adp.rollouts.environment import Settings
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

_RESULT_TAG = re.compile(r"<result>")
_THINK, _END = "<think>", "</think>"
_BLOCK_OPEN, _BLOCK_CLOSE = "[TOOL_CALL]", "[/TOOL_CALL]"


class FormatSettings(Settings):
    """Settings of the scorer ``format``."""

    style: Literal["structured", "playground", "et_agent"] = "structured"
    """What well formed means: structured (calls as data), playground ([TOOL_CALL] tags) or
    et_agent (tags of think, search, python, result and answer)."""


class FormatScorer(PerTrajectory):
    """Scores whether the agent wrote what can be read.

    Args:
        settings: its settings.
    """

    name = "format"
    metrics = ("format_correct", "turns_correct")

    def __init__(self, settings: FormatSettings) -> None:
        self.settings = settings

    def measure(self, item: Item) -> Sequence[Score]:
        """Score a trajectory that ran as it should."""
        steps = agent_steps(item.trajectory)
        if not steps:
            return unscored(self.metrics, "the agent made no turn")
        style = self.settings.style
        if style == "structured":
            return _structured(steps)
        if style == "playground":
            reason = playground_fault(steps, item.trajectory)
        else:
            reason = et_agent_fault(whole_text_of(steps))
        evidence: dict[str, Any] = {"style": style, "fault": reason}
        first = Score("format_correct", float(reason is None), evidence=evidence)
        return [first, *unscored(["turns_correct"], f"{style} looks at whole runs")]

    def figures(self, rows: Sequence[Scored]) -> Sequence[Figure]:
        """Means over trajectories, and the share of all turns."""
        figures = list(super().figures(rows))
        if self.settings.style == "structured":
            name = "turns_correct:turns"
            figures.append(
                evidence_figure(rows, "turns_correct", ("good", "turns"), name, self.intervals)
            )
        return figures


# ---- structured ----------------------------------------------------------------------------


def _structured(steps: Sequence[AgentStep]) -> list[Score]:
    faults = [(step.step, fault) for step in steps if (fault := turn_fault(step)) is not None]
    good = len(steps) - len(faults)
    evidence = {
        "style": "structured",
        "good": good,
        "turns": len(steps),
        "faults": [{"step": number, "fault": cut(fault)} for number, fault in faults[:SHOWN]],
    }
    return [
        Score("format_correct", float(not faults), evidence=evidence),
        Score("turns_correct", good / len(steps), evidence={"good": good, "turns": len(steps)}),
    ]


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


# ---- playground ----------------------------------------------------------------------------


def playground_fault(steps: Sequence[AgentStep], trajectory: Trajectory) -> str | None:
    """Why a run is malformed in the manner of the Tool Use Training Playground; None if not."""
    tools = schemas_of(trajectory.tools)
    calls = [call for step in steps for call in step.calls]
    for call in calls:
        if call.arguments is None:
            return f"the arguments of {cut(call.name, 60)} are no JSON object"
        if tools is not None and call.name not in tools:
            return f"there is no tool {cut(call.name, 60)}"
    blocks = [block for step in steps for block in _blocks(step.row.text or "")]
    if not blocks and not calls:
        return "there is no [TOOL_CALL]"
    return next((fault for block in blocks if (fault := _block_fault(block, tools))), None)


def _blocks(text: str) -> list[str | None]:
    """What stands between the tags; None for a tag without its end."""
    blocks: list[str | None] = []
    for part in text.split(_BLOCK_OPEN)[1:]:
        inside, end, _ = part.partition(_BLOCK_CLOSE)
        blocks.append(inside if end else None)
    return blocks


def _block_fault(block: str | None, tools: Mapping[str, ToolSchema] | None) -> str | None:
    if block is None:
        return "a [TOOL_CALL] has no end"
    value, is_object = object_of(block.strip())
    if not is_object:
        return "what stands in [TOOL_CALL] is no JSON object"
    if not isinstance(value.get("name"), str) or "parameters" not in value:
        return "a call has no name or no parameters"
    if tools is not None and value["name"] not in tools:
        return f"there is no tool {cut(value['name'], 60)}"
    return None


# ---- ET-Agent ------------------------------------------------------------------------------


def whole_text_of(steps: Sequence[AgentStep]) -> str:
    """All that the agent wrote, with the results of its calls in ``<result>`` tags."""
    parts = []
    for step in steps:
        text = step.row.text or ""
        parts.append(text)
        if not _RESULT_TAG.search(text):
            parts += [
                f"<result>{observation.text or ''}</result>"
                for observation in step.row.observations
            ]
    return "".join(parts)


def et_agent_fault(text: str) -> str | None:
    """Why a text is malformed by ET-Agent's ``validate_format``; None when it is well formed."""
    opened, closed = text.count(_THINK), text.count(_END)
    if not opened or opened != closed:
        return f"{opened} <think> and {closed} </think>"
    if text.count("<answer>") != 1 or text.count("</answer>") != 1:
        return "there is not exactly one <answer>"
    for tag in ("search", "python"):
        if (fault := _unanswered(text, tag)) is not None:
            return fault
    answer = text[text.index("<answer>") :].partition("</answer>")[0]
    box = answer.find("\\boxed{")
    return None if box >= 0 and "}" in answer[box:] else "the answer holds no \\boxed{}"


def _unanswered(text: str, tag: str) -> str | None:
    """A call in tags that is not closed, or that no result follows."""
    place = 0
    while (start := text.find(f"<{tag}>", place)) >= 0:
        place = start
        for wanted in (f"</{tag}>", "<result>", "</result>"):
            place = text.find(wanted, place)
            if place < 0:
                return f"a <{tag}> has no {wanted}"
    return None


KIND = ScorerKind(
    name="format",
    about="Whether the agent wrote what can be read: as data, in the playground's tags, or in "
    "ET-Agent's.",
    settings=FormatSettings,
    make=FormatScorer,
)
