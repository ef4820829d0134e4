"""What a report says, section by section, before it becomes HTML or Markdown.

Both writers show these sections, so they show the same numbers. Cells are plain text; names in
them come from data, and each writer escapes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adp.stores.composition import Composition, DataSet, Distribution, Rate
from adp.stores.licenses import REFUSE
from adp.workflows.report_data import words
from adp.workflows.report_data.layout import Code, Section, TextTable, Tile, ranking, table
from adp.workflows.report_data.words import name, number, of_all, percent


def tiles(found: Composition) -> tuple[Tile, ...]:
    """The headline numbers."""
    noun = "branch" if found.branches == 1 else "branches"
    branches = f"and {number(found.branches)} {noun}" if found.branches else ""
    known = of_all(found.success.known, found.success.of)
    tokens = found.tokens_out
    made = [
        Tile(number(found.main_lines), "trajectories", branches),
        Tile(number(len(found.datasets)), "data sets"),
        Tile(*words.headline(found.steps, "steps")),
        Tile(*words.headline(found.calls, "calls of tools", f"{found.tools.names:,} tools")),
        Tile(*words.headline(found.characters, "characters")),
        Tile(
            words.rate(found.success),
            "success",
            f"{known} record it" if found.success.known else "not recorded",
        ),
        Tile(number(found.rejected), "records rejected", f"of {number(found.records)}"),
    ]
    if tokens.total is not None:
        remark = f"{of_all(tokens.recorded, tokens.of)} record them"
        made.insert(5, Tile(words.short_number(tokens.total), "tokens written", remark))
    return tuple(made)


def sections(found: Composition) -> list[Section]:
    """The sections of a report, those without content left out."""
    made = [
        _datasets(found),
        _licenses(found),
        _lengths(found),
        _tools(found),
        _success(found),
        _errors(found),
        _agents(found),
        _further(found),
        _records(found),
        _origin(found),
        _examples(found),
    ]
    return [one for one in made if one.lines or one.plots or one.tables or one.code]


def _datasets(found: Composition) -> Section:
    if not found.datasets:
        return Section("datasets", "Data sets", ("The store holds no trajectories.",))
    recorded = found.tokens_in.recorded + found.tokens_out.recorded
    cells: dict[str, Callable[[DataSet], str]] = {
        "data set": lambda one: name(one.name),
        "#trajectories": lambda one: number(one.trajectories),
        "#share": lambda one: percent(one.share),
        "#branches": lambda one: number(one.branches),
        "#steps": lambda one: number(one.steps),
        "#calls": lambda one: number(one.calls),
        "#characters": lambda one: number(one.characters),
        "#tokens in": lambda one: words.total(one.tokens_in),
        "#tokens out": lambda one: words.total(one.tokens_out),
        "format": lambda one: words.names(one.formats.rows),
        "split": lambda one: words.names(one.splits.rows),
    }
    if not found.branches:
        del cells["#branches"]
    if not recorded:
        del cells["#tokens in"], cells["#tokens out"]
    if not any(count.name for one in found.datasets for count in one.splits.rows):
        del cells["split"]
    rows = [tuple(write(one) for write in cells.values()) for one in found.datasets]
    note = (
        f"Tokens are those that the source recorded: "
        f"{of_all(found.tokens_out.recorded, found.tokens_out.of)} trajectories record what the "
        "model wrote. They are never estimated."
        if recorded
        else "No trajectory records its tokens; they are not estimated."
    )
    made = table("Each data set", list(cells), rows)
    return Section("datasets", "Data sets", (note,), ("datasets",), (made,))


def _licenses(found: Composition) -> Section:
    publish = {True: "yes", False: "NO", None: "not recorded"}
    rows = [
        (
            name(one.dataset),
            name(one.license),
            one.kind,
            publish[one.may_publish],
            "; ".join(one.reasons) or words.MISSING,
            number(one.trajectories),
        )
        for one in found.licenses
    ]
    if not rows:
        return Section("licenses", "Licenses")
    stopped = sum(one.trajectories for one in found.licenses if one.verdict == REFUSE)
    unknown = sum(one.trajectories for one in found.licenses if one.license is None)
    barred = sum(one.trajectories for one in found.licenses if one.may_publish is False)
    lines = [
        f"{of_all(unknown, found.trajectories)} trajectories record no license; "
        f"{number(barred)} are marked as not to be published. "
        f"{of_all(stopped, found.trajectories)} may not be free to publish: their license is not "
        "known or forbids something, they are given out on terms only, or they test models."
    ]
    heads = ["data set", "license", "counts as", "may be published", "what to know"]
    heads.append("#trajectories")
    return Section(
        "licenses", "Licenses", tuple(lines), (), (table("Licenses by data set", heads, rows),)
    )


def _quantiles(title: str, what: str, found: Sequence[Distribution]) -> TextTable:
    heads = [what, "#recorded", "#mean", "#min", "#10 %", "#median", "#90 %", "#99 %", "#max"]
    rows = []
    for one in found:
        if one.n:
            mean = words.MISSING if one.mean is None else f"{one.mean:,.1f}"
            cuts = map(number, (one.min, one.p10, one.p50, one.p90, one.p99, one.max))
            rows.append((name(one.name), number(one.n), mean, *cuts))
    return table(title, heads, rows)


def _lengths(found: Composition) -> Section:
    if not found.main_lines:
        return Section("lengths", "Lengths")
    drawn = tuple(f"length {one.name}" for one in found.lengths if one.n)
    tables = [
        _quantiles("A trajectory", "of a trajectory", found.lengths),
        _quantiles("Characters of its parts", "characters of", found.parts),
    ]
    lines = (
        "Characters are those of the texts and the reasoning of steps, of arguments and of "
        "results. Of a web page without text, its accessibility tree or its source counts.",
    )
    drawn += ("parts",) if found.parts else ()
    return Section("lengths", "Lengths", lines, drawn, tuple(tables))


def _tools(found: Composition) -> Section:
    rows = [
        (
            name(tool.name),
            number(tool.calls),
            percent(tool.calls, found.calls),
            percent(tool.errors, tool.known),
            of_all(tool.known, tool.results),
            number(tool.trajectories),
            number(tool.invalid),
        )
        for tool in found.tools.rows
    ]
    if not rows:
        return Section("tools", "Tools", ("No tool was called.",) if found.main_lines else ())
    heads = ["tool", "#calls", "#share", "#errors", "#results that say it", "#trajectories",
             "#invalid arguments"]  # fmt: skip
    made = table(f"Tools, {found.tools.names:,} in all", heads, rows)
    left = found.tools.names - len(made.rows)
    note = f"{left:,} more tools are left out." if left > 0 else ""
    line = (
        "An error is a result that the source marks as one, or an exit code that is not 0; the "
        "rate is over the results that say either."
    )
    listed = TextTable(made.title, made.columns, made.rows, note)
    return Section("tools", "Tools", (line,), ("tools",), (listed,))


def _rates(title: str, head: str, rates: Sequence[Rate]) -> TextTable:
    heads = [head, "#trajectories", "#known", "#success", "#rate", "#95 % interval"]
    rows = [
        (name(one.name), number(one.of), number(one.known), number(one.good), words.rate(one),
         words.interval(one))
        for one in rates
    ]  # fmt: skip
    return table(title, heads, rows)


def _success(found: Composition) -> Section:
    rewarded = [one for one in found.datasets if one.reward.recorded]
    tables = []
    if rewarded:
        heads = ["data set", "#mean reward", "#trajectories that record it"]
        rows = [
            (name(one.name), words.average(one.reward), of_all(one.reward.recorded, one.reward.of))
            for one in rewarded
        ]
        tables.append(table("Reward", heads, rows))
    if not found.success.known:
        line = "No trajectory records whether it succeeded."
        return Section(
            "success", "Success", (line,) if found.main_lines else (), tables=tuple(tables)
        )
    lines = (
        f"{of_all(found.success.known, found.success.of)} trajectories record it; "
        f"{words.rate(found.success)} of them succeeded (95 % interval of Wilson: "
        f"{words.interval(found.success)}).",
    )
    known = [_known(rates) for rates in (_of_datasets(found), found.by_model, found.by_length)]
    titles = [("By data set", "data set"), ("By model", "model"), ("By length", "steps")]
    rated = [
        _rates(title, head, rates)
        for (title, head), rates in zip(titles, known, strict=True)
        if rates
    ]
    drawn = ("success by data set", "success by length", "success by model")
    return Section("success", "Success and reward", lines, drawn, (*rated, *tables))


def _of_datasets(found: Composition) -> list[Rate]:
    return [one.success for one in found.datasets]


def _known(rates: Sequence[Rate]) -> list[Rate]:
    return [one for one in rates if one.known]


def _errors(found: Composition) -> Section:
    errors = found.errors
    if not found.main_lines:
        return Section("errors", "Errors")
    said = of_all(errors.known, errors.results)
    lines = [
        f"Results: {percent(errors.wrong, errors.known)} are errors; {said} say whether they are."
        if errors.known
        else "No result says whether it is an error."
    ]
    for value, what in ((errors.truncated, "cut by a limit"), (errors.terminated, "ended")):
        if value.recorded:
            part = of_all(int(value.total or 0), value.recorded)
            own = " at an end of their own" if what == "ended" else ""
            lines.append(f"Runs {what}{own}: {part} that record it.")
    tables = [
        *ranking("Types of errors of results", "type", errors.types, "results"),
        *ranking("Exit codes", "code", errors.exit_codes, "results"),
        *ranking("Errors that ended a run", "type", errors.run_types, "runs"),
        *ranking("Why runs stopped", "reason", errors.stop_reasons, "runs"),
    ]
    return Section("errors", "Errors", tuple(lines), (), tuple(tables))


def _agents(found: Composition) -> Section:
    if not found.main_lines:
        return Section("agents", "Agents and models")
    part = percent(found.reasoning.count, found.reasoning.of)
    said = of_all(found.reasoning.count, found.reasoning.of)
    texts = found.first_texts
    lines = [
        f"Steps of the agent with reasoning apart from the text: {part} ({said}).",
        f"First texts of the user: {of_all(texts.distinct, texts.recorded)} are different; "
        f"{number(texts.repeated)} trajectories begin with words that an earlier one has too.",
    ]
    tables = [
        *ranking("Models", "model", found.models, "trajectories"),
        *ranking("Agents", "agent", found.agents, "trajectories"),
        *ranking("Languages of code calls", "language", found.languages, "calls"),
    ]
    drawn = ("models",) if tables and tables[0].title == "Models" else ()
    return Section("agents", "Agents and models", tuple(lines), drawn, tuple(tables))


def _further(found: Composition) -> Section:
    rows = [
        (name(kind.mime), number(kind.count), words.bytes_of(kind.bytes), number(kind.outside))
        for kind in found.media
    ]
    heads = ["type", "#blobs", "#size", "#address only"]
    tables = [table("Images and other blobs", heads, rows)] if rows else []
    tables += [
        *ranking("Branches", "kind", found.branch_kinds, "trajectories"),
        *ranking("Links to other trajectories", "kind", found.links, "links"),
        *ranking("Preference pairs", "level", found.pairs, "pairs"),
    ]
    return Section("further", "Media, branches and pairs", tables=tuple(tables))


def _records(found: Composition) -> Section:
    line = (
        f"{number(found.records)} records = {number(found.used)} used + "
        f"{number(found.skipped)} skipped + {number(found.rejected)} rejected."
    )
    tables = [
        *ranking("Skipped and rejected", "reason", found.reasons, "records"),
        *ranking("Lost in conversion", "path and reason", found.losses, "times"),
    ]
    return Section("records", "Records and losses", (line,), (), tuple(tables))


def _origin(found: Composition) -> Section:
    sizes = [
        (one.name, number(one.rows), number(one.files), words.bytes_of(one.bytes))
        for one in found.tables
    ]
    acts = []
    for act in found.lineage:
        facts = [*act["options"].items(), *act["versions"].items()]
        said = ", ".join(f"{key} {value}" for key, value in facts)
        acts.append(
            (
                name(act["act"]),
                name(said, 600),
                name(", ".join(act["parents"]) or words.MISSING, 200),
            )
        )
    tables = [table("Tables", ["table", "#rows", "#files", "#size"], sizes)] if sizes else []
    if acts:
        tables.append(table("How it was made", ["act", "with", "from the stores"], acts))
    state = " It is still growing." if found.growing else ""
    line = f"Schema version {found.schema_version}, {words.bytes_of(found.bytes)}.{state}"
    return Section("store", "The store", (line,), (), tuple(tables))


def _examples(found: Composition) -> Section:
    code = [
        Code(name(one.trajectory_id, 300), one.why, one.text + ("\n…" if one.cut else ""))
        for one in found.examples
    ]
    line = "Chosen by length alone; long texts are cut."
    return Section("examples", "Examples", (line,) if code else (), code=tuple(code))
