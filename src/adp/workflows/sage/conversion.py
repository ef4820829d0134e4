"""Rows for fine-tuning out of trajectories of SAGE, by the exporters.

An observation is a message of its own here, so no training takes it into the loss. SAGE's
converter writes thoughts, calls and observations into one message of the assistant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from adp.rendering.chat import Chat, Message, chats_of
from adp.trainers.export.exporter import ExportCounts, ExportItem
from adp.trainers.export.fit import tools_as_text
from adp.trainers.export.registry import exporters
from adp.workflows.sage.samples import store_of
from adp.workflows.sage.trajectories import AgentTrajectory
from adp_schema.errors import UsageError
from adp_schema.model import Trajectory
from adp_schema.parts import JOINT

EXPORTER = {"chatml": "trl-sft", "alpaca": "alpaca", "sharegpt": "llamafactory-sharegpt"}


@dataclass
class SFTConversionConfig:
    """How rows are written.

    Attributes:
        format: chatml: ``messages``; alpaca: ``instruction``, ``input``, ``output``; sharegpt:
            ``conversations``.
        include_observation: whether observations are written. Without them a run is one message
            of the assistant, with its calls as text.
        system_prompt: the system's message; None writes none.
        include_thought: whether thoughts are written.
    """

    format: Literal["chatml", "alpaca", "sharegpt"] = "chatml"
    include_observation: bool = True
    system_prompt: str | None = None
    include_thought: bool = True


class TrajectoryToSFTConverter:
    """Makes rows of trajectories.

    Args:
        config: the format, and what is written.
    """

    def __init__(self, config: SFTConversionConfig | None = None) -> None:
        self.config = config or SFTConversionConfig()
        if self.config.format not in EXPORTER:
            raise UsageError(
                f"format {self.config.format!r} is not written; choose {', '.join(EXPORTER)}"
            )

    def convert(self, trajectories: Sequence[AgentTrajectory]) -> list[dict[str, Any]]:
        """One row a trajectory, in order.

        Raises:
            UsageError: a trajectory has nothing to train on; the message says which.
        """
        if not trajectories:
            return []
        with store_of(trajectories) as samples:
            return [
                {**self._row(read), "metadata": _metadata(given)}
                for given, read in zip(trajectories, samples.store, strict=True)
            ]

    def convert_single(self, trajectory: AgentTrajectory) -> dict[str, Any]:
        """The row of one trajectory."""
        return self.convert([trajectory])[0]

    def _row(self, trajectory: Trajectory) -> dict[str, Any]:
        config = self.config
        [chat] = chats_of(trajectory).chats
        if not chat.trained():
            raise UsageError(f"{trajectory.source_id} has no step to train; leave it out")
        if not config.include_thought:
            silent = tuple(replace(message, reasoning=None) for message in chat.messages)
            chat = replace(chat, messages=silent)
        if config.system_prompt is not None:
            system = Message("system", config.system_prompt, -1)
            rest = tuple(message for message in chat.messages if message.role != "system")
            chat = replace(chat, messages=(system, *rest))
        if not config.include_observation:
            chat = _without_observations(chat)
        elif config.format == "alpaca":
            chat = tools_as_text(chat, Counter())
        exporter = exporters.get(EXPORTER[config.format])
        counts = ExportCounts()
        item = ExportItem(chat, None, trajectory)
        rows = list(exporter.rows(item, exporter.options(), counts))
        if len(rows) != 1:
            why = next(iter(counts.left_out), "no step is trained")
            raise UsageError(f"{trajectory.source_id} has no row in {config.format}: {why}")
        return {name: value for name, value in rows[0].items() if name != "trajectory_id"}


def _without_observations(chat: Chat) -> Chat:
    """The chat with all that the agent said in one message."""
    spoken = tuple(message for message in chat.messages if message.role != "tool")
    spoken = tools_as_text(replace(chat, messages=spoken), Counter()).messages
    before = [message for message in spoken if message.role != "assistant"]
    answers = [message for message in spoken if message.role == "assistant"]
    if not answers:
        return chat
    texts = [
        f"<think>\n{message.reasoning}\n</think>\n\n{message.text}"
        if message.reasoning
        else message.text
        for message in answers
    ]
    whole = replace(answers[-1], text=JOINT.join(texts), reasoning=None, calls=(), weight=1.0)
    return replace(chat, messages=(*before, whole), tools=())


def _metadata(given: AgentTrajectory) -> dict[str, Any]:
    names = ("trajectory_id", "task_id", "success", "total_reward", "num_steps")
    return {name: getattr(given, name) for name in names}
