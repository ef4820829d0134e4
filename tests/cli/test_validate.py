from __future__ import annotations

import json

import pytest

from adp.stores.checks.registry import CHECKS
from adp_schema.builder import RowBuilder
from tests.store_builders import write_store
from tests.stores.checks import runs
from tests.stores.checks.cases import BAD


@pytest.fixture
def faulty(tmp_path):
    """A store with an error, a warning and notes."""
    builder = RowBuilder()
    for seq, check in enumerate(["invalid-arguments", "escape-codes"]):
        runs.add(builder, seq, check, BAD[check][0])
    return write_store(tmp_path / "faulty", builder).root


@pytest.fixture
def warned(tmp_path):
    """A store with a warning and notes, and no error."""
    builder = RowBuilder()
    runs.add(builder, 0, "escape", BAD["escape-codes"][0])
    return write_store(tmp_path / "warned", builder).root


def test_printed(run, faulty):
    done = run("validate", faulty)
    assert done.code == 8
    assert "error invalid-arguments  1 found in 1 trajectory" in done.out
    assert "made/invalid-arguments $.steps[1].calls[0].arguments_raw" in done.out
    assert "␛[31mred␛[0m" in done.out
    assert "\x1b" not in done.out
    assert f"\n{len(CHECKS)} checks, " in done.out
    assert done.out.index("invalid-arguments") < done.out.index("escape-codes")
    assert done.err == (
        "error: 1 finding to fail on (invalid-arguments); mend it, or call with --fail-on never\n"
    )


@pytest.mark.parametrize(
    ("store", "fail_on", "code"),
    [
        ("faulty", "error", 8),
        ("faulty", "warning", 8),
        ("faulty", "never", 0),
        ("warned", "error", 0),
        ("warned", "warning", 8),
        ("warned", "never", 0),
    ],
)
def test_exit_codes(run, request, store, fail_on, code):
    checks = ("invalid-arguments", "escape-codes", "missing-call-id")  # one of each severity
    words = [word for check in checks for word in ("--check", check)]
    done = run("validate", request.getfixturevalue(store), *words, "--fail-on", fail_on)
    assert "note missing-call-id" in done.out
    assert done.code == code
    assert bool(done.err) == bool(code)


def test_json(run, faulty):
    done = run("validate", faulty, "--json", "--examples", 1, "--fail-on", "never")
    report = json.loads(done.out)
    assert [item["check"] for item in report["checks"]] == list(CHECKS)
    assert report["findings"]["error"] == 1
    assert report["counts"]["used"] == 2
    assert (report["converted"], report["not_run"]) == (False, [])
    result = next(item for item in report["checks"] if item["check"] == "escape-codes")
    assert (result["severity"], result["findings"], result["trajectories"]) == ("warning", 1, 1)
    assert result["examples"] == [
        {
            "trajectory_id": "made/escape-codes",
            "step": 1,
            "path": "$.steps[1].observations[0].text",
            "excerpt": "␛[31mred␛[0m",
        }
    ]


def test_one_check_and_no_examples(run, faulty):
    done = run("validate", faulty, "--check", "escape-codes", "--examples", 0)
    assert done.code == 0
    assert done.out.splitlines()[0] == "warning escape-codes  1 found in 1 trajectory"
    assert "made/" not in done.out
    assert "1 check, 1 found something: 0 errors, 1 warning, 0 notes" in done.out


def test_a_file(run, tmp_path):
    path = tmp_path / "chats.jsonl"
    path.write_text('{"id": "a", "messages": [{"role": "user", "content": "hi"}]}\n{\n')
    done = run("validate", path)
    assert done.code == 8
    assert "records 2 = used 1 + skipped 0 + rejected 1" in done.out
    assert "chats.jsonl#2" in done.out
    assert "openai_chat" in done.err


def test_list(run):
    done = run("validate", "--list")
    assert done.code == 0
    for check in CHECKS:
        assert check in done.out
    listed = json.loads(run("validate", "--list", "--json").out)["checks"]
    assert [item["check"] for item in listed] == list(CHECKS)
    assert "two-tasks" in run("validate", "--list", "--check", "two-tasks").out


def test_a_damaged_store(run, tmp_path):
    builder = RowBuilder()
    runs.add(builder, 0, "a", runs.run(*runs.DONE))
    store = write_store(tmp_path / "store", builder)
    (tmp_path / "store" / "steps" / "part-00000.parquet").unlink()
    done = run("validate", store.root)
    assert done.code == 5
    assert "steps/part-00000.parquet" in done.out
    assert "steps/part-00000.parquet: missing" in done.err
    assert "checks were not run, because the store is damaged" in done.out


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        ([], 2, "name a store, or files"),
        (["nowhere"], 3, "does not exist"),
        (["x", "--check", "danglin-call"], 2, "did you mean dangling-call"),
        (["x", "--fail-on", "notes"], 2, "unknown severity 'notes'"),
    ],
)
def test_wrong_calls(run, words, code, part):
    done = run("validate", *words)
    assert (done.code, done.out) == (code, "")
    assert part in done.err
