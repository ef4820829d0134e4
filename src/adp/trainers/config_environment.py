"""The section ``grpo.environment``: where a model acts while it is trained."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from adp.rendering.answers import FormName
from adp.trainers.config_section import ConfigSection


class EnvironmentSection(ConfigSection):
    """Where the model acts: each row is an episode, played as by `adp collect`.

    How prompts are written follows from the section `render`.
    """

    name: str = Field(min_length=1)
    """The environment, as `adp collect --env` takes it: NAME[:key=value,...], a YAML file, or
    FILE.py:NAME, which needs --allow-python."""
    tasks: str | None = None
    """A file of tasks, a store, or SPLIT:COUNT[:SEED]; null: the tasks of data.store, else
    train:100 of the environment's own."""
    split: str | None = None
    """Of a file or a store, only the tasks of this split."""
    max_turns: int | None = Field(default=None, ge=1)
    """Turns of an episode, at most; null: what the environment says, else 30."""
    max_calls: int | None = Field(default=None, ge=1)
    """Calls of tools in an episode, at most."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Tokens that the model writes in an episode, at most; max_completion_length is that of a
    turn."""
    max_seconds: float | None = Field(default=1800.0, gt=0)
    """Seconds of an episode, at most: a tool that never returns costs no more."""
    concurrency: int = Field(default=64, ge=1)
    """Episodes that run at once in a process."""
    call_form: FormName = "auto"
    """How the model writes calls: auto (as its template does), tags, json, mistral, pythonic,
    library (the parser of transformers), none."""
    truncated: Literal["keep", "mask", "zero"] = "keep"
    """What becomes of an episode that a budget cut. keep: it is trained on with the rewards that
    it has; mask: it counts in the mean of its group, and none of its tokens is in the loss; zero:
    each of its rewards is 0."""
    rewritten: Literal["last", "refuse"] = "last"
    """What becomes of an episode whose chat template or environment rewrites what was said, so
    that its turns are no single row. last: the last row is trained on, and the tokens that are
    written in earlier ones are left out and counted; refuse: stop."""
    branching: str | None = None
    """Let the num_generations episodes of a task branch where the model is unsure, as `adp collect
    --branching`: arpo, or key=value,... (initial, beam, probability, ...)."""
    shared_tokens: Literal["share", "once", "full"] = "share"
    """How a token counts that branches have in common. share: 1/k in each of the k rows that hold
    it, so with their mean advantage; once: in the first of them alone; full: in all of them, as
    ARPO trains."""
    rollouts: bool = True
    """Keep the episodes of the training as a store, in the folder rollouts of the run."""
    max_failures: int = Field(default=20, ge=1)
    """Episodes in a row that broke for one reason stop the training."""
    prefix_cache_mb: int = Field(default=1024, ge=0)
    """Memory for what the model has read already of the episodes of one step."""

    def limits(self) -> dict[str, Any]:
        """Budgets of an episode that are given."""
        names = ("max_turns", "max_calls", "max_tokens", "max_seconds")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}
