"""A folder that a stopped run left: every command that opens it says which call goes on."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys

import pytest

import adp
from adp.cli.main import main
from adp.stores.staged import StagedRun
from adp.workflows.publish.upload import upload
from adp_schema.errors import StoreError
from adp_schema.growing import GrowingStore
from adp_schema.store import Store
from tests.converters.test_run import chat, hashes, write_lines
from tests.growing import numbered
from tests.kill import command, listen, write_chats
from tests.waiting import PATIENCE, until


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "my chats.jsonl", [chat(n) for n in range(4)])
    assert main(["convert", "my chats.jsonl", "-o", "store"]) == 0
    write_lines(tmp_path / "others.jsonl", [chat(n, "other") for n in range(2)])
    assert main(["convert", "others.jsonl", "-o", "other"]) == 0
    (tmp_path / "recipe.yaml").write_text("recipe: 1\ninputs: {a: store}\nops: [dedup_exact]\n")
    return tmp_path


def pressed(*_, **__):
    raise KeyboardInterrupt


def stop(monkeypatch, *words):
    """Call a command, and press Ctrl-C when it has begun to write shards, or to publish."""

    with monkeypatch.context() as patch:
        patch.setattr(StagedRun, "shards", pressed)
        patch.setattr("adp.workflows.publish.folder.staged_store.stage", pressed)
        assert main(list(words)) == 130


CALLS = [
    "convert 'my chats.jsonl' -o out",
    """drop store --where "trajectory_id LIKE '%1'" -o out""",
    "redact store -o out",
    "curate recipe.yaml -o out",
    "publish store me/runs --dry-run --accept-licenses --allow-findings --out out",
    "merge store other -o out",
]


@pytest.mark.parametrize("call", CALLS)
def test_the_call_that_is_named_goes_on(call, run, here, monkeypatch):
    stop(monkeypatch, *shlex.split(call))
    named = shlex.join(["adp", *shlex.split(call)])
    text = f"out is unfinished, made by `{named}`; call it again to go on"
    for words in (
        ["info", "out"],
        ["query", "out", "SELECT 1"],
        ["stats", "out"],
        ["export", "out", "--to", "atif", "-o", "there"],
        ["merge", "store", "out", "-o", "there"],
    ):
        done = run(*words)
        assert (done.code, done.err.splitlines()[-1]) == (5, f"error: {text}")
    assert main(shlex.split(call)) == 0
    Store.open("out")


def test_from_another_folder_the_folder_is_named(run, here, monkeypatch):
    stop(monkeypatch, "redact", "store", "-o", "out")
    (here / "below").mkdir()
    monkeypatch.chdir(here / "below")
    done = run("info", "../out")
    assert f"made by `adp redact store -o out` in {here}; call it again" in done.err


def test_a_stopped_call_of_the_library_names_no_command(here, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/usr/bin/python", "-c", "what the user runs"])
    with monkeypatch.context() as patch:
        patch.setattr(StagedRun, "shards", pressed)
        with pytest.raises(KeyboardInterrupt):
            adp.convert("my chats.jsonl", "out")
    with pytest.raises(StoreError) as caught:
        Store.open("out")
    assert str(caught.value) == (
        "out is unfinished; make the call that began it again to go on, or remove it"
    )
    assert not (here / "out" / ".run" / "call.json").exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"call": 1}', "[" * 100_000])
def test_a_note_that_is_damaged_costs_the_name_alone(text, here, monkeypatch):
    stop(monkeypatch, "redact", "store", "-o", "out")
    (here / "out" / ".run" / "call.json").write_text(text)
    with pytest.raises(StoreError, match=r"^out is unfinished; make the call that began it again"):
        Store.open("out")


def test_the_note_is_no_part_of_the_store(here, monkeypatch):
    stop(monkeypatch, "redact", "store", "-o", "out")
    note = json.loads((here / "out" / ".run" / "call.json").read_text())
    assert note == {"call": "adp redact store -o out", "folder": str(here)}
    assert main(["redact", "store", "-o", "out"]) == 0
    assert main(["redact", "store", "-o", "whole"]) == 0
    assert hashes(here / "out") == hashes(here / "whole")
    assert not (here / "out" / ".run").exists()


# ---- what Ctrl-C says ------------------------------------------------------------------------

GOES_ON = "stopped; the same call goes on where it stopped"
ANEW = "stopped; the output is whole if it is there, else the same call begins anew"


@pytest.mark.parametrize("call", CALLS)
def test_ctrl_c_says_that_the_same_call_goes_on_when_it_does(call, here, monkeypatch, capsys):
    stop(monkeypatch, *shlex.split(call))
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "stopped; the same call goes on where it stopped"
    assert (here / "out" / ".run" / "plan.json").exists()
    assert not list(here.glob(".out*"))  # the lock is gone with the run


@pytest.mark.parametrize("call", ["convert 'my chats.jsonl' -o out", "redact store -o out"])
def test_before_anything_is_written_the_same_call_begins_anew(call, here, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr(StagedRun, "__init__", pressed)
        assert main(shlex.split(call)) == 130
    assert capsys.readouterr().err.splitlines()[-1] == ANEW
    assert not (here / "out").exists()
    assert main(shlex.split(call)) == 0


FILES = "stopped; files that are there are whole; the same call wants another -o, or these removed"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [("export store --to atif -o out", FILES), ("score store --with answer", ANEW)],
)
def test_what_is_written_at_the_end_begins_anew(call, sentence, here, monkeypatch, capsys):
    before = hashes(here)
    with monkeypatch.context() as patch:
        patch.setattr(Store, "trajectories", pressed)
        patch.setattr("adp.converters.export.written_whole", pressed)
        assert main(shlex.split(call)) == 130
    assert capsys.readouterr().err.splitlines()[-1] == sentence
    written = {name for name in hashes(here) if not name.endswith(".lock")}
    assert written == before.keys()
    assert main(shlex.split(call)) == 0


def test_a_stopped_training_wants_resume(here, monkeypatch, capsys):
    monkeypatch.setattr("adp.trainers.run._rows", pressed)
    call = "train sft store --model tiny -o out"
    assert main(shlex.split(call)) == 130
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("stopped; the same call with --resume goes on from the last checkpoint")
    assert main(shlex.split(call)) == 5
    assert "--resume goes on with the run that it holds" in capsys.readouterr().err
    assert main([*shlex.split(call), "--resume"]) == 130  # it is not refused


STOPS = {
    "report data store -o out.html": "adp.cli.report.composition",
    "query store -c 'SELECT 1' -o out.csv": "adp.cli.query.run",
    "rejects store -o out.jsonl": "adp.cli.rejects.write_records",
    "merge-adapter run -o out": "adp.cli.merge_adapter.merge",
    "tokens store --model tiny -o out": "adp.cli.tokens.render_store",
}


@pytest.mark.parametrize("call", STOPS)
def test_what_is_written_by_the_others_is_whole_or_begun_anew(call, here, monkeypatch, capsys):
    before = hashes(here)
    monkeypatch.setattr(STOPS[call], pressed)
    assert main(shlex.split(call)) == 130
    assert capsys.readouterr().err.splitlines()[-1] == ANEW
    assert hashes(here) == before


def test_a_stopped_rendering_goes_on(here, monkeypatch, capsys):
    pytest.importorskip("transformers")
    call = "tokens store --model tiny -o out"
    stop(monkeypatch, *shlex.split(call))
    assert capsys.readouterr().err.splitlines()[-1] == GOES_ON
    assert main(shlex.split(call)) == 0
    assert not (here / "out" / ".run").exists()


def test_a_stopped_end_of_a_growing_store_goes_on(here, monkeypatch, capsys):
    with GrowingStore(here / "runs") as store:
        for number in range(3):
            store.append(numbered(str(number), blob=0))
    with monkeypatch.context() as patch:
        patch.setattr("adp_schema.seal_store.seal_closed", pressed)
        assert main(["seal", "runs"]) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "stopped; the same call goes on"
    assert main(["seal", "runs"]) == 0
    assert Store.open("runs").manifest.counts.trajectories == 3


def test_a_stopped_pull_goes_on(here, fake_hub, monkeypatch, capsys):
    upload(here / "store", "me/set")
    call = ["pull", "hf://datasets/me/set", "-o", "out"]
    with monkeypatch.context() as patch:
        patch.setattr("adp.workflows.pull.digest_file", pressed)  # the first file is here
        assert main(call) == 130
    assert capsys.readouterr().err.splitlines()[-1] == GOES_ON
    assert main(call) == 0
    assert hashes(here / "out").items() >= hashes(here / "store").items()


@pytest.mark.parametrize("words", ["query store -c 'SELECT 1'", "rejects store"])
def test_without_an_output_nothing_is_said_of_one(words, here, monkeypatch, capsys):
    monkeypatch.setattr(Store, "query", pressed)
    monkeypatch.setattr("adp.cli.query.run", pressed)
    assert main(shlex.split(words)) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "stopped"


def test_a_command_that_only_looks_says_no_more(here, monkeypatch, capsys):
    monkeypatch.setattr("adp.cli.head.first_ones", pressed)
    assert main(["head", "store"]) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "stopped"


def test_a_signal_in_the_middle(tmp_path):
    write_chats(tmp_path / "chats.jsonl", 20, 1)
    words = command("convert", "chats.jsonl", "-o", "out", "--workers", 1)
    with subprocess.Popen(
        words, cwd=tmp_path, stderr=subprocess.PIPE, text=True, preexec_fn=listen
    ) as process:
        until((tmp_path / "out" / ".run" / "call.json").exists, process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "stopped; the same call goes on where it stopped"
    assert not list(tmp_path.glob(".out*"))
    subprocess.run(words, cwd=tmp_path, check=True)
    assert Store.open(str(tmp_path / "out")).manifest.counts.rejected == 0
