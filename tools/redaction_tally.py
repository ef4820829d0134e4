"""Count what redaction finds in a folder of records, to be judged value by value.

python -m tools.redaction_tally FOLDER [--kinds secrets,personal] [--values OUTSIDE.jsonl]

The counts are printed. The values with their surroundings go to a file of their own, which must lie
outside of this repository: they may be somebody's secrets.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from adp.converters.run import ConvertOptions, convert
from adp.stores.redact import RedactOptions, finder, scan
from adp.stores.redact.finder import Cleaned, Hit
from adp_schema.ids import digest
from adp_schema.store import Store

AROUND = 60
"""Characters to show on each side of a value."""

EXAMPLES = 3
"""Places of a value to show."""

ROOT = Path(__file__).parents[1]


@dataclass
class Tally:
    """What was found.

    Attributes:
        places: kind and value -> how often it was found.
        surroundings: the same -> some texts around it.
    """

    places: Counter[tuple[str, str]] = field(default_factory=Counter)
    surroundings: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    def add(self, text: str, hit: Hit) -> None:
        """Count a finding."""
        key = (hit.kind, text[hit.start : hit.end])
        self.places[key] += 1
        seen = self.surroundings.setdefault(key, set())
        if len(seen) < EXAMPLES:
            seen.add(text[max(hit.start - AROUND, 0) : hit.end + AROUND])

    def hashes(self) -> set[tuple[str, str]]:
        """Kind and start of the hash of each value: what may be kept of it."""
        return {(kind, digest(value.encode())[:16]) for kind, value in self.places}


def tally(store: Store, options: RedactOptions) -> Tally:
    """Search a store, and remember each value."""
    result = Tally()
    replace = finder._replace

    def counted(cleaned: Cleaned, hits: list[Hit], *, is_json: bool) -> None:
        for hit in hits:
            result.add(cleaned.text, hit)
        replace(cleaned, hits, is_json=is_json)

    finder._replace = counted
    try:
        scan(store, options)
    finally:
        finder._replace = replace
    return result


def main() -> None:
    """Convert a folder, search it and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--kinds", default="secrets,personal")
    parser.add_argument("--values", type=Path)
    given = parser.parse_args()
    if given.values is not None and ROOT in given.values.resolve().parents:
        parser.error("--values must lie outside of the repository")
    with TemporaryDirectory() as folder:
        convert([given.folder], f"{folder}/store", options=ConvertOptions(keep_raw=True))
        store = Store.open(f"{folder}/store")
        options = RedactOptions(kinds=tuple(given.kinds.split(",")), user=((), ()), workers=1)
        result = tally(store, options)
    counts = store.manifest.counts
    print(f"{counts.trajectories:,} trajectories, {counts.rejected:,} records rejected")
    print(f"{sum(result.places.values()):,} places, {len(result.places):,} different values")
    for kind in sorted({kind for kind, _ in result.places}):
        values = [count for (match, _), count in result.places.items() if match == kind]
        print(f"{kind}: {sum(values):,} places, {len(values):,} different")
    if given.values is not None:
        with given.values.open("w", encoding="utf-8") as file:
            for (kind, value), count in sorted(result.places.items()):
                around = sorted(result.surroundings[kind, value])
                line = {"kind": kind, "hash": digest(value.encode())[:16], "places": count,
                        "value": value, "around": around}  # fmt: skip
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
