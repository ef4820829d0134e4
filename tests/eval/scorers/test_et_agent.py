"""ET-Agent's figures against plain arithmetic over the same runs."""

from __future__ import annotations

import json
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.eval.scorer import Item
from adp.eval.scorers.et_agent import EtFigureScorer, EtFigureSettings
from adp.rollouts.judging.judge import Judge
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.policy import InfrastructureError
from adp.rollouts.turns import Turn
from adp_schema.model import Step, Task, Trajectory
from tests.eval.scorers.runs import call, figures, reasons, run, scorer, turn, values
from tests.eval.scorers.runs import rows as scored_rows

SEARCH = "<think>s</think><search>q</search><result>a long result</result>"
PYTHON = "<think>p</think><python>1+1</python><result>Error: no</result>"
ANSWERS = st.sampled_from(["The Nile", "nile river", "1/2", "\\frac{1}{2}", "4", ""])
REFERENCES = st.lists(
    st.sampled_from(["nile", "the Nile river", "\\dfrac12", "4.", "4"]), min_size=1, max_size=3
)
TEXTS = st.builds(
    "{}{}".format,
    st.lists(st.sampled_from([SEARCH, PYTHON, "<think>more</think>"]), max_size=4).map("".join),
    st.builds("<answer>It is \\boxed{{{}}}.</answer>".format, ANSWERS),
)
SETS = st.sampled_from(["aime24", "gsm8k", "hotpotqa", "bamboogle", "webwalker", "unheard of"])
MATH = ("aime24", "gsm8k")
RUNS = st.lists(st.tuples(TEXTS, REFERENCES, SETS), min_size=1, max_size=6)


def item(text, references, dataset, number=0):
    task = Task(task_id=str(number), answers=json.dumps(references), dataset=dataset)
    steps = [Step(step=0, source="user", text="?"), Step(step=1, source="agent", text=text)]
    return Item(Trajectory(trajectory_id=f"d/{number}", steps=steps), task)


def plain(text, is_math):
    lowered = text.lower()
    return " ".join((lowered if is_math else re.sub(r"\b(a|an|the)\b", " ", lowered)).split())


def f1(first, second):
    given_words, wanted = first.split(), second.split()
    same = sum((Counter(given_words) & Counter(wanted)).values())
    return 2 * same / (len(given_words) + len(wanted)) if same else 0.0


def half(text):
    return re.sub(r"^(1/2|\\d?frac(\{1\}\{2\}|12))$", "half", text)


def reference(text, references, dataset):
    """The figures of a run, one after the other."""
    is_math = dataset in MATH
    answer = re.findall(r"\\boxed\{(.*)\}\.", text)[-1]
    texts = [plain(entry, is_math) for entry in references]
    python, search = (len(re.findall(f"<{tag}>.*?</{tag}>", text)) for tag in ("python", "search"))
    out = {
        "em": float(plain(answer, is_math) in texts and bool(answer)),
        "acc": float(any(entry in plain(answer, is_math) for entry in texts) and bool(answer)),
        "f1": max(f1(plain(answer, is_math), entry) for entry in texts),
        "math_equal": None,
        "calls": python + search,
        "python_calls": python,
        "search_calls": search,
        "uses_tools": float(python + search > 0),
        "output_length": len(re.sub(r"<result>.*?</result>", "", text).strip()),
    }
    if is_math:
        same = [
            half(answer.replace(" ", "")) == half(entry.replace(" ", "")) for entry in references
        ]
        out["math_equal"] = float(any(same) and bool(answer))
    out["accuracy"] = out["math_equal"] if is_math else out["f1"]
    count = python + search
    out["efficiency"] = out["accuracy"] / count if count else out["accuracy"]
    known = dataset in ("hotpotqa", "bamboogle")
    out["headline"] = out["accuracy"] if is_math or known else None
    out["valid_answer"] = float(bool(answer))
    return out


@given(RUNS)
def test_they_are_its_definitions(runs):
    chosen = scorer("et_agent")
    rows, wanted = [], []
    for number, (text, references, dataset) in enumerate(runs):
        entry = item(text, references, dataset, number)
        scores = chosen.score(entry)
        wanted.append(reference(text, references, dataset))
        assert values(scores) == pytest.approx(wanted[-1], nan_ok=False)
        rows += scored_rows(scores, str(number), str(number))
    result = {figure.name: figure.value for figure in chosen.figures(rows)}
    for name in ("em", "f1", "calls", "efficiency", "output_length"):
        assert result[name] == pytest.approx(np.mean([entry[name] for entry in wanted]))
    right = np.mean([entry["accuracy"] for entry in wanted])
    calls = np.mean([entry["calls"] for entry in wanted])
    assert result["tool_productivity"] == pytest.approx(right * calls / (calls + 0.1) * 100)


def judged(answers):
    def script(request):
        answer = answers[request.attempt]
        if isinstance(answer, Exception):
            raise answer
        return Turn(text=answer, model="m")

    return EtFigureScorer(EtFigureSettings(), Judge(Scripted(script, "judge"), len(answers)))


YES, NO = "Same.\n<verdict>Correct</verdict>", "<verdict>incorrect</verdict>"
CALLED = SEARCH + SEARCH + "<answer>\\boxed{4}</answer>"


@pytest.mark.parametrize(
    ("answers", "value"),
    [
        ([YES], 1.0),
        ([NO], 0.0),
        ([YES, NO, YES], 1.0),
        ([YES, NO], 0.0),
        ([YES, "no verdict"], None),
        ([InfrastructureError("http_500", "it failed")], None),
        (["<verdict>incorrect</verdict> no: <verdict>correct</verdict>"], 1.0),
    ],
)
def test_the_judge_decides_where_f1_does_not(answers, value):
    chosen = judged(answers)
    scores = values(chosen.score(item(CALLED, ["four"], "gaia")))
    assert (scores["llm_equal"], scores["headline"], scores["accuracy"]) == (value, value, value)
    # Efficiency over words is that of F1, over formulas that of the judge.
    assert scores["efficiency"] == 0.0
    scores = values(chosen.score(item(CALLED, ["four"], "gsm8k")))
    assert scores["headline"] == value
    assert scores["efficiency"] == (None if value is None else value / 2)
    scores = values(chosen.score(item(CALLED, ["four"], "hotpotqa")))
    assert (scores["headline"], scores["llm_equal"]) == (0.0, value)


def test_a_judge_is_not_asked_about_nothing():
    scores = judged([ValueError("never")]).score(
        item("<think>t</think><answer></answer>", ["4"], "gaia")
    )
    assert values(scores)["llm_equal"] == 0.0


def test_words_need_a_judge_for_their_main_figure():
    scores = scorer("et_agent").score(item(CALLED, ["4"], "gaia"))
    assert values(scores)["headline"] is None
    assert "name one with policy=" in reasons(scores)["headline"]
    assert (
        values(scorer("et_agent:rule=math").score(item(CALLED, ["4"], "gaia")))["headline"] == 1.0
    )


def test_the_last_lines_stand_in_for_an_answer():
    text = SEARCH + "one\ntwo\n\nthree\nfour\nfive\nthe Nile"
    scores = values(scorer("et_agent").score(item(text, ["the Nile"], "hotpotqa")))
    assert (scores["em"], scores["acc"], scores["valid_answer"]) == (0.0, 1.0, 1.0)
    scores = values(scorer("et_agent").score(item(text, ["one"], "hotpotqa")))
    assert scores["acc"] == 0.0


def test_calls_that_are_data_are_told_apart_by_their_names():
    steps = [
        turn(call("web_search", {}, "r"), call("run_code", {}, "r")),
        turn(call("lookup", {}, "r")),
        turn(text="4"),
    ]
    entry = run(
        *steps, task={"answers": '["4"]', "extra": '{"source": "openr1"}'}, final_answer="4"
    )
    scores = values(scorer("et_agent").score(entry))
    assert [scores[name] for name in ("calls", "search_calls", "python_calls")] == [3, 1, 1]
    assert (scores["math_equal"], scores["efficiency"]) == (1.0, pytest.approx(1 / 3))


def test_without_a_reference_nothing_is_scored():
    scores = scorer("et_agent").score(run(turn(text="4")))
    assert set(reasons(scores).values()) == {"the task has no reference answer"}
    assert figures(scorer("et_agent"), run(turn(text="4")))["tool_productivity"].value is None


RESULTS = st.sampled_from(["ok", "", "Execution Timeout after 3 s", "a TypeError", "ERROR", "fine"])


@given(st.lists(st.tuples(st.lists(RESULTS, max_size=4), st.booleans()), min_size=1, max_size=6))
def test_execution_is_that_of_its_radar(runs):
    items = [
        run(
            *[turn(call("search", {}, {"text": text})) for text in results],
            success=success,
            trajectory_id=f"d/{number}",
            task={},
        )
        for number, (results, success) in enumerate(runs)
    ]
    result = figures(scorer("execution"), *items)
    failed = [
        [
            not text or "Execution Timeout" in text or "Tool execute failed" in text
            or "error" in text.lower()
            for text in results
        ]
        for results, _ in runs
    ]  # fmt: skip
    per_run = [right / max(sum(marks), 1) for marks, (_, right) in zip(failed, runs, strict=True)]
    assert result["correct_per_error"].value == pytest.approx(np.mean(per_run))
    flat = [mark for marks in failed for mark in marks]
    if flat:
        wanted = 1 - np.mean(flat)
        assert result["execution_text:calls"].value == pytest.approx(wanted)
