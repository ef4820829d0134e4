"""The stage ``eval``: `adp eval`, with the scorers that the report of a loop shows."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

from adp.eval.eval_options import EvalOptions
from adp.eval.evaluate import check_suite, failed_bounds, gates, prepare_suite
from adp.eval.suite import Suite
from adp.rollouts.spec import load_environment, read_spec, split_named
from adp.workflows.loop.ordered_store import write_ordered
from adp.workflows.loop.stage_kind import StageContext, StageFacts, StageKind
from adp.workflows.loop.stages.collect import episode_facts, placed, silent
from adp_schema.errors import FindingsError
from adp_schema.manifest import write_atomic

ALWAYS = ("outcome", "efficiency", "format", "reasoning_length")
"""Scorers that the report needs: success, calls, format, length."""

RESULT = "evaluation.json"
"""What `adp eval --json` prints, in the folder of the stage."""


class EvalStage(EvalOptions):
    """Options of a stage ``eval``: those of the command."""

    no_times: bool = True
    """Keep no times, which differ from run to run."""


def _suite(options: EvalStage) -> Suite:
    suite = options.chosen()
    there = {split_named(scorer)[0].partition(":")[0] for scorer in suite.scorers}
    more = tuple(name for name in ALWAYS if name not in there)
    return suite.model_copy(update={"scorers": (*suite.scorers, *more)})


def _placed(options: EvalStage, context: StageContext) -> EvalStage:
    """A suite has a seed of its own, so that all rounds are measured alike."""
    seed = options.seed
    result: EvalStage = placed(options, context)
    return result.model_copy(update={"seed": seed})


def _check(options: EvalStage, context: StageContext) -> None:
    options = _placed(options, context)
    suite = _suite(options)
    check_suite(suite, options.policy, options.options())
    spec, more = split_named(suite.environment)
    kind, about = load_environment(spec, unsafe_python=options.unsafe_python, **more)
    context.check_tasks(suite.tasks, str(suite.environment), kind, about)


def _run(options: EvalStage, context: StageContext, out: Path) -> None:
    options = _placed(options, context)
    how = options.options()
    sealing = replace(how, collect={**how.collect, "seal": True})
    policy = read_spec(split_named(options.policy)[0])[0]
    with silent(policy):
        prepared = prepare_suite(_suite(options), options.policy, sealing)
    source = out.with_name(f"{out.name}-unordered")
    note = source.with_suffix(".done")
    if not note.exists():
        with silent(policy):
            collected = prepared.collect(str(source))
        collected.check()
        write_atomic(note, json.dumps(collected.plain()) + "\n")
    write_ordered(source, out, out.with_name(f"{out.name}-scratch"))
    scores = prepared.figures(str(out), context.progress)
    result = {
        "suite": prepared.suite.name,
        "policy": prepared.policy.name,
        "tasks": len(prepared.tasks),
        "collected": json.loads(note.read_text(encoding="utf-8")),
        "scorers": [asdict(scorer) for scorer in scores.scorers],
    }
    write_atomic(out / RESULT, json.dumps(result, indent=2, default=str) + "\n")
    fault = failed_bounds(gates(scores, *prepared.bounds))
    if fault is not None:
        raise FindingsError(f"{fault}; the loop stops here")


def _facts(options: EvalStage, folder: Path) -> StageFacts:
    facts = episode_facts(folder)
    result = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    names = ("name", "value", "low", "high", "count", "amount")
    figures = [
        {"scorer": scorer["scorer"], **{name: figure[name] for name in names}}
        for scorer in result["scorers"]
        for figure in scorer["figures"]
    ]
    return StageFacts(facts.hash, facts.counts, figures, facts.line)


KIND = StageKind(
    name="eval",
    about="A suite is run, scored, and compared with bounds.",
    options=EvalStage,
    run=_run,
    facts=_facts,
    check=_check,
    free=frozenset({"concurrency", "max_failures", "retry_failed"}),
)
