"""What `adp eval` and a stage of a loop are told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, ValidationError

from adp.eval.evaluate import EvaluateOptions
from adp.eval.suite import Suite, read_suite
from adp.rollouts.environment import Settings
from adp.rollouts.spec import Named, wrong_setting
from adp_schema.errors import UsageError


class EvalOptions(Settings):
    """Options of `adp eval`, by their names on the command line."""

    suite: str | Mapping[str, Any]
    """Name of a suite, YAML file, or what stands in one."""
    policy: Named
    """Policy: NAME:key=value,... or an object with name and settings."""
    env: Named | None = None
    """Another environment than the suite's."""
    tasks: str | None = None
    """Other tasks than the suite's."""
    scorers: tuple[str, ...] = Field(default=(), alias="with")
    """Further scorers."""
    n: int | None = Field(default=None, ge=1)
    """Attempts at each task."""
    limit: int | None = Field(default=None, ge=1)
    """Only so many tasks, the first ones."""
    concurrency: int = Field(default=64, ge=1)
    """Episodes that run at once."""
    seed: int | None = None
    """Seed of the run."""
    dataset: str | None = None
    """Data set of the trajectories."""
    max_failures: int = Field(default=20, ge=1)
    """Stop when so many in a row broke for one reason."""
    retry_failed: bool = False
    """Try the broken episodes again."""
    no_times: bool = False
    """Keep no times, which differ from run to run."""
    unsafe_python: bool = False
    """Let the environment python run programs without a sandbox, with all your rights."""
    minimum: Mapping[str, float] = Field(default_factory=dict, alias="min")
    """Figure -> the least that it must be."""
    maximum: Mapping[str, float] = Field(default_factory=dict, alias="max")
    """Figure -> the most that it may be."""

    def chosen(self) -> Suite:
        """The suite, with what is given over it.

        Raises:
            UsageError: there is none of this name, or something in it is wrong.
            InputError: its file cannot be read.
        """
        if isinstance(self.suite, str):
            suite = read_suite(self.suite)
        else:
            try:
                suite = Suite.model_validate(dict(self.suite))
            except ValidationError as error:
                raise UsageError(f"suite: {wrong_setting(error, Suite)}") from error
        changes = {
            key: value for key, value in (("environment", self.env), ("tasks", self.tasks)) if value
        }
        return suite.model_copy(update=changes)

    def options(self) -> EvaluateOptions:
        """How the suite is run."""
        given = {"n": self.n, "seed": self.seed}
        return EvaluateOptions(
            collect={
                "concurrency": self.concurrency,
                "max_failures": self.max_failures,
                "retry_failed": self.retry_failed,
                "timed": not self.no_times,
                "dataset": self.dataset,
                **{name: value for name, value in given.items() if value is not None},
            },
            limit=self.limit,
            scorers=self.scorers,
            minimum=self.minimum,
            maximum=self.maximum,
            unsafe_python=self.unsafe_python,
        )
