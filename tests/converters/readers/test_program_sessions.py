"""Sessions that go to programs: what is none, the names of files, and how to go on."""

from __future__ import annotations

import pytest

from adp.converters.kit.programs import PROGRAMS
from adp.converters.records import NOTHING, RecordWriter
from adp.converters.registry import formats
from adp_schema.losses import Losses
from adp_schema.model import Observation, Step, Trajectory

EVENT = Step(step=0, source="environment", kind="event", visibility="none")


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_a_run_of_events_makes_no_session(name):
    losses = Losses()
    writer = RecordWriter(formats.get(name), losses)
    runs = [
        Trajectory(trajectory_id="d/events", source_format="atif", steps=[EVENT]),
        Trajectory(trajectory_id="d/empty", source_format="atif", steps=[]),
    ]
    assert [record for _, record in writer.records(runs)] == [None, None]
    assert writer.left_out == 0
    assert [f"{item['path']}: {item['reason']}" for item in losses.items] == [NOTHING, NOTHING]


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_a_run_in_which_anything_is_there_to_say_makes_one(name):
    answer = Observation(source="environment", text="late", step=0, order=0)
    early = Observation(source="environment", text="early", step=None, order=0)
    runs = [
        Trajectory(
            trajectory_id="d/result", source_format="atif",
            steps=[EVENT.model_copy(update={"observations": [answer]})],
        ),
        Trajectory(trajectory_id="d/early", source_format="atif", early_observations=[early]),
        Trajectory(trajectory_id="d/own", source_format=name, source_id="s", steps=[EVENT]),
    ]  # fmt: skip
    written = list(RecordWriter(formats.get(name), Losses()).records(runs))
    assert all(record for _, record in written)
