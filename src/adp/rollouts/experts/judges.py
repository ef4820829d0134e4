"""Who may be asked about an episode: overseer, witness and rewriter of thoughts.

Each is a function of your own, plain or a coroutine, or it is made of a policy. All are optional.
An answer of None could not be read: it counts as no, and is counted.
"""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from adp.rollouts.experts.history import ActionResult
from adp.rollouts.judging.words import concluded
from adp.rollouts.policy import Policy, Request
from adp.rollouts.turns import Turn


@dataclass(frozen=True, slots=True)
class Stuck:
    """Asked of the overseer: is the agent stuck?

    Attributes:
        query: what the user asked.
        plan: questions that lead to the answer, in order, where they are known.
        history: what happened since the user spoke.
        seed: seed of the question.
    """

    query: str
    plan: tuple[str, ...]
    history: Sequence[ActionResult]
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Observed:
    """Asked of the witness: does the agent know already what this action would bring?

    Attributes:
        query: what the user asked.
        action: the turn that the expert would make.
        response: what it brings, where it is known.
        history: what happened since the user spoke, without errors.
        seed: seed of the question.
    """

    query: str
    action: Turn
    response: str | None
    history: Sequence[ActionResult]
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Thought:
    """Asked of the rewriter: what does the expert think before this turn?

    Attributes:
        query: what the user asked.
        turn: the turn, with the thought of the reference run as ``reasoning``.
        history: what happened since the user spoke.
        seed: seed of the question.
    """

    query: str
    turn: Turn
    history: Sequence[ActionResult]
    seed: int = 0


_Reply = TypeVar("_Reply", bool | None, str | None)

Overseer = Callable[[Stuck], bool | Awaitable[bool | None] | None]
Witness = Callable[[Observed], bool | Awaitable[bool | None] | None]
Rewriter = Callable[[Thought], str | Awaitable[str | None] | None]


@dataclass
class Judges:
    """Whom an assisted episode may ask.

    Attributes:
        overseer: whether the agent is stuck; None: only the rules say.
        witness: whether the agent knows a response; None: the same call was answered, or the
            same text was seen.
        rewriter: the thought of the expert; None: it stays as it is.
    """

    overseer: Overseer | None = None
    witness: Witness | None = None
    rewriter: Rewriter | None = None


@dataclass
class Asked:
    """Asks judges and counts what they say.

    Attributes:
        judges: whom to ask.
        counts: how often each gave which answer: ``overseer.yes``, ``witness.unreadable``, ...
    """

    judges: Judges
    counts: Counter[str] = field(default_factory=Counter)

    async def stuck(self, question: Stuck) -> bool:
        """The overseer's word; no without one."""
        if self.judges.overseer is None:
            return False
        return self._noted("overseer", await _answer(self.judges.overseer(question)))

    async def observed(self, question: Observed) -> bool | None:
        """The witness's word; None without one."""
        if self.judges.witness is None:
            return None
        return self._noted("witness", await _answer(self.judges.witness(question)))

    async def thought(self, question: Thought) -> str | None:
        """The rewriter's words; None: the thought stays."""
        if self.judges.rewriter is None:
            return None
        text = await _answer(self.judges.rewriter(question))
        self.counts["rewriter.yes" if text else "rewriter.unreadable"] += 1
        return text or None

    def _noted(self, who: str, answer: bool | None) -> bool:
        word = "unreadable" if answer is None else "yes" if answer else "no"
        self.counts[f"{who}.{word}"] += 1
        return answer is True


async def _answer(answer: _Reply | Awaitable[_Reply]) -> _Reply:
    if inspect.isawaitable(answer):
        return await answer
    return answer


# ---- judges made of a policy -----------------------------------------------------------------

_OVERSEER = """\
You watch an agent that answers a question with tools. Say whether it needs help now. It needs help
when it makes no progress: it repeats itself, follows a path that cannot lead to the answer, asks
for what it knows, or ignores what its tools told it. A detour that still brings something new is no
reason for help.
"""
_WITNESS = """\
You compare what an agent has seen with a piece of information. Say whether what the agent has seen
tells the substance of it already. The wording may differ. A part of it is not enough.
"""
_VERDICT = """
Write a line that begins with "Thought:" and then one line that is "Conclusion: yes" or
"Conclusion: no".
"""
_REWRITER = """\
You write down the thought of an agent before its next action. It follows from what the agent has
seen so far and from nothing else, it leads to that action, and it does not speak of an expert, a
plan or a solution that was given. Two to four sentences. Write the thought alone.
"""


def overseer_of(policy: Policy) -> Overseer:
    """An overseer that asks a policy."""

    async def ask(question: Stuck) -> bool | None:
        facts = {
            "question": question.query,
            "questions that lead to the answer": list(question.plan),
            "history": [item.fields() for item in question.history],
        }
        return verdict(await _say(policy, _OVERSEER + _VERDICT, facts, question.seed))

    return ask


def witness_of(policy: Policy) -> Witness:
    """A witness that asks a policy."""

    async def ask(question: Observed) -> bool | None:
        facts = {
            "question": question.query,
            "seen": [item.fields() for item in question.history],
            "action": _turn(question.action),
            "information": question.response,
        }
        return verdict(await _say(policy, _WITNESS + _VERDICT, facts, question.seed))

    return ask


def rewriter_of(policy: Policy) -> Rewriter:
    """A rewriter that asks a policy."""

    async def ask(question: Thought) -> str | None:
        facts = {
            "question": question.query,
            "history": [item.fields() for item in question.history],
            "next action": _turn(question.turn),
            "thought of a reference solution": question.turn.reasoning,
        }
        return (await _say(policy, _REWRITER, facts, question.seed)).strip() or None

    return ask


def verdict(text: str) -> bool | None:
    """Read yes or no; None unless there is one conclusion, with one of the two words."""
    word = concluded(text, ("yes", "no"))
    return None if word is None else word == "yes"


async def _say(policy: Policy, system: str, facts: Mapping[str, object], seed: int) -> str:
    known = {name: value for name, value in facts.items() if value not in (None, [])}
    messages = (
        {"role": "system", "content": system},
        {"role": "user", "content": json.dumps(known, indent=1)},
    )
    turn = await policy.act(Request(messages=messages, tools=(), seed=seed))
    return "" if turn.malformed is not None else turn.text


def _turn(turn: Turn) -> object:
    if not turn.calls:
        return {"answer": turn.text}
    return [{"name": call.name, "arguments": call.arguments} for call in turn.calls]
