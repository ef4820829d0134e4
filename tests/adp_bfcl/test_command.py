"""``adp bfcl``: from runs to BFCL's files and back. What the files hold is tested beside them."""

from __future__ import annotations

import json
import os
import shutil

import pytest

import adp
from adp.rollouts.turns import Call, Turn
from adp.stores.locks import holding
from adp_bfcl import loader
from adp_schema.store import Store
from tests.adp_bfcl.samples import ANSWER, row, write


@pytest.fixture
def data(tmp_path):
    """A folder of questions."""
    ids = [f"simple_python_{number}" for number in range(4)]
    folder = write(
        tmp_path / "questions",
        "BFCL_v4_simple_python",
        [row(id_) for id_ in ids],
        answers=dict.fromkeys(ids, ANSWER),
    )
    return write(folder, "BFCL_v4_irrelevance", [row(f"irrelevance_{number}") for number in (0, 1)])


def runs(data, out, model="some/model", n=1):
    """A store of runs: the second simple question is answered wrong."""

    class Model:
        name = model

        def act(self, request):
            wrong = request.task.task_id == "simple_python_1"
            return Turn(calls=(Call("maths_add", json.dumps({"a": 2, "b": 4 if wrong else 3})),))

    env = f"bfcl:category=[simple_python,irrelevance],data={data}"
    adp.collect(env, Model(), "test", out, n=n, timed=False)
    return out


def test_there_and_back(run, data, tmp_path):
    store, result = runs(data, tmp_path / "runs", n=2), tmp_path / "result"
    done = json.loads(run("bfcl", "results", store, "-o", result, "--json").out)
    assert (done["trajectories"], done["written"], done["modes"]) == (12, 6, {"some_model": "fc"})
    assert done["left_out"] == {"another attempt at the same question": 6}
    messages = run("bfcl", "results", store, "-o", tmp_path / "again", "--model", "Other-FC").out
    assert "trajectories 12 = written 6 + 6 (another attempt at the same question)" in messages
    assert (tmp_path / "again" / "Other-FC" / "non_live").is_dir()
    done = run("bfcl", "judge", result, "--data", data, "-o", tmp_path / "score")
    assert done.code == 0
    assert "some_model (fc)" in done.out
    assert "rows 6 = judged 6" in done.out
    (line,) = [item for item in done.out.splitlines() if item.startswith("simple_python")]
    assert line.split() == ["simple_python", "0.7500", "3", "4", "0"]
    (line,) = [item for item in done.out.splitlines() if item.startswith("simple_ast")]
    assert line.split(maxsplit=2)[1:] == ["-", "no results: simple_java, simple_javascript"]
    file = tmp_path / "score" / "some_model" / "non_live" / "BFCL_v4_simple_python_score.json"
    head, failure = [json.loads(item) for item in file.read_text().splitlines()]
    assert (head["correct_count"], failure["id"]) == (3, "simple_python_1")
    plain = json.loads(run("bfcl", "judge", result, "--data", data, "--json").out)
    assert plain["models"]["some_model"]["categories"]["irrelevance"]["accuracy"] == 0.0
    out = tmp_path / "back"
    done = run("bfcl", "import", result, "-o", out, "--data", data)
    assert "rows 6 = trajectories 6" in done.out
    assert len(list(Store.open(str(out)).trajectories())) == 6
    assert json.loads(run("score", out, "--with", "bfcl", "--json").out)["trajectories"] == 6
    run("bfcl", "results", out, "-o", tmp_path / "third")
    for path in result.rglob("*.json"):
        same = tmp_path / "third" / path.relative_to(result)
        assert [json.loads(item)["result"] for item in same.read_text().splitlines()] == [
            json.loads(item)["result"] for item in path.read_text().splitlines()
        ]


def test_rows_of_every_kind_add_up(run, data, tmp_path):
    folder = tmp_path / "result" / "m-FC" / "non_live"
    folder.mkdir(parents=True)
    good = {"id": "simple_python_0", "result": [{"maths_add": '{"a": 2, "b": 3}'}]}
    lines = [good, good, {"id": "simple_python_77", "result": []}, {"id": "simple_python_2"}, 3]
    text = "\n".join(json.dumps(line) for line in lines) + "\n{\n"
    (folder / "BFCL_v4_simple_python_result.json").write_text(text)
    # The older name of a question whose answer is there already.
    (tmp_path / "result" / "m-FC" / "BFCL_v3_simple_result.json").write_text(
        '{"id": "simple_0", "result": []}\n'
    )
    memory = tmp_path / "result" / "m-FC" / "agentic" / "memory" / "kv"
    memory.mkdir(parents=True)
    file = memory / "BFCL_v4_memory_kv_result.json"
    file.write_text('{"id": "memory_kv_0-x-0", "result": []}')
    done = run("bfcl", "judge", tmp_path / "result", "--data", data)
    assert done.code == 0
    assert "another row has the id simple_python_0" in done.out
    plain = json.loads(run("bfcl", "judge", tmp_path / "result", "--data", data, "--json").out)
    assert list(plain["models"]) == ["m-FC"]
    assert (plain["rows"], plain["judged"]) == (8, 1)
    assert plain["left_out"] == {
        "unjudged: memory_kv is not evaluated here": 1,
        "unjudged: there is no question with this id": 1,
        "rejected": 5,
    }
    alone = json.loads(run("bfcl", "judge", memory.parents[2], "--data", data, "--json").out)
    assert list(alone["models"]) == ["m-FC"]
    words = ["bfcl", "import", tmp_path / "result", "-o", tmp_path / "store", "--data", data]
    plain = json.loads(run(*words, "--json").out)
    assert (plain["rows"], plain["trajectories"], len(plain["rejected"])) == (8, 1, 5)


def test_what_cannot_be_done_is_one_sentence(run, data, tmp_path, monkeypatch):
    store, result = runs(data, tmp_path / "runs"), tmp_path / "result"
    assert run("bfcl", "results", store, "-o", result).code == 0
    empty = tmp_path / "empty"
    empty.mkdir()
    adp.collect("calculator", lambda _: Turn(text="1"), "test:2", tmp_path / "sums")
    score = tmp_path / "score"
    assert run("bfcl", "judge", result, "--data", data, "-o", score).code == 0
    for words, code, output in (
        (("results", store, "-o", result), 5, "some_model is there already; remove it"),
        (("results", tmp_path / "sums", "-o", empty), 10, "2: no question of BFCL"),
        (("judge", tmp_path / "no", "--data", data), 3, "is no folder"),
        (("judge", empty, "--data", data), 3, "no file like BFCL_v4_simple_python_result.json"),
        (("judge", result, "--data", data, "-o", score), 5, "some_model is there already"),
        (("judge", result, "--data", tmp_path / "no"), 3, "is no folder"),
        (("judge", result, "--mode", "json", "--data", data), 2, "--mode"),
        (("import", result, "-o", store, "--data", data), 5, "is there already"),
        (("import", empty, "-o", tmp_path / "new", "--data", data), 3, "no file like"),
    ):
        done = run("bfcl", *words)
        assert (done.code, done.err.count("\n")) == (code, 1 + done.err.count("reading:")), done
        assert output in done.err
    assert not (tmp_path / "new").exists()
    loader.by_id.cache_clear()
    monkeypatch.setattr(loader, "installed_folder", lambda: None)
    done = run("bfcl", "judge", result)
    assert done.code == 2
    assert "run: pip install --no-deps bfcl-eval, or name a folder" in done.err


def test_two_models_and_two_modes(run, data, tmp_path):
    from adp_schema.model import Trajectory

    result = next(Store.open(str(runs(data, tmp_path / "a"))).trajectories())
    made = []
    for number, (model, mode) in enumerate((("x", "fc"), ("y", "fc"), ("y", "prompt"))):
        extra = json.loads(result.extra)
        extra["bfcl"]["mode"] = mode
        made.append(
            Trajectory(
                trajectory_id=f"t{number}",
                agent_model=model,
                task=result.task,
                task_id=result.task_id,
                extra=json.dumps(extra),
            )
        )
    for name, which in (("models", made[:2]), ("modes", made[1:])):
        with Store.grow(str(tmp_path / name)) as store:
            for trajectory in which:
                store.append(trajectory)
    done = run("bfcl", "results", tmp_path / "models", "--model", "z", "-o", tmp_path / "r")
    assert done.code == 2
    assert "answers of two models, x and y; give --model with the runs of one" in done.err
    done = run("bfcl", "results", tmp_path / "modes", "-o", tmp_path / "r")
    assert done.code == 2
    assert "the runs of y are of both modes" in done.err
    assert not (tmp_path / "r").exists()
    done = run("bfcl", "results", tmp_path / "models", "-o", tmp_path / "r")
    assert sorted(path.name for path in (tmp_path / "r").iterdir()) == ["x", "y"]


def test_two_runs_at_one_output(run, data, tmp_path):
    store, result = runs(data, tmp_path / "runs"), tmp_path / "result"
    assert run("bfcl", "results", store, "-o", result).code == 0
    out = tmp_path / "out"
    calls = [
        ("results", store, "-o", out),
        ("judge", result, "--data", data, "-o", out),
        ("import", result, "--data", data, "-o", out),
    ]
    with holding(out):
        for call in calls:
            done = run("bfcl", *call)
            assert done.code == 5
            assert f"another run writes to {out} now (process {os.getpid()} on " in done.err
        assert run("bfcl", "judge", result, "--data", data).code == 0  # it writes nothing
    for call in calls:
        assert run("bfcl", *call).code == 0
        shutil.rmtree(out)
    assert not list(tmp_path.glob(".*.lock"))
