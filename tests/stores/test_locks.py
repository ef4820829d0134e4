"""Two runs at one output: the second stops at once and names the first."""

from __future__ import annotations

import gc
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import adp
from adp.cli.main import main
from adp.converters.run import convert
from adp.stores.locks import alone, holding
from adp_schema.errors import StoreError
from tests.converters.test_run import chat, hashes, write_lines
from tests.growing import numbered

HOLDER = """
import sys, time
from adp.stores.locks import holding
with holding(sys.argv[1], together="together" in sys.argv):
    print("held", flush=True)
    sys.stdin.read()
"""

WITH_WORKERS = """
import os, sys, time
from adp.stores.locks import holding
from tests.stores.test_locks import sleep
from adp.stores.workers import Processes
if __name__ == "__main__":
    with holding(sys.argv[1]):
        if os.fork() == 0:
            sleep(sys.argv[1] + ".fork")
        for _ in Processes().run(sleep, [sys.argv[1] + ".a", sys.argv[1] + ".b"], 2):
            pass
"""

CALLS = [
    "convert CHATS -o OUT",
    "merge STORE OTHER -o OUT",
    "drop STORE --where success -o OUT",
    "redact STORE -o OUT",
    "export STORE --to openai_chat -o OUT",
    "export STORE --to openai-ft-sft -o OUT",
    "publish STORE me/runs --dry-run --accept-licenses --allow-findings --out OUT",
    "curate RECIPE -o OUT",
    "score STORE --with outcome -o OUT",
    "report data STORE -o OUT",
    "query STORE -f SQL -o OUT --format csv",
    "rejects STORE -o OUT",
    "collect --env toolworld --policy expert --tasks test:2 -o OUT",
    "eval --suite toolworld --limit 1 --n 1 --policy expert -o OUT",
]


def sleep(mark: str) -> None:
    """Say that a process is there, and stay; until it is killed, or for a minute."""
    Path(mark).write_text(str(os.getpid()))
    signal.pause() if mark.endswith(".fork") else signal.sigtimedwait([signal.SIGUSR1], 60)


def hold(out: Path, *more: str) -> subprocess.Popen[str]:
    """A process that holds the lock of an output."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(out), *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


@pytest.fixture(scope="module")
def given(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("given")
    source = write_lines(folder / "chats.jsonl", [chat(n) for n in range(4)])
    for name in ("store", "other"):
        lines = write_lines(folder / f"{name}.jsonl", [chat(n, name) for n in range(4)])
        convert([lines], str(folder / name))
    recipe = {"recipe": 1, "inputs": {"a": str(folder / "store")}, "ops": ["dedup_exact"]}
    (folder / "recipe.yaml").write_text(json.dumps(recipe))
    (folder / "query.sql").write_text("SELECT * FROM steps")
    assert source
    return folder


def words(call: str, given: Path, out: Path) -> list[str]:
    names = {"CHATS": given / "chats.jsonl", "STORE": given / "store", "OTHER": given / "other",
             "RECIPE": given / "recipe.yaml", "SQL": given / "query.sql", "OUT": out}  # fmt: skip
    return [str(names.get(word, word)) for word in call.split()]


def test_every_command_that_writes(given, tmp_path, capsys):
    out = tmp_path / "out.html"  # a report asks for such a name
    holder = hold(out)
    try:
        for call in CALLS:
            assert main(words(call, given, out)) == 5
            output = capsys.readouterr().err
            assert f"another run writes to {out} now (process {holder.pid} on " in output
            assert output.count("\n") == 1
            assert not out.exists()
    finally:
        holder.kill()
        holder.communicate()
    assert (tmp_path / ".out.html.lock").exists()  # a killed run leaves it, and it holds nobody up
    for number, call in enumerate(CALLS):
        place = tmp_path / f"out{number}.html"
        assert main(words(call, given, place)) == 0, (call, capsys.readouterr())
    assert main(words(CALLS[0], given, out)) == 0
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".lock")] == []
    assert hashes(out) == hashes(tmp_path / "out0.html")


def test_runs_that_collect_together_share_the_lock_and_keep_others_out(given, tmp_path, capsys):
    out = tmp_path / "out"
    first, second = hold(out, "together"), hold(out, "together")
    collect = words("collect --env toolworld --policy expert --tasks test:2 -o OUT", given, out)
    assert main(collect) == 0, capsys.readouterr()
    shutil.rmtree(out)
    for holder in (first, second):
        assert main(words(CALLS[0], given, out)) == 5
        assert f"another run writes to {out} now (process " in capsys.readouterr().err
        holder.kill()
        holder.communicate()
    assert main(words(CALLS[0], given, out)) == 0
    assert list(tmp_path.glob(".*.lock")) == []


def test_a_program_that_appends_shares_the_lock_too(given, tmp_path, capsys):
    out = tmp_path / "out"
    convert_there = words(CALLS[0], given, out)
    holder = hold(out)
    with pytest.raises(StoreError, match=rf"another run writes to .* \(process {holder.pid} on"):
        adp.grow(out)
    assert not out.exists()
    holder.communicate("")
    with adp.grow(out) as first, adp.grow(out) as second:
        for number, store in enumerate((first, pickle.loads(pickle.dumps(second)))):
            assert store.append(numbered(str(number), blob=0))
        assert main(convert_there) == 5
        assert f"(process {os.getpid()} on " in capsys.readouterr().err
    left = adp.grow(out)
    assert (tmp_path / ".out.lock").exists()
    del left
    gc.collect()
    assert not (tmp_path / ".out.lock").exists()
    adp.seal(out)
    assert main(convert_there) == 5
    assert "holds a store already" in capsys.readouterr().err


def test_of_several_that_share_one_that_is_there_still_is_named(tmp_path):
    out = tmp_path / "out"
    first, second, third = (hold(out, "together") for _ in range(3))
    for ended in (third, first):
        ended.kill()
        ended.communicate()
    with pytest.raises(StoreError, match=rf"process {second.pid} on"), holding(out):
        pass
    second.communicate("")  # it ends by itself, and is the last one
    assert list(tmp_path.iterdir()) == []


def test_tokens_and_publishing_of_traces(given, tmp_path, capsys):
    pytest.importorskip("transformers")
    traces = "publish STORE me/runs --dry-run --accept-licenses --allow-findings --traces --out OUT"
    for call, name in (("tokens STORE --model tiny -o OUT", "out"), (traces, "out-traces")):
        holder = hold(tmp_path / name)
        try:
            assert main(words(call, given, tmp_path / "out")) == 5
            output = capsys.readouterr().err
            assert (
                f"another run writes to {tmp_path / name} now (process {holder.pid} on " in output
            )
        finally:
            holder.kill()
            holder.communicate()
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        assert main(words(call, given, tmp_path / "out")) == 0, capsys.readouterr()
        shutil.rmtree(tmp_path / "out")
    assert list(tmp_path.glob(".*.lock")) == []


def test_training_names_the_other_run_and_leaves_no_lock(given, tmp_path, capsys):
    pytest.importorskip("trl")
    out = tmp_path / "out"
    call = "train sft STORE --model tiny --set training.max_steps=1 -o OUT"
    holder = hold(out)
    try:
        assert main(words(call, given, out)) == 5
        output = capsys.readouterr().err
        assert f"another run writes to {out} now (process {holder.pid} on " in output
        assert not out.exists()
    finally:
        holder.kill()
        holder.communicate()
    assert main(words(call, given, out)) == 0, capsys.readouterr()
    assert list(tmp_path.glob(".*.lock")) == []
    whole = tmp_path / "whole"
    holder = hold(whole)
    try:
        assert main(["merge-adapter", str(out), "-o", str(whole)]) == 5
        assert f"another run writes to {whole} now" in capsys.readouterr().err
    finally:
        holder.kill()
        holder.communicate()
    assert main(["merge-adapter", str(out), "-o", str(whole)]) == 0, capsys.readouterr()


def test_a_killed_run_holds_nothing_though_its_children_live(tmp_path):
    out = tmp_path / "out"
    script = tmp_path / "run.py"
    script.write_text(WITH_WORKERS)
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}"}
    run = subprocess.Popen([sys.executable, str(script), str(out)], env=environment)
    marks = [tmp_path / f"out.{name}" for name in ("fork", "a", "b")]
    while not all(mark.exists() and mark.read_text() for mark in marks):
        assert run.poll() is None
        time.sleep(0.05)
    with pytest.raises(StoreError, match=f"process {run.pid} on"), holding(out):
        pass
    forked = int(marks[0].read_text())
    run.kill()
    run.wait()
    os.kill(forked, 0)  # it is there still
    with holding(out):
        pass
    os.kill(forked, signal.SIGKILL)


def test_a_run_that_fails_leaves_nothing(tmp_path):
    out = tmp_path / "a" / "b" / "out"
    with holding(out):
        assert (tmp_path / "a" / "b" / ".out.lock").exists()
    fail = alone(lambda out: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fail(out=out)
    assert list(tmp_path.iterdir()) == []
    with holding(out), holding(out / "part"):  # a part of what this run writes
        assert not out.exists()


def test_two_runs_of_one_process(tmp_path):
    with (
        holding(tmp_path / "out"),
        pytest.raises(StoreError, match="another run"),
        holding(tmp_path / "out"),
    ):
        pass


def test_where_there_are_no_locks(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    with holding(tmp_path / "out"), holding(tmp_path / "out"):
        pass
