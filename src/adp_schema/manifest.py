"""The manifest ``adp.json``: what a store holds. It is written last, so a store has it or is none.

Everything in it follows from the inputs, the options and the package versions: no time, no host,
no absolute path. Those go to ``run.json``, which is neither hashed nor published.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from adp_schema import location
from adp_schema.errors import StoreError
from adp_schema.migrate import column_names
from adp_schema.tables import MANIFEST as MANIFEST
from adp_schema.tables import SCHEMA_VERSION

RUN = "run.json"


_SHARD_PATH = re.compile(r"[a-z][a-z_]*/[a-z]+-[0-9]{5,12}\.parquet")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Shard(_Strict):
    """One Parquet file of a table."""

    path: str = Field(description="Path in the store.")

    @field_validator("path")
    @classmethod
    def _inside(cls, path: str) -> str:
        """Allow shards only: a manifest of others names what is read, and what `pull` writes."""
        if not _SHARD_PATH.fullmatch(path):
            raise ValueError(
                f"the path {path!r} is none of a shard, such as steps/part-00000.parquet"
            )
        return path

    rows: int = Field(description="Number of rows.")
    size: int = Field(description="Size in bytes.")
    hash: str = Field(description="blake2b-128 of the file, in hexadecimal.")


class Counts(_Strict):
    """What became of the records: ``records == used + skipped + rejected``."""

    records: int = 0
    used: int = 0
    skipped: int = 0
    rejected: int = 0
    trajectories: int = 0

    def add(self, other: Counts) -> None:
        """Add the counts of another part of the run."""
        for name in Counts.model_fields:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def balanced(self) -> bool:
        """Whether every record is accounted for."""
        return self.records == self.used + self.skipped + self.rejected


class Lineage(_Strict):
    """One act that made the store, such as a conversion."""

    act: str = Field(description="convert, seal, merge, ...")
    options: dict[str, Any] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    parents: list[str] = Field(default_factory=list, description="Hashes of the parent manifests.")


_OPTIONAL = ("unknown", "parsed")
"""What a manifest leaves out when it is empty."""


class Manifest(_Strict):
    """The contents of ``adp.json``."""

    schema_version: str = SCHEMA_VERSION
    tables: dict[str, list[Shard]] = Field(default_factory=dict)
    counts: Counts = Field(default_factory=Counts)
    datasets: dict[str, int] = Field(default_factory=dict, description="Trajectories by data set.")
    reasons: dict[str, int] = Field(
        default_factory=dict, description="Skipped and rejected records by reason."
    )
    losses: dict[str, int] = Field(default_factory=dict, description="Losses by path and reason.")
    unknown: dict[str, int] = Field(
        default_factory=dict, description="Kinds of records and blocks that were kept unread."
    )
    parsed: dict[str, int] = Field(
        default_factory=dict, description="Calls and results that were read from texts, by dialect."
    )
    lineage: list[Lineage] = Field(default_factory=list)

    @field_validator("tables")
    @classmethod
    def _own_folders(cls, tables: dict[str, list[Shard]]) -> dict[str, list[Shard]]:
        """Refuse files that are in the folder of another table, or named twice."""
        for table, shards in tables.items():
            paths = [shard.path for shard in shards]
            if any(path.split("/")[0] != table for path in paths):
                raise ValueError(f"the table {table!r} names files that are not in its folder")
            if len(set(paths)) < len(paths):
                raise ValueError(f"the table {table!r} names a file twice")
        return tables

    def rows(self, table: str) -> int:
        """Number of rows of a table."""
        return sum(shard.rows for shard in self.tables.get(table, []))

    def text(self) -> str:
        """The manifest as JSON: sorted keys, indent 2."""
        plain = self.model_dump(exclude={it for it in _OPTIONAL if not getattr(self, it)})
        return json.dumps(plain, indent=2, sort_keys=True, ensure_ascii=False) + "\n"

    def write(self, folder: Path) -> None:
        """Write ``adp.json`` into a folder, whole or not at all."""
        write_atomic(folder / MANIFEST, self.text())


def read_manifest(root: str, address: str) -> Manifest:
    """Read a manifest; its version is checked first, since a newer one may look different.

    Raises:
        StoreError: it is damaged, or of a newer version.
    """
    advice = f"the manifest of {root} is damaged; restore it or convert again"
    try:
        data = json.loads(location.read_text(address))
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{advice} ({error})") from error
    if not isinstance(data, dict):
        raise StoreError(f"{advice} (it is no object)")
    column_names(str(data.get("schema_version")))
    try:
        return Manifest.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise StoreError(f"{advice} ({where}: {first['msg']})") from error


def write_atomic(path: Path, text: str) -> None:
    """Write a small text file so that a kill leaves the old one or the new one, never half."""
    staged = path.with_name(path.name + ".tmp")
    with staged.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    staged.replace(path)
