"""Stores: what makes them, changes them, and looks into them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from typing import Unpack

    import pyarrow as pa

    from adp.converters.files.limits import ConvertLimits
    from adp.stores.fulltext.search import SearchResult
    from adp.stores.transcript import Transcript
    from adp.workflows.validate import ValidationReport
    from adp_schema.growing import GrowingStore
    from adp_schema.model import Trajectory
    from adp_schema.store import Store

    PathText = str | PathLike[str]


def opened(store: PathText | Store) -> Store:
    """A store that is given as such or by its place, after a check of its files."""
    from adp_schema.store import Store

    if not isinstance(store, Store):
        return Store.open(os.fspath(store))
    store.check()
    return store


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
    dialect: str | None
    recipes: Sequence[str]
    tool_names: Literal["adp", "source"]


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
            dialect: grammar of the actions in texts, or ``none``; None recognises it.
            recipes: files of recipes that describe data sets.
            tool_names: ``"adp"`` gives tools the names that harnesses agree on (terminal, python,
                file_editor, finish and others); those of the source come back on export.

    Returns:
        The store. ``store.manifest.counts`` says what became of the records.

    Raises:
        InputError: a source is missing or of no known format.
        OutputExistsError: the output holds a store, or something that is none.
        ConversionLossError: with ``strict``, something would be lost.
        NothingNewError: the store named by ``since`` holds all inputs.
    """
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
    return opened(store).query(sql)


class SearchKeywords(TypedDict, total=False):
    """What `search` takes besides the store and the words; it says what each one is."""

    where: str | None
    places: Sequence[str]
    sources: Sequence[str]
    limit: int
    order: Literal["rank", "store"]
    index: str | None
    workers: int | None


def search(store: PathText | Store, words: str, **options: Unpack[SearchKeywords]) -> SearchResult:
    """Search the texts of a store. The first search makes an index beside it (docs/search.md).

    Args:
        store: the store, or its path or URL.
        words: words, ``"phrases"``, beginnings such as ``book*``, AND, OR, NOT, parentheses.
        **options: any of these.
            where: only trajectories that meet this condition in SQL over ``all_trajectories``.
            places: only in these: text, reasoning, arguments, observation.
            sources: only by these: system, user, agent, environment.
            limit: matches at most; 10 unless given.
            order: ``"rank"``, the best ones first, or ``"store"``, the first ones.
            index: folder of the index; None takes ``STORE.index``.
            workers: number of processes that make the index; None takes one a core.

    Returns:
        ``matches``, with trajectory, step, place, snippet and marks of each; ``more``, whether
        there are others; ``unsealed``, trajectories of a growing store that have no shard yet.

    Raises:
        StoreError: there is no store, or the index is damaged.
        UsageError: the words are no search, or an option is wrong.
        QueryError: the condition is not one valid condition.
        OutputExistsError: the index cannot be written.
    """
    from adp.stores.fulltext.search import SearchOptions
    from adp.stores.fulltext.search import search as run

    return run(opened(store), words, SearchOptions(**options))


def show(
    store: PathText | Store | Trajectory,
    trajectory_id: str | None = None,
    *,
    steps: slice | None = None,
    kinds: Sequence[str] = (),
    full: bool = False,
) -> Transcript:
    """One trajectory for reading: each call stands with its result.

    Args:
        store: the store, or its path or URL; or a trajectory itself.
        trajectory_id: its id, or the begin or end of it; None where a trajectory is given.
        steps: only these, such as ``slice(0, 10)``.
        kinds: only these, such as ``["call", "result"]``; see `adp.stores.transcript.KINDS`.
        full: do not cut long texts.

    Returns:
        The text, which shows itself at the prompt of Python and in notebooks.

    Raises:
        StoreError: there is no store, or no such trajectory.
        UsageError: several trajectories are meant, or there is no such kind.
    """
    from adp.stores.transcript import Transcript, TranscriptView
    from adp_schema.errors import UsageError
    from adp_schema.model import Trajectory

    view = TranscriptView(
        full, (steps and steps.start) or 0, steps and steps.stop, kinds, hint=" (full=True)"
    )
    if not isinstance(store, Trajectory):
        if trajectory_id is None:
            raise UsageError("say which trajectory: adp.show(store, ID); adp.query lists their ids")
        store = opened(store).get(trajectory_id, resolve=True)
    return Transcript.of(store, view)


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
    from adp.stores.drop import DropOptions, select
    from adp.stores.drop import drop as run

    options = DropOptions(note=note, drop_rejects=drop_rejects, workers=workers)
    run(select(os.fspath(store), where), os.fspath(out), options=options)
    return open(out)


def parse(
    store: PathText, out: PathText, *, dialect: str | None = None, workers: int | None = None
) -> Store:
    """Read calls, reasoning and results out of the texts of a store into a new one, and open it.

    Texts stay whole; the new store is written back to the format it came from unchanged.

    Args:
        store: path or URL of a finished store.
        out: folder of the new store.
        dialect: grammar of the actions in all files; None finds that of each file.
        workers: number of processes; None takes one a core. The store does not depend on it.

    Returns:
        The new store; ``store.manifest.parsed`` says what was read.

    Raises:
        StoreError: there is no finished store.
        UsageError: there is no such dialect, or no file is surely of one.
        OutputExistsError: the output holds a store, or something that is none.
    """
    from adp.converters.text_calls.store import ParseOptions
    from adp.converters.text_calls.store import parse as run
    from adp.stores.shards import open_finished

    options = ParseOptions(dialect=dialect, workers=workers)
    run(open_finished(os.fspath(store)), os.fspath(out), options=options)
    return open(out)


class GrowKeywords(TypedDict, total=False):
    """What `grow` takes besides the store: when a journal becomes a shard."""

    seal_bytes: int | None
    seal_count: int | None
    seal_seconds: float | None


def grow(path: PathText, **options: Unpack[GrowKeywords]) -> GrowingStore:
    """Make a store that trajectories are appended to, or go on with one.

    Args:
        path: folder of the store.
        **options: any of these; a journal becomes a shard when the first one is reached.
            seal_bytes: size of a journal; None means 64 MiB.
            seal_count: number of trajectories in it.
            seal_seconds: its age at an append.

    Returns:
        The store: ``append(trajectory)`` returns when it is safe on the disk. `adp.open` reads
        what it holds at the moment, and `adp.seal` ends it. It shares a lock with all others that
        append, until it is closed or gone: no run of another kind writes there meanwhile.

    Raises:
        OutputExistsError: the folder holds a finished store or something else.
        StoreError: the folder cannot be written to, or a run of another kind writes there.
    """
    from adp.stores.growth_locks import SharedGrowth

    return SharedGrowth(os.fspath(path), **options)


def seal(path: PathText) -> Store:
    """End a growing store, and open the finished one.

    Args:
        path: folder of the store. Sealing again does nothing; a stopped call is to be repeated.

    Raises:
        StoreError: the folder holds no growing store, or its disk is full.
    """
    from adp_schema.seal_store import seal as run
    from adp_schema.store import Store

    run(os.fspath(path))
    return Store.open(os.fspath(path))


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
        A report: ``report.failed()`` lists the checks that found something.

    Raises:
        UsageError: there is no check of a name.
        InputError: a source is missing or of no known format.
        StoreError: the store's manifest is damaged.
    """
    from adp.converters.run import ConvertOptions
    from adp.workflows.validate import validate as run

    options = ConvertOptions(follow_links=follow_links)
    return run(sources, checks=checks, examples=examples, verify=verify, options=options)
