"""Who does the work is an option of every command whose work is shared out."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from adp.cli.commands import BUILTIN
from adp.cli.main import load_command

SHARED_OUT = {
    "convert",
    "curate",
    "drop",
    "merge",
    "parse",
    "publish",
    "redact",
    "search",
    "tokens",
}


def names(command):
    return [param.name for param in command.params]


def test_each_command_with_workers_has_an_engine():
    commands = {name: load_command(name, *entry) for name, entry in BUILTIN.items()}
    single = {name: names(command) for name, command in commands.items()}
    with_engine = {name for name, options in single.items() if "engine" in options}
    assert with_engine == {name for name, options in single.items() if "workers" in options}
    assert with_engine == SHARED_OUT


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ((), (None, None)),
        (("--engine", "ray"), ("ray", None)),
        (("--ray-address", "head:6379"), (None, "head:6379")),
    ],
)
def test_the_options_choose_the_engine_of_the_call(run, store, tmp_path, monkeypatch, words, given):
    chosen = []

    @contextmanager
    def use_engine(name, address):
        chosen.append((name, address))
        yield
        chosen.append("ended")

    monkeypatch.setattr("adp.stores.stage.use_engine", use_engine)
    done = run("redact", store.root, "--kinds", "secrets", "-o", str(tmp_path / "out"), *words)
    assert done.code == 0, done.err
    assert chosen == [given, "ended"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--engine", "dask"), "'dask' is not one of"),
        (("--engine", "processes", "--ray-address", "head:6379"), "processes have no address"),
    ],
)
def test_engines_that_there_are_not_are_refused(run, store, tmp_path, words, sentence):
    done = run("redact", store.root, "-o", str(tmp_path / "out"), *words)
    assert done.code == 2
    assert sentence in done.err
    assert not (tmp_path / "out").exists()
