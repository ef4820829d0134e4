"""What must arrive when a record goes from one format to another."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from adp.converters.registry import formats
from adp_schema import extra_column, jsontext, media
from adp_schema.losses import Losses
from adp_schema.model import Observation, Row, Step, ToolCall, Trajectory
from adp_schema.parts import JOINT, resolve
from adp_schema.protocols import Converter
from tests.roundtrip import read_one, write_one

Piece = tuple[str, Any]
"""Kind of a value, and the value."""


class Pieces:
    """The pieces of a trajectory, each with the paths that a loss report may give for it."""

    def __init__(self, run: Trajectory) -> None:
        self.pieces: list[tuple[Piece, tuple[str, ...]]] = []
        self._run(run, "$")

    def _run(self, run: Trajectory, root: str) -> None:
        self._blobs = run.media
        self._extras(root, run)
        for index, row in enumerate(run.early_observations):
            self._observation(row, f"{root}.early_observations[{index}]")
        for index, step in enumerate(run.steps):
            path = f"{root}.steps[{index}]"
            self._step(step, path)
            for n, row in enumerate(step.observations):
                self._observation(row, f"{path}.observations[{n}]")
        for index, branch in enumerate(run.branches):
            self._run(branch, f"{root}.branches[{index}]")

    def counted(self) -> Counter[Piece]:
        return Counter(piece for piece, _ in self.pieces)

    def _add(self, kind: str, value: Any, *paths: str) -> None:
        self.pieces.append(((kind, value), paths))

    def _exact(self, row: Row, column: str) -> Any:
        value = extra_column.original(row, column, extra_column.unpack(row.extra))  # type: ignore[attr-defined]
        return media.restore(value, self._blobs) if isinstance(value, str) else value

    def _words(self, kind: str, text: str | None, *paths: str) -> None:
        """Formats join texts by a blank line and cut them there, so words are compared."""
        for words in (text or "").split(JOINT):
            if words.strip("\n"):
                self._add(kind, words.strip("\n"), *paths)

    def _extras(self, path: str, row: Row) -> None:
        """The keys of ``extra``; those of a source's own ``extra`` count one by one."""
        for key, value in extra_column.unpack(row.extra).fields.items():  # type: ignore[attr-defined]
            inner = jsontext.decode_exact(value) if bytes(value)[:1] == b"{" else {}
            if key != "extra" or not inner:
                self._add("extra", key, f"{path}.extra.{key}")
            else:
                for name in inner:
                    self._add("extra", name, f"{path}.extra.extra")

    def _step(self, step: Step, path: str) -> None:
        self._extras(path, step)
        # Calls that were found in the text are pieces of their own.
        spoken = "text" if step.prose is None else "prose"
        self._words("text", self._exact(step, spoken), f"{path}.text")
        self._words("reasoning", self._exact(step, "reasoning"), f"{path}.reasoning")
        self._words("name", step.actor and self._exact(step, "actor"), f"{path}.actor")
        self._parts(step, path)
        for index, call in enumerate(step.calls):
            self._call(call, f"{path}.calls[{index}]")

    def _parts(self, row: Step | Observation, path: str) -> None:
        reasoning = row.reasoning if isinstance(row, Step) else None
        for index, part in enumerate(resolve(row.content, row.text, reasoning)):
            if part.type == "media":
                self._add("media", part.media_id, f"{path}.content[{index}]")
            elif part.type == "opaque":
                self._add("opaque", bytes(part.value), f"{path}.content[{index}]")

    def _call(self, call: ToolCall, path: str) -> None:
        self._extras(path, call)
        self._add("tool", self._exact(call, "name") or "", f"{path}.name")
        paths = (f"{path}.arguments", f"{path}.arguments_raw")
        text = self._exact(call, "arguments")
        raw = self._exact(call, "arguments_raw")
        if call.kind == "code":
            self._add("argument", (("code",), f'"{raw or text or ""}"'), *paths)
            return
        written = raw if text is None else text
        if written is None:
            return
        try:
            # Free text may look like JSON.
            value = written if call.arguments_kind == "text" else spelled(written)
        except ValueError:
            value = written
        for where, leaf in leaves(value):
            self._add("argument", (where, leaf), *paths)

    def _observation(self, row: Observation, path: str) -> None:
        self._extras(path, row)
        for column in ("text", "axtree", "html", "url"):
            self._words("text", self._exact(row, column), f"{path}.{column}")
        self._words("name", row.name and self._exact(row, "name"), f"{path}.name")
        self._parts(row, path)


class Pairs(list[Any]):
    """An object with its keys in order, also those that occur twice."""


def spelled(text: str) -> Any:
    """A JSON value whose numbers are text, marked as numbers."""

    def number(source: str) -> tuple[str]:
        return (source,)

    return json.loads(
        text,
        parse_int=number,
        parse_float=number,
        parse_constant=number,
        object_pairs_hook=Pairs,
    )


def leaves(value: Any, where: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Each scalar of a JSON value with its path."""
    if isinstance(value, Pairs):
        for key, item in value:
            yield from leaves(item, (*where, key))
        if not value:
            yield where, "{}"
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, (*where, index))
        if not value:
            yield where, "[]"
    elif isinstance(value, tuple):
        yield where, value[0]
    else:
        yield where, f'"{value}"' if isinstance(value, str) else json.dumps(value)


def lost(paths: tuple[str, ...], losses: Losses) -> bool:
    """Whether the report names one of the paths; a report on a whole step says nothing."""
    whole = re.compile(r"\[\d+\]$")
    reported = [item["path"] for item in losses.items if not whole.search(item["path"])]
    reported += [item["path"] for item in losses.items if ".content[" in item["path"]]
    reported += [item["path"] for item in losses.items if ".branches[" in item["path"]]
    return any(
        path == there or path.startswith((f"{there}.", f"{there}["))
        for path in paths
        for there in reported
    )


def missing(sources: list[Trajectory], targets: list[Trajectory], losses: Losses) -> list[Any]:
    """The pieces of the sources that are neither in the targets nor in the report."""
    there: Counter[Piece] = Counter()
    for target in targets:
        there.update(Pieces(target).counted())
    gone = []
    inside = {branch.trajectory_id for source in sources for branch in source.branches}
    for source in (run for run in sources if run.trajectory_id not in inside):
        for piece, paths in Pieces(source).pieces:
            kind, value = piece
            if lost(paths, losses):
                continue
            if there[piece]:
                there[piece] -= 1
            elif not _stands_in_other_columns(kind, value, there):
                gone.append((piece, paths))
    joined = [target for target in targets if target.source_format == "sharegpt"]
    return not_inside(gone, joined) if joined else gone


def _stands_in_other_columns(kind: str, value: Any, there: Counter[Piece]) -> bool:
    """Whether a piece is in the target by another name.

    ATIF has one in ``extra``; arguments that are a text and no object become the argument
    ``input``.
    """
    if kind == "argument" and value[0] == ():
        return there["argument", (("input",), value[1])] > 0
    return (kind == "opaque" and there["extra", "opaque"] > 0) or (
        kind == "extra" and there["extra", f"{value}_"] > 0
    )


def not_inside(pieces: list[Any], targets: list[Trajectory]) -> list[Any]:
    """The pieces that are no words inside a longer text: some formats join and wrap words."""
    texts = [text for target in targets for text in _texts(target)]
    gone = []
    for piece, paths in sorted(pieces, key=lambda item: -len(str(item[0][1]))):
        kind, words = piece
        index = -1
        if kind in ("text", "reasoning"):
            index = next((i for i, text in enumerate(texts) if words in text), -1)
        if index < 0:
            gone.append((piece, paths))
        else:
            texts[index] = texts[index].replace(words, "\0", 1)
    return gone


def _texts(run: Trajectory) -> Iterator[str]:
    rows: list[Any] = [*run.steps, *run.early_observations]
    rows += [row for step in run.steps for row in step.observations]
    for row in rows:
        text = extra_column.original(row, "text", extra_column.unpack(row.extra)) or ""
        yield media.restore(text, run.media)


def nest(runs: list[Trajectory], converter: Converter) -> list[Trajectory]:
    """Hang the branches of one record into the runs that they start from, if it is wanted."""
    inside = {run.trajectory_id: run.parent_id for run in runs if converter.embeds(run)}
    by_id = {run.trajectory_id: run for run in runs}
    for run in runs:
        run.branches = [o for o in runs if inside.get(o.trajectory_id) == run.trajectory_id]
    records: list[Trajectory] = []
    for run in (run for run in runs if inside.get(run.trajectory_id) not in by_id):
        if records and run.parent_id is None and converter.joins(records[-1], run):
            records[-1].branches.append(run)
        else:
            records.append(run)
    return records


def write_back(
    name: str, runs: list[Trajectory], losses: Losses
) -> tuple[list[bytes], list[Trajectory]]:
    """Write the trajectories of a record in a format, and read what was written."""
    converter = formats.get(name)
    whole = nest(runs, converter)
    written = [write_one(converter, run, losses) for run in whole]
    return written, [run for record in written for run in read_one(converter, record)]


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+', re.DOTALL)


def tokens(data: bytes) -> list[str]:
    """The tokens of JSON text: numbers as spelled, strings decoded, keys in order."""
    text = data.decode("utf-8").removeprefix("\ufeff")
    return [
        "s" + json.loads(token, strict=False) if token[0] == '"' else token
        for token in _TOKEN.findall(text)
    ]
