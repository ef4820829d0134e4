"""How rollouts branch, as it is written on a command line: ``key=value,...``.

initial=8,beam=2,probability=0.5,entropy_weight=0.2,call_limit=6
arpo                                the same: these are the defaults
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, ValidationError

from adp.rollouts.environment import Settings
from adp.rollouts.policy import POLICIES, PolicyKind
from adp.rollouts.spec import load, read_spec, wrong_setting
from adp_schema.errors import UsageError

NAME = "arpo"


class BranchingSettings(Settings):
    """How the attempts at one task branch. The defaults are those of ET-Agent's training."""

    initial: int = Field(default=8, ge=1)
    """Attempts that begin at the beginning; at most all."""
    beam: int = Field(default=2, ge=1)
    """One more than the branches that an attempt may bring at one turn; 1: it never branches."""
    probability: float = Field(default=0.5, ge=0, le=1)
    """Chance of a branch where the model is as sure as at its first turn."""
    entropy_weight: float = Field(default=0.2, allow_inf_nan=False)
    """How much of a rise of the entropy is added to that chance."""
    call_limit: int | None = Field(default=6, ge=0)
    """A turn that asks for more calls than these ends its attempt; null: there is no limit."""
    tokens: int = Field(default=20, ge=1)
    """First tokens of a turn of which the entropy is taken."""
    top: int = Field(default=10, ge=1)
    """Likeliest tokens over which the entropy at one of them is taken."""
    vocabulary: int | None = Field(default=None, ge=2)
    """Tokens that the model knows; null: what the policy says."""
    baseline: Literal["path", "branch"] = "path"
    """What a branch compares its turns with: the first turn of the attempt that it comes from, or,
    as ARPO's code does, the first one of its own."""
    without_fork: Literal["skip", "replay"] = "skip"
    """Where a world cannot be copied: do not branch, or carry its calls out again in a new one."""


def load_policy(
    text: str, branching: BranchingSettings | None, **more: Any
) -> tuple[PolicyKind, Any]:
    """Look the spec of a policy up; where attempts branch, it gives the entropies for it.

    Args:
        text: the spec.
        branching: how attempts branch; None: they do not.
        **more: further settings, which win.

    Returns:
        The kind of policy, and its settings.

    Raises:
        UsageError: the name or a setting is unknown, or a value is wrong.
        InputError: a file cannot be read.
    """
    kind, settings = load(POLICIES, text, **more)
    if branching is not None and "entropies" in type(settings).model_fields:
        settings = settings.model_copy(update={"entropies": branching.top})
    return kind, settings


def read_branching(text: str) -> BranchingSettings:
    """Read how rollouts branch.

    Raises:
        UsageError: a setting is unknown, or a value is wrong.
    """
    text = text.strip()
    if text != NAME and "=" not in text:
        raise UsageError(f"--branching: {text!r} is neither {NAME} nor key=value,...")
    if text != NAME and not text.startswith(f"{NAME}:"):
        text = f"{NAME}:{text}"
    given: dict[str, Any] = read_spec(text)[1]
    try:
        return BranchingSettings.model_validate(given)
    except ValidationError as error:
        raise UsageError(f"--branching: {wrong_setting(error, BranchingSettings)}") from error
