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

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from adp.core.tagged_run import invalid_v1
from adp.eval.metrics import evidence_figure
from adp.eval.scorer import Figure, Item, Score, Scored, ScorerKind
from adp.eval.scorers.base import PerTrajectory, unscored
from adp.eval.scorers.tool_schemas import ToolSchema, schemas_of
from adp.rendering.arguments import object_of
from adp.rollouts.environment import Settings
from adp.rollouts.run_text import run_text, turn_fault
from adp.rollouts.trajectory_reading import SHOWN, AgentStep, agent_steps, cut
from adp_schema.model import Trajectory

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
    version = "2"
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
            reason = invalid_v1(run_text(steps))
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


KIND = ScorerKind(
    name="format",
    about="Whether the agent wrote what can be read: as data, in the playground's tags, or in "
    "ET-Agent's.",
    settings=FormatSettings,
    make=FormatScorer,
)
