"""Tests of real samples do not depend on their being there, and are not excused when they are."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests import conftest, samples


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Samples of the tests' own: two files in one folder, and the list that counts them."""
    root = tmp_path / "data"
    (root / "chat").mkdir(parents=True)
    (root / "README.md").write_text("about them")
    for name in ("a", "b"):
        (root / "chat" / name).write_text(name)
    monkeypatch.setattr(samples, "ROOT", root)
    monkeypatch.setattr(samples, "COUNTS", tmp_path / "samples.json")
    monkeypatch.setattr(samples, "gone", samples.gone.__wrapped__)
    samples.COUNTS.write_text(json.dumps(samples.count()))
    return root


def test_what_is_gone_is_named(here: Path) -> None:
    assert samples.gone() is None
    (here / "chat" / "c").write_text("one more")
    (here / "README.md").unlink()
    assert samples.gone() is None
    (here / "chat" / "a").unlink()
    (here / "chat" / "b").unlink()
    assert samples.gone() == "1 of 2 files are in ../shared/data/chat"


def _module(**names: Any) -> ModuleType:
    module = ModuleType("tests.made")
    vars(module).update(names)
    return module


def test_who_uses_them_is_known(here: Path) -> None:
    assert samples.uses_samples(_module(DATA=here / "chat"))
    assert not samples.uses_samples(_module(DATA=here.parent / "other", Path=Path))


@pytest.mark.parametrize(
    ("uses", "remove", "outcome"),
    [(True, True, "skipped"), (True, False, "failed"), (False, True, "failed")],
)
def test_a_failure_is_excused_only_where_some_are_gone(
    here: Path, request: pytest.FixtureRequest, uses: bool, remove: bool, outcome: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if remove:
        (here / "chat" / "a").unlink()

    def fails() -> None:
        raise FileNotFoundError("a")

    item = pytest.Function.from_parent(
        request.node.parent, name="test_made", callobj=lambda: fails()
    )
    monkeypatch.setattr(samples, "uses_samples", lambda module: uses)
    call = pytest.CallInfo.from_call(fails, "call")
    steps = conftest.pytest_runtest_makereport(item, call)
    next(steps)
    with pytest.raises(StopIteration) as ended:
        steps.send(pytest.TestReport.from_item_and_call(item, call))
    report = ended.value.value
    assert report.outcome == outcome
    if outcome == "skipped":
        assert "1 of 2 files are in ../shared/data/chat" in report.longrepr[2]
