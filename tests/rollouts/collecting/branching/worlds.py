"""A world that remembers its calls, and a policy whose turns say how unsure it is."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

from pydantic import Field

from adp.rollouts.environment import CannotForkError, EnvironmentKind, Settings, Verdict
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.policy import PolicyKind
from adp.rollouts.tool_environment import ToolEnvironment
from adp.rollouts.tools import FunctionTool
from adp.rollouts.turns import Call, Turn, Usage
from adp_schema.model import Task

VOCABULARY = 1000
WORD = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}


class Notebook(ToolEnvironment):
    """``note(word)`` answers with all words so far; the answer should repeat them.

    Args:
        forks: whether it can be copied.
        noise: answers differ from one world to the next.
    """

    def __init__(self, *, forks=True, noise=False):
        super().__init__()
        self.words, self.forks, self.noise = [], forks, noise
        self.closed = 0

    def offered(self):
        def note(word):
            self.words.append(word)
            return f"{id(self)}" if self.noise else " ".join(self.words)

        return [FunctionTool("note", "Notes a word.", WORD, note)]

    def reset(self, task=None, *, seed=None):
        self.words = []
        return super().reset(task, seed=seed)

    def fork(self):
        if not self.forks:
            raise CannotForkError("a notebook cannot be copied")
        child = Notebook(forks=True, noise=self.noise)
        child.words, child.task, child.seed = list(self.words), self.task, self.seed
        return child

    def score(self, trajectory):
        # All steps of the attempt are there, those before it branched included.
        notes = [
            json.loads(call.arguments)["word"] for step in trajectory.steps for call in step.calls
        ]
        answer = trajectory.final_answer
        return Verdict(
            success=None if answer is None else answer == " ".join(self.words) == " ".join(notes)
        )

    def close(self):
        self.closed += 1


def dice(*words):
    """A source of random numbers that is the same for the same words."""
    return random.Random("/".join(map(str, words)))


def entropy_at(task_id, attempt, turn):
    """What the policy says of its turn: three tokens, in nats."""
    draw = dice("entropy", task_id, attempt, turn)
    return tuple(draw.random() * 20 for _ in range(3))


def ends_at(task_id, attempt, turn, longest=6):
    """Whether a turn is an answer."""
    return turn >= longest or dice("end", task_id, attempt, turn).random() < 0.25


def turn_of(request):
    """Notes a word that names the attempt and the turn, or answers with what it was told."""
    task_id = request.task.task_id
    usage = Usage(tokens_in=10, tokens_out=3)
    entropies = entropy_at(task_id, request.attempt, request.turn)
    if ends_at(task_id, request.attempt, request.turn):
        seen = [item["content"] for item in request.messages if item["role"] == "tool"]
        return Turn(text=seen[-1] if seen else "", usage=usage, entropies=entropies)
    word = f"{request.attempt}.{request.turn}"
    call = Call("note", json.dumps({"word": word}))
    return Turn(calls=(call,), usage=usage, entropies=entropies)


class Unsure(Scripted):
    """Follows `turn_of`, after a wait that differs from turn to turn."""

    vocabulary = VOCABULARY

    def __init__(self, script=turn_of, seconds=0.0):
        super().__init__(script, "unsure")
        self.seconds, self.asked = seconds, 0

    async def act(self, request):
        self.asked += 1
        if self.seconds:
            await asyncio.sleep(self.seconds * random.random())
        return await super().act(request)


def tasks(count):
    """Tasks of the world."""
    return [Task(task_id=f"t{number}", instruction="Take notes.") for number in range(count)]


class UnsureSettings(Settings):
    """Settings of the policy."""

    seconds: float = Field(default=0.0, json_schema_extra={"resume": "free"})
    """Seconds a turn, at most."""


KIND = EnvironmentKind(
    "notebook", "Notes.", Settings, lambda _: Notebook(), lambda _, split, count, seed: tasks(count)
)
POLICY = PolicyKind(
    "unsure", "Notes.", UnsureSettings, lambda settings: Unsure(seconds=settings.seconds)
)


def install(folder: Path) -> Path:
    """Make a folder that, on the path of Python, offers both to `adp`."""
    info = folder / "notebook_for_tests-0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: notebook-for-tests\nVersion: 0\n")
    module = "tests.rollouts.collecting.branching.worlds"
    (info / "entry_points.txt").write_text(
        f"[adp.environments]\nnotebook = {module}:KIND\n[adp.policies]\nunsure = {module}:POLICY\n"
    )
    return folder
