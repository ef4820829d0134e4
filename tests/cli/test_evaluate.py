"""``adp eval``: the tests of what it runs are beside its library."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def words(tmp_path):
    """A call of the command with a script that fails."""
    file = tmp_path / "script.jsonl"
    file.write_text('{"turns": [{"text": "no idea"}]}')
    policy = f"scripted:file={file}"
    return ["eval", "--suite", "calculator", "--policy", policy, "-o", tmp_path / "runs",
            "--limit", 3]  # fmt: skip


def test_an_agent_that_fails_is_no_error(run, words):
    done = run(*words)
    assert done.code == 0
    assert "calculator: 3 tasks, 3 episodes = 0 done before + 3 done now" in done.out
    assert "outcome" in done.out
    assert "next: adp report eval" in done.out
    again = run(*words, "--json")
    plain = json.loads(again.out)
    assert (plain["collected"]["done_before"], plain["scores"]["file"]) == (3, None)


def test_a_bound_that_does_not_hold_has_an_exit_code_of_its_own(run, words):
    assert run(*words, "--max", "success=0.5").code == 0
    done = run(*words, "--min", "success=0.5", "--min", "pass@9=0.1")
    assert done.code == 8
    assert "FAILS: success 0, at least 0.5" in done.out
    assert "success is 0, not at least 0.5, pass@9 is undefined (no scorer gives it" in done.err
    assert f"see what failed with: adp report eval {words[6]}" in done.err
    assert run(*words, "--min", "success").code == 2


def test_suites_are_listed(run):
    assert "toolworld" in run("eval", "--list").out
    assert {item["name"] for item in json.loads(run("eval", "--list", "--json").out)["suites"]} >= {
        "bfcl"
    }
    assert "give --suite" in run("eval").err


def test_programs_without_a_sandbox_are_for_one_environment_alone(run, words, tmp_path):
    done = run(*words, "--unsafe-python")
    assert done.code == 2
    assert "--unsafe-python is for the environment 'python', not 'calculator'" in done.err
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text('{"question": "6 * 7?", "answer": "42"}')
    done = run(*words, "--env", "python", "--tasks", tasks, "--unsafe-python")
    assert done.code == 0
    made_with = json.loads((tmp_path / "runs" / "collect.json").read_text())["settings"][
        "made_with"
    ]
    assert made_with["environment"]["settings"]["unsafe"] is True
