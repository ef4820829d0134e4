"""Teachers of different quality, and the judge that notes what should have been done.

All of them are actors of a rollout: they see the environment, so they can ask its expert.
"""

import json
from dataclasses import dataclass
from random import Random

from adp.rollouts.collecting.actor import Acted, ActorView, Alternate, Reflection
from adp.rollouts.environments.toolworld.world import WORDS, name_of
from adp.rollouts.policy import Policy, Request
from adp.rollouts.turns import Call, Outcome, Turn


@dataclass(frozen=True)
class Habits:
    """How likely a teacher does something else than the expert.

    Attributes:
        stray: makes a call that leads nowhere.
        garble: writes a call that cannot be read.
        double_check: repeats the last call once before the answer.
        give_up: answers with the last result.
        circle: makes a call that was answered three times more, once in an episode.
        misread: says at the end a value of the right sort that is not the one.
    """

    stray: float = 0.0
    garble: float = 0.0
    double_check: float = 0.0
    give_up: float = 0.0
    circle: float = 0.0
    misread: float = 0.0


TEACHERS = {
    "careful": Habits(),
    "double_checking": Habits(double_check=1.0),
    "sloppy": Habits(stray=0.15, garble=0.15),
    "hasty": Habits(give_up=0.6),
    "circling": Habits(circle=0.7),
    "misreading": Habits(misread=0.8),
}
CIRCLES = 3
"""How often a teacher that goes in circles repeats a call: fewer than the budget has to spare."""

STRAY = (("relation", "rival"), ("relation", "maker"), ("attribute", "price"), ("attribute", "age"))
"""What stray calls ask for."""


def expert_turn(view: ActorView) -> Turn:
    """What the environment's expert would do now."""
    return view.environment.inner.expert_turn()


def answered(view: ActorView) -> list[tuple[Call, str]]:
    """Calls that were answered so far, with their results."""
    return [
        (call, result.text)
        for past in view.past
        for call, result in zip(past.acted.turn.calls, past.outcome.results, strict=False)
        if result.error is None
    ]


class Teacher:
    """The expert with bad habits; what it does depends on task, attempt and turn alone."""

    def __init__(self, name: str) -> None:
        self.name, self.habits = name, TEACHERS[name]

    async def act(self, request: Request, view: ActorView) -> Acted:
        """The expert's turn, or a bad habit."""
        return Acted(self._turn(request, view), "expert")

    def _turn(self, request: Request, view: ActorView) -> Turn:
        random = Random(f"{request.task.task_id}/{request.attempt}/{request.turn}/{self.name}")
        habits, right, done = self.habits, expert_turn(view), answered(view)
        rounds = repeats(done)
        if 0 < rounds < CIRCLES and habits.circle:
            return again(done[-1][0])
        if done and not longest_repeat(done) and random.random() < habits.circle:
            return again(done[-1][0])
        if not right.calls:
            if random.random() < habits.misread:
                return Turn(text=f"answer: {another(right.text, random)}")
            checked = len(done) > 1 and done[-1][0].arguments == done[-2][0].arguments
            if done and not checked and random.random() < habits.double_check:
                return again(done[-1][0])
            return right
        dice = random.random()
        for habit in ("garble", "stray", "give_up"):
            dice -= getattr(habits, habit)
            if dice < 0:
                return self._bad(habit, right, done, random)
        return right

    def _bad(self, habit: str, right: Turn, done: list[tuple[Call, str]], random: Random) -> Turn:
        call = right.calls[0]
        if habit == "garble":
            text = f'<tool_call>{{"name": "{call.name}", "arguments": {call.arguments}}}'
            text = text[: -random.randint(1, 2)]
            return Turn(text=text, malformed="the call is not closed")
        if habit == "give_up":
            return Turn(text=f"answer: {done[-1][1]}") if done else right
        arguments = json.loads(call.arguments)
        known = {json.dumps(json.loads(result.arguments)) for result, _ in done}
        for name, other in STRAY:
            text = json.dumps(arguments | {name: other})
            if arguments.get(name, other) != other and text not in known:
                return Turn(calls=(Call(call.name, text),))
        return right

    async def reflect(self, request: Request, view: ActorView) -> Reflection:
        """Nothing to add."""
        return Reflection()

    def summary(self) -> dict:
        """Which teacher it was."""
        return {"teacher": self.name}

    async def close(self) -> None:
        """Nothing to free."""


def repeats(done: list[tuple[Call, str]]) -> int:
    """How often the last call was made before, without another one between."""
    same = 0
    for call, _ in reversed(done[:-1]):
        if call.arguments != done[-1][0].arguments:
            break
        same += 1
    return same


def longest_repeat(done: list[tuple[Call, str]]) -> int:
    """How often a call was repeated at once, at most."""
    return max((repeats(done[: end + 1]) for end in range(len(done))), default=0)


def another(answer: str, random: Random) -> str:
    """A value of the same sort as the answer: another number, word of the attribute, or name."""
    value = answer.removeprefix("answer:").strip()
    if value.isdigit():
        others = [str(number) for number in range(10, 100)]
    else:
        others = next((list(words) for words in WORDS.values() if value in words), [])
    others = [other for other in others if other != value]
    return random.choice(others) if others else name_of("train", "misread", random.getrandbits(64))


def again(call: Call) -> Turn:
    """The same call once more."""
    return Turn(calls=(Call(call.name, call.arguments),))


class Judged:
    """A policy, and beside its faults what the expert would have done there.

    The faults are calls that repeat one and turns that cannot be read. The expert's turn is
    carried out on a fork and kept as an alternate. At some good calls a
    second alternate answers too early, with the last result: without such pairs the better side
    would nearly always be an answer, and training would only teach to answer.

    Args:
        policy: the policy.
        early: share of good calls beside which an early answer is noted.
    """

    FAULTS = frozenset({"redundant", "malformed"})

    def __init__(self, policy: Policy, early: float = 0.0) -> None:
        self._policy, self._early = policy, early
        self._fork = self._right = None

    async def act(self, request: Request, view: ActorView) -> Acted:
        """The policy's turn; before it, the world is copied."""
        self._fork, self._right = view.environment.fork(), expert_turn(view)
        return Acted(await self._policy.act(request), "agent")

    async def reflect(self, request: Request, view: ActorView) -> Reflection:
        """What the expert would have done, and perhaps an early answer."""
        labels = view.past[-1].outcome.labels
        others = []
        if "needed" in labels:
            done = answered(ActorView(view.environment, view.past[:-1]))
            random = Random(f"{request.task.task_id}/{request.attempt}/{request.turn}/early")
            if self._right.calls and done and random.random() < self._early:
                others.append((Turn(text=f"answer: {done[-1][1]}"), "hasty"))
        elif self.FAULTS & set(labels):
            others.append((self._right, "expert"))
        return Reflection(
            tuple([await self._counterfactual(turn, actor) for turn, actor in others])
        )

    async def _counterfactual(self, turn: Turn, actor: str) -> Alternate:
        outcome: Outcome = await self._fork.fork().step(turn)
        return Alternate(turn, outcome, actor)

    def summary(self) -> dict:
        """Nothing to keep."""
        return {}

    async def close(self) -> None:
        """Nothing to free."""
