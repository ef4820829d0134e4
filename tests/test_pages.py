"""The examples of the README, the tour and the tutorials do what the pages show."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.hub.fixtures import environment
from tests.pages import ROOT, TUTORIALS, Example, faults, rewritten, run_page

if TYPE_CHECKING:
    from tests.hub.server import LocalHub

TOUR = ROOT / "docs" / "tour.md"
TINY_TOOL_USE = ROOT / "docs" / "coming-from-tiny-tool-use.md"


def agree(page: Path, folder: Path, environment: dict[str, str] | None = None) -> None:
    examples = run_page(page, folder, environment)
    assert examples
    if differences := faults(examples):
        pytest.fail(differences, pytrace=False)


def test_the_readme(tmp_path):
    agree(ROOT / "README.md", tmp_path)


@pytest.mark.slow
@pytest.mark.train
def test_the_tour(tmp_path):
    pytest.importorskip("trl")
    agree(TOUR, tmp_path)


@pytest.mark.slow
@pytest.mark.train
def test_every_command_for_tiny_tool_use(tmp_path):
    pytest.importorskip("trl")
    agree(TINY_TOOL_USE, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["clean-and-publish.md", "compare-models.md", "logs-to-finetuning.md", "write-a-plugin.md"],
)
def test_a_tutorial(name, tmp_path):
    agree(TUTORIALS / name, tmp_path)


@pytest.mark.slow
@pytest.mark.train
def test_the_tutorial_that_trains(tmp_path):
    pytest.importorskip("trl")
    agree(TUTORIALS / "collect-and-train.md", tmp_path)


@pytest.mark.slow
@pytest.mark.train
def test_the_tutorial_of_the_hub(fake_hub, tmp_path):
    pytest.importorskip("trl")
    agree(TUTORIALS / "hub-to-trl.md", tmp_path / "page", with_runs(fake_hub, tmp_path))


def with_runs(hub: LocalHub, folder: Path) -> dict[str, str]:
    """The environment in which the Hub is a local one that has the data set of the tutorial."""
    make_runs = ROOT / "examples" / "curation" / "make_runs.py"
    subprocess.run([sys.executable, make_runs, folder / "runs"], check=True)
    chats = {f"data/{file.name}": file.read_bytes() for file in (folder / "runs/chats").iterdir()}
    hub.repos.push("travel-lab/agent-runs", {**chats, "README.md": b"---\nlicense: mit\n---\n"})
    whole = environment(hub, folder / "home")
    return {**{name: whole[name] for name in whole if name[:3] == "HF_"}, "HF_HUB_OFFLINE": "0"}


PAGE = """
```console
$ echo "two
> lines"
two > lines
$ echo a; echo b 1>&2; cat saved.txt
a
...
kept
$ ls nowhere
error: not what it says
$ echo "converting: 10% of 3 bytes"; echo done
done
$ cd examples && false
$ pwd | sed 's/.*work/work/'
work/examples
```
"""


def test_what_a_page_shows_must_be_so(tmp_path):
    page = tmp_path / "page.md"
    saved = '```text title="saved.txt"\nkept\n```\n'
    page.write_text(saved + PAGE + "```pycon\n>>> 1 + 1\n3\n```\n")
    examples = run_page(page, tmp_path / "run")
    assert [example.agrees for example in examples] == [True, True, False, True, False, True, False]
    assert "not what it says" in faults(examples)
    result = rewritten(page.read_text(), examples)
    assert "ls: cannot access" in result
    assert "not what it says" not in result


def test_an_example_that_did_not_run_does_not_agree():
    assert not Example(0, "true\n", "").agrees


def test_the_readme_stays_short():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 140
    assert not re.search(r"\brejects\b", "\n".join(lines[:60]))


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_of_pages_outside_the_site(page):
    """Those inside are checked by `make site`."""
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / page).read_text())
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_each_tutorial_is_tested():
    """A page without a test would go stale."""
    source = Path(__file__).read_text()
    assert [page.name for page in TUTORIALS.glob("*.md") if f'"{page.name}"' not in source] == []
