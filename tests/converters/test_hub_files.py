"""Bringing files of the Hub here."""

from __future__ import annotations

import pytest

from adp.converters import hub_files as module
from adp.converters.hub_files import HubPath, fetch, fetch_all, resolve
from adp_schema.errors import HubError

FILES = {f"data/{number}.parquet": b"%d" % number * 1000 for number in range(9)}


@pytest.fixture
def place(fake_hub) -> HubPath:
    fake_hub.repos.push("me/set", FILES)
    return resolve(HubPath("me/set"))


def test_files_come_once(fake_hub, place, tmp_path):
    for folder in (None, tmp_path / "here"):
        fake_hub.forget()
        for _ in range(2):
            path = fetch(place.at("data/3.parquet"), folder)
            assert path.read_bytes() == FILES["data/3.parquet"]
        assert len(fake_hub.asked("GET /objects")) == 1 - (folder is not None)  # from the cache


def test_all_files_come_each_told_once(place, tmp_path):
    messages = {}
    fetch_all(place, list(FILES), lambda path, file: messages.setdefault(path, file), tmp_path)
    assert {path: file.read_bytes() for path, file in messages.items()} == FILES
    fetch_all(place, [], lambda *_: pytest.fail("there is nothing to tell"), tmp_path)


def test_one_that_fails_ends_it_and_leaves_the_others(fake_hub, place, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "THREADS", 1)
    messages = []
    with pytest.raises(HubError, match=r"@[0-9a-f]{40}/data/none does not exist"):
        fetch_all(
            place, ["data/0.parquet", "data/none", "data/1.parquet"],
            lambda path, _: messages.append(path), tmp_path,
        )  # fmt: skip
    assert messages == ["data/0.parquet"]
    assert (tmp_path / "data/0.parquet").exists()


def test_what_the_caller_raises_ends_it(place, tmp_path):
    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_all(place, list(FILES), stop, tmp_path)
