"""The stage ``collect``: `adp collect`, whose store is then in the order of the ids."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from adp.core.extras import need
from adp.rollouts.collecting.collect_options import CollectOptions, prepare_collect
from adp.workflows.loop.hashes import store_hash
from adp.workflows.loop.ordered_store import episodes_of, write_ordered
from adp.workflows.loop.stage_kind import StageContext, StageFacts, StageKind, given_spec
from adp_schema.store import Store


class CollectStage(CollectOptions):
    """Options of a stage ``collect``: those of the command."""

    no_times: bool = True
    """Keep no times, which differ from run to run."""


def placed(options: Any, context: StageContext) -> Any:
    """The options with what a loop knows: data set, seed, and paths beside its file."""
    changes: dict[str, Any] = {}
    if options.dataset is None:
        changes["dataset"] = context.dataset
    if "seed" not in options.model_fields_set:
        changes["seed"] = context.seed
    for name in ("env", "policy", "tasks", "suite"):
        value = getattr(options, name, None)
        if isinstance(value, str):
            changes[name] = given_spec(value, context)
    return options.model_copy(update=changes)


def _check(options: CollectStage, context: StageContext) -> None:
    options = placed(options, context)
    kind, about, *_ = options.kinds()
    context.check_tasks(options.tasks, str(options.env), kind, about)


def _run(options: CollectStage, context: StageContext, out: Path) -> None:
    source = out.with_name(f"{out.name}-unordered")
    if not out.exists() and not source.with_suffix(".done").exists():
        given = placed(options, context)
        with silent(given.kinds()[2].name):
            prepare_collect(given).run(source, seal=True).check()
        source.with_suffix(".done").touch()
    write_ordered(source, out, out.with_name(f"{out.name}-scratch"))


def silent(policy: str) -> AbstractContextManager[None]:
    """Keep bars and remarks of the libraries off the screen, where a policy loads them."""
    if policy not in ("transformers", "vllm"):
        return nullcontext()
    need("train")
    from adp.trainers.library_output import quiet

    return quiet()


def episode_facts(folder: Path) -> StageFacts:
    """What a store of episodes holds."""
    counts = episodes_of(Store.open(str(folder)))
    share = f"{counts['solved'] / counts['scored']:.3f}" if counts["scored"] else "unknown"
    line = f"{counts['episodes']:,} episodes, success {share}"
    line += f", {counts['broken']:,} broken" if counts["broken"] else ""
    line += f", {counts['branches']:,} branches" if counts["branches"] else ""
    return StageFacts(store_hash(folder), counts, line=line)


def _facts(options: CollectStage, folder: Path) -> StageFacts:
    return episode_facts(folder)


KIND = StageKind(
    name="collect",
    about="A policy acts in an environment; the episodes become a store.",
    options=CollectStage,
    run=_run,
    facts=_facts,
    check=_check,
    free=frozenset(
        {
            "concurrency",
            "max_failures",
            "retry_failed",
            "total_cost",
            "total_seconds",
            "total_tokens",
        }
    ),
)
