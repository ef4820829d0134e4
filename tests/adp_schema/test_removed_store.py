"""A store that is gone or damaged is not blamed for what fails in another one."""

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


def test_a_damaged_store_is_not_blamed_either(tmp_path):
    adp.convert("examples/chat", tmp_path / "torn")
    adp.open(tmp_path / "torn").trajectories()
    shard = next((tmp_path / "torn" / "steps").glob("*.parquet"))
    shard.unlink()
    adp.convert("examples/chat", tmp_path / "here")
    with pytest.raises(QueryError, match="a query is one SELECT"):
        adp.open(tmp_path / "here").query("DROP TABLE steps")
    with pytest.raises(QueryError, match="negative"):
        adp.open(tmp_path / "here").query("SELECT error('negative: ' || step) FROM steps")
