"""docs/architecture.md names what there is."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`((?:[A-Za-z_]+\.)+[A-Za-z_]+)`", PAGE)))


def resolves(name):
    """Whether a dotted name is a module, or what a module holds."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            if not hasattr(value, part):
                return False
            value = getattr(value, part)
        return True
    return False


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith((".py", ".md"))])
def test_names_are_there(name):
    roots = ("", "adp.", "adp.rollouts.collecting.", "adp.converters.", "adp_schema.protocols.")
    assert any(resolves(root + name) for root in roots)


def test_all_floors_are_named():
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    layers = re.search(r"layers = \[(.*?)\]", text, re.DOTALL)[1]
    for name in re.findall(r"adp[a-z_.]*", layers):
        assert f"`{name}`" in PAGE
