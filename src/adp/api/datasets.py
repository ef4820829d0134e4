"""Data sets: recipes, and files for trainers, for the Hub and for readers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from adp.api.stores import opened

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike
    from typing import Unpack

    from adp.converters.export import ExportReport
    from adp.curation.outputs import Curated
    from adp.rendering.report import RenderReport
    from adp.stores.streaming.row_stream import RowStream
    from adp.trainers.export.run import RowsReport
    from adp.workflows.publish.publish import Published
    from adp.workflows.report import Report
    from adp_schema.store import Store

    PathText = str | PathLike[str]


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
    from pathlib import Path

    from adp.curation.recipe_file import read_recipe
    from adp.curation.run import CurateOptions, run

    given = recipe if isinstance(recipe, str | os.PathLike) else dict(recipe)
    folder = Path(given).parent if isinstance(given, str | os.PathLike) else Path()
    options = CurateOptions(folder, workers, link, allow_python)
    read = read_recipe(given, settings)
    return run(read, None if out is None else os.fspath(out), options=options)


class ExportKeywords(TypedDict, total=False):
    """What `export` takes besides the store, the format and the folder."""

    flavour: str | None
    single: str | None
    strict: bool
    settings: Sequence[str] | Mapping[str, Any]
    model: str | None
    branches: Sequence[str] | bool
    tool_names: Literal["adp", "source"]
    structured: bool


def export(
    store: PathText | Store, to: str, out: PathText, **options: Unpack[ExportKeywords]
) -> ExportReport | RowsReport:
    """Write the trajectories of a store as files of a format, or as the file of a trainer.

    Args:
        store: the store, or its path or URL.
        to: name of the format, such as ``"openai_chat"``, or of the exporter for a trainer, such
            as ``"trl-sft"``.
        out: folder for the files; it must be empty or absent.
        **options: any of these; flavour and single are for formats, settings and model for
            trainers.
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
            tool_names: ``"adp"`` or ``"source"``: names of tools and their arguments.
            structured: for formats: calls that stood in texts are written as calls, also by the
                format that they came from; else that one gets its texts back, byte for byte.

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
    from adp.trainers.export.registry import is_exporter

    given = dict(options)
    for_trainer = is_exporter(to)
    words = ["settings", "model"]
    if for_trainer or not isinstance(given.get("branches"), bool):
        words.append("branches")  # kinds of branches; of a format it says whether
    rows = {name: given.pop(name) for name in words if name in given}
    if for_trainer and "strict" in given:
        rows["strict"] = given.pop("strict")
    if for_trainer and "tool_names" in given:
        settings: Any = rows.get("settings", ())
        name = given.pop("tool_names")
        is_list = not hasattr(settings, "keys")
        rows["settings"] = (
            [*settings, f"tool_names={name}"] if is_list else {**settings, "tool_names": name}
        )
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
        report: ExportReport | RowsReport = run(opened(store), to, os.fspath(out), **given, **rows)
    return report


def publish(
    store: PathText | Store,
    repo: str,
    out: PathText | None = None,
    *,
    dry_run: bool = False,
    private: bool = False,
    message: str | None = None,
    traces: Literal["sts", "pi"] | None = None,
    **options: Any,
) -> Published:
    """Publish a store as a data set on the Hugging Face Hub.

    Licenses, secrets and personal data are looked at first, and stop it. A stopped call goes on
    when it is made again.

    Args:
        store: the store, or its path or URL.
        repo: OWNER/NAME of the data set.
        out: folder to prepare it in; None takes one in the cache.
        dry_run: do everything but the upload.
        private: make it a private data set.
        message: what the commit says.
        traces: publish OWNER/NAME-traces too, for the Hub's trace viewer, in this form.
        **options: fields of `adp.workflows.publish.options.PublishOptions`, such as
            ``license="apache-2.0", redact=True, tag="v1.0.0"``.

    Returns:
        What was made (``prepared``, ``traces``), and where it went (``uploaded``).

    Raises:
        UsageError: a name, a license, a tag or a date is wrong.
        StoreError: there is no finished store.
        FindingsError: a license, a secret or personal data stands in the way.
        HubError: the Hub refuses, or cannot be reached.
    """
    from pathlib import Path

    from adp.workflows.publish.options import PublishOptions
    from adp.workflows.publish.publish import UploadOptions
    from adp.workflows.publish.publish import publish as run
    from adp.workflows.publish.repo import RepoId
    from adp_schema.verification import verified

    with verified():
        return run(
            opened(store).root,
            RepoId.parse(repo),
            out=None if out is None else Path(out),
            options=PublishOptions(**options),
            upload=None if dry_run else UploadOptions(private, message),
            traces=traces,
        )


def report(
    store: PathText | Store | Sequence[PathText | Store],
    out: PathText | None = None,
    *,
    kind: Literal["data", "eval"] = "data",
    **options: Any,
) -> Report:
    """Report what a store holds, or how agents did.

    Args:
        store: the store, or its path or URL; of kind ``"eval"`` also several, to compare them.
        out: a new file that ends in .html or .md; None writes none.
        kind: ``"data"`` or ``"eval"``.
        **options: ``name``, a title, and ``examples``, how many trajectories to show; of kind
            ``"eval"`` also ``baseline`` and ``scores``, as in
            `adp.workflows.report_eval.EvaluationOptions`.

    Returns:
        The report: ``plain()`` gives its numbers, ``html()`` and ``markdown()`` its text.

    Raises:
        UsageError: the file's name is wrong, or several stores are given where one is wanted.
        StoreError: there is no store, or it is damaged.
        OutputExistsError: the file is there already, or cannot be written.
    """
    from contextlib import nullcontext
    from pathlib import Path

    from adp.stores.composition import CompositionOptions, composition
    from adp.stores.locks import holding
    from adp.workflows.report import Report, check_out
    from adp.workflows.report_eval import EvaluationOptions, evaluation
    from adp_schema.errors import UsageError
    from adp_schema.store import Store
    from adp_schema.verification import verified

    target = None if out is None else Path(out)
    check_out(target)
    given = [store] if isinstance(store, str | os.PathLike | Store) else list(store)
    if kind == "data" and len(given) != 1:
        raise UsageError("a report of data is about one store; kind='eval' compares several")
    with verified(), holding(target, folders=False) if target else nullcontext():
        stores = [opened(item) for item in given]
        if kind == "eval":
            made = Report(evaluation(stores, EvaluationOptions(**options)))
        else:
            made = Report(composition(stores[0], CompositionOptions(**options)))
        if target is not None:
            made.write(target)
    return made


class StreamKeywords(TypedDict, total=False):
    """What `stream` takes besides the store; it says what each one is."""

    shuffle: bool | int
    seed: int
    batch_size: int
    columns: Sequence[str] | None
    where: str | None
    rank: int
    world_size: int


def stream(store: PathText | Store | RenderReport, **options: Unpack[StreamKeywords]) -> RowStream:
    """Stream trajectories, or rendered rows, in batches of Arrow, in bounded memory.

    A row is a trajectory: its columns, and ``steps`` with the ``calls`` and ``observations`` of
    each step. A branch is a row with its own steps, without those that it shares with its parent;
    ``where="parent_step IS NULL"`` leaves such branches out. Tasks, links, blobs and raw records
    are no part of the rows.

    Args:
        store: the store, or its path or URL; or what `render` gives, for rows of tokens.
        **options: any of these.
            shuffle: rows that are shuffled together at least, in whole row groups from all over
                the store, up to eight; True means 10,000. False is the order of the store.
            seed: seed of the order.
            batch_size: rows a batch; 256 unless given.
            columns: such as ``["trajectory_id", "steps.text", "steps.calls"]``; None takes all.
            where: a condition in SQL over the view ``all_trajectories``.
            rank: number of this process among those that share the rows, from 0.
            world_size: their number. The streams of all of them, one after another, are the stream
                of a single one.

    Returns:
        An iterable of `pyarrow.RecordBatch`, with ``set_epoch``, ``part``, ``state_dict``,
        ``load_state_dict``, and ``torch()``, a data set for a ``DataLoader``.

    Raises:
        StoreError: there is no store.
        QueryError: the condition is not one valid condition.
        UsageError: there is no such column or part, or a number is out of its range.
    """
    from adp.rendering.report import RenderReport
    from adp.stores.streaming.nested import NestedColumns
    from adp.stores.streaming.order import RowOrder
    from adp.stores.streaming.row_sources import NestedRows, ParquetRows, RowSource
    from adp.stores.streaming.row_stream import RowStream
    from adp_schema.errors import UsageError

    columns, where = options.get("columns"), options.get("where")
    source: RowSource
    if isinstance(store, RenderReport):
        if where is not None:
            raise UsageError("where is for stores; render the trajectories that you want")
        source = ParquetRows(store.files(), columns)
    else:
        source = NestedRows(opened(store), NestedColumns.of(columns), where)
    shuffle = options.get("shuffle", False)
    order = RowOrder(10_000 if shuffle is True else int(shuffle), options.get("seed", 0))
    whole = RowStream(source, order, options.get("batch_size", 256))
    return whole.part(options.get("rank", 0), options.get("world_size", 1))
