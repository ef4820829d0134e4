"""Fixtures of the tests that train."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def training_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of models and rows that the tests of a module have to themselves."""
    patch = pytest.MonkeyPatch()
    patch.setenv("ADP_CACHE", str(tmp_path_factory.mktemp("cache")))
    yield
    patch.undo()
