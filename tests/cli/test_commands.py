from __future__ import annotations

import os
import subprocess
import sys

import pytest

BROKEN = {
    "absent": None,
    "unreadable": "def (",
    "failing": '"""Fail when imported."""\nraise ValueError("no licence")',
    "empty": '"""A command without its function."""',
}


@pytest.fixture
def broken_plugins(tmp_path):
    """A package whose commands cannot be loaded, each for another reason."""
    lines = [f"{name} = broken_{name}:command" for name in BROKEN]
    info = tmp_path / "broken-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (info / "entry_points.txt").write_text("\n".join(["[adp.commands]", *lines]))
    for name, text in BROKEN.items():
        if text is not None:
            (tmp_path / f"broken_{name}.py").write_text(text)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])

    def call(*words):
        return subprocess.run(
            [sys.executable, "-m", "adp.cli.entry", *words],
            env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
        )  # fmt: skip

    return call


def test_the_help_comes_up_beside_broken_packages(broken_plugins):
    done = broken_plugins("--help")
    assert done.returncode == 0, done.stderr
    assert "absent" in done.stdout
    assert "Fail when imported." in done.stdout


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("absent", "No module named 'broken_absent'"),
        ("unreadable", "SyntaxError"),
        ("failing", "ValueError: no licence"),
        ("empty", "unknown name in broken_empty 'command'"),
    ],
)
def test_a_command_that_cannot_be_imported_is_one_sentence(broken_plugins, name, reason):
    done = broken_plugins(name)
    assert done.returncode == 2
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
