"""Folders of an environment: what is found in them by a link that leads out is refused."""

import os

import pytest

from adp.rollouts.environments.corpus import read_corpus
from adp.rollouts.environments.retrieve_documents import read_collections
from adp.rollouts.environments.sql_tables import Tables
from adp_schema.errors import InputError


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("a public text", "utf-8")
    (tmp_path / "private.txt").write_text("the private words", "utf-8")
    (tmp_path / "private.csv").write_text("a,b\n1,2\n", "utf-8")
    return tmp_path / "in"


def test_documents_and_collections_stay_in_their_folder(folder):
    (folder / "inside.txt").symlink_to("a.txt")
    assert [document.text for document in read_corpus(folder)] == ["a public text"] * 2
    (folder / "out.txt").symlink_to("../private.txt")
    for read in (read_corpus, read_collections):
        with pytest.raises(InputError, match=r"out\.txt is a link that leads out of"):
            read(folder)
    assert read_corpus(folder / "out.txt")[0].text == "the private words"  # it is named


def test_tables_stay_in_their_folder(folder):
    (folder / "t.csv").symlink_to("../private.csv")
    with pytest.raises(InputError, match=r"t\.csv is a link that leads out of"):
        Tables.open(folder, "1GB")
    (folder / "t.csv").unlink()
    os.mkfifo(folder / "pipe")
    (folder / "t.csv").symlink_to("pipe")
    with pytest.raises(InputError, match="it is a link to a pipe"):
        Tables.open(folder, "1GB")
