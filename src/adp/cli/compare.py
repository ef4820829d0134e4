"""``adp compare``: methods that select and train, measured alike, in one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from adp.cli.evaluate import Env, Limit, Number, Tasks
from adp.cli.options import JsonReport
from adp.cli.rollout_options import PolicySpec
from adp.cli.text import (
    counted,
    epilog,
    print_json,
    print_table,
    progress_bar,
    say,
    stdout_to_stderr,
)
from adp.core.yaml_text import parse_yaml
from adp.rollouts.spec import read_spec
from adp.workflows.compare import Measurement, MethodComparison, plan_comparison
from adp.workflows.compare import compare as run
from adp.workflows.compare.numbers import ComparisonResult
from adp.workflows.compare.report import table_rows, write_comparison
from adp.workflows.loop import LoopOptions, StageNews
from adp.workflows.methods import MethodFile, method_names, read_method
from adp_schema.errors import AdpError, UsageError, unknown_name
from adp_schema.manifest import MANIFEST

EPILOG = epilog(
    "adp compare code --data runs --eval toolworld --model tiny --set size=60 -o compared",
    *(1, 2, 3, 5, 11, 12),
)

Methods = Annotated[
    list[str],
    typer.Argument(
        metavar="METHOD...",
        help="Names, YAML files, or sets: code, doc, quick (adp methods).",
    ),
]
Data = Annotated[str, typer.Option(metavar="STORE", help="What all methods begin with.")]
Eval = Annotated[
    str,
    typer.Option(
        "--eval", metavar="E", help="A suite, by name or file; or a store to measure the loss on."
    ),
]
Out = Annotated[
    str | None, typer.Option("--out", "-o", metavar="OUT", help="Folder for all that it makes.")
]
Model = Annotated[
    str, typer.Option(metavar="M", help="A folder, a name on the Hub, or tiny for trials.")
]
Seeds = Annotated[int, typer.Option(min=1, help="Seeds of each method.")]
Equal = Annotated[
    bool,
    typer.Option(
        "--equal-tokens", help="Train all on as many tokens under the loss as the baseline."
    ),
]
TokensOption = Annotated[
    int | None, typer.Option("--tokens", min=1, metavar="N", help="Train all on so many tokens.")
]
Baseline = Annotated[
    str | None,
    typer.Option(metavar="METHOD", help="What the others are compared with; else the first."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Change a variable of all that have it."),
]
Training = Annotated[
    list[str] | None,
    typer.Option(
        "--train", metavar="PATH=VALUE", help="Change every training: training.max_steps=20."
    ),
]
Redo = Annotated[
    list[str] | None,
    typer.Option(metavar="STAGE", help="Do a stage again, such as A_baseline-s0."),
]
AllowPython = Annotated[
    bool, typer.Option("--allow-python", help="Let recipes and environments be Python code.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check it, print the stages, and stop.")]


def compare(
    methods: Methods,
    data: Data,
    evaluation: Eval,
    out: Out = None,
    model: Model = "tiny",
    seeds: Seeds = 1,
    equal_tokens: Equal = False,
    tokens: TokensOption = None,
    baseline: Baseline = None,
    settings: Settings = None,
    training: Training = None,
    env: Env = None,
    tasks: Tasks = None,
    policy: PolicySpec = None,
    n: Number = None,
    limit: Limit = None,
    redo: Redo = None,
    allow_python: AllowPython = False,
    dry_run: DryRun = False,
    as_json: JsonReport = False,
) -> None:
    """Select, train and measure by several methods, and put them into one table.

    Everything is checked before anything runs. Methods with the same recipe share the work; a call
    that was stopped goes on when it is called again, also with more methods. A method that fails is
    named, the others go on, and the exit code is 1. OUT/all_results.json has all numbers,
    OUT/report.html the table and charts.
    """
    changes = _changes(settings or [])
    acting = {"env": env, "tasks": tasks, "n": n, "limit": limit}
    comparison = MethodComparison(
        methods=_methods(methods, changes),
        data=data,
        measured=_measured(evaluation, policy, acting),
        model=model,
        seeds=seeds,
        baseline=baseline,
        equal_tokens=equal_tokens,
        tokens=tokens,
        changes=tuple(training or ()),
    )
    if dry_run:
        return show_stages(comparison, allow_python=allow_python, as_json=as_json)
    if out is None:
        raise UsageError("say where it goes: -o OUT; or only look: --dry-run")
    with (
        stdout_to_stderr(wanted=as_json),
        progress_bar("comparing", "", quiet=as_json) as progress,
    ):
        watch = _quiet if as_json else _say_news
        options = LoopOptions(redo=redo or (), watch=watch, progress=progress)
        result = run(comparison, out, options, allow_python=allow_python)
        written = write_comparison(result, Path(out))
    if as_json:
        reports = [str(path) for path in written]
        print_json({"out": out, "report": reports, **result.plain()})
    else:
        show_result(result)
        say(f"the report: {written[-1]}")
    if result.failures:
        failed = counted(len(result.failures), "method")
        raise AdpError(f"{failed} of {len(result.methods):,} failed: {', '.join(result.failures)}; "
                       "the same call tries them again")  # fmt: skip


def _changes(settings: list[str]) -> dict[str, Any]:
    changes = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key:
            raise UsageError(f"--set takes name=value, such as size=60, not {setting!r}")
        changes[key] = parse_yaml(text, f"--set {key}", "method")
    return changes


def _methods(names: list[str], changes: dict[str, Any]) -> tuple[MethodFile, ...]:
    chosen = tuple(read_method(name, changes) for name in method_names(names))
    known = sorted({variable for method in chosen for variable in method.variables})
    for name in changes:
        if name not in known:
            raise UsageError(f"--set: {unknown_name('variable', name, known)}")
    return chosen


def _measured(evaluation: str, policy: str | None, options: dict[str, Any]) -> Measurement:
    given = {name: value for name, value in options.items() if value is not None}
    name, about = read_spec(policy) if policy is not None else ("", {})
    if "model" in about:
        raise UsageError("leave model out of --policy: each method has its own")
    acting = {"name": name, **about} if policy is not None else {}
    if (Path(evaluation) / MANIFEST).exists() or "://" in evaluation:
        return Measurement(store=evaluation, options=given, policy=acting)
    return Measurement(suite=evaluation, options=given, policy=acting)


def _quiet(news: StageNews) -> None:
    """With JSON nothing else is said."""


def _say_news(news: StageNews) -> None:
    stage = news.key.partition(".")[2]
    if news.what == "begins":
        say(f"{stage}: {news.kind} ...")
    elif news.what == "failed":
        say(f"{stage}: failed: {news.line}")
    else:
        before = " (done before)" if news.what == "done before" else f" ({news.seconds:,.1f} s)"
        say(f"{stage}: {news.line}{before}")


def show_result(result: ComparisonResult) -> None:
    """Print the table."""
    heads, rows = table_rows(result)
    right = [head[1:] for head in heads if head.startswith("#")]
    print_table([head.removeprefix("#") for head in heads], rows, right=right, fold=["method"])
    for name, reason in result.failures.items():
        say(f"{name} failed: {reason}")


def show_stages(comparison: MethodComparison, *, allow_python: bool, as_json: bool) -> None:
    """Print what a comparison would do."""
    plan = plan_comparison(comparison, comparison.tokens, allow_python=allow_python)
    used: dict[str, list[str]] = {}
    for planned in plan.runs:
        for key in dict.fromkeys(planned.keys):
            used.setdefault(key, []).append(f"{planned.method}-s{planned.seed}")
    rows = [
        (stage.context.name, stage.kind.name, ", ".join(used[stage.key]))
        for stage in plan.loop.stages
    ]
    if as_json:
        stages = [
            {"stage": name, "kind": kind, "for": users.split(", ")} for name, kind, users in rows
        ]
        return print_json({"methods": [m.name for m in comparison.methods], "stages": stages})
    print_table(("stage", "kind", "for"), rows, fold=["for"])
    say(f"{counted(len(rows), 'stage')}; dry run: nothing was done")
