"""The stage ``evolve`` of a loop makes what the library makes by itself, and is checked first."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from adp.rollouts.evolving.evolve_options import EvolveOptions, prepare_evolve
from adp.workflows.loop import make_plan, read_loop, run_loop
from adp.workflows.loop.hashes import store_hash
from adp.workflows.loop.ordered_store import write_ordered
from adp_schema.errors import UsageError
from adp_schema.store import Store

EXAMPLE = Path(__file__).parents[3] / "examples" / "evolving"
ACTING = {"env": "calculator", "policy": "models.py:hasty"}
EVOLVE = {
    **ACTING,
    "store": "${runs}",
    "refiner": "models.py:careful",
    "ops": ["step_hint", "re_rollout"],
    "rounds": 2,
}


def plan(here: Path, **changes: object):
    stages = [
        {"collect": {**ACTING, "tasks": "test:6"}, "as": "runs"},
        {"evolve": {**EVOLVE, **changes}, "as": "evolved"},
    ]
    plain = {"loop": 1, "model": "none", "rounds": {"repeat": 1, "stages": stages}}
    return make_plan(read_loop(plain), here, allow_python=True)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "here"))


def test_it_equals_what_the_library_makes(here: Path, tmp_path: Path, monkeypatch) -> None:
    records = run_loop(plan(here), tmp_path / "out")
    assert [record.kind for record in records] == ["collect", "evolve"]
    runs, evolved = (tmp_path / "out" / "round-1" / name for name in ("runs", "evolved"))
    assert len(Store.open(str(evolved))) > len(Store.open(str(runs))) == 6
    assert records[1].counts["solved"] > records[0].counts["solved"]
    monkeypatch.chdir(here)
    options = EvolveOptions(
        **ACTING,
        refiner=EVOLVE["refiner"],
        ops=EVOLVE["ops"],
        rounds=2,
        dataset="evolved-1",
        no_times=True,
        concurrency=1,
    )
    prepare_evolve(options, str(runs), seal=True).run(tmp_path / "alone")
    write_ordered(tmp_path / "alone", tmp_path / "ordered", tmp_path / "scratch")
    assert store_hash(tmp_path / "ordered") == store_hash(evolved) == records[1].hash
    assert (evolved / "evolve.json").exists()
    again = run_loop(plan(here), tmp_path / "out")
    assert [record.hash for record in again] == [record.hash for record in records]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"ops": ["step_hnt"]}, "step_hint"),
        ({"refiner": "opnai"}, "openai"),
        ({"correct": "luck"}, "correct"),
        ({"rounds": 0}, "rounds"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(here: Path, changes, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        plan(here, **changes)
