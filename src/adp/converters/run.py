"""Converting files into a store: plan, shards by workers, manifest last.

A run stages each shard and notes it under ``.run`` in the store's folder. When it is stopped,
the same call goes on where it stopped. The manifest comes last, so a folder without one is no
store yet.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adp.converters.datasets.catalogue import OF_USER
from adp.converters.file_pieces import expected_bytes, is_cut_later, shard_bytes, with_lines
from adp.converters.files.limits import ConvertLimits
from adp.converters.files.members import Unpacking
from adp.converters.fingerprint_cache import FingerprintCache
from adp.converters.framing import ByteRange
from adp.converters.inputs import BROUGHT, Inputs, collect, collect_below
from adp.converters.large_files import large_pieces
from adp.converters.plan import ConvertPlan, choose, make_plan
from adp.converters.planned_file import PlannedFile
from adp.converters.registry import formats, stored_name
from adp.converters.renumber import renumber_repeats
from adp.converters.session_folders import resolve
from adp.converters.shard import ConvertJob, convert_shard
from adp.converters.shard_result import PieceResult, ShardResult, range_hashes
from adp.converters.since import earlier, near_changes, only_new, untouched
from adp.converters.unread_files import by_kind
from adp.core.progress import Progress, Silent
from adp.stores.locks import alone
from adp.stores.remote_output import writes_to_urls
from adp.stores.staged import StagedRun, check_free
from adp.stores.staged import versions as staged_versions
from adp_schema.builder import RowBuilder
from adp_schema.errors import InputError, NothingNewError
from adp_schema.ids import digest, fingerprint
from adp_schema.location import is_hub, is_url
from adp_schema.manifest import Counts, Lineage, Manifest

if TYPE_CHECKING:
    from adp.core.tool_names.runs import ToolNaming


@dataclass(frozen=True)
class ConvertOptions:
    """How to convert.

    Attributes:
        format: name of the format; None recognises it.
        workers: number of processes; None takes one a core. The store does not depend on it.
        strict: stop at the first loss or reject.
        keep_raw: keep the raw records in the store.
        dataset: name of the data set; None takes it from the path.
        license: license of the content, for every trajectory.
        limits: what is larger or deeper is rejected.
        since: folder or URL of an earlier store; its inputs are left out.
        follow_links: read also what links lead to that leave the sources.
        dialect: grammar of the actions in texts; None recognises it, ``none`` leaves texts alone.
        recipes: files of recipes that describe data sets, beside those of the package.
        tool_names: names of tools and their arguments: ``source`` or ``adp``, those of the Agent
            Data Protocol, from which those of the source come back.
    """

    format: str | None = None
    workers: int | None = None
    strict: bool = False
    keep_raw: bool = False
    dataset: str | None = None
    license: str | None = None
    limits: ConvertLimits = field(default_factory=ConvertLimits)
    since: str | os.PathLike[str] | None = None
    follow_links: bool = False
    dialect: str | None = None
    recipes: Sequence[str] = ()
    tool_names: ToolNaming = "source"

    def kept(self) -> dict[str, Any]:
        """What the lineage says of them: those that the user chose and the store depends on.

        A format of the user's own is called by its name; the path of its file stays private.
        """
        named = ("format", "strict", "keep_raw", "dataset", "license", "follow_links", "dialect")
        chosen = {name: getattr(self, name) for name in named}
        if self.tool_names != "source":
            chosen["tool_names"] = self.tool_names
        if self.format:
            chosen["format"] = formats.get(self.format).name
        if self.recipes:
            chosen["recipes"] = [formats.get(OF_USER + path).name for path in self.recipes]
        plain = {name: value for name, value in chosen.items() if value not in (None, False)}
        return {**plain, **self.limits.changed()}


@writes_to_urls
@alone
def convert(
    sources: list[str],
    out: str,
    *,
    options: ConvertOptions | None = None,
    progress: Progress | None = None,
) -> Manifest:
    """Convert files into a store.

    Args:
        sources: files and folders, or one location on the Hugging Face Hub.
        out: folder of the store; it must not hold anything else.
        options: how to convert.
        progress: told what is chosen and how far it is.

    Returns:
        The manifest of the store.

    Raises:
        InputError: a source is missing or of no known format.
        OutputExistsError: the output holds a store, or something that is none.
        ConversionLossError: with ``strict``, something would be lost.
        NothingNewError: the store named by ``since`` holds all inputs.
        HubError: the Hub refuses, or cannot be reached.
    """
    options = options or ConvertOptions()
    report = progress or Silent()
    store = Path(out)
    if not (store / ".run" / "plan.json").exists():
        check_free(store)
    options.limits.check()
    plan = _plan(sources, store, options, report)
    free = {"workers": None, "since": None}
    key = plan.key({**asdict(options), **free, "versions": versions(plan)})
    run = StagedRun(out, key, options.workers)
    if run.finished is not None:
        return run.finished
    _announce(plan, report)
    jobs, total = _jobs(run, plan, options), sum(file.size for file in plan.files)
    results = run.shards(jobs, convert_shard, ShardResult.parse, report, total=total)
    renumber_repeats(store, results)
    manifest = _manifest(run, plan, options, results)
    run.finish(manifest)
    return manifest


def _plan(
    sources: list[str], store: Path, options: ConvertOptions, report: Progress
) -> ConvertPlan:
    """What to read. Of a run that ends here nothing is left but what came from afar."""
    run = store / ".run"
    try:
        known = earlier(os.fspath(options.since)) if options.since else None
        on_hub = afar = None
        if any(map(is_hub, sources)):
            from adp.converters.hub_source import bring

            on_hub = bring(sources, run, report)
        elif any(map(is_url, sources)):
            from adp.converters.remote_source import bring_remote

            afar = bring_remote(sources, run, report)
        unpacking = Unpacking(run / "unpacked", options.limits)
        dataset = options.dataset
        source = ""
        if on_hub is not None:
            inputs = collect_below(on_hub.root, on_hub.given, unpacking)
            dataset, source = dataset or on_hub.place.name, on_hub.place.url()
        elif afar is not None:
            inputs = collect_below(afar.root, afar.given, unpacking)
            source = afar.url
        else:
            follow = options.follow_links
            inputs = collect(
                resolve(sources), run / "stdin", follow_links=follow, unpacking=unpacking
            )
        if known is None:
            return make_plan(_chosen(inputs, dataset, options), source)
        cache, total = FingerprintCache(",".join(formats)), len(inputs.files)
        left_out = untouched(inputs, known, cache, options.format)
        near = near_changes(inputs, left_out)
        files = _chosen(near, dataset, options) if near.files else []
        new = only_new(files, known, options.limits, cache)
        if not new:
            count = f"all {total} inputs are" if total > 1 else "the input is"
            raise NothingNewError(
                f"nothing new: {count} in {options.since} already; no store was written"
            )
        plan = make_plan(new, source)
        plan.parent = known.manifest_hash
        plan.unchanged = total - len(near.files) + len(files) - len(new)
        return plan
    except BaseException:
        if not (run / "plan.json").exists() and not (run / BROUGHT).exists():
            shutil.rmtree(run, ignore_errors=True)
            if store.is_dir() and not any(store.iterdir()):
                store.rmdir()
        raise


def _chosen(inputs: Inputs, dataset: str | None, options: ConvertOptions) -> list[PlannedFile]:
    recipes = [OF_USER + str(Path(path).resolve()) for path in options.recipes]
    for name in recipes:
        formats.get(name)  # what is wrong in it is said before any file is read
    return choose(
        inputs, options.format, dataset, options.limits, dialect=options.dialect, recipes=recipes
    )


def _announce(plan: ConvertPlan, report: Progress) -> None:
    """Say which format was chosen and why, once for files that share both."""
    groups = Counter((f.format, f.why, f.dialect) for f in plan.files if f.format)
    for (name, why, dialect), count in sorted(groups.items()):
        actions = f", actions in texts: {dialect}" if dialect else ""
        label = formats.get(name).name if name.startswith(OF_USER) else name
        report.note(f"{count} file{'s' if count > 1 else ''}: {label} ({why}){actions}")
    for phrase in by_kind(file for file in plan.files if not file.format):
        report.note(f"rejected: {phrase}")
    if plan.unchanged:
        inputs = "1 input" if plan.unchanged == 1 else f"{plan.unchanged:,} inputs"
        report.note(f"{inputs} unchanged, not read again")


def _jobs(run: StagedRun, plan: ConvertPlan, options: ConvertOptions) -> Iterator[ConvertJob]:
    columns = {"license": options.license} if options.license else {}
    for index, (shard, size) in enumerate(_shards(run, plan, options.limits)):
        files = {file: plan.files[file] for file, _ in shard}
        yield ConvertJob(
            index=index,
            store=str(run.folder),
            size=size,
            pieces=[
                (file, piece, files[file].format, files[file].dataset, files[file].why)
                for file, piece in shard
            ],
            columns=columns,
            keep_raw=options.keep_raw,
            strict=options.strict,
            limits=options.limits,
            is_sole=len(plan.files) == 1,
            rename=options.tool_names == "adp",
            dialects={
                number: (file.dialect, file.dialect_is_found)
                for number, file in files.items()
                if file.dialect
            },
        )


def _shards(
    run: StagedRun, plan: ConvertPlan, limits: ConvertLimits
) -> Iterator[tuple[list[tuple[int, ByteRange]], int]]:
    """The shards, and how many bytes on disk each has; a large file is cut while it is read."""
    index, step = 0, shard_bytes(expected_bytes(plan.files))
    folder = run.scratch / "pieces"
    before: dict[int, ByteRange] = {}
    for shard in plan.shards:
        number, piece = shard[0]
        if is_cut_later(piece):
            for part, share in large_pieces(piece, limits, folder, index, run.is_done, step):
                index += 1
                yield [(number, part)], share
        else:
            index += 1
            size = sum(_share(plan.files[file], piece) for file, piece in shard)
            counted = []
            for file, piece in shard:
                before = {file: with_lines(piece, before.get(file))}
                counted.append((file, before[file]))
            yield counted, size


def _share(file: PlannedFile, piece: ByteRange) -> int:
    """The bytes on disk that count for a piece: those of the file, divided up."""
    share, left = divmod(file.size, len(file.pieces))
    return share + (left if piece is file.pieces[0] else 0)


def _manifest(
    run: StagedRun, plan: ConvertPlan, options: ConvertOptions, results: list[ShardResult]
) -> Manifest:
    manifest = Manifest()
    datasets: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    losses: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    parsed: Counter[str] = Counter()
    for result in results:
        parsed.update(result.parsed)
        datasets.update(result.datasets)
        reasons.update(result.reasons)
        losses.update(result.losses)
        unknown.update(result.unknown)
        for piece in result.pieces:
            manifest.counts.add(piece.counts)
        for table, shard in result.tables.items():
            manifest.tables.setdefault(table, []).append(shard)
    unknown.update(note for file in plan.files for note in file.notes)
    manifest.datasets = dict(sorted(datasets.items()))
    manifest.reasons = dict(sorted(reasons.items()))
    manifest.losses = dict(sorted(losses.items()))
    manifest.unknown = dict(sorted(unknown.items()))
    manifest.parsed = dict(sorted(parsed.items()))
    inputs = _write_sources(run, manifest, plan, results)
    if not manifest.counts.balanced():
        raise InputError(f"the counts do not add up: {manifest.counts}; please report this")
    lineage = {"inputs": len(plan.files), "inputs_hash": inputs, **options.kept()}
    act = Lineage(act="convert", options=lineage, versions=versions(plan))
    if plan.source:
        act.options["source"] = plan.source
    if plan.parent:
        act.options["unchanged"], act.parents = plan.unchanged, [plan.parent]
    manifest.lineage = [act]
    return manifest


def _write_sources(
    run: StagedRun, manifest: Manifest, plan: ConvertPlan, results: list[ShardResult]
) -> str:
    """Write the table of input files; return the hash over their fingerprints."""
    counts = [Counts() for _ in plan.files]
    pieces: list[list[PieceResult]] = [[] for _ in plan.files]
    styles = [{**_style(file), "ascii": True} for file in plan.files]
    for result in results:
        for piece in result.pieces:
            counts[piece.file].add(piece.counts)
            pieces[piece.file].append(piece)
            styles[piece.file]["ascii"] &= piece.ascii
            styles[piece.file].update(piece.style)
    builder = RowBuilder()
    for index, file in enumerate(plan.files):
        print_ = fingerprint(file.size, range_hashes(pieces[index]))
        builder.source_file(_source_row(file, counts[index], print_, styles[index]))
    rows = builder.sources()
    manifest.tables["sources"] = run.sources(rows)
    return digest("".join(rows["fingerprint"].to_pylist()).encode())


def _style(file: PlannedFile) -> dict[str, Any]:
    """The layout of a file, and the format of its rows where a recipe of another name read it."""
    stored = stored_name(formats.get(file.format)) if file.format else None
    return file.style if stored == file.format_name else {**file.style, "rows_of": stored}


def _source_row(
    file: PlannedFile, counts: Counts, print_: str, style: dict[str, Any]
) -> dict[str, Any]:
    return {
        "source_file": file.source_file,
        "dataset": file.dataset,
        "source_format": file.format_name,
        "framing": file.framing,
        "size": file.size,
        "fingerprint": print_,
        "style": json.dumps(style, sort_keys=True),
        **counts.model_dump(),
    }


def versions(plan: ConvertPlan) -> dict[str, str]:
    """Versions that the bytes of a store depend on: of msgspec, and of the formats in the plan."""
    names = sorted({file.format for file in plan.files if file.format})
    used = [formats.get(name) for name in names]
    return staged_versions("msgspec") | {f"format:{item.name}": item.version for item in used}
