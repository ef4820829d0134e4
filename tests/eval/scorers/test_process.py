"""Execution, efficiency, productivity, length and conciseness."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.eval.scorers.reasoning_length import without_results
from adp_schema.errors import InputError, UsageError
from adp_schema.model import Step
from tests.eval.scorers.runs import call, figures, reasons, run, scorer, turn, values

GOOD, BAD = {"text": "4", "is_error": False}, {"text": "4", "is_error": True}


@pytest.mark.parametrize(
    ("result", "typed", "text", "best"),
    [
        ({"text": "4", "is_error": False}, 1, 1, 1),
        ({"text": "no error found", "is_error": False}, 1, 0, 1),
        ({"text": "4", "is_error": True}, 0, 1, 0),
        ({"text": "4", "error_type": "timeout"}, 0, 1, 0),
        ({"text": "4", "exit_code": 1}, 0, 1, 0),
        ({"text": "4", "exit_code": 0}, 1, 1, 1),
        ({"text": "4"}, None, 1, 1),
        ({"text": ""}, None, 0, 0),
        ({"text": "ERROR: no"}, None, 0, 0),
        ({"text": "Execution Timeout"}, None, 0, 0),
        ({"text": "Tool execute failed: x"}, None, 0, 0),
    ],
)
def test_marks_come_first_and_texts_stand_in(result, typed, text, best):
    entry = values(scorer("execution").score(run(turn(call("f", {}, result)))))
    assert entry["execution_success"] == best
    assert entry["execution_typed"] == typed
    assert entry["execution_text"] == text


def test_correctness_for_each_error():
    item = run(
        turn(call("f", {}, BAD), call("f", {}, BAD), call("f", {}, GOOD), call("f")), success=True
    )
    score = scorer("execution").score(item)
    assert values(score) == pytest.approx(
        {
            "execution_success": 1 / 3,
            "execution_typed": 1 / 3,
            "execution_text": 1.0,
            "correct_per_error": 0.5,
        }
    )
    assert score[0].evidence["types"] == {"untyped": 2}
    other = run(turn(call("f", {}, GOOD)), success=True)
    together = figures(scorer("execution"), item, other)
    assert together["execution_success"].value == pytest.approx((1 / 3 + 1) / 2)
    assert together["execution_success:calls"].value == pytest.approx(2 / 4)


def test_calls_without_results_are_unscored():
    result = reasons(scorer("execution").score(run(turn(call("f")))))
    assert result["execution_success"] == "no call has a recorded result"
    none = scorer("execution").score(run(turn(text="4"), success=True))
    assert values(none)["correct_per_error"] == 1.0
    assert {reason for reason in reasons(none).values() if reason} == {"the agent made no call"}


def test_a_result_in_a_message_of_the_environment():
    message = Step(source="environment", kind="message", text="Error: no")
    item = run(turn(call("f")), message, turn(text="4"))
    assert values(scorer("execution").score(item))["execution_text"] == 0.0


RUNS = st.lists(st.tuples(st.booleans(), st.integers(0, 4)), min_size=1, max_size=6)


@given(RUNS)
def test_et_agents_efficiency_and_productivity(runs):
    items = [run(*(turn(call("f")) for _ in range(calls)), success=right) for right, calls in runs]
    result = figures(scorer("efficiency"), *items)
    wanted = [right / calls if calls else float(right) for right, calls in runs]
    assert result["efficiency"].value == pytest.approx(sum(wanted) / len(runs))
    right, calls = (sum(column) / len(runs) for column in zip(*runs, strict=True))
    productivity = figures(scorer("tool_productivity"), *items)["tool_productivity"]
    assert productivity.value == pytest.approx(100 * right * calls / (calls + 0.1))
    calls_per_success = result["calls_per_success"]
    assert calls_per_success.value == (pytest.approx(calls / right) if right else None)
    assert right or calls_per_success.reason == "correctness is 0 in all trajectories"


@pytest.mark.parametrize(
    ("calls", "expected", "right", "step", "spl"),
    [
        (2, 2, True, 1, 1),
        (4, 2, True, 0.5, 0.5),
        (1, 2, False, 1, 0),
        (0, 0, True, 1, 1),
        (1, 0, True, 0, 0),
    ],
)
def test_steps_against_a_right_run(calls, expected, right, step, spl):
    item = run(
        *(turn(call("f")) for _ in range(calls)),
        success=right,
        task={"expected_calls": json.dumps([{"name": "f"}] * expected)},
    )
    result = values(scorer("efficiency").score(item))
    assert (result["step_efficiency"], result["spl"]) == (step, spl)


def test_what_a_run_used():
    times = {
        "started_at": datetime(2026, 1, 1, tzinfo=UTC),
        "ended_at": datetime(2026, 1, 2, tzinfo=UTC),
    }
    item = run(turn(call("f"), tokens_in=10, tokens_out=5, cost_usd=0.5), success=True, **times)
    result = values(scorer("efficiency").score(item))
    used = ("calls", "turns", "tokens", "seconds", "cost_usd")
    assert [result[name] for name in used] == [1, 1, 15, 86400, 0.5]
    lost = run(turn(tokens_in=30, tokens_out=5), success=False)
    together = figures(scorer("efficiency"), item, lost)
    assert together["tokens_per_success"].value == 50
    totals = run(turn(tokens_in=1), total_tokens_in=7, total_cost_usd=2.0)
    assert values(scorer("efficiency").score(totals))["tokens"] == 7
    unknown = reasons(scorer("efficiency").score(run(turn())))
    assert unknown["tokens"] == "the source does not record tokens"
    assert unknown["efficiency"] == "it is not known whether the task was solved"


def test_where_correctness_comes_from():
    item = run(
        turn(call("f")),
        turn(call("f")),
        final_answer="<answer>red cat</answer>",
        reward=0.5,
        success=False,
        task={"answers": '["cat"]'},
    )
    wanted = {"success": 0, "reward": 0.25, "answer_em": 0, "answer_f1": 1 / 3, "answer_acc": 0.5}
    for by, value in wanted.items():
        result = values(scorer(f"efficiency:correct={by}").score(item))
        assert result["efficiency"] == pytest.approx(value)
    other = run(task={"answers": '["\\\\frac12"]'}, final_answer="0.5")
    assert values(scorer("efficiency:correct=answer_math").score(other))["efficiency"] == 1.0


def test_length_without_calls_and_results():
    item = run(
        turn(call("f", {"long": "x y z"}, "a result"), text="one two", reasoning="three"),
        turn(text="four <result>not counted</result> five", tokens_out=9),
        success=True,
    )
    assert values(scorer("reasoning_length").score(item)) == {
        "reasoning_words": 5,
        "correct_per_words": 0.2,
    }
    chars = values(scorer("reasoning_length:unit=chars").score(item))
    assert chars["reasoning_chars"] == len("one two") + len("three") + len("four  five")
    recorded = values(scorer("reasoning_length:unit=recorded").score(item))
    assert recorded["reasoning_recorded_tokens"] == 9
    assert without_results("a<result>b") == "ab"


def test_length_in_tokens(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"one": 0, "[UNK]": 1}, "[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    item = run(turn(text="one, two"))
    length = scorer(f"reasoning_length:unit=tokens,tokenizer={tmp_path}")
    assert values(length.score(item))["reasoning_tokens"] == 3
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read as a tokenizer"):
        scorer(f"reasoning_length:unit=tokens,tokenizer={tmp_path / 'tokenizer.json'}")
    with pytest.raises(UsageError, match="needs tokenizer"):
        scorer("reasoning_length:unit=tokens")


def test_repeats_are_the_same_call_however_it_is_written():
    item = run(
        turn(call("f", '{"a": 1, "b": 2}'), call("g", {})),
        turn(call("f", '{"b":2,"a":1}'), call("f", {"a": 1})),
        turn(call("f", "{"), call("f", "{")),
    )
    score = scorer("conciseness").score(item)
    assert values(score)["repeated_calls"] == pytest.approx(2 / 6)
    assert (values(score)["no_repeats"], values(score)["concise"]) == (0.0, 0.0)
    once = run(turn(call("f")), turn(text="4"))
    assert values(scorer("conciseness").score(once))["no_repeats"] == 1.0


def test_results_that_are_never_used():
    item = run(
        turn(call("look", {"of": "Amsterdam"}, "Amsterdam has 921,402 people")),
        turn(call("look", {"of": "Rotterdam"}, "mayor: Aboutaleb")),
        turn(call("look", {"of": "x"}, "y")),
        turn(text="It has 921,402 people."),
        turn(call("look", {"of": "z"}, "something unseen")),
    )
    result = scorer("conciseness").score(item)
    # The third has no word of its own, and nothing follows the last.
    assert values(result)["unused_results"] == 0.5
    unused = next(score for score in result if score.metric == "unused_results").evidence
    assert [entry["arguments"] for entry in unused["calls"]] == ['{"of": "Rotterdam"}']
    assert values(result)["concise"] == 0.0
    answered = run(turn(call("look", {}, "Aboutaleb")), final_answer="Aboutaleb")
    assert values(scorer("conciseness").score(answered))["unused_results"] == 0.0
    early = run(
        turn(call("f", {}, "the word EVERYBODY")), turn(text="no"), request="Is everybody there?"
    )
    assert values(scorer("conciseness").score(early))["unused_results"] is None
