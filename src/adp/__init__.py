"""adp: the data workbench for agent trajectories.

    store = adp.convert("logs/", "my_store")     # or adp.open("my_store")
    adp.query(store, "SELECT name, count(*) FROM calls GROUP BY name")
    adp.export(store, "openai_chat", "chats")
    adp.export(store, "trl-sft", "rows", settings={"form": "tokens"}, model="Qwen/Qwen3-8B")
    adp.collect("toolworld", "openai:model=m", "test:300", "rollouts", n=4)
    adp.score("rollouts", "outcome,tool_f1")
    adp.validate("logs/").found("error")

Everything else is imported when it is first used, so ``import adp`` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from adp.evaluating import collect, score
from adp.growing import grow, seal
from adp.training import render
from adp.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike
    from typing import Unpack

    import pyarrow as pa

    from adp.converters.export import ExportReport
    from adp.converters.files.limits import ConvertLimits
    from adp.curation.run import Curated
    from adp.trainers.export.run import RowsReport
    from adp.workflows.validate import ValidationReport
    from adp_schema.model import (
        Link,
        Media,
        Observation,
        Pair,
        Row,
        Step,
        Task,
        ToolCall,
        Trajectory,
    )
    from adp_schema.store import Store

    PathText = str | PathLike[str]

__all__ = [
    "Link",
    "Media",
    "Observation",
    "Pair",
    "Row",
    "Step",
    "Store",
    "Task",
    "ToolCall",
    "Trajectory",
    "__version__",
    "collect",
    "convert",
    "curate",
    "drop",
    "export",
    "grow",
    "merge",
    "open",
    "query",
    "render",
    "score",
    "seal",
    "validate",
]

_FROM_SCHEMA = frozenset(
    {
        *("Link", "Media", "Observation", "Pair", "Row", "Step", "Store", "Task", "ToolCall"),
        "Trajectory",
    }
)


class ConvertKeywords(TypedDict, total=False):
    """What `convert` takes besides the sources and the store; it says what each one is."""

    format: str | None
    workers: int | None
    strict: bool
    keep_raw: bool
    dataset: str | None
    license: str | None
    since: PathText | None
    limits: ConvertLimits
    follow_links: bool


def convert(
    sources: PathText | Sequence[PathText], out: PathText, **options: Unpack[ConvertKeywords]
) -> Store:
    """Convert files into a store, and open it.

    Args:
        sources: a file or a folder, a pattern such as ``logs/**/*.jsonl``, ``-`` for standard
            input, or several of these.
        out: folder of the new store.
        **options: any of these.
            format: name of the format; None recognises it.
            workers: number of processes; None takes one a core. The store does not depend on it.
            strict: stop at the first loss or reject.
            keep_raw: keep the raw records in the store.
            dataset: name of the data set; None takes it from the path.
            license: license of the content, for every trajectory.
            since: an earlier store; inputs that it holds are left out.
            limits: sizes and nesting beyond which a record is rejected.
            follow_links: read also what links lead to that leave the sources.

    Returns:
        The store. ``store.manifest.counts`` says what became of the records.

    Raises:
        InputError: a source is missing or of no known format.
        OutputExistsError: the output holds a store, or something that is none.
        ConversionLossError: with ``strict``, something would be lost.
        NothingNewError: the store named by ``since`` holds all inputs.
    """
    import os

    from adp.converters.run import ConvertOptions
    from adp.converters.run import convert as run

    several = [sources] if isinstance(sources, str | os.PathLike) else sources
    given = [os.fspath(source) for source in several]
    run(given, os.fspath(out), options=ConvertOptions(**options))
    return open(out)


def open(path: PathText) -> Store:  # noqa: A001
    """Open a store by its local path or its URL.

    Raises:
        StoreError: there is no store, or its manifest is damaged.
        StoreVersionError: a newer version of this package wrote it.
    """
    import os

    from adp_schema.store import Store

    return Store.open(os.fspath(path))


def query(store: PathText | Store, sql: str) -> pa.Table:
    """Answer one SELECT over the views of a store.

    Args:
        store: the store, or its path or URL.
        sql: one SELECT; ``docs/schema.md`` lists the views.

    Raises:
        StoreError: there is no store.
        QueryError: the statement is not a SELECT, or the engine rejects it.
    """
    return _opened(store).query(sql)


class ExportKeywords(TypedDict, total=False):
    """What `export` takes besides the store, the format and the folder."""

    flavour: str | None
    single: str | None
    strict: bool
    settings: Sequence[str] | Mapping[str, Any]
    model: str | None
    branches: Sequence[str] | bool


def export(
    store: PathText | Store, to: str, out: PathText, **options: Unpack[ExportKeywords]
) -> ExportReport | RowsReport:
    """Write the trajectories of a store as files of a format, or as the file of a trainer.

    Args:
        store: the store, or its path or URL.
        to: name of the format, such as ``"openai_chat"``, or of the exporter for a trainer, such
            as ``"trl-sft"``.
        out: folder for the files; it must be empty or absent.
        **options: any of these; flavour and single are for formats, the last three for trainers.
            flavour: way to write the format, where it has several.
            single: write one file of this name instead of one a source file.
            strict: stop at the first loss; of a trainer's file of tokens, refuse to write it when
                rows lack something of the store.
            settings: options of the exporter, such as ``{"expand": True}``.
            model: whose tokens are written, where tokens are: a folder, a Hub name, or ``tiny``.
            branches: kinds of branches to write besides the main lines; ``["all"]`` for all. For a
                format: ``True`` also writes branches that are no runs by themselves, such as
                alternates, and what preference pairs reject, as records of their own; ``False``
                leaves all branches out.

    Returns:
        How much was written, and what was not: of a format, what it could not hold; of a trainer,
        which trained steps are in no row, and why.

    Raises:
        UsageError: there is no such format, flavour or option, or the trainer's format cannot
            carry the mask.
        StoreError: the store is damaged, or the folder holds something or cannot be written.
        ConversionLossError: with ``strict``, the format or the rows cannot hold something.
        EmptyResultError: there is nothing to train on.
    """
    import os

    from adp.trainers.export.registry import is_exporter

    given = dict(options)
    for_trainer = is_exporter(to)
    words = ["settings", "model"]
    if for_trainer or not isinstance(given.get("branches"), bool):
        words.append("branches")  # kinds of branches; of a format it says whether
    rows = {name: given.pop(name) for name in words if name in given}
    if for_trainer and "strict" in given:
        rows["strict"] = given.pop("strict")
    wrong = sorted(given if for_trainer else rows)
    if wrong:
        from adp_schema.errors import UsageError

        kind = "for a trainer" if for_trainer else "for no trainer"
        raise UsageError(f"{to} is {kind}; leave out {', '.join(wrong)}")
    run: Any
    from adp_schema.verification import verified

    if for_trainer:
        from adp.trainers.export.run import export_rows as run
    else:
        from adp.converters.export import export as run
    with verified():
        report: ExportReport | RowsReport = run(_opened(store), to, os.fspath(out), **given, **rows)
    return report


def validate(
    sources: PathText | Sequence[PathText],
    *,
    checks: Sequence[str] = (),
    examples: int = 3,
    verify: bool = False,
    follow_links: bool = False,
) -> ValidationReport:
    """Run checks over a store, or over files, which are converted for it.

    Args:
        sources: the path or URL of a store, or files and folders of a known format.
        checks: names of the checks, such as ``"dangling-call"``; none means all.
        examples: how many examples to keep of each.
        verify: hash the files of a store again.
        follow_links: of files, read also what links lead to that leave the sources.

    Returns:
        A report: ``report.found()`` lists the checks that found something.

    Raises:
        UsageError: there is no check of a name.
        InputError: a source is missing or of no known format.
        StoreError: the store's manifest is damaged.
    """
    from adp.converters.run import ConvertOptions
    from adp.workflows.validate import validate as run

    options = ConvertOptions(follow_links=follow_links)
    return run(sources, checks=checks, examples=examples, verify=verify, options=options)


def curate(
    recipe: PathText | Mapping[str, Any],
    out: PathText | None = None,
    *,
    settings: Sequence[str] = (),
    link: bool = False,
    allow_python: bool = False,
    workers: int | None = None,
) -> Curated:
    """Make a data set out of stores by a recipe.

    One op alone, without a recipe, is ``adp.curation.apply.apply("dedup_near", store)``.

    Args:
        recipe: the YAML file, or what stands in one.
        out: folder for what is made; None only looks.
        settings: changes of the recipe, such as ``"seed=5"``.
        link: write the selection and its record, but no stores.
        allow_python: let the recipe call Python functions.
        workers: number of processes; None takes one a core. What is made does not depend on it.

    Returns:
        ``report`` (counts by stage and output) and ``ledger`` (why each trajectory is in or out).

    Raises:
        RecipeError: the recipe cannot be carried out.
        EmptyResultError: nothing is left; nothing was written.
        StoreError: an input is no finished store.
        QueryError: SQL in the recipe is not allowed or not valid.
        OutputExistsError: the output holds something.
    """
    import os
    from pathlib import Path

    from adp.curation.recipe_file import read_recipe
    from adp.curation.run import CurateOptions, run

    given = recipe if isinstance(recipe, str | os.PathLike) else dict(recipe)
    folder = Path(given).parent if isinstance(given, str | os.PathLike) else Path()
    options = CurateOptions(folder, workers, link, allow_python)
    read = read_recipe(given, settings)
    return run(read, None if out is None else os.fspath(out), options=options)


def merge(stores: Sequence[PathText], out: PathText, *, workers: int | None = None) -> Store:
    """Merge finished stores into a new one, and open it.

    Args:
        stores: two stores or more; local paths or URLs.
        out: folder of the new store.
        workers: number of processes; None takes one a core. The store does not depend on it.

    Returns:
        The store. The last entry of ``store.manifest.lineage`` says which ids and file names
        had to change.

    Raises:
        UsageError: fewer than two stores, or the same one twice.
        StoreError: one of them is no finished store.
        OutputExistsError: the output holds a store, or something that is none.
    """
    import os

    from adp.stores.merge import merge as run

    run([os.fspath(store) for store in stores], os.fspath(out), workers=workers)
    return open(out)


def drop(
    store: PathText,
    where: str,
    out: PathText,
    *,
    note: str | None = None,
    drop_rejects: bool = False,
    workers: int | None = None,
) -> Store:
    """Write a new store without the trajectories that meet a condition, and open it.

    Their branches go too, and all that nothing else refers to: blobs, tasks, pairs, raw records.

    Args:
        store: path or URL of a finished store.
        where: a condition in SQL over the view ``all_trajectories``.
        out: folder of the new store.
        note: why, for people; it is written into the new store.
        drop_rejects: leave out the rejected and skipped records too.
        workers: number of processes; None takes one a core. The store does not depend on it.

    Returns:
        The new store. The last entry of ``store.manifest.lineage`` says how many went.

    Raises:
        StoreError: there is no finished store.
        QueryError: the condition is not one valid condition.
        OutputExistsError: the output holds a store, or something that is none.
    """
    import os

    from adp.stores.drop import DropOptions, select
    from adp.stores.drop import drop as run

    options = DropOptions(note=note, drop_rejects=drop_rejects, workers=workers)
    run(select(os.fspath(store), where), os.fspath(out), options=options)
    return open(out)


def _opened(store: PathText | Store) -> Store:
    import os

    opened = open(store) if isinstance(store, str | os.PathLike) else store
    opened.check()
    return opened


def __getattr__(name: str) -> Any:
    if name not in _FROM_SCHEMA:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import adp_schema

    value = getattr(adp_schema, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
