"""The tasks of the section ``evaluate``, and what a model that is being trained makes of them.

The model acts as it is in memory: in evaluation mode, without a second copy, by the policy
``transformers`` and the same `collect` as ``adp collect`` and ``adp eval``. The episodes of step N
are the store ``OUT/evaluations/step-N``.
"""

from __future__ import annotations

import copy
import importlib
import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from adp.rollouts.collecting.collect import alone, collect_now
from adp.rollouts.collecting.limits import limits_in
from adp.rollouts.collecting.offered_tools import closed, made
from adp.rollouts.collecting.run_file import kind_facts
from adp.rollouts.collecting.settings import CollectSettings
from adp.rollouts.collecting.tasks import DEFAULT, read_tasks
from adp.rollouts.policies.transformers import TransformersPolicy, TransformersSettings
from adp.rollouts.spec import load_environment, wrong_setting
from adp.rollouts.turns import is_success
from adp.trainers.config import TrainConfig
from adp.trainers.config_run import EvaluateSection
from adp_schema.errors import UsageError
from adp_schema.model import Task
from adp_schema.store import Store

EVALUATIONS = "evaluations"
"""Folder of the stores of a run."""

ScoreFigures = Callable[[Path, Sequence[str]], Mapping[str, float]]
"""Gives the figures of scorers over the store of an evaluation."""


@dataclass(frozen=True)
class TaskEvaluation:
    """What a model is tried on.

    Attributes:
        section: the settings.
        policy: settings of the policy.
        kind: the environment.
        settings: its settings.
        tasks: the tasks.
        collecting: settings of each collection.
        score: gives figures of scorers; None without scorers.
        template: a chat template in place of the tokenizer's own.
    """

    section: EvaluateSection
    policy: TransformersSettings
    kind: Any
    settings: Any
    tasks: Sequence[Task]
    collecting: CollectSettings
    score: ScoreFigures | None = None
    template: str | None = None

    def run(self, model: Any, tokenizer: Any, out: Path) -> dict[str, float]:
        """Try the model as it is now.

        Args:
            model: a causal language model, perhaps with an adapter.
            tokenizer: of that model.
            out: where the store of the episodes goes; what is there is begun anew.

        Returns:
            Figures by name. A figure of which no episode says anything is not among them.

        Raises:
            RolloutError: one episode after the other broke for the same reason.
        """
        # What a stopped run left may be of weights that differ in their last bits.
        shutil.rmtree(out, ignore_errors=True)
        out.parent.mkdir(exist_ok=True)
        if self.template is not None:
            tokenizer = copy.copy(tokenizer)
            tokenizer.chat_template = self.template
        with acting(model):
            actor = TransformersPolicy(self.policy, model, tokenizer)
            collect_now(
                out,
                lambda: self.kind.make(self.settings),
                alone(actor),
                self.tasks,
                self.collecting,
                policies=[actor],
            )
        figures = verdicts(Store.open(str(out)))
        if self.score is not None:
            figures |= self.score(out, self.section.scorers)
        return figures


def verdicts(store: Store) -> dict[str, float]:
    """Success, reward and turns of the episodes that nothing but the agent ended, on average."""
    names = ("success", "reward", "truncated", "error_type")
    rows = store.scan("trajectories").select(*names).collect().to_arrow().to_pylist()
    good = [row for row in rows if row["error_type"] is None]
    rewards = [row["reward"] for row in good if row["reward"] is not None]
    rewards = [reward for reward in rewards if math.isfinite(reward)]
    figures = {"episodes": float(len(rows)), "broken": float(len(rows) - len(good))}
    known = [success for success in map(_succeeded, good) if success is not None]
    for name, values in (
        ("success", known),
        ("reward", rewards),
        ("truncated", [bool(row["truncated"]) for row in good]),
    ):
        if values:
            figures[name] = sum(values) / len(values)
    return figures


def _succeeded(row: Mapping[str, Any]) -> bool | None:
    """Whether an episode solved its task; by its reward where it says nothing else."""
    if row["success"] is not None:
        return bool(row["success"])
    reward = row["reward"]
    return None if reward is None or math.isnan(reward) else is_success(reward)


@contextmanager
def acting(model: Any) -> Iterator[None]:
    """A model in evaluation mode, in which it was trained before and is trained again after."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def task_evaluation(config: TrainConfig, scoring: str | None = None) -> TaskEvaluation | None:
    """What a run tries its model on; None when it tries it on nothing.

    Args:
        config: the run; a suite is written out in it.
        scoring: what gives the figures of scorers, as ``module:function``.

    Raises:
        UsageError: a name or a setting is wrong.
        InputError: there are no tasks, or they cannot be read.
    """
    section = config.evaluate
    if section is None:
        return None
    if section.env is None:
        raise UsageError("evaluate says nothing to try the model on; give evaluate.env or suite")
    kind, settings = load_environment(section.env)
    text = section.tasks or DEFAULT
    tasks = read_tasks(text, kind, settings, split=section.split).tasks[: section.limit]
    if not tasks:
        raise UsageError(f"evaluate.tasks: {text} gives no task")
    first = made(kind, settings)
    closed(first)
    policy = _policy(config, section)
    facts = {
        "environment": kind_facts(kind.name, settings),
        "policy": kind_facts("transformers", policy),
    }
    collecting = CollectSettings(
        environment=kind.name,
        policy="model in training",
        seed=section.seed or 0,
        n=section.n or 1,
        limits=limits_in(first, section.limits),
        concurrency=section.concurrency,
        timed=False,
        facts={"made_with": facts},
    )
    score = _score(scoring) if section.scorers else None
    template = config.render.chat_template
    return TaskEvaluation(section, policy, kind, settings, tasks, collecting, score, template)


def _policy(config: TrainConfig, section: EvaluateSection) -> TransformersSettings:
    """Settings of the policy: prompts are written as the rows of the training are."""
    render = config.render
    given: dict[str, Any] = {
        "tools_in": render.tools,
        "reasoning": render.reasoning,
        "parallel_calls": render.parallel_calls,
        "wire_form": render.wire_form,
        "system_text": render.system_text,
        "template_options": render.template_options,
        "trust_remote_code": config.model.trust_remote_code,
        **section.policy,
        "model": config.model.model_name_or_path,
    }
    for name in ("model", "adapter", "tokenizer", "device", "dtype"):
        if name in section.policy:
            raise UsageError(
                f"evaluate.policy takes no {name}: the model that is trained acts, as it is"
            )
    try:
        return TransformersSettings.model_validate(given)
    except ValidationError as error:
        raise UsageError(f"evaluate.policy: {wrong_setting(error, TransformersSettings)}") from None


def _score(scoring: str | None) -> ScoreFigures:
    if scoring is None:
        raise UsageError(
            "evaluate.scorers needs what adp train brings; call it, or leave evaluate.scorers out"
        )
    module, _, name = scoring.partition(":")
    function: ScoreFigures = getattr(importlib.import_module(module), name)
    return function
