"""Models: their training, their episodes in an environment, and the scores of these."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from adp.api.stores import opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from os import PathLike
    from typing import Unpack

    from adp.eval.scoring.run import ScoreReport
    from adp.rendering.report import RenderReport
    from adp.rollouts.collecting.counts import CollectReport
    from adp.rollouts.environment import AsyncEnvironment, Environment
    from adp.rollouts.policy import Policy, Request
    from adp.rollouts.turns import Turn
    from adp.trainers.run import Trained
    from adp_schema.model import Task
    from adp_schema.store import Store

    PathText = str | PathLike[str]


def collect(
    env: str | Callable[[], Environment | AsyncEnvironment] | type,
    policy: str | Policy | Callable[[Request], Turn],
    tasks: str | Iterable[Task | Mapping[str, Any]],
    out: PathText,
    *,
    expert: str | None = None,
    **settings: Any,
) -> CollectReport:
    """Let a policy act in an environment, and collect the episodes in a store.

    The same call goes on with a run that was stopped, and does nothing twice.

    Args:
        env: an environment by its name (``"toolworld:failures=0"``), a function that makes one for
            each episode, or a class whose public typed methods are the tools.
        policy: a policy by its name (``"openai:model=m"``), an object with ``act``, or a function
            that makes a turn of a request.
        tasks: a file, a store, ``split:count`` for tasks that the environment makes; or tasks, each
            a `Task` or a mapping with its columns (``instruction``, ``answers``, ...).
        out: folder of the growing store; it is sealed when all is done and nothing broke.
        expert: an expert beside the policy, such as ``"informed"`` (docs/experts.md).
        **settings: fields of `adp.rollouts.collecting.settings.CollectSettings`, such as
            ``n=8, seed=1, limits={"max_turns": 10}``.

    Returns:
        Counts of episodes, successes and what broke; ``plain()`` is JSON.

    Raises:
        UsageError: a name, a setting or a task is wrong.
        OutputExistsError: the store was begun with other settings or tasks, or it is finished and
            lacks some of what is asked for; ``since=[STORE]`` collects that beside it.
        NothingNewError: the stores of ``since`` hold all of it.
        InputError: a file cannot be read.
        RolloutError: episode after episode broke for the same reason.
        StoreError: the store cannot be written to.
    """
    from adp.rollouts.from_python import collect_in_python
    from adp_schema.verification import verified

    with verified():
        return collect_in_python(
            env, policy, tasks, os.fspath(out), expert=expert, settings=settings
        )


def score(
    store: PathText | Store,
    scorers: str | Iterable[str],
    *,
    out: PathText | None = None,
    reference: PathText | Store | None = None,
    branches: bool = False,
) -> ScoreReport:
    """Score the trajectories of a store, and keep the scores beside it (the view ``scores``).

    Args:
        store: the store, or its path or URL.
        scorers: their names with settings: ``"outcome,tool_f1:arguments=ignore"``.
        out: folder for the scores; None puts them into the folder ``scores`` of the store.
        reference: a store whose trajectories are right, by ``task_id``.
        branches: score branches too.

    Returns:
        What each scorer gave: figures with intervals, and what was not scored and why.

    Raises:
        UsageError: a name or a setting is wrong, or the store is a URL and ``out`` is None.
        StoreError: the store cannot be read, or the scores cannot be written.
    """
    from adp.eval.scoring import ScoreOptions, choose, score_store
    from adp.eval.scoring.references import from_store
    from adp_schema.verification import verified

    with verified():
        options = ScoreOptions(
            out=None if out is None else os.fspath(out),
            references=None if reference is None else from_store(opened(reference)),
            branches=branches,
        )
        return score_store(
            opened(store), choose([scorers] if isinstance(scorers, str) else scorers), options
        )


def render(
    store: PathText | Store,
    model: PathText,
    out: PathText | None = None,
    *,
    splits: Sequence[str] | None = None,
    workers: int | None = None,
    **options: Any,
) -> RenderReport:
    """Render a store with a model's chat template: tokens, labels and weights, in Parquet.

    One trajectory alone is ``adp.rendering.render.Renderer.load(model).trajectory(t)``.

    Args:
        store: the store, or its path or URL.
        model: whose tokenizer and chat template: a folder, a name on the Hub, or ``tiny``.
        out: folder for the rows; None takes one in the cache.
        splits: only trajectories of these splits.
        workers: number of processes; None takes one a core. The rows do not depend on it.
        **options: fields of `adp.rendering.options.RenderOptions`, such as ``max_length=8192,
            window="sliding"``.

    Returns:
        Counts, and ``files()``: the Parquet files of the rows.

    Raises:
        UsageError: an option is wrong, or the model has no tokenizer that can be used.
        EmptyResultError: no row comes out.
        OutputExistsError: the folder holds something else.
    """
    from pydantic import ValidationError

    from adp.rendering.options import RenderOptions
    from adp.rendering.run import render_store
    from adp_schema.errors import UsageError
    from adp_schema.verification import verified

    try:
        wanted = RenderOptions(**options)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise UsageError(f"{name or 'options of rendering'}: {first['msg']}") from error
    folder = None if out is None else os.fspath(out)
    with verified():
        return render_store(
            opened(store), os.fspath(model), folder, wanted, splits=splits, workers=workers
        )


class TrainKeywords(TypedDict, total=False):
    """What `train` takes besides what is trained on what."""

    resume: bool
    allow_python: bool
    strict: bool


def train(
    store: PathText | Store | None,
    out: PathText,
    *,
    method: Literal["sft", "dpo", "kto", "grpo", "reward", "distill"] | None = None,
    model: PathText | None = None,
    config: PathText | Mapping[str, Any] | None = None,
    settings: Sequence[str] | Mapping[str, Any] = (),
    **options: Unpack[TrainKeywords],
) -> Trained:
    """Train a model on a store.

    Args:
        store: the store, or its path or URL; None takes that of the configuration.
        out: folder for the adapter, the record of the run, the log and the curve of the loss.
        method: None takes that of the configuration, which is ``"sft"`` if it names none.
        model: a folder, a name on the Hub, or ``"tiny"``; None takes that of the configuration.
        config: the YAML file, or what stands in one (docs/train-config.md).
        settings: changes of it, such as ``{"lora.r": 64}`` or ``["lora.r=64"]``.
        **options: any of these.
            resume: go on with the run that the folder holds.
            allow_python: let rewards be Python functions that the configuration names.
            strict: refuse to train on rows that lack something of the store.

    Returns:
        ``plan``, what it was about to do, and ``record``, which also stands in ``run.json``.

    Raises:
        UsageError: a setting is wrong, or what does not go well together.
        MissingExtraError: the extra ``train`` is not installed.
        EmptyResultError: nothing is left to train on.
        OutputExistsError: the folder holds something already.
        TrainingError: the training stopped on an error.
    """
    from adp.trainers.config_file import read_config
    from adp.trainers.run import TrainOptions
    from adp.trainers.run import train as run
    from adp.workflows.training_suite import SCORING, with_suite
    from adp_schema.verification import verified

    changes, more = ((), settings) if isinstance(settings, Mapping) else (settings, {})
    with verified():
        given = {
            "method": method,
            "data.store": None if store is None else opened(store).root,
            "model.model_name_or_path": None if model is None else os.fspath(model),
            **more,
        }
        named = {place: value for place, value in given.items() if value is not None}
        chosen, _ = read_config(config, changes, named)
        chosen = with_suite(chosen)
        return run(chosen, os.fspath(out), TrainOptions(**options, scoring=SCORING))
