"""Answers in M3's episodes, judged by a model behind a real server of this machine."""

from __future__ import annotations

import pytest

from adp.rollouts.environments.m3 import M3Environment, M3Settings
from adp.rollouts.experts import labels as category
from adp.rollouts.turns import Turn
from adp_schema.errors import UsageError
from adp_schema.model import Trajectory
from tests.rollouts.environments.test_m3 import TASK
from tests.rollouts.judging.endpoints import answering, material


def played(server, *answers, rubric="binary"):
    spec = f"openai:model=m,base_url={server.url},retries=0,first_wait=0,timeout=5"
    world = M3Environment(M3Settings(judge=spec, judge_rubric=rubric))
    world.reset(TASK, seed=3)
    assert world.blocking
    try:
        labels = [world.step(Turn(text=answer)).labels for answer in answers]
        return labels, world.score(Trajectory(final_answer=answers[-1]))
    finally:
        world.close()


def knowing(right, wrong, partly=None):
    """A judge that sees question, reference and answer, and says what it is told to."""

    def answer(prompt, messages):
        text = material(prompt)["RUN"]
        assert "[reference answers] Twelve." in text or "[reference answers] Ada" in text
        assert ("How many trees?" in text) == ("Twelve." in text)
        given = text.rpartition("[final answer] ")[2]
        verdict = right if "a dozen" in given or "Lovelace" in given else wrong
        return f"Thought: so\nConclusion: {partly if 'perhaps' in given else verdict}"

    return answer


@pytest.mark.parametrize(("rubric", "right", "wrong"), [("binary", "yes", "no"),
                                                        ("partial", "3", "0")])  # fmt: skip
def test_answers_in_other_words_are_right(rubric, right, wrong):
    with answering(knowing(right, wrong, "2")) as server:
        labels, verdict = played(server, "About a dozen.", "Lovelace", rubric=rubric)
        assert labels == [(category.MATCH,)] * 2
        assert (verdict.success, verdict.reward, verdict.rewards) == (True, 1.0, {"turns_right": 1})
        judgements = verdict.judge["judgements"]
        assert [item["label"] for item in judgements] == [right, right]
        labels, verdict = played(server, "About a dozen.", "Grace", rubric=rubric)
        assert labels[1] == (category.NO_MATCH,)
        assert (verdict.success, verdict.rewards) == (False, {"turns_right": 0.5})
    if rubric == "partial":
        with answering(knowing(right, wrong, "2")) as server:
            labels, verdict = played(server, "a dozen", "perhaps Lovelace", rubric=rubric)
            assert (labels[1], verdict.success) == ((category.NO_MATCH,), False)


def test_a_verdict_that_cannot_be_read_is_asked_for_once_more():
    def answer(prompt, messages):
        return "Conclusion: yes" if len(messages) == 3 else "yes and no"

    with answering(answer) as server:
        labels, verdict = played(server, "x", "y")
        assert (labels[0], verdict.success) == ((category.MATCH,), True)
        assert len(server.seen) == 4


@pytest.mark.parametrize("reply", ["I cannot tell.", 500])
def test_without_a_verdict_an_answer_has_no_category(reply):
    with answering(lambda *_: reply) as server:
        labels, verdict = played(server, "Twelve.", "Ada")
    assert labels == [(), ()]
    assert (verdict.success, verdict.reward) == (None, None)
    assert verdict.judge["reason"] == "an answer could not be judged"
    assert "failure" in verdict.judge["judgements"][0]


def test_a_judge_of_ones_own_wins_and_a_wrong_one_is_said():
    world = M3Environment(M3Settings(judge="expert"), judge=lambda *_: True)
    world.reset(TASK, seed=3)
    assert world.step(Turn(text="x")).labels == (category.MATCH,)
    for spec, words in (
        ("nobody", "nobody"),
        ("openai:mdl=m", "model: it must be given"),
        ("", "judge is empty"),
    ):
        with pytest.raises(UsageError, match=words):
            M3Environment(M3Settings(judge=spec))
    with answering(lambda *_: 401) as server, pytest.raises(UsageError):
        played(server, "x", "y")


def test_a_fork_is_judged_too():
    with answering(knowing("yes", "no")) as server:
        spec = f"openai:model=m,base_url={server.url},retries=0"
        world = M3Environment(M3Settings(judge=spec))
        world.reset(TASK, seed=3)
        other = world.fork()
        assert other.step(Turn(text="a dozen")).labels == (category.MATCH,)
        other.close()
        assert world.step(Turn(text="ten")).labels == (category.NO_MATCH,)
        world.close()
