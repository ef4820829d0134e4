"""From the options to the stages of a mixture: weights and budgets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from adp.curation.allocate import allocate, exact
from adp.curation.ops.mix.options import Mix
from adp_schema.errors import RecipeError, unknown_name

OTHER = "other"
"""The group of those that no weight names."""


@dataclass(frozen=True)
class PlannedStage:
    """One stage.

    Attributes:
        weights: group -> weight.
        whole: their sum.
        budget: in the unit of the budget.
    """

    weights: Mapping[str, Fraction]
    whole: Fraction
    budget: int

    def share(self, group: str) -> float:
        """The share of a group that was asked for."""
        return float(self.weights.get(group, Fraction()) / self.whole)


def named_groups(options: Mix) -> list[str] | None:
    """The groups that the options name; None where the method takes all groups as they are."""
    if options.method == "weighted":
        return list(options.weights)
    if options.method == "curriculum":
        return list(dict.fromkeys(name for stage in options.stages for name in stage.weights))
    return None


def check_groups(options: Mix, value: Sequence[str]) -> None:
    """Check that the groups that the options name are there, and that all groups are named.

    Args:
        options: the options.
        value: the groups that there are.

    Raises:
        RecipeError: they are not.
    """
    named = named_groups(options)
    epochs = options.epochs if isinstance(options.epochs, dict) else {}
    for name in [*(named or []), *options.agent, *epochs]:
        if name not in value and not (name == OTHER and options.unknown == "other"):
            raise RecipeError(
                f"mix has no trajectory for it: {unknown_name('group', name, value)} "
                f"(the groups are {options.by})"
            )
    unknown = [] if named is None else [name for name in value if name not in named]
    if unknown and options.unknown == "error":
        raise RecipeError(
            f"mix has no weight for the group {unknown[0]!r}"
            + (f" and {len(unknown) - 1:,} more" if len(unknown) > 1 else "")
            + "; give it one, 0 to leave it out, or set unknown: other"
        )
    if unknown and named is not None and OTHER not in named:
        raise RecipeError("mix has unknown: other, so the weights need one for the group other")


def parts(options: Mix, supply: Mapping[str, int], most: Mapping[str, int]) -> list[PlannedStage]:
    """The stages; one, unless it is a curriculum.

    Args:
        options: the options.
        supply: group -> what there is, in the unit of the budget.
        most: the same, repeats counted.

    Raises:
        RecipeError: no group gets anything.
    """
    if options.method != "curriculum":
        weighings = [_weights(options, supply)]
        shares = [Fraction(1)]
    else:
        weighings = [
            {name: exact(value) for name, value in stage.weights.items()}
            for stage in options.stages
        ]
        shares = [exact(stage.share) if stage.share else Fraction(1) for stage in options.stages]
    weighings = [
        {name: weight for name, weight in weights.items() if name in supply}
        for weights in weighings
    ]
    for number, weights in enumerate(weighings):
        if not any(most.get(name) for name, weight in weights.items() if weight):
            where = f" of stage {number}" if len(weighings) > 1 else ""
            raise RecipeError(
                f"the groups that mix gives a weight{where} have no trajectory; name others"
            )
    budgets = [stage.total or 0 for stage in options.stages]
    if not any(budgets):
        full = options.total or options.tokens or _whole(weighings, shares, most)
        budgets = allocate(full, shares, [full] * len(shares))
    return [
        PlannedStage(weights, sum(weights.values(), Fraction()), budget)
        for weights, budget in zip(weighings, budgets, strict=True)
    ]


def _weights(options: Mix, supply: Mapping[str, int]) -> dict[str, Fraction]:
    """The weights of a mixture in one stage."""
    if options.method == "weighted":
        return {name: exact(weight) for name, weight in options.weights.items()}
    if options.method == "agenttuning":
        return _agenttuning(options, supply)
    if options.method == "balanced" or math.isinf(options.temperature):
        return dict.fromkeys(supply, Fraction(1))
    if options.temperature == 1:
        return {name: Fraction(size) for name, size in supply.items()}
    # Relative to the largest, as a small T would else go beyond what a float holds.
    top = max(supply.values(), default=1)
    return {name: exact((size / top) ** (1 / options.temperature)) for name, size in supply.items()}


def _agenttuning(options: Mix, supply: Mapping[str, int]) -> dict[str, Fraction]:
    agent = sum(size for name, size in supply.items() if name in options.agent)
    general = sum(supply.values()) - agent
    if options.eta < 1 and not general:
        raise RecipeError("mix has no general data: all groups are agent data; set eta: 1")
    eta = exact(options.eta)
    return {
        name: eta * size / agent if name in options.agent else (1 - eta) * size / general
        for name, size in supply.items()
    }


def _whole(
    weighings: Sequence[Mapping[str, Fraction]],
    shares: Sequence[Fraction],
    most: Mapping[str, int],
) -> int:
    """The largest budget with which no group that there is runs out."""
    use: dict[str, Fraction] = {}
    for weights, share in zip(weighings, shares, strict=True):
        result = share / sum(shares, Fraction()) / sum(weights.values(), Fraction())
        for name, weight in weights.items():
            use[name] = use.get(name, Fraction()) + weight * result
    bounds = [most[name] / part for name, part in use.items() if part and most.get(name)]
    return max(math.floor(min(bounds)), 1)
