"""Outputs behind URLs: made here, brought there, the manifests last."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

import adp
from adp.converters.run import ConvertOptions, convert
from adp.curation.recipe import Recipe
from adp.curation.run import CurateOptions, run
from adp.stores import remote_output
from adp_schema.errors import OutputExistsError, StoreError, UsageError
from adp_schema.store import Store
from tests.converters.test_remote_source import chat

ONE_WORKER = ConvertOptions(workers=1)
URL = "memory://bucket/store"


@pytest.fixture
def staging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder in which outputs are made; the file system in memory is empty."""
    monkeypatch.setenv("ADP_STAGING", str(tmp_path / "staging"))
    fsspec.filesystem("memory").store.clear()
    yield tmp_path / "staging"
    fsspec.filesystem("memory").store.clear()


@pytest.fixture
def logs(tmp_path: Path) -> str:
    """Three chats."""
    path = tmp_path / "logs.jsonl"
    path.write_bytes(chat("a") + chat("b") + chat("c"))
    return str(path)


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a store, but what is no part of its contents."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "run.json"
    }


def remote(url: str = "/bucket/store") -> dict[str, bytes]:
    """The same behind a URL."""
    system = fsspec.filesystem("memory")
    return {
        name.removeprefix(f"{url}/"): system.cat_file(name)
        for name in system.find(url)
        if not name.endswith("/run.json")
    }


def test_a_store_goes_to_a_url(staging: Path, logs: str, tmp_path: Path) -> None:
    convert([logs], str(tmp_path / "here"), options=ONE_WORKER)
    convert([logs], URL, options=ONE_WORKER)
    assert remote() == contents(tmp_path / "here")
    assert not [path for path in staging.rglob("*") if path.is_file()]
    assert [run.source_id for run in Store.open(URL).trajectories()] == ["a", "b", "c"]
    with pytest.raises(OutputExistsError, match="holds a store already"):
        convert([logs], URL, options=ONE_WORKER)


def test_stores_are_read_and_made_at_urls(staging: Path, logs: str, tmp_path: Path) -> None:
    del staging
    convert([logs], URL, options=ONE_WORKER)
    recipe = Recipe.model_validate(
        {
            "recipe": 1,
            "inputs": {"runs": URL},
            "ops": [{"dedup_exact": {}}],
            "outputs": {"data": {}},
        }
    )
    options = CurateOptions(workers=1)
    run(recipe, "memory://bucket/out", options=options)
    run(recipe, str(tmp_path / "out"), options=options)
    assert remote("/bucket/out") == contents(tmp_path / "out")
    adp.merge([URL, "memory://bucket/out/data"], "memory://bucket/both", workers=1)
    assert adp.open("memory://bucket/both").manifest.counts.trajectories == 6


def test_a_stopped_upload_goes_on(
    staging: Path, logs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    convert([logs], str(tmp_path / "here"), options=ONE_WORKER)
    system = fsspec.filesystem("memory")
    put = type(system).put_file
    brought: list[str] = []

    def put_file(self: Any, path: str, address: str, **more: Any) -> None:
        if len(brought) == 3:
            raise OSError("the line is gone")
        brought.append(address)
        put(self, path, address, **more)

    monkeypatch.setattr(remote_output, "_THREADS", 1)
    with monkeypatch.context() as patch:
        patch.setattr(type(system), "put_file", put_file)
        with pytest.raises(StoreError, match="the line is gone"):
            convert([logs], URL, options=ONE_WORKER)
    assert len(brought) == 3
    assert "adp.json" not in remote()
    before = {path: path.stat().st_mtime_ns for path in staging.rglob("*.parquet")}
    assert before
    later: list[str] = []

    def put_later(self: Any, path: str, address: str, **more: Any) -> None:
        later.append(address)
        assert Path(path).stat().st_mtime_ns == before.get(
            Path(path), Path(path).stat().st_mtime_ns
        )
        put(self, path, address, **more)

    monkeypatch.setattr(type(system), "put_file", put_later)
    convert([logs], URL, options=ONE_WORKER)
    assert not set(brought) & set(later)
    assert later[-1].endswith("/adp.json")
    assert remote() == contents(tmp_path / "here")


@pytest.mark.usefixtures("staging")
def test_a_place_that_holds_something_else(logs: str) -> None:
    fsspec.filesystem("memory").pipe("/bucket/store/letter.txt", b"dear")
    with pytest.raises(OutputExistsError, match="is not empty and is no store"):
        convert([logs], URL, options=ONE_WORKER)


@pytest.mark.usefixtures("staging")
def test_the_hub_has_a_command_of_its_own(logs: str) -> None:
    with pytest.raises(UsageError, match="adp publish"):
        convert([logs], "hf://datasets/me/mine", options=ONE_WORKER)
    with pytest.raises(StoreError, match="nothing here reads gopher://"):
        convert([logs], "gopher://me/mine", options=ONE_WORKER)
