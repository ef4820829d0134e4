"""ATIF trajectories in one object, by name."""

from __future__ import annotations

import json

import adp
from tests.converters.readers.samples_store import convert, example, numbers, real


def test_a_subagent_is_a_branch_of_the_trajectory_whose_result_refers_to_it():
    rows = example("atif_by_name", "parent_and_child.json")
    runs = {row["source_id"]: row for row in rows["trajectories"]}
    assert list(runs) == ["s-root", "s-child", "s-lonely"]
    assert runs["s-child"]["parent_id"] == runs["s-root"]["trajectory_id"]
    assert runs["s-child"]["branch_kind"] == "subagent"
    assert "parent_id" not in runs["s-lonely"]
    (link,) = rows["links"]
    assert (link["target_session_id"], link["step"], link["call"]) == ("s-child", 1, 0)
    assert [json.loads(row["extra"])["name"] for row in runs.values()] == [
        *("root", "child", "lonely")
    ]


def test_references_in_a_circle_make_no_circle_of_parents(tmp_path):
    def run(name, other):
        result = {"content": "x", "subagent_trajectory_ref": [{"session_id": other}]}
        step = {"source": "agent", "message": "m", "observation": {"results": [result]}}
        agent = {"name": "a", "version": "1"}
        return {"schema_version": "ATIF-v1.6", "session_id": name, "agent": agent, "steps": [step]}

    path = tmp_path / "runs.json"
    path.write_text(json.dumps({"a": run("a", "b"), "b": run("b", "a"), "c": run("c", "c")}))
    adp.convert([str(path)], str(tmp_path / "store"))
    rows = adp.query(
        str(tmp_path / "store"), "select source_id, parent_id from all_trajectories order by 1"
    ).to_pylist()
    assert [row["parent_id"] and row["parent_id"][-2:] for row in rows] == [None, "/a", None]


def test_exported_as_atif_it_embeds_its_subagent(tmp_path):
    folder = "tests/converters/readers/examples/atif_by_name"
    adp.convert([folder], str(tmp_path / "store"))
    adp.export(str(tmp_path / "store"), "atif", str(tmp_path / "out"))
    (path,) = (tmp_path / "out").rglob("*.json*")
    text = path.read_text()
    records = json.loads(text) if text[0] == "[" else [json.loads(it) for it in text.splitlines()]
    assert [len(it.get("subagent_trajectories", [])) for it in records] == [1, 0]


def test_real_files_by_a_plain_walk(tmp_path):
    for number, path in enumerate(real("formats/atif/phoenix_subagent_trajectories.json")):
        runs = json.loads(path.read_bytes())
        steps = [step for run in runs.values() for step in run["steps"]]
        results = [it for step in steps for it in step.get("observation", {}).get("results", [])]
        sql = convert(path, tmp_path / str(number), "atif_by_name")
        calls = sum(len(step.get("tool_calls", [])) for step in steps)
        assert numbers(sql)[:2] == (calls, len(results))
        assert sql("select count(*) n from steps")[0]["n"] == len(steps)
        assert sql("select sum(tokens_in) n from steps")[0]["n"] == sum(
            step.get("metrics", {}).get("prompt_tokens", 0) for step in steps
        )
        children = sql("select count(*) n from all_trajectories where parent_id is not null")
        refs = {json.dumps(ref) for it in results for ref in it.get("subagent_trajectory_ref", [])}
        assert children[0]["n"] == len(refs)
