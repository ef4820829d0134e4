"""The report of evaluations over runs of the real scorers: amounts, tries, and experts."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from adp.eval.scoring import choose, score_store
from adp.workflows.report_eval import evaluation, markdown_report
from adp.workflows.report_eval.plots import draw
from tests.eval.scoring.small import grown, run

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_only_shares_are_drawn_on_a_percent_axis(tmp_path):
    """Seconds and calls between 0 and 1 are no percents."""
    columns = {"started_at": START, "ended_at": START + timedelta(seconds=0.5)}
    runs = [run(f"t{n}", success=n > 0, **columns) for n in range(3)]
    stores = [grown(tmp_path / name, *runs) for name in "ab"]
    for store in stores:
        score_store(store, choose(["efficiency"]))
    found = evaluation(stores)
    (scorer,) = found.runs[0].scorers
    seconds = next(one for one in scorer.figures if one.name == "seconds")
    assert (seconds.value, seconds.amount) == (0.5, True)
    plots = draw(found)
    for place in ("scores", "differences"):
        words = set(re.findall(r"\w+", plots[place].alt))
        assert "efficiency" in words, place
        assert words.isdisjoint({"seconds", "calls", "turns"}), place
    assert "1 attempt each" in markdown_report(found)
