"""What became of a shard and of the pieces in it."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Any, Protocol, TypeVar

from adp_schema.ids import digest
from adp_schema.manifest import Counts, Shard


@dataclass
class PieceResult:
    """What became of a piece: its counts, the hash of its records, and what its style is.

    Of a piece that is hashed together with others, also the hashes of its records.
    """

    file: int
    counts: Counts = field(default_factory=Counts)
    hash: str = ""
    ascii: bool = True
    style: dict[str, Any] = field(default_factory=dict)
    hashed: int = -1
    records: str = ""


class _Piece(Protocol):
    @property
    def hashed(self) -> int: ...


AnyPiece = TypeVar("AnyPiece", bound=_Piece)


def by_range(pieces: Iterable[AnyPiece]) -> list[list[AnyPiece]]:
    """The pieces of a file, those together whose records are hashed as one."""
    ranges: list[list[AnyPiece]] = []
    for piece in pieces:
        if ranges and piece.hashed >= 0 and ranges[-1][0].hashed == piece.hashed:
            ranges[-1].append(piece)
        else:
            ranges.append([piece])
    return ranges


def range_hashes(pieces: Iterable[PieceResult]) -> list[str]:
    """The hashes that the fingerprint of a file is made of, from those of its records."""
    return [
        digest(bytes.fromhex("".join(piece.records for piece in same)))
        if len(same) > 1
        else same[0].hash
        for same in by_range(pieces)
    ]


def packed_hashes(ids: Iterable[str]) -> str:
    """Hashes of ids, 8 bytes each, in base64."""
    data = [blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8) for name in ids]
    return b64encode(b"".join(item.digest() for item in data)).decode()


@dataclass
class ShardResult:
    """What became of a shard; kept on disk until the manifest is written.

    ``id_hashes`` are the hashes of the ids of its trajectories before they were numbered, in
    order, as `packed_hashes` makes them: all shards together are in memory at the end.
    """

    index: int
    tables: dict[str, Shard] = field(default_factory=dict)
    pieces: list[PieceResult] = field(default_factory=list)
    id_hashes: str = ""
    datasets: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    losses: dict[str, int] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)
    parsed: dict[str, int] = field(default_factory=dict)

    def text(self) -> str:
        """As JSON."""
        plain = {
            **asdict(self),
            "tables": {name: shard.model_dump() for name, shard in self.tables.items()},
            "pieces": [
                {**vars(piece), "counts": piece.counts.model_dump()} for piece in self.pieces
            ],
        }
        return json.dumps(plain)

    @classmethod
    def parse(cls, text: str) -> ShardResult:
        """The inverse of `text`."""
        plain = json.loads(text)
        plain["tables"] = {name: Shard(**shard) for name, shard in plain["tables"].items()}
        plain["pieces"] = [
            PieceResult(**{**piece, "counts": Counts(**piece["counts"])})
            for piece in plain["pieces"]
        ]
        return cls(**plain)
