"""The complete example of docs/datasets.md: its recipe reads its row as the page says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import adp
from adp.converters.text_calls.registry import DIALECTS

PAGE = (Path(__file__).parents[3] / "docs" / "datasets.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    match = re.search(f"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert match
    return match[1]


@pytest.fixture
def store(tmp_path):
    (tmp_path / "my.yaml").write_text(block("yaml"), encoding="utf-8")
    row = json.loads(block("json"))
    empty = {**row, "run": "r2", "dialog": []}
    lines = "".join(json.dumps(it) + "\n" for it in (row, empty))
    (tmp_path / "rows.jsonl").write_text(lines, encoding="utf-8")
    return adp.convert(
        [str(tmp_path / "rows.jsonl")], str(tmp_path / "store"), recipes=[str(tmp_path / "my.yaml")]
    )


def test_the_example_reads_its_row(store):
    counts = store.manifest.counts
    assert (counts.used, counts.skipped, counts.rejected) == (1, 1, 0)
    assert store.manifest.reasons == {"skipped: nobody speaks in it - at $": 1}
    (run,) = store
    assert (run.source_id, run.agent_model, run.success) == ("r1", "m-7b", True)
    assert run.license == "apache-2.0"
    assert run.task.instruction == "Count the files."
    assert run.task_id == "count_r1"
    assert '"note":"kept in extra"' in run.extra


@pytest.mark.skipif("react" not in DIALECTS, reason="the dialect react is not there")
def test_the_example_gives_calls_and_results(store):
    (run,) = store
    calls = [call for step in run.steps for call in step.calls]
    assert [call.name for call in calls] == ["shell", "finish"]
    assert [row.text for step in run.steps for row in step.observations] == ["12"]
    assert run.terminated is True
    assert run.final_answer == "12"
    assert {tool["function"]["name"] for tool in json.loads(run.tools)} == {"shell", "finish"}
    assert run.tools_origin == "inferred"
