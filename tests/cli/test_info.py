from __future__ import annotations

import json
import shutil


def test_contents(run, store):
    out = run("info", store.root).out
    assert "records 7 = used 4 + skipped 1 + rejected 2" in out
    assert "schema  1.0" in out
    assert "trajectories 4 (1 of them is a branch)" in out
    assert "$.messages[*].weight: no place" in out
    for table in ("trajectories", "steps", "media", "rejects"):
        assert table in out


def test_json(run, store):
    answer = json.loads(run("info", store.root, "--json").out)
    assert answer["counts"]["rejected"] == 2
    assert answer["branches"] == 1
    assert answer["datasets"] == {"chat": 1, "swe": 3}
    assert answer["tables"]["trajectories"]["rows"] == 4
    assert "damaged" not in answer


def test_verify(run, store, tmp_path):
    done = run("info", store.root, "--verify")
    assert done.code == 0
    assert "files are as the manifest says" in done.out
    shutil.copytree(store.root, tmp_path / "copy")
    steps = tmp_path / "copy" / "steps" / "part-00000.parquet"
    data = bytearray(steps.read_bytes())
    data[50] ^= 1
    steps.write_bytes(data)
    (tmp_path / "copy" / "media" / "part-00000.parquet").unlink()
    done = run("info", tmp_path / "copy", "--verify", "--json")
    assert done.code == 5
    assert json.loads(done.out)["damaged"] == {
        "media/part-00000.parquet": "missing",
        "steps/part-00000.parquet": "its bytes differ",
    }
    assert "steps/part-00000.parquet: its bytes differ" in done.err


def test_verify_by_url(run, store):
    done = run("info", f"file://{store.root}", "--verify")
    assert (done.code, done.err) == (0, "")
    assert "files are as the manifest says" in done.out
