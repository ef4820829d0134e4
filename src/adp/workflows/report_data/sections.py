"""What a report says, section by section, before it becomes HTML or Markdown.

Both writers show these sections, so they show the same numbers. Cells are plain text; names in
them come from data, and each writer escapes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from adp.stores.composition import Composition, Distribution, Rate
from adp.stores.licenses import REFUSE
from adp.stores.visible_text import human_size
from adp.workflows.report_page import words
from adp.workflows.report_page.model import Code, Section, TextTable, Tile, ranking, table
from adp.workflows.report_page.words import name, number, of_all, percent, percents


def tiles(composition: Composition) -> tuple[Tile, ...]:
    """The headline numbers."""
    noun = "branch" if composition.branches == 1 else "branches"
    branches = f"and {number(composition.branches)} {noun}" if composition.branches else ""
    tools = f"{composition.tools.names:,} tools"
    success, tokens = composition.success, composition.tokens_out
    known = f"{of_all(success.known, success.of)} record it" if success.known else "not recorded"
    made = [
        Tile(number(composition.main_lines), "trajectories", branches),
        Tile(number(len(composition.datasets)), "data sets"),
        Tile(*words.headline(composition.steps, "steps")),
        Tile(*words.headline(composition.calls, "calls of tools", tools)),
        Tile(*words.headline(composition.characters, "characters")),
        Tile(percent(success.rate), "success", known),
        Tile(number(composition.rejected), "records rejected", f"of {number(composition.records)}"),
    ]
    if tokens.total is not None:
        remark = f"{of_all(tokens.recorded, tokens.of)} record them"
        made.insert(5, Tile(words.short_number(tokens.total), "tokens written", remark))
    return tuple(made)


def sections(composition: Composition) -> list[Section]:
    """The sections of a report."""
    parts = (_datasets, _licenses, _lengths, _tools, _success, _errors, _agents, _completeness,
             _further, _records, _origin, _examples)  # fmt: skip
    return [part(composition) for part in parts]


def _datasets(composition: Composition) -> Section:
    if not composition.datasets:
        return Section("datasets", "Data sets", ("The store holds no trajectories.",))
    recorded = composition.tokens_in.recorded + composition.tokens_out.recorded
    has_splits = any(count.name for item in composition.datasets for count in item.splits.rows)
    left_out = [
        *(() if composition.branches else ["#branches"]),
        *(() if recorded else ["#tokens in", "#tokens out"]),
        *(() if has_splits else ["split"]),
    ]
    heads = ["data set", "#trajectories", "#share", "#branches", "#steps", "#calls", "#characters",
             "#tokens in", "#tokens out", "format", "split"]  # fmt: skip
    rows = [
        (name(item.name), number(item.trajectories), percent(item.share), number(item.branches),
         number(item.steps), number(item.calls), number(item.characters),
         words.total(item.tokens_in), words.total(item.tokens_out),
         words.names(item.formats.rows), words.names(item.splits.rows))
        for item in composition.datasets
    ]  # fmt: skip
    note = (
        f"Tokens are those that the source recorded: "
        f"{of_all(composition.tokens_out.recorded, composition.tokens_out.of)} trajectories record "
        "what the model wrote. They are never estimated."
        if recorded
        else "No trajectory records its tokens; they are not estimated."
    )
    made = table("Each data set", heads, rows, left_out=left_out)
    return Section("datasets", "Data sets", (note,), ("datasets",), (made,))


def _licenses(composition: Composition) -> Section:
    publish = {True: "yes", False: "NO", None: "not recorded"}
    licenses = composition.licenses
    if not licenses:
        return Section("licenses", "Licenses")
    rows = [
        (name(item.dataset), name(item.license), item.kind, publish[item.may_publish],
         "; ".join(item.reasons) or words.MISSING, number(item.trajectories))
        for item in licenses
    ]  # fmt: skip
    stopped = sum(item.trajectories for item in licenses if item.verdict == REFUSE)
    unknown = sum(item.trajectories for item in licenses if item.license is None)
    barred = sum(item.trajectories for item in licenses if item.may_publish is False)
    line = (
        f"{of_all(unknown, composition.trajectories)} trajectories record no license; "
        f"{number(barred)} are marked as not to be published. "
        f"{of_all(stopped, composition.trajectories)} may not be free to publish: their license is "
        "not known or forbids something, they are given out on terms only, or they test models."
    )
    heads = ["data set", "license", "counts as", "may be published", "what to know",
             "#trajectories"]  # fmt: skip
    made = table("Licenses by data set", heads, rows)
    return Section("licenses", "Licenses", (line,), (), (made,))


def _quantiles(title: str, what: str, distributions: Sequence[Distribution]) -> TextTable:
    heads = [what, "#recorded", "#mean", "#min", "#10 %", "#median", "#90 %", "#99 %", "#max"]
    rows = []
    for item in distributions:
        if item.n:
            mean = words.MISSING if item.mean is None else f"{item.mean:,.1f}"
            cuts = map(number, (item.min, item.p10, item.p50, item.p90, item.p99, item.max))
            rows.append((name(item.name), number(item.n), mean, *cuts))
    return table(title, heads, rows)


def _lengths(composition: Composition) -> Section:
    if not composition.main_lines:
        return Section("lengths", "Lengths")
    drawn = tuple(f"length {length.name}" for length in composition.lengths if length.n)
    tables = [
        _quantiles("A trajectory", "of a trajectory", composition.lengths),
        _quantiles("Characters of its parts", "characters of", composition.parts),
    ]
    lines = (
        "Characters are those of the texts and the reasoning of steps, of arguments and of "
        "results. Of a web page without text, its accessibility tree or its source counts.",
    )
    drawn += ("parts",) if composition.parts else ()
    return Section("lengths", "Lengths", lines, drawn, tuple(tables))


def _tools(composition: Composition) -> Section:
    rows = [
        (name(tool.name), number(tool.calls), percent(tool.calls, composition.calls),
         percent(tool.errors, tool.known), of_all(tool.known, tool.results),
         number(tool.trajectories), number(tool.invalid))
        for tool in composition.tools.rows
    ]  # fmt: skip
    if not rows:
        return Section("tools", "Tools", ("No tool was called.",) if composition.main_lines else ())
    heads = ["tool", "#calls", "#share", "#errors", "#results that say it", "#trajectories",
             "#invalid arguments"]  # fmt: skip
    made = table(f"Tools, {composition.tools.names:,} in all", heads, rows)
    left = composition.tools.names - len(made.rows)
    note = f"{left:,} more tools are left out." if left > 0 else ""
    line = (
        "An error is a result that the source marks as one, or an exit code that is not 0; the "
        "rate is over the results that say either."
    )
    return Section("tools", "Tools", (line,), ("tools",), (replace(made, note=note),))


def _rates(title: str, head: str, rates: Sequence[Rate]) -> TextTable:
    heads = [head, "#trajectories", "#known", "#success", "#rate", "#95 % interval"]
    rows = [
        (name(rate.name), number(rate.of), number(rate.known), number(rate.good),
         percent(rate.rate), percents(rate.low, rate.high))
        for rate in rates
    ]  # fmt: skip
    return table(title, heads, rows)


def _success(composition: Composition) -> Section:
    success = composition.success
    rewarded = [dataset for dataset in composition.datasets if dataset.reward.recorded]
    heads = ["data set", "#mean reward", "#trajectories that record it"]
    rows = [
        (name(item.name), words.average(item.reward),
         of_all(item.reward.recorded, item.reward.of))
        for item in rewarded
    ]  # fmt: skip
    tables = [table("Reward", heads, rows)] if rows else []
    if not success.known:
        lines = ("No trajectory records whether it succeeded.",) if composition.main_lines else ()
        return Section("success", "Success", lines, tables=tuple(tables))
    line = (
        f"{of_all(success.known, success.of)} trajectories record it; {percent(success.rate)} of "
        "them succeeded (95 % interval of Wilson: "
        f"{percents(success.low, success.high)})."
    )
    groups = [
        ("By data set", "data set", [dataset.success for dataset in composition.datasets]),
        ("By model", "model", composition.by_model),
        ("By length", "steps", composition.by_length),
    ]
    for place, (title, head, rates) in enumerate(groups):
        if known := [rate for rate in rates if rate.known]:
            tables.insert(place, _rates(title, head, known))
    drawn = ("success by data set", "success by length", "success by model")
    return Section("success", "Success and reward", (line,), drawn, tuple(tables))


def _errors(composition: Composition) -> Section:
    errors = composition.errors
    if not composition.main_lines:
        return Section("errors", "Errors")
    share_of_results = of_all(errors.known, errors.results)
    lines = [
        f"Results: {percent(errors.wrong, errors.known)} are errors; {share_of_results} say "
        "whether they are."
        if errors.known
        else "No result says whether it is an error."
    ]
    for value, what in ((errors.truncated, "cut by a limit"), (errors.terminated, "ended")):
        if value.recorded:
            part = of_all(int(value.total or 0), value.recorded)
            text = " at an end of their own" if what == "ended" else ""
            lines.append(f"Runs {what}{text}: {part} that record it.")
    tables = [
        *ranking("Types of errors of results", "type", errors.types, "results"),
        *ranking("Exit codes", "code", errors.exit_codes, "results"),
        *ranking("Errors that ended a run", "type", errors.run_types, "runs"),
        *ranking("Why runs stopped", "reason", errors.stop_reasons, "runs"),
    ]
    return Section("errors", "Errors", tuple(lines), (), tuple(tables))


def _agents(composition: Composition) -> Section:
    if not composition.main_lines:
        return Section("agents", "Agents and models")
    part = percent(composition.reasoning.count, composition.reasoning.of)
    share_of_steps = of_all(composition.reasoning.count, composition.reasoning.of)
    texts = composition.first_texts
    lines = [
        f"Steps of the agent with reasoning apart from the text: {part} ({share_of_steps}).",
        f"First texts of the user: {of_all(texts.distinct, texts.recorded)} are different; "
        f"{number(texts.repeated)} trajectories begin with words that an earlier one has too.",
    ]
    tables = [
        *ranking("Models", "model", composition.models, "trajectories"),
        *ranking("Agents", "agent", composition.agents, "trajectories"),
        *ranking("Languages of code calls", "language", composition.languages, "calls"),
    ]
    drawn = ("models",) if tables and tables[0].title == "Models" else ()
    return Section("agents", "Agents and models", tuple(lines), drawn, tuple(tables))


def _completeness(composition: Composition) -> Section:
    """What the sources recorded of each run, and what is missing."""
    heads = ["data set", "#trajectories", "#system prompts", "#tool schemas", "#compacted",
             "#history cut", "#empty turns", "#calls without results", "#results without calls",
             "#results cut", "#subagents", "#subagents missing"]  # fmt: skip
    rows = [
        (name(row.group), number(row.trajectories), of_all(row.system_prompts, row.trajectories),
         of_all(row.tool_schemas, row.trajectories), number(row.compacted), number(row.cut),
         of_all(row.empty_turns, row.turns), of_all(row.calls_without_results, row.calls),
         number(row.results_without_calls), number(row.truncated_results), number(row.subagents),
         number(row.subagents_missing))
        for row in composition.completeness
    ]  # fmt: skip
    note = (
        "What the sources recorded, branches included; the view completeness says it for each "
        "trajectory, and where what is missing would be."
    )
    made = table("How complete the runs are", heads, rows)
    unknown = ranking("Kept, not understood", "kind", composition.unknown, "times")
    return Section("completeness", "Completeness", (note,), (), (made, *unknown))


def _further(composition: Composition) -> Section:
    rows = [
        (name(kind.mime), number(kind.count), human_size(kind.bytes), number(kind.outside))
        for kind in composition.media
    ]
    heads = ["type", "#blobs", "#size", "#address only"]
    tables = [table("Images and other blobs", heads, rows)] if rows else []
    tables += [
        *ranking("Branches", "kind", composition.branch_kinds, "trajectories"),
        *ranking("Links to other trajectories", "kind", composition.links, "links"),
        *ranking("Preference pairs", "level", composition.pairs, "pairs"),
    ]
    return Section("further", "Media, branches and pairs", tables=tuple(tables))


def _records(composition: Composition) -> Section:
    line = (
        f"{number(composition.records)} records = {number(composition.used)} used + "
        f"{number(composition.skipped)} skipped + {number(composition.rejected)} rejected."
    )
    tables = [
        *ranking("Skipped and rejected", "reason", composition.reasons, "records"),
        *ranking("Lost in conversion", "path and reason", composition.losses, "times"),
    ]
    return Section("records", "Records and losses", (line,), (), tuple(tables))


def _origin(composition: Composition) -> Section:
    sizes = [
        (item.name, number(item.rows), number(item.files), human_size(item.bytes))
        for item in composition.tables
    ]
    acts = []
    for act in composition.lineage:
        facts = [*act["options"].items(), *act["versions"].items()]
        text = ", ".join(f"{key} {value}" for key, value in facts)
        parents = ", ".join(act["parents"]) or words.MISSING
        acts.append((name(act["act"]), name(text, 600), name(parents, 200)))
    tables = [table("Tables", ["table", "#rows", "#files", "#size"], sizes)] if sizes else []
    if acts:
        tables.append(table("How it was made", ["act", "with", "from the stores"], acts))
    state = " It is still growing." if composition.growing else ""
    line = f"Schema version {composition.schema_version}, {human_size(composition.bytes)}.{state}"
    return Section("store", "The store", (line,), (), tuple(tables))


def _examples(composition: Composition) -> Section:
    code = [
        Code(name(item.trajectory_id, 300), item.why, item.text + ("\n…" if item.cut else ""))
        for item in composition.examples
    ]
    line = "Chosen by length alone; long texts are cut."
    return Section("examples", "Examples", (line,) if code else (), code=tuple(code))
