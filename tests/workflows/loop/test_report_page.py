"""The report of a loop in a real browser: no table goes on beside the page, rounds need no room."""

from __future__ import annotations

import pytest

from adp.workflows.loop.records import StageRecord
from adp.workflows.loop.report import LoopNumbers, write_report
from tests.workflows import test_report_page
from tests.workflows.test_report_page import browser, look  # noqa: F401

pytestmark = test_report_page.pytestmark

FIGURES = [
    ("outcome", "success", 0.0, 0.0, 0.561),
    ("efficiency", "calls", 3.25, 1.5, 12.125),
    ("reasoning_length", "reasoning_words", 126.333, 100.0, 1213.5),
    ("format", "format_correct", 1.0, 0.439, 1.0),
]
TABLES = """
return [...document.querySelectorAll('.scroll')].map(box => {
  const title = box.closest('.table').querySelector('h3').textContent;
  const first = box.querySelector('th').getBoundingClientRect().width;
  return [title, box.clientWidth, box.scrollWidth, first];
});
"""


def records() -> list[StageRecord]:
    """Two rounds: rollouts, a training and an evaluation with intervals."""
    names = ("scorer", "name", "value", "low", "high")
    figures = [dict(zip(names, row, strict=True)) for row in FIGURES]
    result = []
    for number in (1, 2):
        values = {"sigma_tool": 0.2 / number, "sigma_len": 0.5 / number}
        lines = {
            "collect": "8 episodes, success 0.000",
            "train": "2 steps, reward 0 -> 0",
            "eval": "3 episodes, success 0.000",
        }
        for kind, line in lines.items():
            record = StageRecord(
                key=f"round-{number}.{kind}",
                round=number,
                stage=kind,
                kind=kind,
                values=values,
                options={"method": "grpo"},
                options_hash="",
                inputs={},
                hash="0186e3d848d2aa",
                counts={"episodes": 3, "rows": 2, "trained_tokens": 4_812, "steps": 2},
                figures=figures if kind == "eval" else [],
                line=line,
                done=True,
            )
            result.append(record)
    return result


@pytest.mark.parametrize("width", [1280, 900])
def test_tables_fit_the_page(browser, tmp_path, width):  # noqa: F811
    numbers = LoopNumbers("et_agent", "Three rounds.", records())
    page = next(path for path in write_report(tmp_path, numbers) if path.suffix == ".html")
    look(browser, width, 900, dark=False)
    browser.get(page.as_uri())
    tables = browser.execute_script(TABLES)
    assert [title for title, *_ in tables] == [
        "Evaluations",
        "Train stages",
        "Stages that make data",
        "In order",
    ]
    for title, shown, needed, first in tables:
        assert needed <= shown, title
        assert first < 70, title  # the head "round" itself is about 45 wide
