"""Input and caches that are wrong, and must not become rows without a word."""

from __future__ import annotations

import json
import shutil

import pyarrow.parquet as pq
import pytest

import adp
from adp.rendering.options import RenderOptions
from adp.rendering.render import Renderer
from adp.rendering.run import render_store
from adp_schema.builder import Origin, RowBuilder
from adp_schema.errors import UsageError
from adp_schema.model import Step, ToolCall, Trajectory
from adp_schema.store import Store
from tests.store_builders import write_store


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ADP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "render"


def _store(folder, words, weight=None):
    builder = RowBuilder()
    for number, text in enumerate(words):
        builder.begin(Origin(seq=number, dataset="d", columns={}))
        builder.trajectory({"source_id": str(number)})
        builder.step({"source": "user", "kind": "message", "text": "Say it."})
        step = {"source": "agent", "kind": "llm_turn", "text": text}
        builder.step(step if weight is None else {**step, "loss_weight": weight})
        builder.finish()
    return write_store(folder, builder)


def _calling(arguments):
    call = ToolCall(step=1, call=0, kind="function", name="f", arguments=arguments)
    steps = [
        Step(step=0, source="user", kind="message", text="go"),
        Step(step=1, source="agent", kind="llm_turn", text="so", calls=[call]),
        Step(step=2, source="agent", kind="llm_turn", text="done"),
    ]
    return Trajectory(trajectory_id="t", seq=0, steps=steps)


@pytest.mark.parametrize("arguments", ['{"a": NaN}', '{"a": 1e400}', '{"a": 1, "a": 2}', "[1]"])
def test_arguments_that_are_no_json_object_are_not_trained(arguments):
    trajectory = Renderer.load("tiny").trajectory(_calling(arguments))
    assert trajectory.lost == {"arguments of a call are no JSON object": 1}
    assert [step for row in trajectory.rows for step, _, _ in row.spans] == [2]


def test_half_characters_become_replacement_characters():
    renderer = Renderer.load("tiny")
    trajectory = _calling('{"a": "\\ud83d", "b": "\\ud83d\\ude00"}')
    trajectory.tools = '[{"name": "f", "description": "\\ud800"}]'
    trajectory.steps[0].text = "go \ud801"
    result = renderer.trajectory(trajectory)
    assert result.trained == result.steps == 2
    assert "\ufffd" in result.rows[0].text
    assert "\U0001f600" in result.rows[0].text


def test_a_weight_beyond_float32_is_not_trained(tmp_path):
    store = _store(tmp_path / "s", ["one"], weight=1e300)
    trajectory = Renderer.load("tiny").trajectory(store.get("d/0"))
    assert (trajectory.trained, trajectory.lost.total(), trajectory.rows) == (0, 1, [])


def test_growing_stores_do_not_share_rows(tmp_path):
    texts = []
    for name in ("alpha", "beta"):
        builder = RowBuilder()
        builder.begin(Origin(seq=0, dataset="d", columns={}))
        builder.trajectory({"source_id": "x"})
        builder.step({"source": "user", "kind": "message", "text": "Who?"})
        builder.step({"source": "agent", "kind": "llm_turn", "text": name})
        builder.finish()
        value = write_store(tmp_path / f"one-{name}", builder).get("d/x")
        growing = adp.grow(tmp_path / name)
        growing.append(value)
        report = render_store(Store.open(str(tmp_path / name)), "tiny")
        row = pq.read_table(report.files()[0])["input_ids"].to_pylist()[0]
        texts.append(Renderer.load("tiny").tokenizer.decode(row))
    assert "alpha" in texts[0]
    assert "beta" in texts[1]


@pytest.mark.parametrize("damage", ["part", "json", "empty", "no json", "cut"])
def test_a_damaged_cache_is_made_anew(tmp_path, damage):
    store = _store(tmp_path / "s", ["one", "two"])
    report = render_store(store, "tiny")
    wanted = report.files()[0].read_bytes()
    manifest = report.files()[0].parent.parent / "render.json"
    if damage == "part":
        report.files()[0].unlink()
    elif damage == "cut":
        report.files()[0].write_bytes(wanted[:-10])
    elif damage == "no json":
        manifest.unlink()
    else:
        manifest.write_text('{"folder"' if damage == "json" else "{}")
    again = render_store(store, "tiny")
    assert not again.cached
    assert again.files()[0].read_bytes() == wanted
    assert render_store(store, "tiny").cached
    shutil.rmtree(manifest.parent)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"template_options": {"messages": []}}, "messages"),
        ({"template_options": {"x": float("nan")}}, "plain JSON"),
        ({"date": "2024-13-45"}, "month"),
    ],
)
def test_options_that_no_template_can_be_given(options, message):
    with pytest.raises(ValueError, match=message):
        RenderOptions(**options)


def test_a_date_of_yaml_is_a_date():
    import datetime

    assert RenderOptions(date=datetime.date(2025, 1, 2)).date == "2025-01-02"  # type: ignore[arg-type]


def test_workers_and_folders_that_are_wrong(tmp_path):
    store = _store(tmp_path / "s", ["one"])
    with pytest.raises(UsageError, match="workers"):
        render_store(store, "tiny", workers=0)
    with pytest.raises(UsageError, match="no folder"):
        render_store(store, str(tmp_path / "nowhere"))


def test_parts_of_a_step_stay_together_in_windows():
    calls = [
        ToolCall(
            step=1, call=n, kind="function", name="f", arguments=json.dumps({"a": "x " * size})
        )
        for n, size in enumerate((2, 60))
    ]
    steps = [Step(step=0, source="user", kind="message", text="go")]
    steps.append(Step(step=1, source="agent", kind="llm_turn", text="both", calls=calls))
    steps += [
        Step(step=number, source="agent", kind="llm_turn", text=f"step {number} " * 5)
        for number in range(2, 6)
    ]
    trajectory = Trajectory(trajectory_id="t", seq=0, steps=steps)
    whole = Renderer.load("tiny", RenderOptions(parallel_calls="split")).trajectory(trajectory)
    both = [row.text[a:b] for row in whole.rows for step, a, b in row.spans if step == 1]
    assert len(both) == 2
    for window in ("keep_start", "keep_ends", "sliding"):
        for limit in range(40, 400, 60):
            options = RenderOptions(parallel_calls="split", max_length=limit, window=window)
            result = Renderer.load("tiny", options).trajectory(trajectory)
            rows = [row.text[a:b] for row in result.rows for step, a, b in row.spans if step == 1]
            assert rows in ([], both), (window, limit)
            assert result.steps == result.trained + result.lost.total()
