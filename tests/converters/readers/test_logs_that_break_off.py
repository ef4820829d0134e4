"""Logs of lines that end anywhere, as while their agent writes: all that is there is read."""

from __future__ import annotations

import json
import random

import pytest

from adp.converters.framing import lines_as_array
from adp.converters.readers import READERS
from adp.converters.registry import formats
from adp_schema.errors import RecordError
from adp_schema.protocols import SkipRecordError
from tests.effort import examples
from tests.fuzz.leaves import lost, read_lines
from tests.fuzz.readers import EXAMPLES, example_files

LOGS = [
    path for name in sorted(READERS) for path in example_files(name)
    if path.suffix == ".jsonl" and formats.get(name).container == "session"
]  # fmt: skip
CUTS = examples(24)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_log_that_breaks_off(path):
    """Whole lines give what they gave, and the beginning of a line stands in an event."""
    name = path.relative_to(EXAMPLES).parts[0]
    data, chance = path.read_bytes(), random.Random(path.name)
    for _ in range(CUTS):
        cut = data[: chance.randrange(1, len(data))]
        whole, _, rest = cut.rpartition(b"\n")
        try:
            reading = read_lines(name, lines_as_array(cut))
        except (RecordError, SkipRecordError):
            if whole:  # nothing of it was whole, or nothing of it was a message
                with pytest.raises((RecordError, SkipRecordError)):
                    read_lines(name, lines_as_array(whole))
            continue
        if not whole:
            continue
        assert lost(lines_as_array(whole), reading) == []
        text = rest.strip().decode("utf-8", "backslashreplace")
        if len(text) > 20 and not text.endswith("}"):
            assert any("line" in item["reason"] for item in reading.losses)
            written = json.dumps(text, ensure_ascii=False)
            rows = [*reading.rows["steps"], *reading.rows["trajectories"]]
            assert any(written in (row["extra"] or "") for row in rows)
