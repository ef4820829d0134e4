"""No trained step is lost without being counted, and no step of weight 0 is trained: any store."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adp.rendering.render import IGNORED
from adp.rendering.tiny import tiny_tokenizer
from adp.trainers.export.run import export_rows
from adp_schema.errors import EmptyResultError, UsageError
from tests.effort import examples
from tests.trainers.export.agent_runs import WORD, Run, Turn, runs, weighed, write_runs

CASES = {
    "trl-sft": [{}, {"unfit": "leave_out", "fractions": "ones"}, {"reasoning": "strip"}],
    "trl-sft tokens": [
        {"form": "tokens"},
        {"form": "tokens", "weights": True},
        {"form": "tokens", "weights": True, "expand": True},
        {"form": "tokens", "weights": True, "max_length": 240, "window": "sliding"},
        {"form": "tokens", "weights": True, "max_length": 200},
    ],
    "trl-prompt-completion": [{}, {"expand": True}, {"expand": True, "fractions": "ones"}],
    "trl-kto": [{"expand": True, "fractions": "ones"}],
    "chatml": [{}, {"form": "text", "fractions": "ones"}, {"unfit": "leave_out", "expand": True}],
    "alpaca": [
        {"expand": True, "fractions": "ones"},
        {"expand": True, "fractions": "ones", "tools": "text"},
        {"tools": "text", "unfit": "leave_out"},
        {"unfit": "leave_out", "fractions": "ones"},
    ],
}
"""Exporters with their options."""


def trained_words(folder: Path, name: str) -> Counter[str]:
    """The words that a trainer of this format learns."""
    counts: Counter[str] = Counter()
    for text in _trained_texts(folder, name):
        counts.update(WORD.findall(text))
    return counts


def _trained_texts(folder: Path, name: str):
    if name == "trl-sft tokens":
        tokenizer = tiny_tokenizer()
        for row in pq.read_table(folder / "train.parquet").to_pylist():
            yield tokenizer.decode([label for label in row["labels"] if label != IGNORED])
        return
    if name == "alpaca":
        record = json.loads((folder / "export.json").read_text())
        for row in json.loads((folder / "train.json").read_text()):
            yield row["output"]
            if not record["options"]["expand"]:
                yield from (answer for _, answer in row["history"])
        return
    for line in (folder / "train.jsonl").read_text().splitlines():
        row = json.loads(line)
        if name in ("trl-prompt-completion", "trl-kto"):
            yield row["completion"][0]["content"]
            assert len(row["completion"]) == 1
        elif "segments" in row:
            yield from (item["text"] for item in row["segments"] if item["label"])
        else:
            for message in row["messages"]:
                if message.get("train", message["role"] == "assistant"):
                    yield message["content"]


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=examples(40))
@given(data=st.data())
def test_every_trained_step_is_in_a_row_or_counted(name, data):
    described = data.draw(st.lists(runs, min_size=1, max_size=3))
    options = data.draw(st.sampled_from(CASES[name]))
    branches = data.draw(st.sampled_from([[], ["all"], ["rewind"]]))
    with tempfile.TemporaryDirectory() as folder:
        store = write_runs(Path(folder) / "store", described)
        out = Path(folder) / "out"
        model = "tiny" if name.endswith("tokens") else None
        before = sorted(Path(folder).iterdir())
        try:
            report = export_rows(
                store, name.split()[0], str(out), options, model=model, branches=branches
            )
        except (UsageError, EmptyResultError):
            assert sorted(Path(folder).iterdir()) == before
            return
        words = trained_words(out, name)
        record = json.loads((out / "export.json").read_text())
    everything = weighed(described, branches=True)
    wanted = weighed(described, branches=bool(branches))
    assert report.in_store == len(everything)
    assert report.in_store == report.in_rows + sum(report.left_out.values())
    assert {key: record[key] for key in ("in_store", "in_rows", "left_out")} == {
        "in_store": report.in_store,
        "in_rows": report.in_rows,
        "left_out": report.left_out,
    }
    assert set(words) <= set(wanted)
    assert set(words.values()) <= {1}
    assert len(words) == report.in_rows
    if options.get("fractions") != "ones" and not options.get("weights"):
        assert all(wanted[word].weight in (None, 1.0) for word in words)


def test_all_of_a_plain_store_is_trained(tmp_path):
    plain = Run((Turn("user"), Turn(calls=1), Turn(calls=2, reasoning=True), Turn()))
    store = write_runs(tmp_path / "store", [plain, plain])
    for name, several in CASES.items():
        for number, options in enumerate(several):
            if (
                "max_length" in options
                or name == "trl-kto"
                or (name == "alpaca" and "tools" not in options)
            ):
                continue
            if name == "trl-prompt-completion" and "expand" not in options:
                continue
            out = tmp_path / f"{name}-{number}"
            model = "tiny" if name.endswith("tokens") else None
            report = export_rows(store, name.split()[0], str(out), options, model=model)
            assert len(trained_words(out, name)) == report.in_rows
            assert report.in_rows == 6


def test_chats_with_calls_are_no_alpaca(tmp_path):
    plain = Run((Turn("user"), Turn(), Turn("user"), Turn()))
    calls = Run((Turn("user"), Turn(calls=1), Turn(), Turn("user"), Turn()))
    store = write_runs(tmp_path / "store", [plain, calls])
    report = export_rows(store, "alpaca", str(tmp_path / "out"))
    assert (report.rows, report.in_store, report.in_rows) == (1, 5, 2)
    assert list(report.left_out.values()) == [3]
    assert len(trained_words(tmp_path / "out", "alpaca")) == 2


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("trl-sft", {}, "d/r0: step 1 is not trained, and trl-sft cannot say so"),
        ("trl-prompt-completion", {}, "add --set expand=true"),
        ("alpaca", {"tools": "text"}, "d/r0: step 1 is not trained"),
        ("trl-sft", {"expand": True}, "expand=true does not help here"),
    ],
)
def test_a_mask_that_a_format_cannot_carry_is_refused(tmp_path, name, options, message):
    masked = Run((Turn("user"), Turn(weight=0.0), Turn(), Turn()))
    store = write_runs(tmp_path / "store", [masked])
    with pytest.raises(UsageError, match=message):
        export_rows(store, name, str(tmp_path / "out"), options)
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
