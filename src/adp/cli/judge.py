"""``adp judge``: how far a judge can be trusted, and which of two stores it prefers."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from adp.cli.options import JsonReport, StorePath
from adp.cli.score import show_counts, show_figures
from adp.cli.text import counted, epilog, print_json, print_table, progress_bar, say
from adp.eval.judge_agreement import AgreementReport, judge_agreement
from adp.eval.judge_comparison import CompareOptions, CompareReport, compare_stores
from adp.eval.scoring import label
from adp.rollouts.judging.settings import JudgeSettings, judge_of
from adp.rollouts.judging.transcript import Reads
from adp_schema.errors import OutputExistsError, UsageError
from adp_schema.store import Store

_AGREEMENT = epilog("adp judge agreement my_store --labels people.csv", 2, 3)
_COMPARE = epilog("adp judge compare base_runs tuned_runs --judge openai:model=gpt-4.1", 2, 3, 5)

app = typer.Typer(
    name="judge",
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Check a judge against what is known, or let it compare two stores.",
    epilog=_AGREEMENT,
)


@app.callback()
def judge() -> None:
    """Check a judge against what is known, or let it compare two stores."""


@app.command(
    "agreement",
    short_help="How far verdicts agree with labels, and with each other.",
    epilog=_AGREEMENT,
)
def agreement(
    path: StorePath,
    labels: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Columns trajectory_id and label; else success."),
    ] = None,
    scores: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Where the scores are, if not beside it.")
    ] = None,
    as_json: JsonReport = False,
) -> None:
    """Compare the verdicts that adp score kept with what is known of the runs; asks no model.

    Accuracy, Cohen's kappa and the confusion; Krippendorff's alpha among several votes; the share
    of successes at each verdict, Brier's score and the calibration error; whether long runs are
    judged otherwise. With 95 % intervals.
    """
    reports = judge_agreement(Store.open(path), labels, scores)
    if as_json:
        print_json({"judges": [asdict(report) for report in reports]})
        return
    for report in reports:
        _show_agreement(report)


@app.command(
    "compare",
    short_help="Which of two stores a judge prefers, asked in both orders.",
    epilog=_COMPARE,
)
def compare(
    first: Annotated[str, typer.Argument(metavar="STORE", help="A folder or URL.")],
    second: Annotated[str, typer.Argument(metavar="STORE", help="Another one.")],
    judges: Annotated[
        list[str],
        typer.Option("--judge", metavar="POLICY", help="The judge; several are a panel."),
    ],
    votes: Annotated[int, typer.Option(min=1, max=100, help="How often each is asked.")] = 1,
    temperature: Annotated[float, typer.Option(min=0, help="Of the judges.")] = 0.0,
    criterion: Annotated[str | None, typer.Option(help="What makes a run better.")] = None,
    reads: Annotated[Reads, typer.Option(help="What the judge sees: run or answer.")] = "run",
    most: Annotated[
        int, typer.Option("--max-per-task", min=1, help="Comparisons of one task.")
    ] = 1,
    price: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=IN,OUT", help="Dollars for a million tokens of a judge."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="Keep all verdicts here.")
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Requests at once.")] = 16,
    cache: Annotated[
        bool, typer.Option(help="Keep answers, so that nothing is asked twice.")
    ] = True,
    as_json: JsonReport = False,
) -> None:
    """Compare the runs of two stores at each task that both have, each pair in both orders.

    A verdict that changes with the order is inconsistent and counts half, as a tie does. The win
    rate is that of the second store.
    """
    if out is not None and out.exists():
        raise OutputExistsError(f"{out} is there already; choose another -o")
    if out is not None and not out.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {out.parent}; make it, or choose another -o")
    made = judge_of(
        JudgeSettings(
            panel=tuple(judges), votes=votes, temperature=temperature, cache=cache,
            prices=dict(map(_price, price or ())),
        )
    )  # fmt: skip
    assert made is not None
    options = CompareOptions(criterion, reads, most, concurrency, out)
    with progress_bar("comparing", "pairs", quiet=False) as progress:
        stores = Store.open(first), Store.open(second)
        report = compare_stores(*stores, made, options, progress)
    if as_json:
        print_json(asdict(report))
    else:
        _show_comparison(report)


def _price(text: str) -> tuple[str, tuple[float, float]]:
    name, _, numbers = text.rpartition("=")
    try:
        low, high = (float(number) for number in numbers.split(","))
        if not (0 <= low < math.inf and 0 <= high < math.inf):
            raise ValueError
    except ValueError:
        raise UsageError(f"--price '{text}' is not NAME=IN,OUT, such as gpt-4.1=2,8") from None
    return name, (low, high)


def _show_agreement(report: AgreementReport) -> None:
    say(label("judge", report.settings), "bold")
    states = report.states
    say(
        f"{counted(report.judged, 'run', 'runs')} with a verdict and a label ({report.labels}); "
        f"{report.unlabelled:,} without a label, {states['tie']:,} tied, "
        f"{states['unscored']:,} unscored"
    )
    show_figures(report.figures)
    rows = [(text, f"{count:,}") for text, count in report.confusion.items()]
    if rows:
        print_table(("judge and label", "runs"), rows, right=["runs"])
    if report.shares:
        shares = [
            (f"{item.verdict:g}", f"{item.runs:,}", f"{item.share:.3f}",
             f"{item.low:.3f} to {item.high:.3f}")
            for item in report.shares
        ]  # fmt: skip
        heads = ("verdict", "runs", "successes", "95 % interval")
        print_table(heads, shares, right=["verdict", "runs", "successes"])
    if report.wrong:
        say("judge and label differ: " + ", ".join(report.wrong))


def _show_comparison(report: CompareReport) -> None:
    say(f"{report.second} against {report.first}", "bold")
    words = ("second", "first", "tie", "inconsistent", "unscored")
    named = {"second": "won by the second", "first": "won by the first"}
    say(", ".join(f"{report.counts.get(word, 0):,} {named.get(word, word)}" for word in words))
    show_figures(report.figures)
    show_counts("unscored", report.reasons, "reason")
    if report.left_out:
        say(f"{counted(report.left_out, 'run', 'runs')} left out: broken, or without a partner")
    for name, cost in report.costs.items():
        say(f"{name}: {cost.words}")
