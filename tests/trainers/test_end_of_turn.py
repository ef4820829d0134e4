"""No training on steps that do not teach the model to stop, unless that is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adp.core.progress import Silent
from adp.rendering.pairs import BadPair, pairs_of
from adp.rendering.report import NO_END
from adp.trainers import dpo, kto, sft
from adp.trainers.export.run import export_rows
from adp.trainers.preference_rows import PairCounts, PairRenderer
from adp_schema.errors import UsageError
from adp_schema.store import Store
from tests.rendering.test_endings import NO_TOKEN, OPEN, made
from tests.trainers.pair_stores import call, run, say, sides, write_pairs
from tests.trainers.small_runs import config_of, write_runs

REFUSED = "steps that train no end of turn"


def two_runs(folder: Path, good: list[dict[str, Any]], bad: list[dict[str, Any]]) -> Store:
    """A store of two runs of a task, and the pair of them."""
    runs = [run("good", "Rain?", good), run("bad", "Rain?", bad)]
    return write_pairs(folder, runs, [sides("good", "bad")])


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Rendering that ends no turn."""
    monkeypatch.setenv("ADP_CACHE", str(tmp_path / "cache"))
    return {"render__chat_template": NO_TOKEN, "render__tools": "text"}


def test_sft(options: dict[str, Any], tmp_path: Path) -> None:
    store = write_runs(tmp_path / "store", 3)
    folder = tmp_path / "rows"
    folder.mkdir()
    with pytest.raises(UsageError, match=f"6 {REFUSED}"):
        sft.METHOD.prepare(config_of(store, **options), folder, Silent())
    config = config_of(store, **options, render__end_of_turn="allow")
    plan = sft.METHOD.prepare(config, folder, Silent())
    assert plan.notes[NO_END] == 6


@pytest.mark.parametrize("method", ["dpo", "kto"])
def test_preferences(method: str, options: dict[str, Any], tmp_path: Path) -> None:
    store = two_runs(tmp_path / "store", [say("good")], [say("bad")])
    folder = tmp_path / "rows"
    folder.mkdir()
    made = {"dpo": dpo, "kto": kto}[method].METHOD
    more: dict[str, Any] = {"method": method, **options}
    if method == "kto":
        more["kto__rows"] = "pairs"
    with pytest.raises(UsageError, match=f"2 {REFUSED}"):
        made.prepare(config_of(store, **more), folder, Silent())
    plan = made.prepare(config_of(store, **more, render__end_of_turn="allow"), folder, Silent())
    assert plan.notes[NO_END] == 2


@pytest.mark.parametrize(("to", "form"), [("verl-sft", {}), ("trl-sft", {"form": "tokens"})])
def test_exports_of_tokens(to: str, form: dict[str, Any], tmp_path: Path) -> None:
    store = write_runs(tmp_path / "store", 2)
    given = {"chat_template": NO_TOKEN, "tools": "text", **form}
    with pytest.raises(UsageError, match=f"4 {REFUSED}"):
        export_rows(store, to, str(tmp_path / "out"), given, model="tiny")
    assert not (tmp_path / "out").exists()
    allowed = {**given, "end_of_turn": "allow"}
    report = export_rows(store, to, str(tmp_path / "out"), allowed, model="tiny")
    assert report.changed[NO_END] == 4


def test_both_sides_of_a_pair_end_where_the_model_stops(tmp_path: Path) -> None:
    """The template leaves turns open; the side ends with what the next message begins with."""
    good = [call("rain", "RESULT"), say("It rains.")]
    store = two_runs(tmp_path / "store", good, [say("No idea.")])
    maker = made(OPEN)
    tally = PairCounts()
    rows = [
        PairRenderer(maker).row(pair, tally)
        for pair in pairs_of(store)
        if not isinstance(pair, BadPair)
    ]
    (row,) = rows
    assert row is not None
    chosen, rejected = (
        maker.tokenizer.decode(side.ids[side.mask]) for side in (row.chosen, row.rejected)
    )
    assert chosen.endswith("</call><|tool|>It rains.<|user|>")
    assert rejected == "No idea.<|user|>"
    assert not tally.notes[NO_END]
