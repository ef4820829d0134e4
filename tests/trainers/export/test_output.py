"""The folder of an export: whole or absent, the same bytes again, only what readers can read."""

from __future__ import annotations

import itertools
import json
import math

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from adp.trainers.export.output import UnwritableError, encode, mixed, staged
from adp.trainers.export.run import export_rows
from adp_schema.builder import Origin, RowBuilder
from adp_schema.errors import EmptyResultError, OutputExistsError, UsageError
from tests.store_builders import write_store
from tests.trainers.export.agent_runs import Run, Turn, word, write_runs

PLAIN = Run((Turn("user"), Turn(calls=1), Turn()))


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["trl-sft", "chatml", "trl-grpo"])
def test_the_same_export_has_the_same_bytes(tmp_path, name):
    store = write_runs(tmp_path / "store", [PLAIN, PLAIN])
    for out in ("a", "b"):
        export_rows(store, name, str(tmp_path / out))
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert {"README.md", "export.json", "train.jsonl"} == set(files(tmp_path / "a"))


def test_runs_of_one_task_are_one_prompt(tmp_path):
    first = Turn("user", says="hello")
    described = [Run((first, Turn())), Run((first, Turn(), Turn())), Run((Turn("user"), Turn()))]
    store = write_runs(tmp_path / "store", described)
    report = export_rows(store, "trl-grpo", str(tmp_path / "out"))
    assert (report.rows, report.in_store, report.in_rows) == (2, 3, 2)
    assert report.left_out == {"a repeat of an earlier row": 1}


def test_the_page_of_chatml_names_the_ends_of_turns_for_axolotl(tmp_path):
    store = write_runs(tmp_path / "store", [PLAIN])
    export_rows(store, "chatml", str(tmp_path / "out"))
    blocks = (tmp_path / "out" / "README.md").read_text().split("```yaml\n")[1:]
    settings = [yaml.safe_load(block.partition("```")[0]) for block in blocks]
    assert settings[0]["datasets"][0]["train_on_eos"] == "turn"
    assert settings[1] == {"eot_tokens": ["<|eot_id|>"]}


def test_segments_are_chatml(tmp_path):
    store = write_runs(tmp_path / "store", [Run((Turn("user"), Turn(weight=0.0), Turn()))])
    export_rows(store, "chatml", str(tmp_path / "out"), {"form": "text"})
    (row,) = map(json.loads, (tmp_path / "out" / "train.jsonl").read_text().splitlines())
    *_, trained, rest = row["segments"]
    assert trained == {"label": True, "text": f"did {word(0, 2)}<|im_end|>"}
    assert rest == {"label": False, "text": "\n"}
    whole = "".join(item["text"] for item in row["segments"])
    roles = [part.partition("\n")[0] for part in whole.split("<|im_start|>")[1:]]
    assert roles == ["system", "user", "assistant", "assistant"]
    assert whole.count("<|im_end|>\n") == 4


def test_what_is_there_is_kept(tmp_path):
    store = write_runs(tmp_path / "store", [PLAIN])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("x")
    (tmp_path / "file").write_text("x")
    for out in ("out", "file", "file/below"):
        with pytest.raises(OutputExistsError):
            export_rows(store, "trl-sft", str(tmp_path / out))
    assert {path.name for path in tmp_path.iterdir()} == {"store", "out", "file"}
    (tmp_path / "out" / "mine").unlink()
    export_rows(store, "trl-sft", str(tmp_path / "out"))
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o755


def stop_halfway(out):
    with staged(str(out)) as folder:
        (folder / "half").write_text("half")
        raise RuntimeError


def test_a_stopped_export_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError):
        stop_halfway(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_write_is_said(tmp_path):
    store = write_runs(tmp_path / "store", [Run((Turn("user"), Turn(weight=0.0)))])
    with pytest.raises(EmptyResultError, match="0 trained steps"):
        export_rows(store, "trl-sft", str(tmp_path / "out"))
    store = write_runs(tmp_path / "other", [PLAIN])
    with pytest.raises(EmptyResultError, match="2 the run has no success"):
        export_rows(store, "trl-kto", str(tmp_path / "out"), {"expand": True})
    assert not (tmp_path / "out").exists()


def with_arguments(folder, *texts):
    builder = RowBuilder()
    for number, text in enumerate(texts):
        builder.begin(Origin(seq=number, dataset="d"))
        builder.trajectory({"source_id": f"r{number}"})
        builder.step({"source": "user", "kind": "message", "text": "hello"})
        builder.step({"source": "agent", "kind": "llm_turn"})
        builder.call({"call_id": "c", "kind": "function", "name": "f", "arguments": text})
        builder.finish()
    return write_store(folder, builder)


def test_arguments_that_no_reader_takes_are_counted(tmp_path):
    texts = ['{"x": 1}', '{"x": NaN}', f'{{"x": {10**30}}}', '{"x": "\\ud800"}', '{"x": 1e400}']
    store = with_arguments(tmp_path / "store", *texts)
    report = export_rows(store, "trl-sft", str(tmp_path / "out"))
    assert (report.rows, report.in_store) == (2, 5)
    assert report.left_out == {
        "arguments of a call are no JSON object": 2,
        "a whole number of more than 64 bits, which datasets cannot read": 1,
    }
    lines = [json.loads(line) for line in (tmp_path / "out/train.jsonl").read_text().splitlines()]
    calls = [row["messages"][-1]["tool_calls"][0]["function"]["arguments"] for row in lines]
    assert calls == [{"x": 1}, {"x": "\ufffd"}]
    text = export_rows(store, "trl-sft", str(tmp_path / "text"), {"arguments": "text"})
    assert text.rows == 3


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    )
)
def test_a_row_comes_back_or_is_refused(value):
    pending, odd = [value], False
    while pending:
        result = pending.pop()
        if isinstance(result, dict):
            pending += result.values()
        elif isinstance(result, list):
            pending += result
        elif isinstance(result, float):
            odd |= not math.isfinite(result)
        elif isinstance(result, int) and not isinstance(result, bool):
            odd |= not -(2**63) <= result < 2**63
    try:
        line = encode({"value": value})
    except UnwritableError:
        assert odd
        return
    assert not odd
    assert b"\n" not in line
    assert json.loads(line) == {"value": value}


@given(st.lists(st.booleans(), max_size=200))
def test_rows_are_mixed_evenly(values):
    order = mixed(values)
    assert sorted(order) == list(range(len(values)))
    good = 0
    for count, number in enumerate(order, start=1):
        good += values[number]
        # Each beginning has both values as often as the whole has them, give or take one row.
        assert abs(good - count * sum(values) / len(values)) <= 1


def test_mixed_rows_have_strangers_for_neighbours():
    runs = [number // 10 for number in range(1_000)]
    order = mixed([number % 2 == 0 for number in range(1_000)])
    same = sum(runs[a] == runs[b] for a, b in itertools.pairwise(order))
    assert same < 30


def test_options_are_checked(tmp_path):
    store = write_runs(tmp_path / "store", [PLAIN])
    for name, given_, output in [
        ("trl-sft", ["expnad=true"], "did you mean expand"),
        ("trl-sft", ["expand"], "NAME=VALUE"),
        ("trl-sft", ["expand=maybe"], "expand: input should be a valid boolean"),
        ("trl-sft", ["max_length=64"], "form=tokens"),
        ("trl-sft", ["weights=true"], "weights needs form=tokens"),
        ("trl-sft", ["form=tokens"], "--model"),
        ("trl-kto", ["label=reward"], "threshold"),
        ("chatml", ["form=[text"], "cannot be read"),
    ]:
        with pytest.raises(UsageError, match=output):
            export_rows(store, name, str(tmp_path / "out"), given_)
    with pytest.raises(UsageError, match="leave out --model"):
        export_rows(store, "chatml", str(tmp_path / "out"), model="tiny")
    with pytest.raises(UsageError, match="unknown kind of branch"):
        export_rows(store, "chatml", str(tmp_path / "out"), branches=["rewnd"])
    with pytest.raises(UsageError, match="no place"):
        export_rows(store, "trl-dpo", str(tmp_path / "out"), branches=["all"])
