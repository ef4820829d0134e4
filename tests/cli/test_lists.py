from __future__ import annotations

import json


def ids(done):
    return [row["trajectory_id"] for row in json.loads(done.out)["trajectories"]]


def test_head_is_in_input_order_and_leaves_branches_out(run, store):
    assert ids(run("head", store.root, "--json")) == [
        "swe/django-11099",
        "swe/django-22",
        "chat/hostile",
    ]
    row = json.loads(run("head", store.root, "-n", "1", "--json").out)["trajectories"][0]
    assert row == {
        "trajectory_id": "swe/django-11099",
        "steps": 3,
        "calls": 1,
        "errors": 1,
        "success": True,
        "first_words": "Mend the test please",
    }


def test_head_prints_one_line_a_trajectory(run, store):
    lines = run("head", store.root).out.splitlines()
    assert len(lines) == 4
    assert lines[1].split()[:5] == ["swe/django-11099", "3", "1", "1", "yes"]
    assert "␛[2Jgone [bold]not" in lines[3]


def test_sample_is_the_same_everywhere(run, store):
    # Written down: another machine, Python or engine must draw the same.
    drawn = ids(run("sample", store.root, "-n", "2", "--json"))
    assert drawn == ["swe/django-11099", "swe/django-22"]
    drawn = ids(run("sample", store.root, "-n", "2", "--seed", "3", "--json"))
    assert drawn == ["swe/django-11099", "chat/hostile"]
    assert len(ids(run("sample", store.root, "-n", "99", "--json"))) == 3


def test_count_must_be_positive(run, store):
    done = run("head", store.root, "-n", "0")
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1


def test_errors_are_unknown_where_no_result_says_whether_it_is_one(run, tmp_path):
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "Action: f\nAction Input: {}"},
        {"role": "user", "content": "Observation: no"},
    ]
    source = tmp_path / "chat.jsonl"
    source.write_text(json.dumps({"messages": messages}) + "\n")
    run("convert", source, "-o", tmp_path / "store", "--dialect", "react")
    assert run("head", tmp_path / "store").out.splitlines()[1].split()[1:4] == ["2", "1", "-"]
    (row,) = json.loads(run("head", tmp_path / "store", "--json").out)["trajectories"]
    assert row["errors"] is None
