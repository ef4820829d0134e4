from __future__ import annotations

import json


def test_place_path_and_reason(run, store):
    out = run("rejects", store.root).out
    assert "logs.jsonl#7: unknown role - at $.role" in out
    assert '{"role": "wizard"}' in out
    assert "2 rejected" in out
    assert "empty" not in out


def test_reason_and_number(run, store):
    out = run("rejects", store.root, "--reason", "ROLE").out
    assert "1 rejected" in out
    assert "not JSON" not in out
    assert "2 rejected, 1 shown (-n)" in run("rejects", store.root, "-n", "1").out
    assert "1 skipped" in run("rejects", store.root, "--skipped").out


def test_json(run, store):
    rows = json.loads(run("rejects", store.root, "--json").out)["rejects"]
    assert [(row["record"], row["reason"]) for row in rows] == [
        (7, "unknown role"),
        (8, "not JSON"),
    ]


def test_written_out_to_be_mended(run, store, tmp_path):
    out = tmp_path / "mend.jsonl"
    assert run("rejects", store.root, "-o", out).code == 0
    assert out.read_bytes() == b'{"role":  "wizard"}\n{\n'
    done = run("rejects", store.root, "-o", out)
    assert done.code == 5
    assert "is there already" in done.err
