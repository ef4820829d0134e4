"""The tokens of an episode as its engine saw and wrote them, ready for a loss.

A policy in process keeps, with each turn, the ids of its prompt and of what was written, and their
log probabilities. Joined, these are what reinforcement learning trains on: rendering the messages
again may give other ids (retokenisation drift), and what the model never saw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from adp_schema.model import Step, Trajectory


@dataclass(frozen=True, slots=True)
class TokenSequence:
    """One row: a prompt, and a response in which the model's tokens and others alternate.

    Attributes:
        prompt_ids: ids up to where the model first writes.
        response_ids: ids from there to the last one that it wrote.
        response_mask: for each of these, whether the model wrote it, and no recorded mask of its
            step (``token_mask``) takes it out.
        logprobs: for each of these its log probability when it was drawn, 0.0 where the model did
            not write; None where that of a written token is not known.
        steps: numbers of the steps whose tokens are under the mask.
        spans: for each of these steps, the first of its tokens in the response, and the token after
            its last one.
    """

    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    response_mask: tuple[bool, ...]
    logprobs: tuple[float, ...] | None
    steps: tuple[int, ...]
    spans: tuple[tuple[int, int], ...] = ()

    @property
    def written(self) -> int:
        """Tokens that the model wrote."""
        return sum(self.response_mask)


@dataclass(frozen=True, slots=True)
class EpisodeTokens:
    """The rows of an episode.

    Attributes:
        sequences: the rows; more than one where a later prompt does not begin with all that was
            seen and written before, because the template or the environment rewrites history.
        without: numbers of the agent's steps that have no token ids.
    """

    sequences: tuple[TokenSequence, ...]
    without: tuple[int, ...]


def episode_tokens(trajectory: Trajectory) -> EpisodeTokens:
    """The recorded tokens of an episode.

    Args:
        trajectory: with all of its steps; a branch with those of its parent.
    """
    rows: list[_Row] = []
    without: list[int] = []
    for number, step in enumerate(trajectory.steps):
        if step.source != "agent" or step.kind != "llm_turn" or step.is_copied_context:
            continue
        place = number if step.step is None else step.step
        if step.prompt_token_ids is None or step.completion_token_ids is None:
            without.append(place)
            continue
        if not rows or not rows[-1].goes_on(step.prompt_token_ids):
            rows.append(_Row(tuple(step.prompt_token_ids)))
        rows[-1].add(step, place)
    return EpisodeTokens(tuple(row.sequence() for row in rows), tuple(without))


@dataclass(slots=True)
class _Row:
    prompt: tuple[int, ...]
    ids: list[int] = field(init=False)
    mask: list[bool] = field(default_factory=list)
    logprobs: list[float] | None = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ids = list(self.prompt)

    def goes_on(self, prompt: Sequence[int]) -> bool:
        """Whether a prompt begins with all of this row."""
        return list(prompt[: len(self.ids)]) == self.ids

    def add(self, step: Step, place: int) -> None:
        """Add a turn, whose prompt begins with all of this row."""
        between = (step.prompt_token_ids or [])[len(self.ids) :]
        written = step.completion_token_ids or []
        self.ids += [*between, *written]
        self.mask += [False] * len(between) + _mask(step, len(written))
        self.steps.append(place)
        self.spans.append((len(self.mask) - len(written), len(self.mask)))
        known = step.logprobs if step.logprobs is not None or written else []
        if self.logprobs is None or known is None or len(known) != len(written):
            self.logprobs = None
            return
        self.logprobs += [0.0] * len(between) + list(known)

    def sequence(self) -> TokenSequence:
        """The finished row."""
        return TokenSequence(
            self.prompt,
            tuple(self.ids[len(self.prompt) :]),
            tuple(self.mask),
            None if self.logprobs is None else tuple(self.logprobs),
            tuple(self.steps),
            tuple(self.spans),
        )


def _mask(step: Step, written: int) -> list[bool]:
    """The mask of the tokens that a step wrote: all of them, where none of that length is kept."""
    kept = step.token_mask
    if kept is None or len(kept) != written:
        return [True] * written
    return [bool(value) for value in kept]
