"""Answers: SQuAD's own normalisation, ET-Agent's, and formulas as MATH compares them."""

from __future__ import annotations

import json
import re
import string
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.core.answers.extraction import extract
from adp.core.answers.formulas import formula, math_equal
from adp.core.answers.words import exact, holds, normalize, token_f1
from adp.rollouts.task_references import reference_answers
from adp_schema.model import Task
from tests.eval.scorers.runs import reasons, run, scorer, turn, values

WORDS = st.lists(
    st.sampled_from(["the", "An", "cat", "CAT.", "a", "dog", "-", "4", "u.s."]), max_size=6
)
TEXTS = st.one_of(WORDS.map(" ".join), st.text(max_size=20))


def squad_normalize(text):
    """As the evaluation script of SQuAD 1.1 does it, step by step."""
    lowered = text.lower()
    without = "".join(letter for letter in lowered if letter not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", without).split())


def squad_f1(prediction, reference):
    """As the evaluation script of SQuAD 2.0 does it."""
    output, wanted = squad_normalize(prediction).split(), squad_normalize(reference).split()
    same = sum((Counter(output) & Counter(wanted)).values())
    if not output or not wanted:
        return float(output == wanted)
    if not same:
        return 0.0
    precision, recall = same / len(output), same / len(wanted)
    return 2 * precision * recall / (precision + recall)


@given(TEXTS, TEXTS)
def test_squads_manner_is_the_script_of_squad(value, other):
    assert normalize(value) == squad_normalize(value)
    assert exact(value, other) == (squad_normalize(value) == squad_normalize(other))
    assert token_f1(value, other) == pytest.approx(squad_f1(value, other))
    assert token_f1(value, other) == pytest.approx(token_f1(other, value))
    if exact(value, other):
        assert token_f1(value, other) == 1.0


def test_punctuation_counts_in_et_agents_manner():
    assert exact("The cat.", "cat")
    assert not exact("The cat.", "cat", "et_agent")
    assert exact("The  cat", "a CAT", "et_agent")
    assert holds("It was the red cat, I think", "Red Cat", "et_agent")
    assert not holds("anything", "the")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("plain", "plain"),
        ("so <answer> 4 </answer> and <answer>5</answer>.", "5"),
        ("<answer>so \\boxed{\\frac{1}{2}} it is</answer>", "\\frac{1}{2}"),
        ("first \\boxed{1} then \\fbox{2} and \\boxed{\\text{b}}", "b"),
        ("\\boxed{open", "\\boxed{open"),
        ("<FINAL>7</FINAL>", "7"),
        ("</answer> late <answer>", "</answer> late <answer>"),
        ("<answer></answer>", ""),
    ],
)
def test_where_an_answer_stands(text, answer):
    assert extract(text) == answer


@pytest.mark.parametrize(
    ("value", "other"),
    [
        ("\\frac{1}{2}", "\\tfrac12"),
        ("\\dfrac{3}{4}", "3/4"),
        ("0.5", "\\frac{1}{2}"),
        (".25", "\\frac{1}{4}"),
        ("x = 5", "5"),
        ("\\sqrt2", "\\sqrt{2}"),
        ("\\left( 1, 2 \\right)", "(1,2)"),
        ("90^\\circ", "90"),
        ("$10\\%$", "10"),
        ("5\\text{ cm}", "5"),
        ("1,000", "1000"),
        ("1,000.50", "1000.5"),
        ("-\\frac{2}{4}", "-0.5"),
        ("7.0", "7"),
        ("\\text{B}", "B"),
    ],
)
def test_equal_formulas(value, other):
    assert math_equal(value, other)
    assert math_equal(other, value)


@pytest.mark.parametrize(
    ("value", "other"),
    [
        ("\\frac{1}{2}", "\\frac{1}{3}"),
        ("1,2", "12"),
        ("(1,2)", "(2,1)"),
        ("0.333", "\\frac{1}{3}"),
        ("1/0", "0"),
        ("", "0"),
        ("x=y=2", "2"),
        ("abc = 5", "5"),
        ("2e3", "2000"),
        ("9" * 5000, "9" * 4999),
    ],
)
def test_different_formulas(value, other):
    assert not math_equal(value, other)


@given(st.integers(-999, 999), st.integers(1, 99))
def test_numbers_are_equal_as_fractions(top, bottom):
    assert math_equal(f"\\frac{{{top}}}{{{bottom}}}", f"{2 * top}/{2 * bottom}")
    assert math_equal(f"{top}.{bottom:02d}", f"{top}.{bottom:02d}0")
    assert math_equal(str(top), str(bottom)) == (top == bottom)


@given(st.text(alphabet="\\frac{}12 sqt.$%^circ/=-", max_size=30))
def test_a_formula_equals_itself(text):
    assert math_equal(text, text)
    assert formula(text) == formula(text + " ")


@pytest.mark.parametrize(
    ("columns", "known"),
    [
        ({}, []),
        ({"answers": '["4", "four", "4"]'}, ["4", "four"]),
        ({"answers": '[["a", "b"], null, 7, true]'}, ["a", "b", "7", "true"]),
        ({"answers": '"x"'}, ["x"]),
        ({"answers": '{"value": "x", "aliases": ["y", "z"]}'}, ["x", "y", "z"]),
        ({"answers": "{"}, []),
        ({"answers": '["one", "two"]', "turns": "[{}, {}]"}, ["two"]),
        ({"answers": '["one", "two"]', "turns": "[{}]"}, ["one", "two"]),
        ({"answers": '[{"other": 1}]'}, ['{"other": 1}']),
    ],
)
def test_reference_answers(columns, known):
    assert reference_answers(Task(**columns)) == known


def test_the_best_reference_counts():
    item = run(
        turn(text="wrong"), final_answer="The cat sat", task={"answers": '["dog", "cat mat"]'}
    )
    result = values(scorer("answer").score(item))
    assert result == {"answer_em": 0, "answer_f1": 0.5, "answer_acc": 0, "answer_math": 0}
    last = values(scorer("answer:prediction=last_text").score(item))
    assert last["answer_f1"] == 0.0


def test_no_answer_is_wrong_and_no_reference_is_unscored():
    empty = run(task={"answers": '[""]'})
    assert set(values(scorer("answer").score(empty)).values()) == {0.0}
    unknown = reasons(scorer("answer").score(run(turn(text="4"))))
    assert set(unknown.values()) == {"the task has no reference answer"}


@pytest.mark.parametrize(
    ("answer", "known", "numbers", "hendrycks"),
    [
        ("1,000", "1000", 1.0, 0.0),
        ("\\dfrac12", "0.5", 1.0, 1.0),
        ("0.25", "1/4", 1.0, 0.0),
        ("x", "y", 0.0, 0.0),
    ],
)
def test_formulas_are_compared_as_one_chooses(answer, known, numbers, hendrycks):
    item = run(turn(text="t"), final_answer=answer, task={"answers": json.dumps([known])})
    for name, value in (("numbers", numbers), ("hendrycks", hendrycks)):
        assert values(scorer(f"answer:formulas={name}").score(item))["answer_math"] == value


@pytest.mark.parametrize(
    ("dataset", "value"), [("aime24", 0.0), ("hotpotqa", 2 / 3), ("runs", None), (None, None)]
)
def test_the_data_set_of_a_task_chooses_what_is_correct(dataset, value):
    task = {"answers": '["the nile river"]', "dataset": dataset}
    item = run(turn(text="Nile"), final_answer="Nile", task=task)
    score = scorer("efficiency:correct=by_source").score(item)
    assert values(score)["correctness"] == (None if value is None else pytest.approx(value))
    if value is None:
        assert "set correct=answer_f1" in reasons(score)["correctness"]
