from __future__ import annotations

import json

import pytest

import adp

FORMAT = """
import json
from adp_schema.protocols import Match

class Steps:
    name, title = "steps", "A step a line"
    def sniff(self, record):
        return Match.SHAPE
    def read(self, record, builder, losses):
        builder.trajectory({})
        builder.step(json.loads(record.data))
        builder.finish()
"""
GOOD = {"source": "user", "kind": "message", "text": "a"}


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"mood": "glad"}, "table steps has no column mood"),
        ({"kind": "poem"}, "column steps.kind holds 'poem'; it takes"),
        ({"text": 3}, "column steps.text takes a text"),
        ({"tokens_in": 2**80}, "column steps.tokens_in: "),
    ],
)
def test_a_row_that_no_column_takes_is_a_rejected_record(wrong, reason, tmp_path):
    (tmp_path / "steps.py").write_text(FORMAT, encoding="utf-8")
    lines = [json.dumps(row) for row in (GOOD, {**GOOD, **wrong}, {**GOOD, "text": "b"})]
    (tmp_path / "runs.jsonl").write_text("\n".join(lines), encoding="utf-8")
    store = adp.convert(
        tmp_path / "runs.jsonl", tmp_path / "store", format=f"{tmp_path / 'steps.py'}:Steps"
    )
    assert (store.manifest.counts.used, store.manifest.counts.rejected) == (2, 1)
    [reject] = store.query("SELECT record, reason FROM rejects").to_pylist()
    assert reject["record"] == 2
    assert reject["reason"].startswith(reason)
    texts = [step.text for trajectory in store for step in trajectory.steps]
    assert texts == ["a", "b"]
