"""Arguments that no decoder likes, in runs whose recipe asks for tools and answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import adp
from adp.converters.datasets import dataset_format
from adp_schema.builder import RowBuilder

RECIPE = """
name: mine
title: Runs with odd arguments
rows: seen
match: {keys: [messages]}
reader: openai_chat
dialect: hermes
tools: {infer: true}
finish: {calls: {f: a}}
"""


def row(argument: str) -> dict[str, Any]:
    call = f'<tool_call>\n{{"name": "f", "arguments": {{"a": {argument}}}}}\n</tool_call>'
    turns = [("user", "go"), ("assistant", call), ("user", "<tool_response>x</tool_response>")]
    return {"messages": [{"role": role, "content": text} for role, text in turns]}


@pytest.mark.parametrize("argument", ["1" * 6000, "[" * 900 + "]" * 900, "1e999999", '"x"'])
def test_they_are_kept_and_written_back(argument: str, tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text(RECIPE, "utf-8")
    source = tmp_path / "rows.jsonl"
    source.write_text(json.dumps(row(argument)) + "\n", "utf-8")
    store = adp.convert(source, tmp_path / "store", recipes=[str(tmp_path / "my.yaml")])
    assert (store.manifest.counts.used, store.manifest.parsed["hermes: calls"]) == (1, 1)
    (run,) = store.trajectories()
    assert run.terminated is True
    assert run.steps[1].calls[0].arguments == f'{{"a": {argument}}}'
    adp.export(store, "openai_chat", tmp_path / "out")
    assert (tmp_path / "out" / "rows.jsonl").read_bytes() == source.read_bytes()


def test_counts_leave_out_what_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when a record is put aside after its texts were parsed."""

    def complete(recipe: Any, builder: RowBuilder) -> None:
        if any(call["arguments"] == '{"a": "bad"}' for call in builder.made("tool_calls")):
            raise ValueError("it is bad")

    monkeypatch.setattr(dataset_format, "complete_record", complete)
    (tmp_path / "my.yaml").write_text(RECIPE, "utf-8")
    source = tmp_path / "rows.jsonl"
    rows = [row('"x"'), row('"bad"'), row('"y"')]
    source.write_text("".join(json.dumps(it) + "\n" for it in rows), "utf-8")
    recipes = [str(tmp_path / "my.yaml")]
    store = adp.convert(source, tmp_path / "store", recipes=recipes, workers=1)
    counts = store.manifest.counts
    assert (counts.used, counts.rejected) == (2, 1)
    assert store.manifest.parsed["hermes: calls"] == 2
