"""Settings of a judge, and the judge that they name."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

from pydantic import Field

from adp.rollouts.collecting.run_file import kind_facts
from adp.rollouts.environment import Settings
from adp.rollouts.judging.cache import AnswerCache
from adp.rollouts.judging.judge import Judge, PanelMember
from adp.rollouts.judging.rubrics import RUBRICS, Rubric, RubricName
from adp.rollouts.judging.rulings import Combine
from adp.rollouts.judging.transcript import Reads
from adp.rollouts.policy import POLICIES
from adp.rollouts.spec import load, read_spec
from adp_schema.errors import UsageError

Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""US dollars for a million tokens."""


class JudgeSettings(Settings):
    """Settings of what may ask a judge."""

    policy: str | None = None
    """The judge: a policy, such as openai:model=...; none: no judge is asked."""
    panel: tuple[str, ...] = ()
    """Further judges, which are asked the same."""
    votes: int = Field(default=1, ge=1, le=100)
    """How often each judge is asked."""
    temperature: float = Field(default=0.0, ge=0)
    """Temperature of the judges, where the policy has such a setting."""
    cache: bool = Field(default=False, exclude=True)
    """Keep the answers by the hash of what was asked, in $ADP_CACHE or the user's cache, so that
    nothing is asked twice."""
    prices: dict[str, tuple[Price, Price]] = Field(default_factory=dict, exclude=True)
    """Name of a judge -> US dollars for a million tokens in, and for a million out."""


class RubricSettings(JudgeSettings):
    """Settings of what asks a judge about whole runs."""

    rubric: RubricName = "grades"
    """grades: C, P or I (1, 0.5, 0); binary: yes or no; partial: 0 to 3, and only 3 is a
    success."""
    criterion: str | None = None
    """What is asked, in the place of the rubric's own words."""
    reads: Reads = "run"
    """What the judge sees besides the task and its reference answers: the whole run, or the final
    answer."""
    combine: Combine = "mean"
    """What several verdicts come to: their mean, the label of the majority, or the label of all
    (unanimity). Without one they are tied, and the run is unscored."""

    @property
    def chosen_rubric(self) -> Rubric:
        """The rubric."""
        return RUBRICS[self.rubric]


def judge_of(settings: JudgeSettings) -> Judge | None:
    """The judge of some settings; None without one.

    Args:
        settings: the settings.

    Raises:
        UsageError: there is no such policy, a setting of it is wrong, or a price is for nobody.
    """
    specs = [*([settings.policy] if settings.policy is not None else []), *settings.panel]
    if not specs:
        return None
    made = [_made(spec, settings.temperature) for spec in specs]
    counts, members = Counter[str](), []
    for policy, facts in made:
        counts[policy.name] += 1
        number = counts[policy.name]
        name = policy.name if number == 1 else f"{policy.name} #{number}"
        members.append(PanelMember(policy, name, facts, settings.prices.get(policy.name)))
    if unknown := sorted(settings.prices.keys() - counts.keys()):
        raise UsageError(
            f"prices names {unknown[0]}, and the judges are {', '.join(sorted(counts))}"
        )
    return Judge(members, settings.votes, AnswerCache() if settings.cache else None)


def _made(spec: str, temperature: float) -> tuple[Any, dict[str, Any]]:
    """A policy, and what its answers depend on."""
    name, given = read_spec(spec)
    fields = POLICIES.get(name).settings.model_fields
    more = {}
    if "temperature" in fields and "temperature" not in given:
        more["temperature"] = temperature
    kind, chosen = load(POLICIES, spec, **more)
    # Servers call different models by the same name.
    facts = {**kind_facts(kind.name, chosen), "at": getattr(chosen, "base_url", None)}
    return kind.make(chosen), facts
