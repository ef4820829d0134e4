from __future__ import annotations

import subprocess
import sys

import pytest

from adp.workflows.new_plugin import PLUGINS, write_plugin
from adp_schema.errors import OutputExistsError, UsageError

QUICK = ("format",)


@pytest.mark.parametrize(
    "kind",
    [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.slow) for kind in PLUGINS],
)
def test_the_test_of_a_new_package_passes(kind, tmp_path):
    plugin = write_plugin(kind, "mine", tmp_path / "mine")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "tests"],
        cwd=plugin.folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_nothing_is_written_over(tmp_path):
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(OutputExistsError, match="not empty"):
        write_plugin("op", "mine", tmp_path)


@pytest.mark.parametrize("name", ["", "My", "class", "a-b", "../x", "x" * 60])
def test_names_that_no_module_can_have(name, tmp_path):
    with pytest.raises(UsageError, match="cannot be a name"):
        write_plugin("op", name, tmp_path / "out")


@pytest.mark.parametrize(
    ("kind", "name"),
    [("format", "atif"), ("exporter", "alpaca"), ("op", "filter"), ("scorer", "outcome"),
     ("environment", "calculator"), ("policy", "openai")],
)  # fmt: skip
def test_names_of_plugins_that_are_there(kind, name, tmp_path):
    with pytest.raises(UsageError, match="choose another"):
        write_plugin(kind, name, tmp_path / "out")
    assert not (tmp_path / "out").exists()
