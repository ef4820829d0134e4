"""What holds for the pairs of every rule, and small stores to pair."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from adp.curation.op import OpResult
from adp_schema.builder import Origin, RowBuilder
from adp_schema.store import Store
from adp_schema.tables import TABLES
from tests.store_builders import write_store


def store_of(folder: Path, *runs: dict[str, Any]) -> Store:
    """A store of runs.

    Args:
        folder: folder of the store.
        runs: columns of each; ``steps`` is a list of columns of its steps, each of which may have
            ``calls`` and ``observations``, and ``branches`` a list of branches of the same form.
    """
    builder = RowBuilder()
    for number, run in enumerate(runs):
        values = {key: value for key, value in run.items() if key not in ("steps", "branches")}
        dataset = values.pop("dataset", "d")
        builder.begin(Origin(seq=number * 1000, dataset=dataset, columns={"source_hash": "0" * 32}))
        _run(builder, {"source_id": f"r{number}", **values}, run.get("steps", []))
        parent = builder.rows["trajectories"][-1]["trajectory_id"] if run.get("branches") else None
        for index, branch in enumerate(run.get("branches", [])):
            values = {key: value for key, value in branch.items() if key != "steps"}
            name = f"r{number}/b{index}"
            _run(builder, {"source_id": name, "parent_id": parent, **values}, branch["steps"])
    return write_store(folder, builder)


def _run(builder: RowBuilder, columns: dict[str, Any], steps: list[dict[str, Any]]) -> None:
    builder.trajectory(dict(columns))
    for step in steps:
        values = {key: value for key, value in step.items() if key not in ("calls", "observations")}
        builder.step({"source": "agent", "kind": "llm_turn", **values})
        for call in step.get("calls", []):
            builder.call({"kind": "function", **call})
        for seen in step.get("observations", []):
            builder.observation({"source": "environment", **seen}, by_order=True)
    builder.finish()


def rows_of(outcome: OpResult) -> list[dict[str, Any]]:
    """The pairs; each is checked for what every pair must be."""
    assert outcome.pairs is not None
    assert outcome.pairs.columns == TABLES["pairs"].schema.names
    rows = outcome.pairs.to_dicts()
    assert len({row["pair_id"] for row in rows}) == len(rows)
    for row in rows:
        assert row["context_up_to"] <= row["chosen_from"] < row["chosen_to"]
        assert row["rejected_from"] < row["rejected_to"]
        if row["chosen_score"] is not None and row["rejected_score"] is not None:
            assert row["margin"] == row["chosen_score"] - row["rejected_score"]
        assert row["rule"] == outcome.summary["rule"]
    return rows


def events_of(outcome: OpResult) -> list[dict[str, Any]]:
    """The events; each has a verdict, a reason and evidence, which names the pair, if any."""
    assert outcome.events is not None
    rows = outcome.events.to_dicts()
    pairs = (
        {row["pair_id"] for row in outcome.pairs.to_dicts()} if outcome.pairs is not None else {}
    )
    for row in rows:
        assert row["verdict"] in ("paired", "not_paired")
        assert row["reason"]
        row["evidence"] = json.loads(row["evidence"])
        assert (row["verdict"] == "paired") == ("pair_id" in row["evidence"])
        assert row["evidence"].get("pair_id") in {None, *pairs}
    messages = {row["evidence"]["pair_id"] for row in rows if row["verdict"] == "paired"}
    assert messages == set(pairs)
    return rows


def reasons_of(outcome: OpResult) -> dict[int, str]:
    """Key of a run -> why it is not paired."""
    return {row["seq"]: row["reason"] for row in events_of(outcome) if row["verdict"] != "paired"}


def same(first: OpResult, second: OpResult) -> None:
    """Two outcomes say the same."""
    assert first.pairs is not None
    assert second.pairs is not None
    assert first.pairs.equals(second.pairs)
    assert first.events is not None
    assert second.events is not None
    assert first.events.equals(second.events)
    assert first.made == second.made
    assert first.summary == second.summary
