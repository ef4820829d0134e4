"""`adp.collect` and `adp.score`: episodes of a policy in an environment, and their scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from os import PathLike

    from adp.eval.scoring.run import ScoreReport
    from adp.rollouts.collecting.counts import CollectReport
    from adp.rollouts.environment import AsyncEnvironment, Environment
    from adp.rollouts.policy import Policy, Request
    from adp.rollouts.turns import Turn
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
    import os

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
    import os

    from adp.eval.scoring import ScoreOptions, choose, score_store
    from adp.eval.scoring.references import from_store
    from adp_schema.store import Store
    from adp_schema.verification import verified

    def opened(given: PathText | Store) -> Store:
        result = given if isinstance(given, Store) else Store.open(os.fspath(given), check=False)
        result.check()
        return result

    with verified():
        options = ScoreOptions(
            out=None if out is None else os.fspath(out),
            references=None if reference is None else from_store(opened(reference)),
            branches=branches,
        )
        return score_store(
            opened(store), choose([scorers] if isinstance(scorers, str) else scorers), options
        )
