"""The page about the Python API: its examples, and that it names every function."""

import doctest
import re
import shutil
from pathlib import Path

import pytest

import adp

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "python.md"
TEXT = PAGE.read_text(encoding="utf-8")
SLOW = TEXT.index("## Checks and reports")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run(text):
    """Run the examples of a text, one after the other."""
    blocks = "\n".join(re.findall(r"```pycon\n(.*?)```", text, re.DOTALL))
    test = doctest.DocTestParser().get_doctest(blocks, {}, PAGE.name, str(PAGE), 0)
    output = []
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    runner.run(test, out=output.append)
    assert test.examples
    assert not output, "".join(output)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with the examples of the repository."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)


def test_the_examples_of_the_page():
    run(TEXT[:SLOW])


@pytest.mark.slow
@pytest.mark.train
def test_all_examples_with_reports_and_training():
    pytest.importorskip("trl")
    run(TEXT)


def test_the_page_has_a_line_for_every_function():
    table = re.findall(r"^\| (`.*?) \|", TEXT, re.MULTILINE)
    named = set(re.findall(r"`(\w+)\(", " ".join(table)))
    assert named == {name for name in adp.__all__ if name[0].islower()}
