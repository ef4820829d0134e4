"""The product, driven by the two calls of its library that users call: convert and export."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

from adp.converters.export import export
from adp.converters.registry import BUILTIN
from adp.converters.run import ConvertOptions, convert
from adp_schema.errors import AdpError, ConversionLossError
from adp_schema.store import Store

MEMORY = Path("/dev/shm")
LINES = {"sts"}
"""Formats with a session a file: its lines are the record."""


_HASH = re.compile(r"\b[0-9a-f]{32}\b")
_REPEAT = re.compile(r"(\bd/[^\"\s#]{1,200})#\d+")


def plain(text: str) -> str:
    """A target without the ids that the product makes: they say nothing of what was kept.

    A run without an id gets a hash of its record; one whose id is taken gets a number behind it.
    """
    return _REPEAT.sub(r"\1", _HASH.sub("0" * 32, text))


@dataclass
class Written:
    """What an export wrote.

    Attributes:
        files: the text of each file by name.
        reports: what the conversion and the export reported.
        exported: what the export reported.
    """

    files: dict[str, str]
    reports: Counter[str]
    exported: Counter[str]

    @cached_property
    def text(self) -> str:
        """All files, one after the other."""
        return "\n".join(self.files[name] for name in sorted(self.files))

    @cached_property
    def content(self) -> str:
        """The same without the ids that are hashes of the record."""
        return plain(self.text)


@dataclass
class Reading:
    """One source in a store, and its exports, made when they are asked for.

    Attributes:
        folder: scratch folder of it.
        format: what the source was recognised as.
        used: number of records that became trajectories.
        reports: losses and reasons that the conversion reported.
    """

    folder: Path
    format: str
    used: int
    reports: Counter[str]
    _written: dict[str, Written] = field(default_factory=dict)

    def written(self, target: str) -> Written:
        """The export in a format, with the losses of the conversion among its reports."""
        if target not in self._written:
            out = self.folder / "out" / target
            output = counted(
                asdict(export(Store.open(str(self.folder / "store")), target, str(out)))
            )
            self._written[target] = Written(_files(out), self.reports + output, output)
        return self._written[target]

    def strict(self, target: str) -> bool:
        """Whether an export that stops at a loss goes through."""
        out = self.folder / "strict" / target
        try:
            export(Store.open(str(self.folder / "store")), target, str(out), strict=True)
        except ConversionLossError:
            return False
        return True


def counted(report: dict) -> Counter[str]:
    """Whatever a report says besides how much was written."""
    counts: Counter[str] = Counter()
    for name, value in report.items():
        if isinstance(value, dict):
            counts.update({f"{name}: {what}": times for what, times in value.items()})
        elif isinstance(value, list):
            counts.update(f"{name}: {item}" for item in value)
        elif name not in ("files", "records") and value:
            counts[name] += int(value)
    return counts


def _files(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_bytes().decode("utf-8", "surrogateescape")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def names() -> list[str]:
    """The formats."""
    return sorted(BUILTIN)


class Product:
    """Gives readings of sources, and takes their folders away again."""

    def __init__(self) -> None:
        self._top = Path(
            tempfile.mkdtemp(prefix="adp-fidelity-", dir=MEMORY if MEMORY.is_dir() else None)
        )
        self._made = 0
        self.calls = 0

    def close(self) -> None:
        """Take everything away."""
        shutil.rmtree(self._top, ignore_errors=True)

    def forget(self, reading: Reading | None) -> None:
        """Take the files of a reading away."""
        if reading is not None:
            shutil.rmtree(reading.folder, ignore_errors=True)

    def read(self, text: str, name: str | None, suffix: str = ".json") -> Reading | None:
        """Convert a source.

        Args:
            text: the file.
            name: its format; None has it recognised.
            suffix: how the file's name ends.

        Returns:
            None when the product refuses it: it was said, so nothing is silent.
        """
        self.calls += 1
        folder = self._folder()
        source = folder / "in" / f"source{suffix}"
        source.parent.mkdir(parents=True)
        source.write_bytes(text.encode("utf-8", "surrogateescape"))
        return self.read_path(source, name, folder)

    def contents(self, texts: list[str], name: str, suffix: str) -> list[dict[str, str]]:
        """Convert many versions of a record together, and export them together.

        Args:
            texts: a file each.
            name: their format.
            suffix: how the files' names end.

        Returns:
            For each version the text of its export by target; nothing for one that is refused.
        """
        folder = self._folder()
        for number, text in enumerate(texts):
            source = folder / "in" / f"v{number}" / f"source{suffix}"
            source.parent.mkdir(parents=True)
            source.write_bytes(text.encode("utf-8", "surrogateescape"))
        contents: list[dict[str, str]] = [{} for _ in texts]
        reading = self.read_path(folder / "in", name, folder)
        for target in names() if reading is not None else ():
            for path, text in reading.written(target).files.items():
                number = int(path.split("/")[0][1:])
                before = contents[number].get(target, "")
                contents[number][target] = before + plain(text)
        self.forget(reading)
        return contents

    def _folder(self) -> Path:
        self._made += 1
        folder = self._top / str(self._made)
        folder.mkdir(parents=True)
        return folder

    def read_path(
        self, source: Path, name: str | None, folder: Path | None = None
    ) -> Reading | None:
        """Convert a file or a folder where it lies."""
        folder = folder or self._folder()
        try:
            options = ConvertOptions(format=name, workers=1, dataset="d")
            manifest = convert([str(source)], str(folder / "store"), options=options)
        except AdpError:
            shutil.rmtree(folder, ignore_errors=True)
            return None
        if not manifest.counts.used:
            shutil.rmtree(folder, ignore_errors=True)
            return None
        reports = Counter({f"losses: {what}": n for what, n in manifest.losses.items()})
        reports.update({f"reasons: {what}": n for what, n in manifest.reasons.items()})
        rows = Store.open(str(folder / "store")).scan("sources").collect().to_dicts()
        return Reading(folder, rows[0]["source_format"], manifest.counts.used, reports)
