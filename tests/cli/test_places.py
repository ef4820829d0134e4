"""Folders and addresses that commands are given in the place of a store."""

import shutil

import pytest

import adp
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
