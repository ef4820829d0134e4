"""What a run that was stopped in the middle of its cleaning up leaves for the next one."""

from __future__ import annotations

from pathlib import Path

import pytest

from adp.stores.staged import StagedRun


@pytest.mark.parametrize("backwards", [False, True])
def test_a_folder_that_was_half_removed_and_then_made_anew(backwards, tmp_path, monkeypatch):
    run = StagedRun(str(tmp_path / "out"), {}, 1)
    for name in ("work", "work.gone"):
        (run.scratch / name).mkdir()
        (run.scratch / name / "file").touch()
    listed = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda path: iter(sorted(listed(path), reverse=backwards)))
    run.end()
    assert list((tmp_path / "out").iterdir()) == []
