"""Asking a model until its answer can be used; what cannot be used is counted with its reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from adp.rollouts.evolving.prompts import prompt
from adp.rollouts.judging.answers import NoAnswerError, UnreadableError, answer_of, seed_of
from adp.rollouts.policy import Policy, Request
from adp_schema.errors import AdpError, UsageError
from adp_schema.model import Task

_Read = TypeVar("_Read")

_KEPT = 1_000
"""Characters of an answer that are kept."""

JUDGE, REFINER, ANALYSER, POLICY = "judge", "refiner", "analyser", "policy"
"""Who may be asked."""


class GaveUpError(AdpError):
    """No answer that can be used came in all tries.

    Args:
        who: who was asked.
        reasons: why each answer could not be used.
        unreachable: whether no answer came at all.
        detail: why the last one did not come, in a sentence.
    """

    def __init__(
        self, who: str, reasons: Sequence[str], *, unreachable: bool, detail: str = ""
    ) -> None:
        self.who, self.unreachable = who, unreachable
        counts = {reason: reasons.count(reason) for reason in dict.fromkeys(reasons)}
        listed = ", ".join(f"{reason} {count}" for reason, count in counts.items())
        tries = f"{len(reasons)} tries" if len(reasons) != 1 else "1 try"
        why = f" ({detail})" if detail else ""
        super().__init__(f"the {who} gave no answer that can be used in {tries}: {listed}{why}")


@dataclass
class Asking:
    """Asks the models about one trajectory.

    Attributes:
        models: who is asked, by `JUDGE`, `REFINER` and `ANALYSER`.
        tries: how often, until an answer can be used.
        seed: seed of the questions.
        bad: the answers that could not be used: who, why, and what was answered.
        words: what those said whose answers were used, by the name of the prompt.
        task: what the models are told that it is about, so that a script can tell its answers
            apart; the turn is then the number of the question.
    """

    models: Mapping[str, Policy]
    tries: int = 4
    seed: int = 0
    bad: list[dict[str, Any]] = field(default_factory=list)
    words: dict[str, str] = field(default_factory=dict)
    task: Task | None = None
    _asked: int = 0

    def note(self, who: str, reason: str, text: str = "") -> None:
        """Count an answer that could not be used."""
        self.bad.append({"who": who, "reason": reason, **({"text": _cut(text)} if text else {})})

    async def ask(self, who: str, name: str, facts: str, read: Callable[[str], _Read]) -> _Read:
        """Ask until an answer can be used.

        Args:
            who: whom.
            name: name of the prompt, a file of `adp.rollouts.evolving.prompts`.
            facts: what the question is about.
            read: makes something of the answer, or raises `UnreadableError`.

        Raises:
            GaveUpError: no answer could be used.
            UsageError: there is nobody to ask, or the model cannot be called like this.
        """
        if who not in self.models:
            raise UsageError(f"the {who} is asked, and there is none; give --{who} a policy")
        reasons: list[str] = []
        answered, detail = False, ""
        for number in range(self.tries):
            messages = _messages(name, facts, reasons[-1] if answered and reasons else None)
            seed = seed_of(self.seed, name, number)
            text = ""
            turn = 0 if self.task is None else self._asked
            request = Request(messages, (), self.task, attempt=number, turn=turn, seed=seed)
            self._asked += 1
            try:
                text = await self._answer(who, request)
                result = read(text)
            except UnreadableError as error:
                answered = answered or not isinstance(error, NoAnswerError)
                detail = getattr(error, "detail", "") or detail
                reasons.append(str(error))
                self.note(who, str(error), text)
            else:
                self.words[name] = _cut(text)
                return result
        raise GaveUpError(who, reasons, unreachable=not answered, detail=detail)

    async def _answer(self, who: str, request: Request) -> str:
        turn = await answer_of(self.models[who], request)
        if not turn.text.strip():
            raise UnreadableError("empty")
        return turn.text


def _messages(name: str, facts: str, reason: str | None) -> tuple[Mapping[str, Any], ...]:
    messages = [
        {"role": "system", "content": prompt(name)},
        {"role": "user", "content": facts},
    ]
    if reason is not None:
        note = f"An earlier answer could not be used ({reason}). Keep strictly to the form."
        messages[1]["content"] += f"\n\n{note}"
    return tuple(messages)


def _cut(text: str) -> str:
    return text if len(text) <= _KEPT else text[: _KEPT - 3] + "..."
