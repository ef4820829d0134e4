"""A judge asks again what cannot be read, and what fails is a judgement without a label."""

from __future__ import annotations

import asyncio

import pytest

from adp.rollouts.background import run_in_background
from adp.rollouts.judging.judge import AGAIN, JudgeQuestion
from adp.rollouts.judging.rubrics import RUBRICS
from adp.rollouts.judging.settings import JudgeSettings, judge_of
from adp_schema.errors import UsageError
from adp_schema.ids import digest
from tests.rollouts.judging.endpoints import answering, judge_at
from tests.rollouts.policies.chat_server import answer, cut, reset, slow

BINARY = RUBRICS["binary"]


@pytest.mark.parametrize(
    ("first", "second", "label", "reason"),
    [
        ("Good.\nConclusion: yes", None, "yes", None),
        ("Yes and No", "Conclusion: no", "no", None),
        ("Yes and No", "Yes and No", None, "no verdict can be read"),
        ("", "Conclusion: yes", "yes", None),
        ("", "", None, "no verdict can be read"),
        ('{"verdict": "ye', "no", "no", None),
        ("\x00\ud800 garbage", "Conclusion: 3", None, "no verdict can be read"),
        (500, None, None, "no answer: http_500"),
        (slow(3), None, None, "no answer: timeout"),
        (cut, None, None, "no answer: cut_answer"),
        (reset, None, None, "no answer: c"),
        (answer(b'{"choices": [{"mess'), None, None, "no answer: bad_answer"),
        ("Hm", 500, None, "no answer: malformed"),
    ],
)
def test_answers_of_an_endpoint(first, second, label, reason):
    def reply(prompt, messages):
        again = len(messages) > 1 or "No verdict can be read" in prompt
        return second if again else first

    with answering(reply) as server:
        judge = judge_at(server, 0.5 if reason == "no answer: timeout" else 30)
        (given,) = judge.ask(BINARY.question("[task] 1 + 1"))
        judge.close()
    assert given.label == label
    assert (given.reason or "").startswith(reason or "")
    assert (given.reason is None) == (label is not None)
    costs = judge.costs["m"]
    assert costs.again == (second is not None)
    assert costs.asked == 1 + costs.again
    assert costs.failed == (given.reason or "").startswith("no answer")
    answered = costs.asked - costs.failed
    assert (costs.tokens_in, costs.tokens_out) == (10 * answered, 3 * answered)
    if second == "Conclusion: no":
        assert given.text == f"Yes and No\n{AGAIN}\nConclusion: no"
        assert (given.tokens_in, given.tokens_out) == (20, 6)


def test_the_resolver_goes_on_from_the_answer_and_says_the_form():
    with answering(lambda _, messages: "Hm" if len(messages) == 1 else "yes") as server:
        judge = judge_at(server)
        judge.ask(BINARY.question("run"))
        judge.close()
        first, second = (seen.body["messages"] for seen in server.seen)
    assert second[:1] == first
    assert second[1] == {"role": "assistant", "content": "Hm"}
    assert BINARY.form in second[2]["content"]


def test_a_panel_with_votes_and_prices():
    with answering(lambda *_: "yes") as server:
        at = f"base_url={server.url}"
        settings = JudgeSettings(
            policy=f"openai:model=big,{at}", panel=(f"openai:model=big,{at},temperature=1",
            f"openai:model=small,{at}"), votes=2, prices={"big": (2, 8)},
        )  # fmt: skip
        judge = judge_of(settings)
        given = judge.ask(BINARY.question("run"))
        judge.close()
    assert [item.judge for item in given] == ["big", "big", "big #2", "big #2", "small", "small"]
    assert [item.cost_usd for item in given] == [*[pytest.approx(44e-6)] * 4, None, None]
    assert judge.costs["big"].cost_usd == pytest.approx(88e-6)
    assert "$0.0001" in judge.costs["big"].words
    assert judge.costs["small"].cost_usd is None
    asked = [seen.body for seen in server.seen]
    assert sorted(body["temperature"] for body in asked) == [0, 0, 0, 0, 1, 1]
    with pytest.raises(UsageError, match="prices names gpt"):
        judge_of(settings.model_copy(update={"prices": {"gpt": (1, 1)}}))


def test_the_same_verdicts_whatever_the_concurrency_and_nothing_is_asked_twice(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("ADP_CACHE", str(tmp_path))

    def reply(prompt, messages):
        return ("yes", "no", "Yes and No", "")[int(digest(str(messages).encode())[:8], 16) % 4]

    questions = [BINARY.question(f"run {number}") for number in range(12)]

    def verdicts(server, requests, **settings):
        judge = judge_at(server, votes=2, **settings)
        judge.limit(requests)

        async def together():
            return await asyncio.gather(*map(judge.judgements, questions))

        given = run_in_background(together())
        judge.close()
        return [[item.kept() for item in listed] for listed in given], judge.costs["m"]

    with answering(reply) as server:
        alone, _ = verdicts(server, 1)
        together, costs = verdicts(server, 16, cache=True)
        asked = len(server.seen)
        again, cached = verdicts(server, 3, cache=True)
        assert len(server.seen) == asked
    assert alone == together == again
    assert len({item.get("label") for listed in alone for item in listed}) == 3
    assert (cached.asked, cached.cached) == (0, costs.asked)
    assert (costs.tokens_in, cached.tokens_in) == (10 * costs.asked, 0)


def test_a_key_is_sent_and_never_written(tmp_path, monkeypatch):
    monkeypatch.setenv("ADP_CACHE", str(tmp_path))
    monkeypatch.setenv("MY_JUDGE_KEY", "sk-very-secret-123456")

    def reply(prompt, messages):
        return "Your key is sk-very-secret-123456.\nConclusion: yes"

    with answering(reply) as server:
        spec = f"openai:model=m,base_url={server.url},api_key_env=MY_JUDGE_KEY"
        judge = judge_of(JudgeSettings(policy=spec, cache=True))
        (given,) = judge.ask(BINARY.question("run"))
        judge.close()
        assert server.seen[0].headers["authorization"] == "Bearer sk-very-secret-123456"
    assert given.label == "yes"
    assert "very-secret" not in given.text
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not any(b"very-secret" in path.read_bytes() for path in files)


def test_a_question_without_a_form_is_asked_once():
    with answering(lambda *_: "?") as server:
        judge = judge_at(server)
        (given,) = judge.ask(JudgeQuestion("What?", lambda _: None))
        judge.close()
        assert len(server.seen) == 1
    assert given.label is None
