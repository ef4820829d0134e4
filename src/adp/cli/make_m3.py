"""``adp make m3-turns`` and ``adp make m3-thoughts``: ground truth for M3's environment."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from adp.cli.options import JsonReport
from adp.cli.rollout_options import Dataset, Failures
from adp.cli.text import counted, print_json, progress_bar, say
from adp.rollouts.judging.settings import JudgeSettings, judge_of
from adp.workflows.m3_data.folder import LEFT_OUT, RECORDS, STATISTICS, files_of
from adp.workflows.m3_data.report import M3DataReport
from adp.workflows.m3_data.thoughts import ThoughtsOptions, make_thoughts
from adp.workflows.m3_data.turns import make_turns
from adp_schema.errors import UsageError

Out = Annotated[
    str,
    typer.Option("--out", "-o", metavar="STORE", help="The store; STORE.m3 gets M3's files."),
]


def m3_turns(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="RAW.json...", help="Files of M3's raw benchmark, or folders."),
    ],
    out: Out,
    dataset: Dataset = None,
    as_json: JsonReport = False,
) -> None:
    """Turn M3's raw benchmark into ground truth with turns; thoughts come by m3-thoughts.

    Samples without tools, with a hop without a call or with several, or with something missing
    are left out, counted and named. adp collect --env m3:store=STORE acts on the store.
    """
    with progress_bar("making", "samples", quiet=as_json) as progress:
        report = make_turns(sources, out, dataset=dataset, progress=progress)
    _show(report, out, as_json=as_json)


def m3_thoughts(
    store: Annotated[str, typer.Argument(metavar="STORE", help="Ground truth, as m3-turns makes.")],
    policy: Annotated[
        str, typer.Option("--policy", "-p", metavar="P", help="Policy: NAME[:key=value,...].")
    ],
    out: Out,
    cutoff: Annotated[
        str,
        typer.Option(metavar="LO:HI", help="Items of a long list that an answer names, drawn."),
    ] = "5:10",
    longest: Annotated[
        int, typer.Option(min=1, help="Leave out samples with a longer list as a turn's result.")
    ] = 1024,
    seed: Annotated[int, typer.Option(help="Seed of the cut-offs.")] = 0,
    temperature: Annotated[float, typer.Option(min=0, help="Of the model.")] = 0.0,
    concurrency: Annotated[int, typer.Option(min=1, help="Samples at once.")] = 8,
    cache: Annotated[
        bool, typer.Option(help="Keep answers, so that nothing is asked twice.")
    ] = True,
    max_failures: Failures = 20,
    dataset: Dataset = None,
    as_json: JsonReport = False,
) -> None:
    """Let a model write the thoughts and final answers of M3's ground truth.

    The thoughts of all calls of a turn come from one question, the answer from another one. An
    answer that cannot be read is asked for once more; then the sample is left out and named.
    """
    match = re.fullmatch(r"(\d{1,6}):(\d{1,6})", cutoff)
    low, high = map(int, match.groups()) if match else (0, 0)
    if not 1 <= low <= high:
        raise UsageError(f"--cutoff '{cutoff}' is not LO:HI with 1 <= LO <= HI, such as 5:10")
    options = ThoughtsOptions((low, high), longest, seed, concurrency, max_failures, dataset)
    judge = judge_of(JudgeSettings(policy=policy, temperature=temperature, cache=cache))
    assert judge is not None
    with progress_bar("asking", "samples", quiet=as_json) as progress:
        report = make_thoughts(store, judge, out, options, progress=progress)
    _show(report, out, as_json=as_json)


def _show(report: M3DataReport, out: str, *, as_json: bool) -> None:
    if as_json:
        more: dict[str, Any] = {"truncated": report.truncated}
        if report.costs is not None:
            more |= {
                "tokens_in": report.tokens_in,
                "tokens_out": report.tokens_out,
                "cost_usd": report.cost_usd,
            }
        return print_json({"store": out, **report.plain(), **more})
    files = files_of(out)
    total, kept = report.total.total(), report.kept.total()
    domains = counted(len(report.total), "domain")
    say(f"{counted(total, 'sample')} of {domains} = {kept:,} kept + {total - kept:,} left out")
    for reason, count in report.left_out.most_common():
        say(f"left out: {reason}: {count:,}")
    if report.left_out:
        say(f"which ones: {files / LEFT_OUT}")
    for name, count in sorted(report.total.items()):
        say(f"{name}: {report.kept[name]:,} of {count:,}")
    if report.costs is not None:
        say(f"answers that name a part of a list: {report.truncated:,}")
        say(f"asked: {report.costs}")
    say(f"M3's files: {files / RECORDS}; statistics: {files / STATISTICS}")
    say(f"next: adp collect --env m3:store={out}")
