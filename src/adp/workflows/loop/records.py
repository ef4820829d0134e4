"""What a loop notes about its stages, in ``records/``: what was begun, and what is done.

records/round-1/train.json is written when a stage begins and again when it is done. It decides
whether the stage is done, and whether this call asks for the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from adp_schema.errors import StoreError
from adp_schema.manifest import write_atomic

FOLDER = "records"
LEDGER = "ledger.jsonl"


@dataclass
class StageRecord:
    """What is known of a stage.

    Attributes:
        key: ``round-1.train``.
        round: number of its round.
        stage: its name.
        kind: what it does.
        values: values of its round.
        options: its options after substitution.
        options_hash: hash of those that decide the result.
        inputs: stage or file -> hash.
        done: whether it is done.
        stale: an earlier stage was done again; this one has to look whether its inputs changed.
        hash: hash of its result.
        counts: name -> number.
        figures: numbers with intervals.
        line: what to say about it.
        seconds: how long it took since the last start.
        versions: versions of the packages that did it.
    """

    key: str
    round: int
    stage: str
    kind: str
    values: Mapping[str, Any]
    options: Mapping[str, Any]
    options_hash: str
    inputs: dict[str, str]
    done: bool = False
    stale: bool = False
    hash: str = ""
    counts: dict[str, Any] = field(default_factory=dict)
    figures: list[dict[str, Any]] = field(default_factory=list)
    line: str = ""
    seconds: float = 0.0
    versions: dict[str, str] = field(default_factory=dict)

    def write(self, root: Path) -> None:
        """Write it; it is there whole, or as it was before."""
        path = record_path(root, self.key)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(asdict(self), indent=2, ensure_ascii=False, default=str)
        write_atomic(path, text + "\n")

    def row(self) -> dict[str, Any]:
        """As it stands in the ledger."""
        plain = asdict(self)
        for name in ("key", "done", "stale", "line"):
            del plain[name]
        return plain


def record_path(root: Path, key: str) -> Path:
    """File of the record of a stage."""
    number, _, name = key.partition(".")
    return root / FOLDER / number / f"{name}.json"


def read_record(root: Path, key: str) -> StageRecord | None:
    """What is known of a stage; None when it was never begun.

    Raises:
        StoreError: the file is damaged.
    """
    path = record_path(root, key)
    if not path.exists():
        return None
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        known = {item.name for item in fields(StageRecord)}
        return StageRecord(**{name: value for name, value in plain.items() if name in known})
    except (OSError, ValueError, TypeError) as error:
        raise StoreError(f"{path} is damaged: {error}; do the stage again: --redo {key}") from None


def read_records(root: Path) -> list[StageRecord]:
    """The finished stages of a loop, in the order in which they stand in its ledger."""
    path = root / LEDGER
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    keys = [f"round-{row['round']}.{row['stage']}" for row in map(json.loads, lines)]
    records = [read_record(root, key) for key in keys]
    return [record for record in records if record is not None and record.done]


def write_ledger(root: Path, records: list[StageRecord]) -> None:
    """Write a line for each finished stage, in the order of the loop."""
    lines = [json.dumps(record.row(), ensure_ascii=False, default=str) for record in records]
    write_atomic(root / LEDGER, "".join(f"{line}\n" for line in lines))
