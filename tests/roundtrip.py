"""Drive a converter without a store: bytes to trajectories, and a trajectory to bytes."""

from __future__ import annotations

from adp_schema import jsontext
from adp_schema.builder import Origin, RowBuilder
from adp_schema.ids import digest
from adp_schema.losses import Losses
from adp_schema.model import Media, Trajectory
from adp_schema.protocols import Converter, RawRecord
from adp_schema.reader import assemble, to_models


def read_one(converter: Converter, data: bytes, losses: Losses | None = None) -> list[Trajectory]:
    """Read one record as the runner does: through the tables and back into models."""
    marked = not jsontext.is_valid(data)
    text = jsontext.sanitise(data) if marked else data
    builder = RowBuilder()
    columns = {"source_format": converter.name, "source_hash": digest(data)}
    builder.begin(Origin(seq=0, dataset="d", columns=columns, marked=marked, size=len(data)))
    record = RawRecord(text, "file.json", 1, 0, len(data), marked)
    losses = Losses() if losses is None else losses
    converter.read(record, builder, losses)
    builder.close_record(losses)
    tables = builder.tables()
    media = {blob.media_id or "": blob for blob in to_models(tables["media"], Media)}
    return list(assemble(tables["trajectories"], tables, media))


def write_one(converter: Converter, trajectory: Trajectory, losses: Losses | None = None) -> bytes:
    """Write one trajectory as a record, in compact JSON."""
    record = converter.write(trajectory, losses if losses is not None else Losses())
    return jsontext.encode(record)
