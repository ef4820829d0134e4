"""Capabilities of a model over samples in memory, by SAGE's arithmetic.

Runs of an agent with tools are measured by the scorer ``capability`` instead, by what was called.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Any

from adp.eval.scorers.capability import CAPABILITIES
from adp.eval.scorers.sage_text import (
    sage_instruction,
    sage_planning,
    sage_reasoning,
    sage_tool_use,
)
from adp.rollouts.policy import POLICIES, Policy, Request
from adp.rollouts.spec import load
from adp_schema.errors import UsageError

Generate = Callable[[Any, str], str]

_PROMPTS = ("prompt", "instruction", "input", "question")
_EXPECTED = ("expected", "output", "answer")
_BY_TEXT = {"tool_use": sage_tool_use, "planning": sage_planning, "reasoning": sage_reasoning}


@dataclass
class CapabilityScore:
    """The score of a capability.

    Attributes:
        capability: its name.
        score: mean over the samples, 0 to 1.
        num_samples: samples that were scored.
        details: ``scores`` of the samples, and ``responses``.
    """

    capability: str
    score: float
    num_samples: int
    details: dict[str, Any] = field(default_factory=dict)


@dataclass
class CapabilityReport:
    """The scores of all capabilities.

    Attributes:
        scores: capability -> score.
        overall: their sum with weights; a capability without samples counts as 0, as in SAGE.
        num_total_samples: samples of all.
        evaluation_time_seconds: time that it took.
    """

    scores: dict[str, CapabilityScore]
    overall: float
    num_total_samples: int
    evaluation_time_seconds: float = 0.0

    def get_score(self, capability: str) -> float:
        """The score of one; 0 when it was not measured."""
        measured = self.scores.get(capability)
        return measured.score if measured else 0.0

    def summary(self) -> str:
        """The report as text."""
        lines = ["Agent Capability Report", "-----------------------"]
        for score in self.scores.values():
            name = score.capability.replace("_", " ").title()
            lines.append(f"{name}: {score.score:.2f} (n={score.num_samples})")
        return "\n".join([*lines, f"Overall: {self.overall:.2f}"])

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        scores = {
            name: {"score": score.score, "num_samples": score.num_samples}
            for name, score in self.scores.items()
        }
        return {
            "scores": scores,
            "overall": self.overall,
            "num_total_samples": self.num_total_samples,
            "evaluation_time_seconds": self.evaluation_time_seconds,
        }


class AgentCapabilityEvaluator:
    """Measures a model on samples of each capability.

    Args:
        capabilities: which ones; None takes all.
        capability_weights: capability -> weight; they are normalised, and equal without.
    """

    def __init__(
        self,
        capabilities: Sequence[str] | None = None,
        capability_weights: Mapping[str, float] | None = None,
    ) -> None:
        self.capabilities = list(capabilities or CAPABILITIES)
        unknown = [name for name in self.capabilities if name not in CAPABILITIES]
        if unknown:
            raise UsageError(f"no capability is called {unknown[0]!r}: {', '.join(CAPABILITIES)}")
        given = capability_weights or {}
        weights = {name: given.get(name, 1.0) for name in self.capabilities}
        total = sum(weights.values())
        if not total > 0:
            raise UsageError("the weights of the capabilities add up to nothing; give one above 0")
        self.capability_weights = {name: weight / total for name, weight in weights.items()}

    def evaluate(
        self,
        model: Any,
        test_sets: Mapping[str, Sequence[Any]],
        generate_fn: Generate | None = None,
        max_samples_per_capability: int | None = None,
    ) -> CapabilityReport:
        """Measure all capabilities that have samples.

        Args:
            model: a function of a prompt, an object with ``generate(prompt)``, a policy such as
                ``"openai:model=m"``, or a folder or name of a model.
            test_sets: capability -> samples: mappings or objects with ``instruction`` (or prompt,
                input, question) and ``expected`` (or output, answer).
            generate_fn: a function of model and prompt, in place of the model's own.
            max_samples_per_capability: take no more of each.

        Raises:
            UsageError: a sample has no prompt, or the model cannot be asked.
        """
        started = time.perf_counter()
        ask = _asker(model, generate_fn)
        scores = {
            name: _score(ask, name, list(test_sets[name])[:max_samples_per_capability])
            for name in self.capabilities
            if test_sets.get(name)
        }
        overall = sum(self.capability_weights[name] * one.score for name, one in scores.items())
        count = sum(one.num_samples for one in scores.values())
        return CapabilityReport(scores, overall, count, time.perf_counter() - started)

    def evaluate_capability(self, model: Any, cap: str, data: Sequence[Any]) -> CapabilityScore:
        """Measure one capability; see `evaluate`."""
        return AgentCapabilityEvaluator([cap]).evaluate(model, {cap: data}).scores[cap]


def _score(ask: Callable[[list[str]], list[str]], name: str, samples: list[Any]) -> CapabilityScore:
    responses = ask([_of(sample, _PROMPTS, number) for number, sample in enumerate(samples)])
    scores = []
    for number, (sample, response) in enumerate(zip(samples, responses, strict=True)):
        expected = _of(sample, _EXPECTED, number)
        if name in _BY_TEXT:
            scores.append(_BY_TEXT[name](response, expected))
        else:
            scores.append(sage_instruction(response, expected, _form(sample)))
    mean = sum(scores) / len(scores)
    return CapabilityScore(name, mean, len(scores), {"scores": scores, "responses": responses})


def _values(sample: Any) -> Mapping[str, Any]:
    given = sample if isinstance(sample, Mapping) else vars(sample)
    data = given.get("data")
    return {**given, **data} if isinstance(data, Mapping) else given


def _of(sample: Any, names: Sequence[str], number: int) -> str:
    values = _values(sample)
    for name in names:
        if isinstance(values.get(name), str):
            return str(values[name])
    raise UsageError(f"sample {number} has none of {', '.join(names)}; name it so")


def _form(sample: Any) -> str | None:
    values = _values(sample)
    metadata = values.get("metadata")
    found = metadata.get("format") if isinstance(metadata, Mapping) else values.get("format")
    return found if isinstance(found, str) else None


def _asker(model: Any, generate_fn: Generate | None) -> Callable[[list[str]], list[str]]:
    if generate_fn is not None:
        return lambda prompts: [generate_fn(model, prompt) for prompt in prompts]
    if isinstance(model, str | PathLike):
        text = fspath(model)
        spec = text if text.partition(":")[0] in POLICIES else "transformers"
        more = {} if spec == text else {"model": text}
        kind, settings = load(POLICIES, spec, **more)
        return lambda prompts: asyncio.run(_answers(kind.make(settings), prompts))
    method = getattr(model, "generate", None)
    if callable(model) or callable(method):
        answer: Any = model if callable(model) else method
        return lambda prompts: [str(answer(prompt)) for prompt in prompts]
    raise UsageError(
        f"a {type(model).__name__} cannot be asked; give a function of a prompt, a policy by its "
        "name, or generate_fn"
    )


async def _answers(policy: Policy, prompts: Sequence[str]) -> list[str]:
    requests = [Request([{"role": "user", "content": prompt}], ()) for prompt in prompts]
    try:
        turns = await asyncio.gather(*(policy.act(request) for request in requests))
    finally:
        await policy.close()
    return [turn.text for turn in turns]
