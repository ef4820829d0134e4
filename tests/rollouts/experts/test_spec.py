"""Assistance as it is written on a command line."""

from __future__ import annotations

import json

import pytest

from adp.rollouts.collecting.actor import Alone
from adp.rollouts.collecting.recorder import About
from adp.rollouts.experts.modes import AssistedActor
from adp.rollouts.experts.spec import cast_of, read_assist
from adp.rollouts.policies.expert import ExpertPolicy
from adp.rollouts.policies.scripted import Scripted
from adp_schema.errors import UsageError
from adp_schema.model import Task
from tests.rollouts.collecting.worlds import TASK, Chain, Knowing

ABOUT = About("chain")


def test_a_spec_names_mode_limits_and_judges(tmp_path):
    file = tmp_path / "judge.jsonl"
    file.write_text(json.dumps({"turns": [{"text": "Conclusion: yes"}]}))
    agent = Scripted([])
    cast = cast_of(agent, f"informed:init_limit=3,recent_limit=-4,overseer='scripted:file={file}'")
    actor = cast.actors(ABOUT)
    assert isinstance(actor, AssistedActor)
    assert (actor.settings.init_limit, actor.settings.recent) == (3, 4)
    assert actor.judges.overseer is not None
    assert actor.judges.witness is None
    assert cast.policies[0] is agent
    assert cast.facts["judges"] == {"overseer": "scripted:judge.jsonl"}
    assert json.loads(json.dumps(cast.facts))["assistance"]["mode"] == "informed"
    assert cast.actors(ABOUT) is not actor


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sometimes", "modes: none, ground_truth, random, informed"),
        ("random", "needs one of expert_probability and m3_epsilon"),
        ("informed:epsilon=1", "did you mean m3_epsilon"),
        ("informed:overseer=nobody", "nobody"),
    ],
)
def test_what_is_wrong_with_a_spec(text, message):
    with pytest.raises(UsageError, match=message):
        cast_of(Scripted([]), text)


def test_a_policy_alone_and_the_expert():
    assert isinstance(cast_of(Scripted([])).actors(ABOUT), Alone)
    actor = cast_of(ExpertPolicy()).actors(ABOUT)
    assert isinstance(actor, AssistedActor)
    assert actor.settings.mode == "ground_truth"
    with pytest.raises(UsageError, match="acts alone"):
        cast_of(ExpertPolicy(), "informed")
    assert read_assist("random:m3_epsilon=0.25").probability == 0.75


def test_tasks_that_nobody_can_help_with_are_said():
    bare = Task(task_id="bare", instruction="?")
    cast = cast_of(Scripted([]), "informed")
    kept, left_out = cast.able([TASK, bare], Chain())
    assert kept == [TASK]
    assert len(left_out) == 1
    assert left_out[0].startswith("task 'bare' is left out: the mode 'informed' needs an expert")
    assert cast.able([TASK, bare], Knowing()) == ([TASK, bare], [])
    assert cast_of(Scripted([])).able([bare], Chain()) == ([bare], [])
    assert len(cast_of(ExpertPolicy()).able([TASK, bare], Chain())[1]) == 1
