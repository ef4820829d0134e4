from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from adp.cli import main as module
from adp_schema.errors import StoreError
from adp_schema.store import Store

HEAVY = ("pyarrow", "pydantic", "duckdb", "polars", "datasets", "numpy")
COMMANDS = ("info", "head", "sample", "stats", "rejects")


@pytest.mark.parametrize("word", ["--help", "--version", ""])
def test_help_and_version_import_nothing_heavy(word):
    code = (
        "import sys; from adp.cli.main import main; main(sys.argv[1:]);"
        f"print([m for m in {HEAVY} if m in sys.modules], file=sys.stderr)"
    )
    words = [word] if word else []
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"
    assert "adp" in done.stdout


def test_help_lists_every_command(run):
    out = run("--help").out
    for name, (_, line) in module.command_table().items():
        assert f"  {name} " in out
        assert line in out


@pytest.mark.parametrize("name", sorted(module.command_table()))
def test_every_command_has_an_example_and_exit_codes(run, name):
    done = run(name, "--help")
    assert done.code == 0
    assert f"Example:\n    adp {name}" in done.out
    assert "Exit codes:\n    0  done" in done.out


def test_unknown_command_names_a_near_one(run):
    done = run("infoo")
    assert (done.code, done.err) == (2, "error: unknown command 'infoo'; did you mean info?\n")


def test_missing_argument_points_to_the_help(run):
    done = run("info")
    assert done.code == 2
    assert done.err == "error: missing argument 'STORE'; see: adp info --help\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_missing_store(run, tmp_path, name):
    done = run(name, tmp_path / "nowhere")
    assert done.code == 5
    assert "is not a store" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("name", COMMANDS)
def test_store_of_a_newer_version(run, tmp_path, name):
    (tmp_path / "adp.json").write_text(json.dumps({"schema_version": "99.0"}))
    done = run(name, tmp_path)
    assert done.code == 5
    assert "99.0" in done.err
    assert "upgrade" in done.err


def test_missing_shard_is_one_sentence(run, store: Store, tmp_path: Path):
    (tmp_path / "adp.json").write_text((Path(store.root) / "adp.json").read_text())
    done = run("show", tmp_path, "swe/django-22")
    assert done.code == 5
    assert "part-00000.parquet: missing" in done.err
    assert done.err.count("\n") == 1


def test_damaged_shard_is_one_sentence(run, store: Store, tmp_path: Path):
    shutil.copytree(store.root, tmp_path / "s")
    (tmp_path / "s" / "trajectories" / "part-00000.parquet").write_bytes(b"no parquet at all")
    done = run("show", tmp_path / "s", "swe/django-22")
    assert done.code == 5
    assert "trajectories/part-00000.parquet: it has 17 bytes, not " in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        (StoreError("it broke \x1b[2J"), 5, "error: it broke ␛[2J\n"),
        (KeyboardInterrupt(), 130, "stopped\n"),
        (BrokenPipeError(), 0, ""),
        (ZeroDivisionError("by zero"), 70, "error: unexpected ZeroDivisionError: by zero; "),
    ],
)
def test_how_errors_end(monkeypatch, run, store, raised, code, message):
    def fail(*_: object) -> None:
        raise raised

    monkeypatch.setattr(module, "_leave_pipe", lambda: 0)
    monkeypatch.setattr("adp.cli.head.first_ones", fail)
    done = run("head", store.root)
    assert done.code == code
    assert done.err.startswith(message)
    assert done.err.count("\n") == (1 if message else 0)


def test_debug_shows_the_traceback(monkeypatch, capsys, store):
    monkeypatch.setenv("ADP_DEBUG", "1")
    monkeypatch.setattr("adp.cli.head.first_ones", lambda *_: 1 // 0)
    assert module.main(["head", store.root]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_error(store):
    command = f"'{sys.executable}' -m adp.cli.main show '{store.root}' 11099 --full"
    done = subprocess.run(
        ["bash", "-c", f"{command} | head -c 1"], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""


@pytest.mark.parametrize("words", [["convert", "x"], ["report", "data", "x"], ["merge-adapter"]])
def test_a_wrong_option_points_to_the_help_of_its_command(words, run):
    named = " ".join(word for word in words if word != "x")
    for wrong in (["--out"], ["--wrong"]):
        assert run(*words, *wrong).err.endswith(f"; see: adp {named} --help\n")


def test_a_command_is_made_once_for_its_function(monkeypatch):
    entry = module.command_table()["head"]
    command = module.load_command("head", *entry)
    assert module.load_command("head", *entry) is command

    def other(number: int) -> None:
        """Another one."""

    monkeypatch.setattr("adp.cli.head.head", other)
    assert "Another one" in module.load_command("head", *entry).help
