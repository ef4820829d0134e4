"""What a store notes about the folders that its episodes were made with."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from adp.rollouts.collecting.run_file import _place, check_same, digest_folder, kind_facts
from adp.rollouts.environment import Settings
from adp.rollouts.environments.search import KIND, SearchSettings
from adp_schema.errors import OutputExistsError
from adp_schema.model import Trajectory
from adp_schema.seal_store import seal
from adp_schema.store import Store


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "docs" / "more").mkdir(parents=True)
    (tmp_path / "docs" / "a.txt").write_text("one")
    (tmp_path / "docs" / "more" / "b.txt").write_text("two")
    return tmp_path / "docs"


CHANGES = {
    "bytes": lambda folder: (folder / "more" / "b.txt").write_text("2"),
    "name": lambda folder: (folder / "a.txt").rename(folder / "c.txt"),
    "more": lambda folder: (folder / "more" / "d.txt").write_text(""),
    "less": lambda folder: (folder / "a.txt").unlink(),
    "swapped": lambda folder: [
        (folder / "a.txt").write_text("two"),
        (folder / "more" / "b.txt").write_text("one"),
    ],
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_folder_is_known_by_what_it_holds(folder, change):
    before = digest_folder(folder)
    CHANGES[change](folder)
    assert digest_folder(folder) != before


def test_where_a_folder_lies_and_what_is_hidden_do_not_count(folder, tmp_path, monkeypatch):
    before = kind_facts("search", SearchSettings(corpus=folder))
    (folder / ".git").mkdir()
    (folder / ".git" / "x").write_text("x")
    copied = Path(shutil.copytree(folder, tmp_path / "elsewhere" / "docs"))
    assert kind_facts("search", SearchSettings(corpus=copied)) == before
    monkeypatch.chdir(tmp_path)
    assert kind_facts("search", SearchSettings(corpus=Path("docs"))) == before
    assert str(tmp_path) not in str(before)


def test_a_file_that_cannot_be_read_stops_nothing(folder):
    (folder / "pipe").symlink_to("/proc/self/mem")
    assert digest_folder(folder) == digest_folder(folder)


def test_of_a_store_the_manifest_counts(tmp_path):
    for name, text in [("one", "x"), ("two", "x"), ("three", "y")]:
        with Store.grow(tmp_path / name) as store:
            store.append(Trajectory(trajectory_id="d/1", dataset="d", final_answer=text))
        seal(tmp_path / name)
    result, two, three = (digest_folder(tmp_path / name) for name in ("one", "two", "three"))
    assert result == two != three


def test_a_folder_of_another_setting_is_not_read(folder):
    class OwnSettings(Settings):
        work: Path

    assert kind_facts("own", OwnSettings(work=folder))["settings"] == {"work": _place(str(folder))}


def test_a_run_with_other_documents_is_refused(folder, tmp_path):
    settings = KIND.settings(corpus=folder)
    before = {"made_with": {"environment": kind_facts("search", settings)}}
    (folder / "new.txt").write_text("three")
    now = {"made_with": {"environment": kind_facts("search", settings)}}
    with pytest.raises(OutputExistsError, match=r"files of --env \(corpus\) .* choose another -o"):
        check_same(tmp_path, before, now)
