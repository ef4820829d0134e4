"""The set for fine-tuning: what is right, of valid form, and free of failed results."""

from __future__ import annotations

import json

import pytest

from adp.rollouts.evolving.recorded import agent_steps
from adp.workflows.rft import make_rft
from adp_schema.errors import EmptyResultError
from adp_schema.store import Store
from tests.rollouts.evolving.models import drawn, good_answer
from tests.rollouts.evolving.worlds import Model, evolved, evolver_of, rolled_out


def slips(body):
    """Answers of which some calls fail."""
    reply = good_answer(body)
    for call in reply.get("tool_calls", ()):
        if drawn(json.dumps(body, sort_keys=True), 3) == 0:
            call["function"]["arguments"] = '{"expression": "1 / 0"}'
    return reply


def is_wanted(run):
    """A direct reading of what the set is to hold."""
    results = [seen for step in agent_steps(run) for seen in step.observations]
    calls = [call for step in agent_steps(run) for call in step.calls]
    return (
        run.error_type is None
        and run.success is True
        and bool(run.final_answer)
        and len(results) == len(calls)
        and not any(seen.is_error for seen in results)
    )


def test_it_selects_what_the_buffers_hold_of_it(tmp_path):
    store = rolled_out(tmp_path / "sums", 6, model=Model(slips))
    evolved(tmp_path / "out", store, evolver_of(Model(slips)))
    runs = list(Store.open(str(tmp_path / "out")).trajectories())
    wanted = {run.trajectory_id for run in runs if is_wanted(run)}
    failed = {run.trajectory_id for run in runs if run.success and not is_wanted(run)}
    assert wanted
    assert failed, "the test shows nothing"
    report = make_rft(tmp_path / "out", tmp_path / "rft")
    selected = Store.open(str(tmp_path / "rft" / "selected" / "data"))
    assert {run.trajectory_id for run in selected.trajectories()} == wanted
    rows = json.loads((tmp_path / "rft" / "rows" / "train.json").read_text())
    assert len(rows) == len(wanted) == report.plain()["rows"] == report.plain()["selected"]
    assert all({"instruction", "input", "output"} <= row.keys() for row in rows)


def test_nothing_to_select_is_refused(tmp_path):
    def wrong(body):
        return {"content": "no"}

    store = rolled_out(tmp_path / "sums", 2, model=Model(wrong))
    evolved(tmp_path / "out", store, evolver_of(Model(wrong)))
    with pytest.raises(EmptyResultError):
        make_rft(tmp_path / "out", tmp_path / "rft")
