"""Asking a judge: one model or a panel, several votes of each, once more where nothing can be read.

A judge is any policy that answers a prompt (``openai:model=...``). Whatever goes wrong is a
judgement without a label. The seed of an answer follows from the question and the number of the
vote, so the verdicts do not depend on what else is asked meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from adp.rendering.arguments import whole_text
from adp.rollouts.background import run_in_background
from adp.rollouts.judging.answers import NoAnswerError, UnreadableError, answer_of, seed_of
from adp.rollouts.judging.cache import AnswerCache, JudgeAnswer
from adp.rollouts.policy import Policy, Request
from adp.rollouts.trajectory_reading import cut
from adp_schema.errors import AdpError, UsageError

RAW = 2_000
"""Characters of an answer that are kept."""

AGAIN = "[asked again]"
"""Stands between an answer that could not be read and the next one."""

_RESOLVER = (
    "No verdict can be read in your answer. Write the verdict alone, without explaining it anew: "
)


@dataclass(frozen=True)
class JudgeQuestion:
    """What a judge is asked.

    Attributes:
        prompt: the question, with the material in it.
        read: makes a label of an answer; None: it holds no verdict.
        form: how a verdict is written, for asking once more; None: the judge is not asked again.
        resolver: what is said then, before the form.
    """

    prompt: str
    read: Callable[[str], str | None]
    form: str | None = None
    resolver: str = _RESOLVER


@dataclass(frozen=True)
class Judgement:
    """What one vote of one model came to.

    Attributes:
        judge: name of the judge.
        label: the verdict; None: unscored.
        text: what the judge said; None when it did not answer.
        reason: why there is no label.
        model: model that answered.
        tokens_in: tokens of all questions; None where the server does not say.
        tokens_out: tokens of all answers.
        cost_usd: what they cost; None when that is not known.
        misuse: the error of a wrong call: key, model, option.
    """

    judge: str
    label: str | None
    text: str | None
    reason: str | None = None
    model: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    misuse: UsageError | None = None

    def kept(self) -> dict[str, Any]:
        """The judgement as evidence keeps it."""
        facts = {
            "judge": self.judge,
            "label": self.label,
            "text": self.text,
            "model": self.model,
            "failure": self.reason,
        }
        return {name: value for name, value in facts.items() if value is not None}


@dataclass
class JudgeCosts:
    """What a judge was asked in this run, and what it cost.

    Attributes:
        asked: requests that were made.
        cached: answers that were kept from an earlier run.
        again: how often the judge was asked once more, because nothing could be read.
        failed: requests without an answer.
        tokens_in: tokens of the questions that were asked.
        tokens_out: tokens of their answers.
        cost_usd: what they cost, by the provider or by the given price; None: not known.
    """

    asked: int = 0
    cached: int = 0
    again: int = 0
    failed: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None

    @property
    def words(self) -> str:
        """The costs for people."""
        more = [
            *([f"{self.cached:,} from the cache"] if self.cached else []),
            *([f"{self.again:,} asked again"] if self.again else []),
            *([f"{self.failed:,} failed"] if self.failed else []),
        ]
        noted = f" ({', '.join(more)})" if more else ""
        cost = "" if self.cost_usd is None else f", ${self.cost_usd:,.4f}"
        tokens = f"{self.tokens_in:,} tokens in, {self.tokens_out:,} out"
        return f"{self.asked:,} requests{noted}, {tokens}{cost}"


@dataclass(frozen=True)
class PanelMember:
    """A model that judges.

    Attributes:
        policy: answers.
        name: what to call it; several of a panel have different names.
        facts: what its answers depend on, JSON: its kind and settings without secrets.
        price: US dollars for a million tokens of questions, and of answers; None: not known.
    """

    policy: Policy
    name: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    price: tuple[float, float] | None = None

    def cost(self, answer: JudgeAnswer) -> float | None:
        """What an answer cost; None when that is not known."""
        if self.price is None or None in (answer.tokens_in, answer.tokens_out):
            return answer.cost_usd
        tokens = (answer.tokens_in or 0, answer.tokens_out or 0)
        return sum(map(float.__mul__, self.price, map(float, tokens))) / 1e6


class Judge:
    """Asks one model, or several.

    Args:
        panel: the models; or one policy.
        votes: how often each is asked about each thing.
        cache: keeps the answers; None: each is asked for.

    Attributes:
        costs: what was asked so far, by the name of the model.
    """

    def __init__(
        self,
        panel: Policy | Sequence[PanelMember],
        votes: int = 1,
        cache: AnswerCache | None = None,
    ) -> None:
        self.panel: Sequence[PanelMember] = (
            panel if isinstance(panel, Sequence) else (PanelMember(panel, panel.name),)
        )
        self.votes = votes
        self.costs = {member.name: JudgeCosts() for member in self.panel}
        self._cache = cache
        self._free: asyncio.Semaphore | None = None

    @property
    def name(self) -> str:
        """The names of its models."""
        return ", ".join(member.name for member in self.panel)

    def limit(self, requests: int) -> None:
        """Let no more than so many requests run at once."""
        self._free = asyncio.Semaphore(requests)

    def close(self) -> None:
        """Close the connections; a later question opens them again."""
        for member in self.panel:
            run_in_background(member.policy.close())

    def ask(self, question: JudgeQuestion) -> list[Judgement]:
        """Ask for judgements, all at once; the votes of a model stand together."""
        return run_in_background(self.judgements(question))

    async def judgements(self, question: JudgeQuestion) -> list[Judgement]:
        """The same, for who has a loop."""
        asked = (
            self._judgement(member, question, vote)
            for member in self.panel
            for vote in range(self.votes)
        )
        return list(await asyncio.gather(*asked))

    async def _judgement(
        self, member: PanelMember, question: JudgeQuestion, vote: int
    ) -> Judgement:
        prompt = whole_text(question.prompt)
        messages = [{"role": "user", "content": prompt}]
        seed = seed_of(prompt, vote)
        answers = [await self._answer(member, messages, vote, seed)]
        label = _label(question, answers[0])
        if label is None and answers[0].failure is None and question.form is not None:
            self.costs[member.name].again += 1
            again = _asked_again(messages, answers[0].text or "", question.resolver + question.form)
            answers.append(await self._answer(member, again, vote, seed_of(seed, "again")))
            label = _label(question, answers[1])
        costs = [cost for answer in answers if (cost := member.cost(answer)) is not None]
        texts = [cut(answer.text, RAW) for answer in answers if answer.text is not None]
        last = answers[-1]
        return Judgement(
            member.name,
            label,
            f"\n{AGAIN}\n".join(texts) if texts else None,
            None if label is not None else last.failure or "no verdict can be read",
            next((answer.model for answer in answers if answer.model), None),
            _sum([answer.tokens_in for answer in answers]),
            _sum([answer.tokens_out for answer in answers]),
            sum(costs) if costs else None,
            last.misuse,
        )

    async def _answer(
        self, member: PanelMember, messages: Sequence[Mapping[str, Any]], vote: int, seed: int
    ) -> JudgeAnswer:
        asked = {"judge": member.facts, "messages": messages, "vote": vote, "seed": seed}
        costs = self.costs[member.name]
        known = self._cache.get(asked) if self._cache else None
        if known is not None:
            costs.cached += 1
            return known
        async with self._free or nullcontext():
            request = Request(messages, (), attempt=vote, turn=len(messages) // 2, seed=seed)
            answer = await _answered(member.policy, request)
        # Not before: `check_called` would take a request that is on its way for one that went well.
        costs.asked += 1
        costs.failed += answer.failure is not None
        costs.tokens_in += answer.tokens_in or 0
        costs.tokens_out += answer.tokens_out or 0
        if (cost := member.cost(answer)) is not None:
            costs.cost_usd = (costs.cost_usd or 0.0) + cost
        if self._cache is not None and answer.text is not None:
            return self._cache.put(asked, answer)
        return answer


async def _answered(policy: Policy, request: Request) -> JudgeAnswer:
    try:
        turn = await answer_of(policy, request)
    except NoAnswerError as error:
        return JudgeAnswer(None, cut(f"{error} ({error.detail})" if error.detail else str(error)))
    except UnreadableError as error:
        return JudgeAnswer(None, cut(str(error)))
    except AdpError as error:
        misuse = error if isinstance(error, UsageError) else None
        return JudgeAnswer(None, cut(f"no answer: {error}"), misuse=misuse)
    usage = turn.usage
    model = turn.model or policy.name
    return JudgeAnswer(turn.text, None, model, usage.tokens_in, usage.tokens_out, usage.cost_usd)


def _label(question: JudgeQuestion, answer: JudgeAnswer) -> str | None:
    return None if answer.text is None else question.read(answer.text)


def _asked_again(
    messages: Sequence[Mapping[str, Any]], text: str, resolver: str
) -> list[Mapping[str, Any]]:
    """The question with what was said to it; some servers take no empty answer."""
    if not text.strip():
        return [{"role": "user", "content": f"{messages[0]['content']}\n\n{resolver}"}]
    again = {"role": "user", "content": resolver}
    return [*messages, {"role": "assistant", "content": whole_text(text)}, again]


def _sum(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def check_called(judge: Judge, judgements: Sequence[Judgement]) -> None:
    """Raise the error of a wrong call, unless the judge has answered before.

    Raises:
        UsageError: the key, the model or an option is wrong.
    """
    misuse = next((item.misuse for item in judgements if item.misuse is not None), None)
    if misuse is not None and all(cost.asked == cost.failed for cost in judge.costs.values()):
        raise misuse
