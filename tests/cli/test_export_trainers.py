"""``adp export`` for trainers: what it prints, and what it refuses."""

from __future__ import annotations

import json

import pytest

import adp
from adp_schema.errors import UsageError
from tests.cli.test_export import examples as examples  # the fixture


def test_it_says_what_is_in_and_what_is_not(run, tmp_path, examples):
    done = run("export", examples, "--to", "chatml", "-o", tmp_path / "out")
    assert done.code == 0
    assert "16 of 17 trained steps" in done.out
    assert "arguments of a call are no JSON object" in done.out
    assert (tmp_path / "out" / "README.md").exists()


def test_the_report_as_json(run, tmp_path, examples):
    words = ("--set", "form=text", "--json")
    done = run("export", examples, "--to", "chatml", "-o", tmp_path / "out", *words)
    report = json.loads(done.out)
    assert report["in_store"] == report["in_rows"] + sum(report["left_out"].values()) == 17
    assert set(report["files"]) == {"README.md", "train.jsonl"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--to", "trl-sft"), "--set expand=true; or leave such chats out"),
        (
            ("--to", "trl-sft", "--strict"),
            "writes no tokens here, so what a template drops is not known",
        ),
        (
            ("--to", "openai_chat", "--model", "tiny"),
            "is for no trainer; leave out --model, --set and --system-prompt",
        ),
        (
            ("--to", "openai_chat", "--set", "a=1"),
            "is for no trainer; leave out --model, --set and --system-prompt",
        ),
        (
            ("--to", "chatml", "--system-prompt", __file__),
            "unknown option of chatml 'system_prompt'",
        ),
        (("--to", "trl-sff"), "did you mean trl-sft"),
    ],
)
def test_wrong_calls_are_refused(run, tmp_path, examples, words, message):
    done = run("export", examples, *words, "-o", tmp_path / "out")
    assert done.code == 2
    assert message in done.err
    assert not (tmp_path / "out").exists()


def test_a_system_prompt_comes_from_a_file(run, tmp_path, examples):
    text = 'Work: "well", {so}\n---\n☃ \\ end\n'
    prompt = tmp_path / "prompt.txt"
    prompt.write_text(text, encoding="utf-8")
    words = ("--to", "openhands-sdk", "--system-prompt", prompt)
    done = run("export", examples, *words, "-o", tmp_path / "out")
    assert done.code == 0
    rows = (tmp_path / "out" / "train.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(row)["messages"][0]["content"] for row in rows] == [text] * len(rows)
    readme = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "--system-prompt FILE -o OUT" in readme
    assert str(tmp_path) not in readme


def test_nothing_to_write(run, tmp_path, examples):
    done = run("export", examples, "--to", "trl-dpo", "-o", tmp_path / "out")
    assert done.code == 10
    assert "0 pairs" in done.err


def test_formats_lists_the_exporters(run):
    assert "trl-prompt-completion" in run("formats").out
    listed = json.loads(run("formats", "--json").out)
    rows = listed["formats"] + listed["exporters"]
    assert {"trl-sft", "openai_chat"} <= {row["name"] for row in rows}


def test_the_function(tmp_path, examples):
    report = adp.export(str(examples), "chatml", tmp_path / "out", settings={"form": "text"})
    assert report.in_rows == 16
    with pytest.raises(UsageError, match="leave out --strict"):
        adp.export(str(examples), "chatml", tmp_path / "other", strict=True)
    with pytest.raises(UsageError, match="leave out model"):
        adp.export(str(examples), "openai_chat", tmp_path / "other", model="tiny")


def test_strict_exports_of_tokens(run, tmp_path, examples):
    words = ("export", examples, "--to", "verl-sft", "--model", "tiny")
    failed = run(*words, "--strict", "-o", tmp_path / "out")
    assert failed.code == 4
    assert "arguments of a call are no JSON object: 1" in failed.err
    assert not (tmp_path / "out").exists()
    assert run(*words, "-o", tmp_path / "out").code == 0
