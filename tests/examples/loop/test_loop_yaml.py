"""The loop of the example as a file: it has the sizes of the example, and it learns."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs the train extra")

from adp.workflows.loop import LoopOptions, make_plan, read_loop, run_loop
from examples.loop.scale import DEMO, QUICK

FILE = Path(__file__).parents[3] / "examples" / "loop" / "loop.yaml"

pytestmark = [
    pytest.mark.train,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.mark.parametrize(("scale", "sizes"), [(None, DEMO), ("quick", QUICK)])
def test_its_sizes_are_those_of_the_example(scale, sizes):
    file = read_loop(FILE, [] if scale is None else [f"scale={scale}"])
    values = file.values
    for name in ("informed", "curated", "sft_steps", "packs", "dpo_steps", "grpo_steps"):
        assert values[name] == getattr(sizes, name), name
    assert tuple(values["kinds"]) == sizes.kinds
    assert values["acting"] == f"toolworld:kinds=[{','.join(sizes.kinds)}]"
    assert values["acted_tasks"] == 8 * sizes.grpo_steps
    plan = make_plan(file, FILE.parent, allow_python=True)
    assert plan.stages[-1].kind.name == "eval"


@pytest.mark.slow  # trains for a minute
def test_random_weights_become_an_agent(tmp_path, monkeypatch):
    monkeypatch.setenv("ADP_CACHE", str(tmp_path / "cache"))
    plan = make_plan(read_loop(FILE, ["scale=quick"]), FILE.parent, allow_python=True)
    records = run_loop(plan, tmp_path / "out", LoopOptions(until="sft_greedy"))
    success = {
        record.stage: record.counts["solved"] / record.counts["episodes"]
        for record in records
        if record.kind == "eval"
    }
    assert success["untrained_held_out"] < 0.05
    assert success["sft_greedy"] > 0.6
