from __future__ import annotations

import pytest

from adp.eval.scorer import SCORERS
from tests.eval.scoring.small import BUILTIN


@pytest.fixture
def small_scorers(monkeypatch):
    """The scorers for tests instead of those that there are."""
    monkeypatch.setattr(SCORERS, "_builtin", BUILTIN)
    monkeypatch.setattr(SCORERS, "group", "adp.scorers.of_no_package")
    monkeypatch.setattr(SCORERS, "_targets", None)
