"""The report of evaluations in a real browser: tables and plots are there, nothing is loaded."""

from __future__ import annotations

import pytest

from adp.workflows.report import Report
from adp.workflows.report_eval import EvaluationOptions, evaluation
from adp_schema.builder import RowBuilder
from adp_schema.store import Store
from tests.eval.scoring.conftest import small_scorers  # noqa: F401
from tests.store_builders import write_store
from tests.workflows import test_report_page
from tests.workflows.eval_stores import hostile_rollouts, hostile_scores, rollouts
from tests.workflows.test_report_page import LOOKS, browser, check, look  # noqa: F401

pytestmark = [test_report_page.pytestmark, pytest.mark.usefixtures("small_scorers")]


def pages(root):
    """Stores of the reports: two runs, hostile texts, nothing."""
    two = [rollouts(root / "base", "base", 0.3), rollouts(root / "tuned", "tuned", 0.8)]
    return {
        "two": two,
        "hostile": [hostile_scores(hostile_rollouts(root / "hostile"))],
        "empty": [write_store(root / "empty", RowBuilder())],
    }


HEADINGS = "return [...document.querySelectorAll('h2')].map(e => e.textContent)"
TABLES = "return [...document.querySelectorAll('h3')].map(e => e.textContent)"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("two", marks=pytest.mark.slow),
        "hostile",
        pytest.param("empty", marks=pytest.mark.slow),
    ],
)
def test_in_a_browser(browser, tmp_path, name):  # noqa: F811
    stores = [Store.open(store.root) for store in pages(tmp_path)[name]]
    page = tmp_path / f"{name}.html"
    result = evaluation(stores, EvaluationOptions(name=name))
    page.write_text(Report(result).html(), encoding="utf-8")
    for width, height, dark in LOOKS:
        look(browser, width, height, dark=dark)
        browser.get(page.as_uri())
        check(browser, page, name, dark=dark, kind="evaluation report")
    headings = browser.execute_script(HEADINGS)
    if name == "empty":
        assert headings == ["Success"]
        return
    assert {"Success", "Scores", "Parts of the tasks", "Errors", "What broke", "Tools", "Costs",
            "Runs", "Failures"} <= set(headings)  # fmt: skip
    tables = browser.execute_script(TABLES)
    assert {"How episodes ended", "Use of tools", "By difficulty", "By kind"} <= set(tables)
    if name == "two":
        assert {"Comparison", "Several attempts"} <= set(headings)
    else:
        assert "<script>alert(1)</script>" in tables
        shown = browser.execute_script("return document.body.innerText")
        assert "<img src=x onerror=alert(1)>" in shown
