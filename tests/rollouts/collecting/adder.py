"""An environment that other processes find by its entry point, and a policy that waits."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from pydantic import Field

from adp.rollouts.environment import EnvironmentKind, Settings, Verdict
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.policy import InfrastructureError, PolicyKind
from adp.rollouts.tool_environment import ToolEnvironment
from adp.rollouts.tools import FunctionTool
from adp.rollouts.turns import Call, Turn, Usage
from adp_schema.errors import UsageError
from adp_schema.model import Task

NUMBERS = {"a": {"type": "integer"}, "b": {"type": "integer"}}
PARAMETERS = {"type": "object", "properties": NUMBERS, "required": ["a", "b"]}


class Adder(ToolEnvironment):
    """Adds numbers; the answer must be that of the task."""

    tool = FunctionTool("add", "Adds.", PARAMETERS, lambda a, b: a + b)

    def reset(self, task=None, *, seed=None):
        if task is not None and task.instruction == "refuse":
            raise UsageError("the adder cannot do this task")
        return super().reset(task, seed=seed)

    def offered(self):
        return [self.tool]

    def score(self, trajectory):
        right = json.loads(self.task.answers or "[]")
        return Verdict(success=trajectory.final_answer in right if right else None)


class AdderSettings(Settings):
    """Settings of the adder."""

    label: str = Field(default="plain", description="Changes nothing.")


def sums(settings, split, count, seed):
    """Tasks of the environment's own."""
    return [
        Task(
            task_id=f"{split}-{number}",
            split=split,
            instruction=f"{number} + {number + seed}",
            answers=json.dumps([str(2 * number + seed)]),
        )
        for number in range(count or 3)
    ]


KIND = EnvironmentKind("adder", "Adds.", AdderSettings, lambda settings: Adder(), sums)


def turns_of(request):
    """Two calls, then the right answer for even tasks and a wrong one for odd ones."""
    left, right = (int(word) for word in request.task.instruction.split(" + "))
    usage = Usage(tokens_in=10 * (request.turn + 1), tokens_out=5)
    if request.turn < 2:
        arguments = json.dumps({"a": left, "b": right})
        return Turn(calls=(Call("add", arguments),), usage=usage)
    return Turn(text=str(left + right + left % 2), usage=usage)


class Waiting(Scripted):
    """Follows a script, but lets others run meanwhile."""

    def __init__(self, seconds=0.0, script=turns_of, down=None, log=None, gate=None):
        super().__init__(script, "waiting")
        self.seconds, self.down, self.log, self.gate = seconds, down, log, gate

    async def act(self, request):
        await asyncio.sleep(self.seconds)
        if self.down is not None and self.down.exists():
            raise InfrastructureError("http_500", "the server failed 4 times")
        if self.log is not None and request.turn == 0:
            with self.log.open("a") as file:
                file.write(f"{request.task.task_id}/attempt-{request.attempt}\n")
        while self.gate is not None and not self.gate.exists():
            await asyncio.sleep(0.02)
        return await super().act(request)


class WaitingSettings(Settings):
    """Settings of the policy."""

    seconds: float = Field(
        default=0.0, description="Seconds a turn.", json_schema_extra={"resume": "free"}
    )
    down: Path | None = Field(
        default=None, description="While this is there, it fails.",
        json_schema_extra={"resume": "free"},
    )  # fmt: skip
    log: Path | None = Field(
        default=None, description="Where begun episodes are noted.",
        json_schema_extra={"resume": "free"},
    )  # fmt: skip
    gate: Path | None = Field(
        default=None, description="Until this is there, it waits.",
        json_schema_extra={"resume": "free"},
    )  # fmt: skip
    style: str = Field(default="plain", description="Changes nothing.")
    api_key: str | None = Field(default=None, description="A secret.")


POLICY = PolicyKind(
    "waiting",
    "Adds, after a while.",
    WaitingSettings,
    lambda settings: Waiting(
        settings.seconds, down=settings.down, log=settings.log, gate=settings.gate
    ),
)


def install(folder: Path) -> Path:
    """Make a folder that, on the path of Python, offers both to `adp`."""
    info = folder / "adder_for_tests-0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: adder-for-tests\nVersion: 0\n")
    (info / "entry_points.txt").write_text(
        "[adp.environments]\nadder = tests.rollouts.collecting.adder:KIND\n"
        "[adp.policies]\nwaiting = tests.rollouts.collecting.adder:POLICY\n"
    )
    return folder
