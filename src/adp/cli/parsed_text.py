"""What was read from texts, in words."""

from __future__ import annotations

from adp.cli.text import counted
from adp_schema.manifest import Manifest


def parsed_lines(manifest: Manifest) -> list[str]:
    """What was read from texts, a line a dialect."""
    counts: dict[str, dict[str, int]] = {}
    for key, count in manifest.parsed.items():
        name, what = key.split(": ")
        counts.setdefault(name, {})[what] = count
    return [_parsed_line(name, count) for name, count in counts.items()]


def _parsed_line(name: str, count: dict[str, int]) -> str:
    calls = counted(count.get("calls", 0), "call")
    results = count.get("results", 0) - count.get("unlinked", 0)
    left = count.get("left", 0)
    more = f"; {counted(left, 'turn')} that {'looks' if left == 1 else 'look'} like it left as text"
    return f"{name}: {calls} read from texts, {results:,} with a result{more if left else ''}"
