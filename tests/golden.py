"""Golden files: what the examples become in the store and in the other format.

python -m tests.golden --write    write them anew; read the diff before you commit it
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from adp.converters.registry import formats
from adp.converters.run import convert
from adp_schema import jsontext
from adp_schema.losses import Losses
from adp_schema.store import Store
from adp_schema.tables import TABLES

ROOT = Path(__file__).parents[1]
FOLDER = Path(__file__).parent / "converters" / "golden"
EXAMPLES = {
    "openai_chat": "examples/chat/booking.jsonl",
    "adp_v1": "examples/adp/shop.json",
    "sharegpt": "tests/converters/examples/garden.json",
    "atif": "tests/converters/examples/trip.json",
    "sts": "tests/converters/examples/clock.jsonl",
    "m3": "tests/converters/examples/trees.json",
    "preference": "tests/converters/examples/tea.jsonl",
}


def rows_of(store: Store) -> dict[str, list[dict[str, Any]]]:
    """All rows of a store, without nulls; blobs by their size."""
    return {
        table: [
            {
                name: f"<{len(value)} bytes>" if isinstance(value, bytes) else value
                for name, value in row.items()
                if value is not None
            }
            for row in store.scan(table).collect().to_dicts()
        ]
        for table in TABLES
    }


def written(store: Store, to: str) -> list[dict[str, Any]]:
    """The records that another format gets, with what it cannot hold."""
    converter, out = formats.get(to), []
    for trajectory in store.trajectories():
        losses = Losses()
        record = json.loads(jsontext.encode(converter.write(trajectory, losses)))
        out.append({"record": record, "losses": losses.items})
    return out


def contents() -> dict[str, str]:
    """The golden files: name -> text."""
    texts: dict[str, str] = {}
    for name, example in EXAMPLES.items():
        with tempfile.TemporaryDirectory() as folder:
            convert([str(ROOT / example)], f"{folder}/s")
            store = Store.open(f"{folder}/s")
            texts[f"{name}/rows.json"] = _text(rows_of(store))
            for other in EXAMPLES:
                if other != name:
                    texts[f"{name}/as_{other}.json"] = _text(written(store, other))
    return texts


def _text(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, default=str) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python -m tests.golden --write")
    for file, text in contents().items():
        (FOLDER / file).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / file).write_text(text, encoding="utf-8")
        print(f"wrote {(FOLDER / file).relative_to(ROOT)}")
