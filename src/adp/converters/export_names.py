"""The files of an export: which trajectories go into which, and under what name.

Files keep the relative paths of the inputs. Sessions of a program get the names under which it
looks for them; those of its own keep theirs if they have such a name already.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from adp.converters.file_names import session_name
from adp.converters.files.writing import without_compression
from adp.converters.programs import PROGRAMS
from adp.converters.session_writers.names import NamedRun
from adp.converters.trajectories_by_file import FileOf
from adp_schema.errors import StoreError
from adp_schema.model import Trajectory
from adp_schema.protocols import Converter

Sources = dict[str, dict[str, Any]]
"""The input files of a store by path."""

SUFFIXES = {
    **{"jsonl": ".jsonl", "json_array": ".json", "json": ".json", "parquet": ".parquet"},
    "session": ".jsonl",
    "sqlite": ".jsonl",
}


def file_of(single: str | None, converter: Converter, sources: Sources) -> FileOf:
    """The key that tells the trajectories of one output file from those of the others.

    Args:
        single: name of the only file; None when there are several.
        converter: the format that is written.
        sources: the input files. A file of lines that gets another name for its program is added
            under it, so that it keeps its layout.
    """
    if single is not None:
        return lambda _: single
    return _SessionNames(converter, dict(sources), sources).of


class _SessionNames:
    """Names the file of each trajectory; parents come before their branches.

    Args:
        converter: the format that is written.
        inputs: the input files.
        sources: takes files of the same format under their new names.
    """

    def __init__(self, converter: Converter, inputs: Sources, sources: Sources) -> None:
        self._converter = converter
        self._inputs = inputs
        self._sources = sources
        self._session_file = session_file(converter)
        self._numbered_file = numbered_file(converter)
        self._numbers: Counter[str] = Counter()
        self._made: dict[str, str] = {}
        self._files: dict[str | None, str] = {}

    def of(self, run: NamedRun) -> str:
        """The file of a trajectory."""
        name, converter = run.source_file or "trajectories", self._converter
        if self._numbered_file is not None and not is_same(self._inputs.get(name), converter):
            return self._numbered(run, self._numbered_file)
        if not one_a_file(converter):
            return name
        source = self._inputs.get(name)
        if is_same(source, converter) and (kept := self._kept(run, name)) is not None:
            return kept
        session = session_name(run.trajectory_id or "", run.dataset)
        if self._session_file is None:
            file = f"{session}{SUFFIXES[converter.container]}"
            return f"{without_compression(Path(name)).with_suffix('')}/{file}"
        file = self._named(run, session, self._session_file)
        if source is not None and is_same(source, converter) and _has_lines(source, converter):
            self._sources[file] = source
        return file

    def _numbered(self, run: NamedRun, named: Callable[[NamedRun, int], str]) -> str:
        """The name of a run of another format; branches that stand in their run share it."""
        file = self._files.get(run.parent_id) if run.parent_id is not None else None
        branch = Trajectory(branch_kind=run.branch_kind, source_format=run.source_format)
        if file is None or not self._converter.embeds(branch):
            folder = str(Path(named(run, 0)).parent)
            file = named(run, self._numbers[folder])
            while file in self._inputs:
                self._numbers[folder] += 1
                file = named(run, self._numbers[folder])
            self._numbers[folder] += 1
        self._files[run.trajectory_id] = file
        return file

    def _kept(self, run: NamedRun, name: str) -> str | None:
        """The name that a file of the same format keeps; None when the program asks for another."""
        program = PROGRAMS.get(self._converter.name)
        if program is None or self._session_file is None:
            return name
        if program.finds(name, self._inputs[name]["framing"]):
            return name
        if program.kept_files is None or not program.kept_files.search(name):
            return None
        kept = f"{self._session_file(run).partition('/')[0]}/{name}"
        self._sources[kept] = self._inputs[name]
        return kept

    def _named(self, run: NamedRun, session: str, named: Callable[[NamedRun], str]) -> str:
        """The name that the program of a format asks for; branches may share that of their run."""
        branch = Trajectory(branch_kind=run.branch_kind, source_format=run.source_format)
        file = self._files.get(run.parent_id, "") if run.parent_id is not None else ""
        if not file or not self._converter.embeds(branch):
            file = named(run)
            name = run.trajectory_id or ""
            if file in self._inputs or self._made.setdefault(file, name) != name:
                file = f"{session}/{file}"
        self._files[run.trajectory_id] = file
        return file


def session_file(converter: Converter) -> Callable[[NamedRun], str] | None:
    """How a format names the file of a session, where its program asks for a certain name."""
    return getattr(converter, "session_file", None)


def names_files(converter: Converter) -> bool:
    """Whether a format says the name of the file of each run."""
    return session_file(converter) is not None or numbered_file(converter) is not None


def numbered_file(converter: Converter) -> Callable[[NamedRun, int], str] | None:
    """How a format names the file of the n-th run of another format, where it numbers them."""
    return getattr(converter, "numbered_file", None)


def is_same(source: dict[str, Any] | None, converter: Converter) -> bool:
    """Whether a file is of the format that is written, which gives it its layout again."""
    anew = getattr(converter, "written_anew", False)
    if source is None or anew:
        return False
    overlaid = json.loads(source["style"] or "{}").get("rows_of")
    return converter.name in (source["source_format"], overlaid)


def one_a_file(converter: Converter) -> bool:
    """Whether each trajectory gets a file of its own."""
    return converter.container == "session" or getattr(converter, "file_a_trajectory", False)


def target_names(
    names: list[str], converter: Converter, sources: Sources, single: str | None
) -> dict[str, str]:
    """The output file of each input file.

    Raises:
        StoreError: two would have the same.
    """
    targets: dict[str, str] = {}
    taken: dict[str, str] = {}
    for name in names:
        target = _target_name(name, sources.get(name), converter, single)
        if target in taken:
            advice = "use --single FILE together with -o"
            if one_a_file(converter):
                advice = f"choose another format, {converter.name} has one session a file"
            raise StoreError(
                f"two files of the store, {taken[target]} and {name}, would both become {target}; "
                f"{advice}"
            )
        targets[name], taken[target] = target, name
    return targets


def _target_name(
    name: str, source: dict[str, Any] | None, converter: Converter, single: str | None
) -> str:
    """Relative path of an output file, without a way out of the folder."""
    path = safe(name)
    if source is not None and source["framing"] == "sqlite":
        return str(path.with_suffix(SUFFIXES["sqlite"])) if not single else str(path)
    if single or is_same(source, converter) or session_file(converter) is not None:
        return str(path)
    return str(without_compression(path).with_suffix(SUFFIXES[converter.container]))


def safe(name: str) -> Path:
    """A relative path without a way out of its folder."""
    return Path(*[part for part in Path(name).parts if part not in ("..", "/", "\\")])


def _has_lines(source: dict[str, Any], converter: Converter) -> bool:
    """Whether a file has the layout that its program reads, and is not compressed."""
    return source["framing"] == converter.container and not json.loads(source["style"]).get(
        "compression"
    )
