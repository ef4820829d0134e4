"""What a report about evaluations says, section by section, before it becomes HTML or Markdown.

Cells are plain text; names in them come from data, and each writer escapes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from adp.eval.metrics import folded
from adp.eval.scorer import Figure
from adp.workflows.report_eval.capabilities import capability_section
from adp.workflows.report_eval.cells import (
    RUN,
    mean_of,
    note_of,
    number_and_ends,
    p_value,
    per,
    plain_number,
    run_cell,
    run_table,
    share_cells,
    signed,
    signed_ends,
    span,
)
from adp.workflows.report_eval.folded import alike, group_rows, pass_rows, reasons, unchanged
from adp.workflows.report_eval.model import Comparison, EvaluatedRun, Evaluation
from adp.workflows.report_eval.radar_section import radar_section
from adp.workflows.report_page.model import Code, Row, Section, Tile, table
from adp.workflows.report_page.words import (
    MISSING,
    cut_middle,
    name,
    names,
    number,
    of_all,
    percent,
    short_number,
    total,
)

BROKEN = (
    "What broke is no fault of the agent's: no answer could be had from the model, or the code of "
    "an environment or a policy raised. It counts in no figure above."
)
SUPERSEDED = (
    "Superseded are tries that broke and were made again. They are no episodes, and count in no "
    "other number."
)


def tiles(evaluation: Evaluation) -> tuple[Tile, ...]:
    """The headline numbers: those of the last run, when there are several."""
    if not evaluation.runs:
        return (Tile("0", "runs"),)
    runs = evaluation.runs
    made = [Tile(number(len(runs)), "runs")] if len(runs) > 1 else []
    made.append(Tile(number(max(run.tasks for run in runs)), "tasks", _attempts_remark(runs)))
    made.append(Tile(number(sum(run.episodes for run in runs)), "episodes"))
    if len(runs) == 1:
        value, ends = share_cells(runs[0].success)
        scored = runs[0].success.value is not None
        made.append(Tile(value, "success", ends if scored else "nothing is scored"))
    else:
        known = [run.success.value for run in runs if run.success.value is not None]
        ends = f"{100 * min(known):.0f}{MISSING}{100 * max(known):.0f}\u00a0%" if known else MISSING
        remark = "lowest and highest run" if known else "nothing is scored"
        made.append(Tile(ends, "success", remark))
    for what in ("unscored", "broken"):
        count = sum(getattr(run.outcomes, what) for run in runs)
        made.append(Tile(number(count), what, "in no figure"))
    written = [run.costs.tokens_out.total for run in runs if run.costs.tokens_out.total is not None]
    if written:
        made.append(Tile(short_number(sum(written)), "tokens written"))
    return tuple(made)


def _attempts_remark(runs: Sequence[EvaluatedRun]) -> str:
    spans = [run.attempts for run in runs if run.attempts is not None]
    if not spans:
        return ""
    few, most = min(low for low, _ in spans), max(high for _, high in spans)
    if few == most == 1:
        return "1 attempt each"
    return f"{few} attempts each" if few == most else f"{few} to {most} attempts each"


def sections(evaluation: Evaluation) -> list[Section]:
    """The sections of a report."""
    parts = (_success, _comparisons, radar_section, capability_section, _scores, _passes, _groups,
             _errors, _broken, _tools, _costs, _runs, _examples)  # fmt: skip
    return [part(evaluation) for part in parts]


def _success(evaluation: Evaluation) -> Section:
    if not evaluation.runs:
        return Section("success", "Success", ("There are no episodes.",))
    runs = evaluation.runs
    rates = [
        (run_cell(run), *share_cells(run.success), number(run.success.count),
         number(run.success.tasks), run.success.method or MISSING, note_of(run.success))
        for run in runs
    ]  # fmt: skip
    counts = [(run.episodes, run.outcomes.solved, run.outcomes.failed, run.outcomes.unscored,
               run.outcomes.broken, run.outcomes.truncated, run.outcomes.superseded)
              for run in runs]  # fmt: skip
    ends = [(run_cell(run), *map(number, row)) for run, row in zip(runs, counts, strict=True)]
    superseded = any(run.outcomes.superseded for run in runs)
    heads = ["run", "#success", "#95 % interval", "#scored", "#tasks", "interval by", "note"]
    tables = [table("Success", heads, rates)]
    heads = ["run", "#episodes", "#solved", "#failed", "#unscored", "#broken", "#cut by a limit",
             "#superseded"]  # fmt: skip
    tables.append(
        table("How episodes ended", heads, ends, left_out=[] if superseded else heads[-1:])
    )
    rewarded = [run for run in runs if run.reward.value is not None]
    if any(run.reward.value != run.success.value for run in rewarded):
        heads = ["run", "#mean reward", "#95 % interval", "#scored"]
        values = [
            (run_cell(run), *number_and_ends(run.reward), number(run.reward.count))
            for run in rewarded
        ]
        tables.append(table("Reward", heads, values))
    lines = [
        "Attempts at one task are not independent, so intervals are clustered by task where tasks "
        "have several attempts: those of shares are Wilson's with the effective number of runs. "
        "With one attempt each they are those of Wilson. Unscored and broken episodes count for "
        "nothing."
    ]
    lines += [
        f"{name(run.name)} is a run with an expert ({run.assisted.words}): its figures are not "
        "what the policy does by itself."
        for run in runs
        if run.assisted
    ]
    if judged := sum(run.outcomes.by_reward for run in runs):
        lines.append(
            f"Of {number(judged)} episodes only the reward is known; a reward of 1 (within a "
            "millionth) is a success."
        )
    if superseded:
        lines.append(SUPERSEDED)
    if evaluation.left_out:
        lines.append(f"{number(evaluation.left_out)} more runs are left out.")
    return Section("success", "Success", tuple(lines), ("success",), tuple(tables))


def _comparisons(evaluation: Evaluation) -> Section:
    if not evaluation.comparisons:
        return Section("comparison", "Comparison")
    heads = ["figure", "run", "#base", "#the run", "#change", "#95 % interval",
             "#tasks", "#up / down / equal", "#p perm.", "#p sign"]  # fmt: skip
    pairs = evaluation.comparisons
    known = [pair for pair in pairs if pair.difference.figure.value is not None]
    same = unchanged(known)
    shown = [pair for pair in known if (pair.scorer, pair.metric) not in same]
    order = {_metric(result): place for place, result in reversed(list(enumerate(shown)))}
    rows = [
        (_metric(item), cut_middle(name(item.second), RUN),
         plain_number(by.first), plain_number(by.second),
         signed(by.figure.value), signed_ends(by.figure), number(by.figure.tasks),
         f"{by.better:,} / {by.worse:,} / {by.equal:,}",
         p_value(by.p_permutation), p_value(by.p_sign))
        for item in sorted(shown, key=lambda pair: order[_metric(pair)])
        for by in [item.difference]
    ]  # fmt: skip
    lines = (
        "Each run minus the baseline, the first run in the tables, over the tasks that both have "
        "scores for; each task counts alike. Up, down and equal count tasks; p is that of a "
        "permutation test and of a sign test. An interval without 0 is a difference that the "
        "choice of tasks does not explain; with many figures, some lie there by chance. Where all "
        "tasks differ alike, or there is one task, there is no interval.",
        *_with_expert(pairs),
        *alike([_metric(pair) for pair in known if (pair.scorer, pair.metric) in same]),
        *_not_common(pairs),
    )
    if not rows:
        none = "The runs have no task in common that is scored in both: nothing can be compared."
        return Section("comparison", "Comparison", (none, *_not_common(pairs)))
    title, compared = "Paired differences", {row[1] for row in rows}
    left_out = []
    if len(compared) == 1:
        title, left_out = f"{title}: {compared.pop()}", ["run"]
    made = table(title, heads, rows, left_out=left_out)
    return Section("comparison", "Comparison", lines, ("differences",), (made,))


def _with_expert(comparisons: Sequence[Comparison]) -> Iterator[str]:
    for run in dict.fromkeys(run for comparison in comparisons for run in comparison.assisted):
        yield f"{name(run)} is assisted: differences to and from it are also its expert's."


def _not_common(comparisons: Sequence[Comparison]) -> Iterator[str]:
    only = sum(
        item.difference.only_first + item.difference.only_second
        for item in comparisons
        if item.metric == "success" and item.scorer is None
    )
    if only:
        yield f"{number(only)} tasks are scored in one of two runs only; they are left out."


def _metric(comparison: Comparison) -> str:
    scorer = "" if comparison.scorer is None else f"{comparison.scorer}: "
    return name(f"{scorer}{comparison.metric}")


def _scores(evaluation: Evaluation) -> Section:
    keys = {
        (item.name, item.settings_hash): item.label
        for run in evaluation.runs
        for item in run.scorers
    }
    tables, missing = [], []
    for key, label in keys.items():
        rows = []
        for run in evaluation.runs:
            for scorer in run.scorers:
                if (scorer.name, scorer.settings_hash) == key:
                    rows += [_figure_row(run, figure) for figure in folded(scorer.figures)]
                    missing += [
                        (name(label), run_cell(run), name(item.name, 300), item.count)
                        for item in scorer.unscored
                    ]
        order = {row[0]: place for place, row in reversed(list(enumerate(rows)))}
        rows.sort(key=lambda row: order[row[0]])
        heads = ["figure", "run", "#value", "#95 % interval", "#scored", "#tasks", "#unscored",
                 "#broken", "interval by", "note"]  # fmt: skip
        tables.append(run_table(evaluation, name(label, 300), heads, rows))
    if missing:
        heads = ["scorer", "run", "reason", "#scores"]
        tables.append(run_table(evaluation, "Why scores are missing", heads, reasons(missing)))
    if not tables:
        return Section("scores", "Scores")
    line = "What is unscored has a reason, and is never 0. Broken episodes are among the unscored."
    return Section("scores", "Scores", (line,), ("scores",), tuple(tables))


def _figure_row(run: EvaluatedRun, figure: Figure) -> Row:
    counts = (figure.count, figure.tasks, figure.unscored, figure.infrastructure)
    return (name(figure.name), run_cell(run), *number_and_ends(figure), *map(number, counts),
            figure.method or MISSING, note_of(figure))  # fmt: skip


def _passes(evaluation: Evaluation) -> Section:
    many = [run for run in evaluation.runs if run.attempts is not None and run.attempts[1] > 1]
    if not many or all(run.success.value is None for run in many):
        return Section("passes", "Several attempts")
    heads = ["run", "#k", "#pass@k", "#95 % interval", "#pass^k", "#95 % interval", "note"]
    rows = [row for run in many for row in pass_rows(run)]
    line = (
        "pass@k: at least one of k attempts at a task succeeds. pass^k: all of k attempts do. Both "
        "are unbiased estimates from all scored attempts; with fewer than k they are undefined."
    )
    made = run_table(evaluation, "By task", heads, rows)
    return Section("passes", "Several attempts", (line,), ("passes",), (made,))


def _groups(evaluation: Evaluation) -> Section:
    tables, drawn = [], []
    for by in dict.fromkeys(group.by for run in evaluation.runs for group in run.groups):
        parts = [(run, group) for run in evaluation.runs for group in run.groups if group.by == by]
        labels = {group.name for _, group in parts}
        most = max(Counter(run.name for run, _ in parts).values())
        if most < 2 and (len(labels) < 2 or by == "dataset"):
            continue  # each run is named after its store, and so is its data set
        parts.sort(key=lambda part: (part[1].name is None, part[1].name or ""))
        heads = [by, "run", "#success", "#95 % interval", "#scored", "#tasks", "#unscored", "note"]
        tables.append(run_table(evaluation, f"By {by}", heads, group_rows(parts)))
        drawn.append(f"by {by}")
    return Section("groups", "Parts of the tasks", (), tuple(drawn), tuple(tables))


def _errors(evaluation: Evaluation) -> Section:
    rows, stops = [], []
    for run in evaluation.runs:
        for error in run.errors:
            share = percent(error.count, run.results)
            text = f"{error.count / max(run.episodes, 1):.2f}"
            rows.append((run_cell(run), name(error.name), number(error.count), share, text))
        for stop in run.outcomes.stops:
            share = percent(stop.count, run.episodes - run.outcomes.broken)
            stops.append((run_cell(run), name(stop.name), number(stop.count), share))
    tables = []
    if rows:
        heads = ["run", "error", "#results", "#share", "#an episode"]
        tables.append(run_table(evaluation, "Errors that the agent met", heads, rows))
    if stops:
        heads = ["run", "reason", "#episodes", "#share"]
        tables.append(run_table(evaluation, "Why episodes ended", heads, stops))
    lines = [f"{of_all(run.wrong, run.results)} results are errors." for run in evaluation.runs]
    lines = lines if len(lines) == 1 and evaluation.runs[0].results else []
    return Section("errors", "Errors", tuple(lines), ("errors",) if rows else (), tuple(tables))


def _broken(evaluation: Evaluation) -> Section:
    rows = [
        (run_cell(run), name(kind.name), number(kind.count), percent(kind.count, run.episodes))
        for run in evaluation.runs
        for kind in run.outcomes.kinds
    ]
    if not rows:
        return Section("broken", "What broke")
    heads = ["run", "what", "#episodes", "#share of all"]
    made = run_table(evaluation, "By kind", heads, rows)
    return Section("broken", "What broke", (BROKEN,), (), (made,))


def _tools(evaluation: Evaluation) -> Section:
    rows = [
        (run_cell(run), name(tool.name), number(tool.calls),
         f"{tool.calls / max(run.episodes, 1):.2f}", percent(tool.errors, tool.results),
         of_all(tool.results, tool.calls), number(tool.episodes), number(tool.solved_calls))
        for run in evaluation.runs
        for tool in run.tools
    ]  # fmt: skip
    if not rows:
        return Section("tools", "Tools", ("No tool was called.",) if evaluation.runs else ())
    heads = ["run", "tool", "#calls", "#an episode", "#errors", "#calls that say it",
             "#episodes", "#calls in solved episodes"]  # fmt: skip
    made = run_table(evaluation, "Use of tools", heads, rows)
    return Section("tools", "Tools", (), ("tools",), (made,))


def _costs(evaluation: Evaluation) -> Section:
    heads = ["run", "#turns", "#calls", "#seconds", "#tokens in", "#of these cached",
             "#tokens out", "#US dollars", "recorded by"]  # fmt: skip
    result, full = [], []
    for run in evaluation.runs:
        costs = run.costs
        sums = [costs.turns, costs.calls, costs.seconds, costs.tokens_in, costs.tokens_cached,
                costs.tokens_out, costs.cost]  # fmt: skip
        recorded = f"tokens {of_all(costs.tokens_out.recorded, costs.tokens_out.of)}"
        result.append((run_cell(run), *map(mean_of, sums), recorded))
        solved = run.outcomes.solved
        full.append(
            (run_cell(run), *map(total, sums[3:]), per(costs.tokens_out, solved),
             per(costs.cost, solved))
        )  # fmt: skip
    heads_in_all = ["run", "#tokens in", "#of these cached", "#tokens out", "#US dollars",
                   "#tokens out a success", "#US dollars a success"]  # fmt: skip
    if not evaluation.runs:
        return Section("costs", "Costs")
    line = (
        "Means are over the episodes that record a number; nothing is estimated. Costs of a "
        "success are those of all episodes over the number that succeeded."
    )
    tables = (table("An episode", heads, result), table("In all", heads_in_all, full))
    return Section("costs", "Costs", (line,), (), tables)


def _runs(evaluation: Evaluation) -> Section:
    heads = ["run", "store", "policy", "expert", "models", "environments", "data sets", "splits",
             "#tasks", "#attempts", "#seeds", "#episodes", "made with"]  # fmt: skip
    rows = [
        (run_cell(run), name(run.store) + (" (growing)" if run.growing else ""),
         name(run.agent), name(run.assisted.words) if run.assisted else MISSING,
         names(run.models), names(run.environments),
         names(run.datasets), names(run.splits),
         number(run.tasks), span(run.attempts), number(run.seeds),
         number(run.episodes),
         ", ".join(f"{key} {value}" for key, value in run.versions.items()) or MISSING)
        for run in evaluation.runs
    ]  # fmt: skip
    tables = (table("How they were made", heads, rows),) if rows else ()
    return Section("runs", "Runs", (), (), tables)


def _examples(evaluation: Evaluation) -> Section:
    code = [
        Code(f"{name(run.name, 60)}: {name(failure.trajectory_id, 300)}", failure.why,
             failure.text + ("\n…" if failure.cut else ""))
        for run in evaluation.runs
        for failure in run.failures
    ]  # fmt: skip
    line = "The first failures of each reason why episodes ended; long texts are cut."
    return Section("failures", "Failures", (line,) if code else (), code=tuple(code))
