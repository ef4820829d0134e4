"""Scratch folders go with their owner, also with one that is killed, and with no other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adp_schema.scratch import ScratchFolder, sweep

_OWNER = """
import sys
from adp_schema.scratch import ScratchFolder
folder = ScratchFolder("test")
(folder.path / "kept").write_text("x")
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@contextmanager
def owner(base: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another process with a scratch folder, until its input is closed."""
    with subprocess.Popen(
        [sys.executable, "-c", _OWNER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(base)},
    ) as process:
        assert process.stdout is not None
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def test_it_goes_with_its_owner(base: Path) -> None:
    with ScratchFolder("test") as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "a").mkdir()
    assert list(base.iterdir()) == []
    held = ScratchFolder("test")
    del held
    assert list(base.iterdir()) == []
    with owner(base) as (process, folder):
        assert (folder / "kept").exists()
        process.communicate("")
        assert process.returncode == 0
    assert list(base.iterdir()) == []


def test_that_of_a_killed_process_is_swept_at_the_next_start(base: Path) -> None:
    with owner(base) as (living, kept), owner(base) as (killed, left):
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert (left / "kept").exists()
        with ScratchFolder("other") as folder:
            assert not left.exists()
            # Nobody sweeps what a living process holds, its own included.
            assert (kept / "kept").exists()
            assert sweep(base) == []
            assert folder.exists()
        assert living.poll() is None
    assert kept.exists()
    assert sweep(base) == [kept]
    assert list(base.iterdir()) == []


def test_a_forked_process_takes_nothing_away(base: Path) -> None:
    folder = ScratchFolder("test")
    if (child := os.fork()) == 0:
        try:
            folder.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert folder.path.exists()
    assert sweep(base) == []
    folder.close()
    assert list(base.iterdir()) == []


def test_what_is_not_ours_is_left_alone(base: Path) -> None:
    (base / "adp-mine").mkdir()
    target = base / "precious"
    target.mkdir()
    (base / "elsewhere").write_text("")
    (base / "adp-link-1.adp-lock").symlink_to(base / "elsewhere")
    (base / "adp-link-1").symlink_to(target)
    (base / "adp-link-2").symlink_to(target)
    (base / "adp-link-2.adp-lock").write_text("")
    sweep(base)
    assert (base / "adp-mine").is_dir()
    assert target.is_dir()
    assert (base / "adp-link-1.adp-lock").is_symlink()
