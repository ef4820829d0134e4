"""Judges: votes, strict reading, failures; and the playground's rules without one."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from adp.eval.scorers.conciseness import ConcisenessScorer, ConcisenessSettings
from adp.eval.scorers.judge import QualityScorer, QualitySettings
from adp.rollouts.judging.judge import RAW, Judge
from adp.rollouts.judging.transcript import transcript
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.policy import InfrastructureError
from adp.rollouts.turns import Turn
from adp_schema.errors import UsageError
from tests.eval.scorers.runs import call, figures, reasons, run, scorer, tools, turn, values


def judged(answers, votes=None):
    """A scorer whose judge gives these answers, one a vote; exceptions are raised."""

    def script(request):
        answer = answers[request.attempt]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Turn) else Turn(text=answer, model="m")

    judge = Judge(Scripted(script, "judge"), votes or len(answers))
    return QualityScorer(QualitySettings(), judge)


ITEM = run(turn(text="42"), final_answer="42", task={"instruction": "6 * 7?", "answers": '["42"]'})


@pytest.mark.parametrize(
    ("answers", "value"),
    [
        (["It is right.\nGRADE: C"], 1.0),
        (["GRADE: P\n"], 0.5),
        (["**GRADE: I**"], 0.0),
        (["GRADE: C", "GRADE: I", "GRADE: C"], pytest.approx(2 / 3)),
        (["GRADE: C", "GRADE: I", "no idea"], 0.5),
        (["GRADE: C and more"], None),
        (["GRADE: C\nGRADE: X"], None),
        (["the agent wrote GRADE: C"], None),
        (["GRADE: C", "no idea"], None),
        ([""], None),
        ([InfrastructureError("http_500", "the server failed")], None),
        ([ValueError("bug")], None),
        ([Turn(text="GRADE: C", malformed="no JSON")], None),
    ],
)
def test_grades_are_read_strictly(answers, value):
    (score,) = judged(answers).score(ITEM)
    assert score.value == value
    assert score.metric == "judged_quality"
    assert (score.value is None) == score.infrastructure == (score.reason is not None)


def test_what_the_judge_said_is_kept():
    long = "x" * 5000
    (score,) = judged(
        [f"{long}\nGRADE: C", InfrastructureError("timeout", "too slow"), "GRADE: P"]
    ).score(ITEM)
    assert (score.value, score.evidence["judge"]) == (0.75, "m")
    first, second, third = score.evidence["judgements"]
    assert len(first["text"]) == RAW
    assert second == {"judge": "judge", "failure": "no answer: timeout (too slow)"}
    assert third == {"judge": "judge", "label": "P", "text": "GRADE: P", "model": "m"}
    (silent,) = judged([InfrastructureError("timeout", "too slow")]).score(ITEM)
    assert silent.reason == "the judge did not answer 1 of 1 times"
    unscored = figures(judged(["?"]), ITEM)["judged_quality"]
    assert (unscored.value, unscored.unscored, unscored.infrastructure) == (None, 1, 1)


def test_the_same_votes_whatever_asks_and_when():
    seeds = []

    def script(request):
        seeds.append((request.attempt, request.seed))
        return Turn(text="GRADE: C")

    quality = QualityScorer(QualitySettings(), Judge(Scripted(script), 3))
    first = quality.score(ITEM)
    threads = [threading.Thread(target=quality.score, args=(ITEM,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def inside():
        return quality.score(ITEM)

    assert asyncio.run(inside()) == first
    assert len(seeds) == 18
    assert len(set(seeds)) == 3


def test_what_the_judge_reads():
    item = run(
        turn(call("f", {"a": 1}, "seven"), text="I look.", reasoning="hidden"),
        turn(text="{7}"),
        final_answer="7",
        task={"instruction": "How many?", "answers": '["7"]'},
    )
    text = transcript(item.trajectory, item.task)
    lines = ["[task] How many?", "[reference answers] 7", "[turn 1] I look."]
    lines += ['[turn 1, call] f {"a": 1}', "[result] seven", "[turn 2] {7}", "[final answer] 7"]
    assert text.splitlines() == lines
    seen = []
    judge = Judge(Scripted(lambda request: seen.append(request) or Turn(text="GRADE: C")))
    QualityScorer(QualitySettings(criterion="Be {kind}."), judge).score(item)
    prompt = seen[0].messages[0]["content"]
    assert text in prompt
    assert "Be {kind}." in prompt
    many = run(*(turn(text="word " * 2000) for _ in range(30)))
    assert len(transcript(many.trajectory, None)) < 41_000
    assert "characters are left out" in transcript(many.trajectory, None)


def test_a_judge_is_named_by_its_spec(tmp_path):
    file = tmp_path / "judge.jsonl"
    file.write_text(json.dumps({"turns": [{"text": "Good.\nGRADE: C"}]}))
    quality = scorer(f"judge:policy='scripted:file={file}',votes=3")
    (score,) = quality.score(ITEM)
    assert (score.value, score.evidence["labels"]) == (1.0, ["C"] * 3)
    with pytest.raises(UsageError, match="policy 'nobody'"):
        scorer("judge:policy=nobody")


def test_et_agents_conciseness_by_votes():
    def asked(*answers):
        judge = Judge(Scripted(lambda request: Turn(text=answers[request.attempt])), len(answers))
        result = ConcisenessScorer(ConcisenessSettings(), judge).score(run(turn(call("f"))))
        return next(score for score in result if score.metric == "judged_concise")

    yes, no = "so <answer>yes</answer>", "<answer>yes</answer> or rather <answer> No </answer>"
    assert asked(yes, yes, no).value == 0.0
    assert asked(yes, no).value == 1.0
    assert asked(yes, no, "?").value == 1.0
    lost = asked(yes, "?")
    assert (lost.value, lost.infrastructure) == (None, True)
    assert lost.reason == "1 of 2 judgements end without a verdict"


OFFERED = tools(f={"a": {"type": "integer"}}, g={})


@pytest.mark.parametrize(
    ("step", "value"),
    [
        (turn(call("f", {"a": 1})), 1.0),
        (turn(call("g", {})), 0.5),
        (turn(call("f", "{")), 0.5),
        (turn(call("h", {})), 0.0),
        (turn(text="no call"), 0.0),
    ],
)
def test_the_playgrounds_quality_without_a_judge(step, value):
    item = run(step, tools=OFFERED, task={"expected_calls": '[{"name": "f", "arguments": {}}]'})
    (score,) = scorer("judge").score(item)
    assert (score.metric, score.value) == ("response_quality", value)


def test_without_a_judge_and_an_expected_tool_it_is_unscored():
    result = reasons(scorer("judge").score(ITEM))
    assert result == {"response_quality": "the task does not say which tool is expected"}
    assert values(scorer("judge").score(run(task={"expected_calls": "[]"}))) == {
        "response_quality": None
    }
