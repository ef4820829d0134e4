"""``adp export``: what it prints, and what it leaves when it stops."""

import pytest

import adp
from adp.converters.files.writing import written_whole


@pytest.fixture
def examples(run, tmp_path):
    store = tmp_path / "s"
    assert run("convert", "examples/chat", "examples/adp", "-o", store).code == 0
    return store


def test_it_counts(run, tmp_path, examples):
    done = run("export", examples, "--to", "openai_chat", "-o", tmp_path / "out")
    assert done.code == 0
    assert "6 records in 2 files under" in done.out


def test_a_file_outside_is_refused(run, tmp_path, examples):
    for name in (tmp_path / "all.jsonl", "../all.jsonl"):
        done = run("export", examples, "--to", "adp_v1", "-o", tmp_path / "out", "--single", name)
        assert done.code == 2
        assert "names a file in the folder" in done.err
    assert not (tmp_path / "out").exists()


def test_no_half_file_is_left(run, tmp_path, examples):
    out = tmp_path / "out"
    words = ("--to", "openai_chat", "-o", out, "--single", "all.jsonl", "--strict")
    assert run("export", examples, *words).code == 4
    assert list(out.rglob("*.*")) == []


def stop_halfway(target):
    with written_whole(target) as staged:
        staged.write_text("half")
        raise RuntimeError


def test_a_file_is_there_when_it_is_whole(tmp_path):
    target = tmp_path / "a.json"
    with pytest.raises(RuntimeError):
        stop_halfway(target)
    assert list(tmp_path.iterdir()) == []
    with written_whole(target) as staged:
        staged.write_text("whole")
        assert not target.exists()
    assert target.read_text() == "whole"


def test_branches_are_told_apart_and_may_be_left_out(run, store, tmp_path):
    done = run("export", store.root, "--to", "openai_chat", "-o", tmp_path / "runs")
    assert "3 records in 2 files" in done.out
    assert "1 branch is left out; --branches rows writes such as records" in done.out
    rows = ("--branches", "rows", "-o", tmp_path / "all")
    done = run("export", store.root, "--to", "openai_chat", *rows)
    assert "4 records in 2 files" in done.out
    assert "1 branch among them; --no-branches leaves them out" in done.out
    words = ("export", store.root, "--to", "openai_chat", "--no-branches")
    done = run(*words, "-o", tmp_path / "main")
    assert "3 records in 2 files" in done.out
    assert "1 branch is left out" in done.out
    report = adp.export(store, "openai_chat", tmp_path / "again", branches=False)
    assert (report.records, report.branches_left_out) == (3, 1)
    done = run(*words, "--branches", "all", "-o", tmp_path / "none")
    assert (done.code, "exclude each other" in done.err) == (2, True)
    words = ("export", store.root, "--to", "openai_chat", "--branches", "rewind")
    done = run(*words, "-o", tmp_path / "none")
    assert (done.code, "takes the word rows alone" in done.err) == (2, True)
