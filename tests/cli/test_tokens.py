from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from adp.rendering.render import Renderer
from adp_schema.builder import Origin, RowBuilder
from adp_schema.store import Store
from tests.store_builders import write_store


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ADP_CACHE", str(tmp_path / "cache"))


def test_the_counts_are_those_of_the_rows(run, store):
    messages = json.loads(run("tokens", store.root, "--model", "tiny", "--json").out)
    renderer = Renderer.load("tiny")
    rows = []
    steps = 0
    for trajectory in Store.open(store.root).trajectories():
        if trajectory.parent_id is None:
            result = renderer.trajectory(trajectory)
            rows += result.rows
            steps += result.steps
    assert messages["rows"] == len(rows)
    assert messages["tokens"] == sum(len(row.input_ids) for row in rows)
    assert messages["trained_tokens"] == sum(int((row.labels != -100).sum()) for row in rows)
    assert messages["steps"] == steps == messages["trained"] + sum(messages["lost"].values())
    assert messages["branches"] == 1
    assert messages["lengths"]["quantiles"]["1.0"] == max(len(row.input_ids) for row in rows)


def test_it_reads_well_and_renders_once(run, store):
    first = run("tokens", store.root, "--model", "tiny").out
    assert "trained tokens" in first
    assert "lost by keep_start" in first
    assert "1 branch left out" in first
    assert run("tokens", store.root, "--model", "tiny").out == first


def test_rows_can_be_kept(run, store, tmp_path):
    out = tmp_path / "rows"
    messages = run("tokens", store.root, "--model", "tiny", "-o", str(out), "--max-length", "400",
               "--window", "sliding", "--json")  # fmt: skip
    table = pq.read_table(out / "rows" / "part-00000.parquet")
    assert table.num_rows == json.loads(messages.out)["rows"]
    assert max(table["length"].to_pylist()) <= 400


def test_what_is_wrong_is_said_in_one_sentence(run, store):
    def printed(*options):
        failed = run("tokens", store.root, "--model", "tiny", *options)
        assert failed.code == 2
        assert len(failed.err.strip().splitlines()) == 1
        return failed.err

    assert "did you mean reasoning" in printed("--set", "reasning=strip")
    assert "needs max_length" in printed("--window", "sliding")
    assert "NAME=VALUE" in printed("--set", "reasoning")
    assert "cannot be read" in printed("--chat-template", "nowhere.jinja")
    assert "--mask and --model" in run("show", store.root, "swe/django-11099", "--mask").err
    lost = run("show", store.root, "swe/django-11099", "--set", "reasoning=strip")
    assert "need --mask" in lost.err


def test_show_marks_exactly_what_is_trained(run, store):
    trajectory = Store.open(store.root).get("swe/django-22", resolve=True)
    row = Renderer.load("tiny").trajectory(trajectory).rows[0]
    out = run("show", store.root, "swe/django-22", "--mask", "--model", "tiny", "--full").out
    marked = [part.split("⟧")[0] for part in out.split("⟦")[1:]]
    assert marked == [row.text[start:end] for _, start, end in row.spans]
    assert "trained in 1 row" in out


def test_colours_stand_for_marks_on_a_terminal(store):
    from adp.rendering.show import TRAINED, row_lines

    trajectory = Store.open(store.root).get("swe/django-22", resolve=True)
    renderer = Renderer.load("tiny")
    row = renderer.trajectory(trajectory).rows[0]
    lines = list(row_lines(row, renderer.encoder, full=True, colour=True))
    coloured = "".join(
        line.plain[span.start : span.end]
        for line in lines
        for span in line.spans
        if span.style == TRAINED
    )
    expected = "".join(row.text[start:end] for _, start, end in row.spans)
    assert coloured.replace("\n", "") == expected.replace("\n", "")


NO_REASONING = """\
{%- for m in messages %}
    {{- '<|im_start|>' + m.role + '\\n' + m.content.split('</think>')[-1] + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""


def test_strict_makes_a_drop_an_error(run, tmp_path):
    builder = RowBuilder()
    builder.begin(Origin(seq=0, dataset="d"))
    builder.trajectory({"source_id": "one"})
    builder.step({"source": "user", "text": "why?"})
    builder.step({"source": "agent", "text": "because", "reasoning": "I think"})
    builder.finish()
    root = write_store(tmp_path / "store", builder).root
    template = tmp_path / "template.jinja"
    template.write_text(NO_REASONING)
    words = ("tokens", root, "--model", "tiny", "--strict")
    assert run(*words).code == 0
    failed = run(*words, "--chat-template", str(template))
    assert failed.code == 4
    assert "steps whose reasoning the template drops: 1" in failed.err
    assert "trained tokens" in failed.out
    assert run(*words[:-1], "--chat-template", str(template)).code == 0
    stripped = run(*words, "--chat-template", str(template), "--set", "reasoning=strip")
    assert stripped.code == 0
