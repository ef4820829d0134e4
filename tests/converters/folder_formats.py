"""Formats for tests: runs of one file a message, and a log of Inspect AI with shared members."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePosixPath

from msgspec import Raw

from adp.converters.format import Format
from adp_schema.builder import RowBuilder
from adp_schema.losses import Losses
from adp_schema.model import Trajectory
from adp_schema.protocols import Match, RawRecord


class _Folder(Format):
    """A record with its side files as observations."""

    title = "for tests"
    key = ""

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        return Match.STAMP if self.key in record else Match.NO

    def read(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        fields = json.loads(record.data)
        builder.trajectory({"source_id": str(fields[self.key])})
        builder.step({"source": "user", "kind": "message", "text": "go"})
        for name, data in record.side_files.items():
            builder.observation({"name": name, "text": data.decode()})
        builder.finish()

    def write(
        self, trajectory: Trajectory, losses: Losses, flavour: str | None = None
    ) -> dict[str, str | None]:
        return {self.key: trajectory.source_id}


class Conversations(_Folder):
    """``<id>/base_state.json`` owns the events beside it; the first part owns all parts."""

    name = "conversations"
    key = "conversation"

    def side_files(self, source_file: str) -> tuple[str, ...]:
        path = PurePosixPath(source_file)
        if path.name == "base_state.json":
            return (f"{path.parent}/events/*.json", f"{path.parent}/deep/**/*.json")
        if path.name.startswith("part-"):
            return (f"{path.parent}/part-*.json",)
        return ()


class Inspect(_Folder):
    """A sample of a log owns all members that are no samples."""

    name = "inspect"
    key = "epoch"

    def side_files(self, source_file: str) -> tuple[str, ...]:
        archive, inside, _ = source_file.rpartition("/samples/")
        names = ("header.json", "_journal/*.json", "summaries.json", "reductions.json")
        return tuple(f"{archive}/{name}" for name in names) if inside else ()


CONVERSATIONS = Conversations()
INSPECT = Inspect()
