"""The examples of docs/environments.md do what the page says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from adp.rollouts.environment import ENVIRONMENTS
from adp.rollouts.environments.configured import read_tools
from adp.rollouts.spec import load

PAGE = (Path(__file__).parents[3] / "docs" / "environments.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"<!-- run(?:: (\w+))? -->\n```python\n(.*?)```\n\n```\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize(("package", "code", "output"), EXAMPLE.findall(PAGE))
def test_an_example_prints_what_the_page_shows(package, code, output):
    if package:
        pytest.importorskip(package)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "environments.md", "exec"), {"__name__": "example"})
    assert printed.getvalue() == output


def test_the_examples_are_found():
    assert len(EXAMPLE.findall(PAGE)) == 2


def test_the_names_on_the_page_can_be_read():
    names = "|".join(ENVIRONMENTS)
    lines = re.findall(rf"^(?:{names})(?::.*)?$", PAGE, re.MULTILINE)
    assert len(lines) == 9
    for line in lines:
        kind, settings = load(ENVIRONMENTS, line)
        assert isinstance(settings, kind.settings)


def test_the_file_of_tools_on_the_page_can_be_read(tmp_path, monkeypatch):
    (tmp_path / "texts").mkdir()
    (tmp_path / "tools.yaml").write_text(
        re.search(r"```yaml\n(tools:.*?)```", PAGE, re.DOTALL)[1], encoding="utf-8"
    )
    monkeypatch.setenv("STOCK_TOKEN", "secret")
    tools = {tool.name: tool for tool in read_tools(tmp_path / "tools.yaml", allow_commands=True)}
    assert set(tools) == {"calculator", "stock", "count_words"}
    (tmp_path / "texts" / "a").write_text("one two", encoding="utf-8")
    assert tools["count_words"].run(path="a").text == "2 a"
