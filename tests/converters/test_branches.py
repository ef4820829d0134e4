"""Which branches are written with their run, and which by themselves."""

from adp.converters.branches import count, with_branches
from adp_schema.model import Trajectory


def run(name, parent=None, *, record=1, kind="subagent"):
    return Trajectory(
        trajectory_id=name,
        parent_id=parent,
        branch_kind=parent and kind,
        source_file="f",
        source_records=None if record is None else [record],
    )


def shape(runs):
    return [{item.trajectory_id: shape(item.branches)} for item in runs]


def written(*runs, embeds=lambda branch: True):
    return shape(with_branches(iter(runs), embeds))


def test_branches_go_into_their_parents():
    runs = [run("a"), run("b", "a"), run("c", "b"), run("d", "a"), run("e", record=2)]
    assert written(*runs) == [{"a": [{"b": [{"c": []}]}, {"d": []}]}, {"e": []}]
    assert count(runs[0]) == 4


def test_a_format_without_branches_gets_each_by_itself():
    assert written(run("a"), run("b", "a"), embeds=lambda branch: False) == [{"a": []}, {"b": []}]


def test_only_some_kinds():
    runs = [run("a"), run("b", "a"), run("c", "a", kind="alternate"), run("d", "b")]
    result = written(*runs, embeds=lambda branch: branch.branch_kind == "alternate")
    assert result == [{"a": [{"c": []}]}, {"b": []}, {"d": []}]


def test_branches_of_other_records_stay_alone():
    assert written(run("a"), run("b", "a", record=2)) == [{"a": []}, {"b": []}]
    assert written(run("b", "gone"), run("c", "gone")) == [{"b": []}, {"c": []}]


def test_runs_without_a_record_are_not_collected():
    made = (run(str(index), record=None) for index in range(3))
    result = with_branches(made, lambda branch: True)
    assert next(result).trajectory_id == "0"
    assert next(made).trajectory_id == "2"
    assert written(run("a", record=None), run("b", "a", record=None)) == [{"a": [{"b": []}]}]
