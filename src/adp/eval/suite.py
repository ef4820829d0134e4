"""What a suite is: environment, tasks, scorers and limits under one name; `adp eval` runs it.

name: sums
environment: calculator:steps=2
tasks: test:50
n: 4
limits: {max_turns: 8}
scorers: [outcome, efficiency, "answer:manner=squad"]
minimum: {success: 0.9}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml
from pydantic import Field, ValidationError

from adp.core.input_files import read_text
from adp.core.registry import Registry
from adp.rollouts.collecting.limits import Limits
from adp.rollouts.environment import Settings
from adp.rollouts.spec import Named, wrong_setting
from adp_schema.errors import InputError, UsageError


class Suite(Settings):
    """A suite of tasks with what scores them."""

    name: str = Field(min_length=1)
    """What to call it."""
    about: str = ""
    """What it measures, one sentence."""
    environment: Named
    """Environment: NAME:key=value,... or an object."""
    tasks: str
    """File of tasks, store, or SPLIT:COUNT[:SEED]."""
    split: str | None = None
    """Of a file or a store, only this split."""
    scorers: tuple[Named, ...] = ("outcome",)
    """Scorers, likewise."""
    n: int = Field(default=1, ge=1)
    """Attempts at each task."""
    seed: int = 0
    """Seed of the run."""
    limits: Limits = Field(default_factory=Limits)
    """Budgets of an episode."""
    minimum: Mapping[str, float] = Field(default_factory=dict)
    """Figure -> the least that it must be."""
    maximum: Mapping[str, float] = Field(default_factory=dict)
    """Figure -> the most that it may be."""


SUITES: Registry[Suite] = Registry(
    "suite",
    "adp.suites",
    has=("environment", "tasks", "scorers"),
    builtin={
        "calculator": "adp.eval.suites:CALCULATOR",
        "toolworld": "adp.eval.suites:TOOLWORLD",
        "weather": "adp.eval.suites:WEATHER",
    },
)
"""The suites that have a name. Other packages add theirs as entry points of ``adp.suites``."""


def read_suite(text: str) -> Suite:
    """A suite by its name, or from a YAML file.

    Raises:
        UsageError: the name is unknown, or the file is no suite; the message says where.
        InputError: the file cannot be read.
    """
    if not text.endswith((".yaml", ".yml")):
        return SUITES.get(text)
    if not Path(text).exists():
        raise InputError(f"the suite {text} is not there; adp eval --list shows those with a name")
    try:
        value = yaml.safe_load(read_text(text))
    except OSError as error:
        raise InputError(f"{text} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{text} cannot be read as YAML: {error}") from error
    if not isinstance(value, dict):
        raise UsageError(f"{text} is no suite; it needs name, environment and tasks")
    try:
        return Suite.model_validate(value)
    except ValidationError as error:
        raise UsageError(f"{text}: {wrong_setting(error, Suite)}") from error
