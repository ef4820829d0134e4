"""Our result files through the real ``bfcl evaluate``: the same scores as ours, file by file.

BFCL_PYTHON names the Python of an environment with all of bfcl-eval (`pip install bfcl-eval
soundfile`; soundfile is what one of its dependencies forgets).
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import adp
from adp_bfcl.loader import by_id
from adp_bfcl.results import write_results
from adp_bfcl.scores import judge_results, write_scores
from adp_schema.store import Store
from tests.adp_bfcl.answering import Answering
from tests.adp_bfcl.official import installed

PYTHON = os.environ.get("BFCL_PYTHON", "")
MODELS = {"fc": "gpt-4o-2024-11-20-FC", "prompt": "gpt-4o-2024-11-20"}
COLUMNS = {
    "Overall Acc": "overall",
    "Non-Live AST Acc": "non_live",
    "Live Acc": "live",
    "Multi Turn Acc": "multi_turn",
    "Relevance Detection": "relevance",
    "Irrelevance Detection": "irrelevance",
}
pytestmark = [
    pytest.mark.slow,
    installed,
    pytest.mark.skipif(not PYTHON, reason="BFCL_PYTHON names no Python with all of bfcl-eval"),
]


def evaluate(folder: Path) -> Path:
    """Run the official program over ``folder/result``."""
    words = ["-m", "bfcl_eval", "evaluate", "--partial-eval"]
    words += ["--result-dir", str(folder / "result"), "--score-dir", str(folder / "official")]
    # The key is never used; without one the handler of the model cannot be made.
    env = {**os.environ, "OPENAI_API_KEY": "none", "BFCL_PROJECT_ROOT": str(folder)}
    env.pop("PYTHONPATH", None)
    done = subprocess.run([PYTHON, *words], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return folder / "official"


def lines(file: Path) -> list[dict]:
    text = file.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


def same(official: dict, ours: dict) -> str | None:
    """What differs between two rows, but for words about the error and what is left out."""
    if list(official) != list(ours):
        return "keys"
    if official["test_category"].startswith("multi_turn"):
        messages = (official.pop("error"), ours.pop("error"))
        if messages[0]["error_type"] != messages[1]["error_type"]:
            return "error_type"
        if type(messages[0]["error_message"]) is not type(messages[1]["error_message"]):
            return "error_message"
        for name in ("path", "missed_function", "excluded_function"):
            official["prompt"].pop(name, None)
    else:
        assert type(official.pop("error")) is type(ours.pop("error")) is list
    return next((name for name in official if official[name] != ours[name]), None)


def test_scores_are_those_of_the_official_program(tmp_path):
    count = 255
    for mode, name in MODELS.items():
        env = f"bfcl:category=all,mode={mode}"
        out = tmp_path / mode
        adp.collect(env, Answering(mode, name), f"test:{count}", out, timed=False,
                    limits={"max_turns": 300})  # fmt: skip
        assert write_results(Store.open(str(out)).trajectories(), tmp_path / "result").rows == count
    report = judge_results(tmp_path / "result", by_id())
    assert report.judged_rows == 2 * count
    theirs, ours = evaluate(tmp_path), tmp_path / "ours"
    write_scores(report, ours)
    files = {file.relative_to(theirs) for file in theirs.rglob("*.json")}
    assert files == {file.relative_to(ours) for file in ours.rglob("*.json")}
    assert len(files) == 2 * 17
    differing: Counter = Counter()
    for file in files:
        (head, *rows), (our_head, *our_rows) = lines(theirs / file), lines(ours / file)
        assert head == our_head, file
        assert [row["id"] for row in rows] == [row["id"] for row in our_rows], file
        differing.update(same(*pair) for pair in zip(rows, our_rows, strict=True))
    assert set(differing) == {None}
    for row in csv.DictReader(
        (theirs / "data_overall.csv").read_text(encoding="utf-8").split("\n")
    ):
        model = MODELS["fc" if row["Model"].endswith("(FC)") else "prompt"]
        figures = report.overall(model, missing_as_zero=True)
        for column, figure in COLUMNS.items():
            assert row[column] == f"{100 * figures[figure].value:.2f}%", (model, column)
