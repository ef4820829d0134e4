"""A store that was removed since it was opened is not blamed for what fails elsewhere."""

from __future__ import annotations

import shutil

import pytest

import adp
from adp_schema.errors import QueryError


def test_another_store_is_not_blamed(tmp_path):
    adp.convert("examples/chat", tmp_path / "gone")
    adp.open(tmp_path / "gone").trajectories()
    adp.convert("examples/chat", tmp_path / "here")
    shutil.rmtree(tmp_path / "gone")
    with pytest.raises(QueryError, match="a query is one SELECT"):
        adp.open(tmp_path / "here").query("DROP TABLE steps")
