"""What a kind of stage is: the page that each module of `adp.workflows.loop.stages` implements."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adp.core.code_files import attribute_of, no_code
from adp.core.options import OptionsModel
from adp.core.progress import Progress, Silent
from adp.rollouts.collecting.tasks import check_tasks_text
from adp.rollouts.environment import EnvironmentKind
from adp_schema.errors import UsageError, unknown_name

_MADE = re.compile(r"\b(round-\d+|base)(/|$)")
"""A path that the loop itself makes."""


@dataclass(frozen=True)
class ModelPlace:
    """Where a model lies.

    Attributes:
        base: a folder with all weights, or a name on the Hub.
        adapter: folder of a LoRA adapter over it.
    """

    base: str
    adapter: str | None = None

    @property
    def path(self) -> str:
        """What policies load."""
        return self.adapter or self.base


@dataclass(frozen=True)
class StageContext:
    """What a stage knows besides its options. Its paths begin at the folder of the loop.

    Attributes:
        name: its name.
        round: number of its round, from 1.
        path: where its result lies when it is done.
        seed: seed of the loop.
        here: folder of the file of the loop.
        last: the model of the last train stage.
        models: folder -> model, for each model that was trained before, and for the base.
        allow_python: Python functions that files name may run.
        progress: told how far it is.
    """

    name: str
    round: int
    path: str
    seed: int
    here: Path
    last: ModelPlace
    models: Mapping[str, ModelPlace] = field(default_factory=dict)
    allow_python: bool = False
    progress: Progress = field(default_factory=Silent)

    def guarded(self) -> AbstractContextManager[None]:
        """Within it the file of the loop names no code, unless the call allows that."""
        why = "the call does not allow that; add --allow-python when you trust it"
        return nullcontext() if self.allow_python else no_code(why)

    @property
    def dataset(self) -> str:
        """Name of the data set that it makes, if none is given."""
        return f"{self.name}-{self.round}"

    def model(self, text: str) -> ModelPlace:
        """The model that a text names: one of this loop, or any other."""
        return self.models.get(text, ModelPlace(text))

    def check_tasks(self, tasks: str | None, env: str, kind: EnvironmentKind, about: Any) -> None:
        """Check where tasks are to come from, unless the loop itself makes them.

        Args:
            tasks: a file, a store, or SPLIT:COUNT[:SEED]; None: none are named.
            env: the environment as it is named.
            kind: the environment.
            about: its settings.

        Raises:
            UsageError: the environment does not make such tasks.
            InputError: there is no such file.
        """
        if tasks is not None and not _MADE.match(tasks) and not _MADE.search(env):
            check_tasks_text(tasks, kind, about)

    def given_path(self, text: str) -> str:
        """A path as it stands in the file of the loop: one that is there is relative to that."""
        if _MADE.match(text):
            return text
        place = self.here / text
        try:
            there = bool(text) and "://" not in text and place.exists()
        except (OSError, ValueError):  # too long for a name, or a null character in it
            there = False
        return str(place) if there else text


def given_spec(text: str, context: StageContext) -> str:
    """The name of an environment or a policy, or a path; files stand beside that of the loop.

    Args:
        text: NAME:key=value,..., FILE.yaml, or FILE.py:NAME.
        context: the stage.
    """
    path, colon, rest = text.partition(".py:")
    return f"{context.given_path(f'{path}.py')}:{rest}" if colon else context.given_path(text)


@dataclass(frozen=True)
class StageFacts:
    """What a finished stage has brought, read from its folder.

    Attributes:
        hash: hash of all that counts in the folder.
        counts: name -> number.
        figures: numbers with intervals: scorer, name, value, low, high, count.
        line: what to say about it, one line.
    """

    hash: str
    counts: dict[str, Any] = field(default_factory=dict)
    figures: list[dict[str, Any]] = field(default_factory=list)
    line: str = ""


def _nothing(options: Any, context: StageContext) -> None:
    """All was checked by the options themselves."""


def _no_model(options: Any, context: StageContext) -> ModelPlace | None:
    """A stage that trains nothing."""
    return None


@dataclass(frozen=True)
class StageKind:
    """A kind of stage.

    Attributes:
        name: name of the command that does the same.
        about: what it does, one sentence.
        options: its options.
        run: does it, into a folder of its own; what a stopped call left there is gone on with.
        facts: what it has brought, from its folder alone.
        check: checks what the options name, before anything runs.
        model: the model that it makes.
        free: options that do not change the result.
    """

    name: str
    about: str
    options: type[OptionsModel]
    run: Callable[[Any, StageContext, Path], None]
    facts: Callable[[Any, Path], StageFacts]
    check: Callable[[Any, StageContext], None] = _nothing
    model: Callable[[Any, StageContext], ModelPlace | None] = _no_model
    free: frozenset[str] = frozenset()


KINDS = {
    name: f"adp.workflows.loop.stages.{module}:KIND"
    for name, module in {
        "convert": "convert",
        "collect": "collect",
        "evolve": "evolve",
        "score": "score",
        "curate": "curate",
        "train": "train",
        "eval": "evaluate",
        "export": "export",
        "python": "python",
    }.items()
}
"""Name of a kind -> what describes it."""


def kind_of(name: str) -> StageKind:
    """A kind of stage by its name.

    Raises:
        UsageError: there is none.
    """
    if name not in KINDS:
        raise UsageError(unknown_name("kind of stage", name, KINDS))
    kind: StageKind = attribute_of(KINDS[name])
    return kind
