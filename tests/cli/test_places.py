"""Folders and addresses that commands are given in the place of a store."""

import errno
import json
import shutil
from pathlib import Path

import pytest

import adp
from adp.cli.text import human_size
from tests.growing import numbered


def test_a_local_publication(run, tmp_path):
    adp.convert("examples/chat", tmp_path / "mine" / "store")
    shutil.copytree("examples/chat", tmp_path / "mine" / "more")
    assert adp.open(tmp_path / "mine").name == "mine"
    (tmp_path / "mine" / "croissant.json").write_text("{}")
    calls = (
        ("info", "STORE", "--verify"), ("stats", "STORE"), ("head", "STORE"),
        ("validate", "STORE", "--fail-on", "never"),
    )  # fmt: skip
    for words in calls:
        done = run(*[str(tmp_path / "mine") if word == "STORE" else word for word in words])
        inner = run(*[str(tmp_path / "mine/store") if word == "STORE" else word for word in words])
        assert (done.code, done.err) == (0, "")
        assert done.out.replace("mine/store", "mine") == inner.out.replace("mine/store", "mine")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("query", "URL", "-c", "select 1"), 5),
        (("info", "URL"), 5),
        (("convert", "URL", "-o", "OUT"), 3),
    ],
)
def test_a_page_of_the_hub(run, tmp_path, words, code):
    url = "https://huggingface.co/datasets/me/demo/tree/v1"
    names = {"URL": url, "OUT": tmp_path / "out"}
    done = run(*[names.get(word, word) for word in words])
    assert done.code == code
    assert done.err.endswith("write hf://datasets/me/demo@v1\n")


def test_a_growing_store_in_the_way(run, tmp_path):
    with adp.grow(tmp_path / "g") as store:
        store.append(numbered("one"))
    done = run("convert", "examples/chat", "-o", tmp_path / "g")
    assert done.code == 5
    assert "is a growing store" in done.err


def test_the_journal_counts_in_the_size(run, tmp_path):
    with adp.grow(tmp_path / "g") as store:
        store.append(numbered("one"))
        store.seal_journal()
        store.append(numbered("two"))
    journals = sum(path.stat().st_size for path in tmp_path.glob("g/growing/journal-*"))
    output = json.loads(run("info", tmp_path / "g", "--json").out)
    assert output["growing"]["bytes"] == journals > 500
    tables = sum(table["bytes"] for table in output["tables"].values())
    assert f"size    {human_size(tables + journals)}\n" in run("info", tmp_path / "g").out


def test_the_target_is_named_when_it_cannot_be_written(run, tmp_path, monkeypatch):
    adp.convert("examples/chat", tmp_path / "s")

    opened = Path.open

    def refuse(path, *words, **options):
        if path.suffix == ".part":
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        return opened(path, *words, **options)

    monkeypatch.setattr(Path, "open", refuse)  # write_text opens by it too
    calls = [("report", "data", tmp_path / "s"), ("query", tmp_path / "s", "-c", "SELECT 1")]
    for words, out in zip(calls, (tmp_path / "r.html", tmp_path / "r.csv"), strict=True):
        done = run(*words, "-o", out)
        assert done.code == 5
        assert done.err.endswith(f"error: cannot write {out}: Read-only file system\n")
        assert not out.exists()


def test_tables_in_a_pipe_end_without_blanks(run, tmp_path):
    adp.convert("examples/chat", tmp_path / "s")
    for words in (("info", tmp_path / "s"), ("stats", tmp_path / "s"), ("head", tmp_path / "s"),
                  ("query", tmp_path / "s", "-c", "SELECT * FROM trajectories")):  # fmt: skip
        lines = run(*words).out.splitlines()
        assert len(lines) > 3
        assert [line for line in lines if line != line.rstrip()] == []
