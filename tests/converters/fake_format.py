"""A format for tests: a run in ``run*.json``, with files that belong to it beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from msgspec import Raw

from adp_schema.builder import RowBuilder
from adp_schema.losses import Losses
from adp_schema.model import Trajectory
from adp_schema.protocols import Match, RawRecord


class Fake:
    """The format ``fake``."""

    name = "fake"
    version = "1"
    title = "A run with a result beside it"
    container = "json"
    recognised = "The key `fake`."
    versions = "One."
    flavours: tuple[str, ...] = ()

    def side_files(self, source_file: str) -> tuple[str, ...]:
        folder = PurePosixPath(source_file).parent
        names = ("result.json", "log/notes.txt", "missing.json", "../outside.json", "run2.json")
        return tuple(str(folder / name) for name in names)

    def embeds(self, branch: Trajectory) -> bool:
        return False

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        return Match.STAMP if "fake" in record else Match.NO

    def read(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        builder.trajectory({"source_id": str(json.loads(record.data)["fake"])})
        builder.step({"source": "user", "kind": "message", "text": "go"})
        for name, data in record.side_files.items():
            builder.observation({"name": name, "text": data[:40].decode()})
        builder.finish()

    def write(
        self, trajectory: Trajectory, losses: Losses, flavour: str | None = None
    ) -> dict[str, Any]:
        return {"fake": trajectory.source_id}


CONVERTER = Fake()
