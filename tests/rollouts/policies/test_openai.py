"""An endpoint that fails in every way it can: what becomes of episodes, and whose fault it is."""

from __future__ import annotations

import asyncio
import json
import math
import socket
from dataclasses import replace

import pytest

from adp.rollouts.collecting.actor import Alone
from adp.rollouts.collecting.episode import run_episode
from adp.rollouts.collecting.limits import Limits
from adp.rollouts.collecting.recorder import About
from adp.rollouts.collecting.run_file import kind_facts
from adp.rollouts.endpoint import client
from adp.rollouts.policies.openai import KIND, OpenAIPolicy, OpenAISettings
from adp.rollouts.policies.openai_messages import INVALID
from adp.rollouts.policy import POLICIES
from adp.rollouts.spec import load
from adp_schema.errors import UsageError
from adp_schema.journal import encode
from adp_schema.model import Task
from tests.rollouts.collecting.test_episode import TASK, Adder
from tests.rollouts.policies.chat_server import (
    answer,
    calling,
    cut,
    delta,
    dripping,
    events,
    message,
    reset,
    say,
    serving,
    slow,
)
from tests.waiting import PATIENCE, until

ABOUT = About(dataset="sums", task=TASK, policy="m", environment="adder", timed=False)
QUICK = {"first_wait": 0.0, "longest_wait": 0.0, "retries": 2, "timeout": 300.0}


def play(server, limits=None, about=ABOUT, **settings):
    given = {"model": "m", "base_url": server if isinstance(server, str) else server.url}
    policy = KIND.make(OpenAISettings.model_validate(given | QUICK | settings))

    async def run():
        try:
            return await run_episode(about, Adder(), Alone(policy), limits)
        finally:
            await policy.close()

    return asyncio.run(run())


def test_an_episode_with_a_call_and_an_answer():
    with serving(calling(), say("5")) as server:
        entry = play(server, temperature=0.5, max_tokens=64, stop=["END"])
    assert (entry.success, entry.final_answer, entry.error_type) == (True, "5", None)
    step = entry.steps[1]
    assert (step.model, step.response_id, step.stop_reason) == ("m", "r1", "tool_calls")
    assert (step.tokens_in, step.tokens_out) == (10, 3)
    first, second = (seen.body for seen in server.seen)
    assert server.seen[0].path == "/v1/chat/completions"
    assert (first["temperature"], first["max_tokens"], first["stop"]) == (0.5, 64, ["END"])
    assert first["tools"][0]["function"]["name"] == "add"
    assert first["seed"] != second["seed"]
    messages, result = second["messages"][1:]
    assert messages["content"] is None
    assert messages["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 2, "b": 3}'}
    expected = {"role": "tool", "tool_call_id": "c1", "name": "add", "content": "5"}
    assert result == expected
    assert "authorization" not in server.seen[0].headers


TRANSIENT = {
    "rate limit": answer({"error": {"message": "slow down"}}, 429, retry_after="0"),
    "500": answer(b"Internal Server Error", 500, content_type="text/plain"),
    "503": answer(b"", 503),
    "no JSON": answer(b'{"choices": [{"mess'),
    "a page": answer(b"<html>hello</html>", content_type="text/html"),
    "an error inside": answer({"error": {"code": 502, "message": "upstream"}}),
    "no choice": answer({"choices": []}),
    "no object": answer([]),
    "an empty body": answer(b""),
    "bytes that are no text": answer(b"\xff\xfe\x00"),
    "deep JSON": answer(b"[" * 100_000),
    "cut": cut,
    "reset": reset,
}


@pytest.mark.parametrize("name", TRANSIENT)
def test_what_fails_once_is_asked_again(name):
    with serving(TRANSIENT[name], say("5")) as server:
        result = play(server)
    assert (result.success, result.error_type, len(server.seen)) == (True, None, 2)
    assert json.loads(result.steps[1].extra)["tries"] == 2
    assert server.seen[0].body == server.seen[1].body


LASTING = {
    "rate limit": (TRANSIENT["rate limit"], "rate_limit"),
    "503": (TRANSIENT["503"], "http_503"),
    "no JSON": (TRANSIENT["no JSON"], "bad_answer"),
    "a page": (TRANSIENT["a page"], "bad_answer"),
    "cut": (cut, "cut_answer"),
    "reset": (reset, "cut_answer"),
}


@pytest.mark.parametrize("name", LASTING)
def test_what_fails_for_ever_is_no_fault_of_the_agent(name):
    step, kind = LASTING[name]
    with serving(step) as server:
        result = play(server)
    assert (result.error_type, result.stop_reason) == ("infrastructure", kind)
    assert (result.success, result.terminated, result.truncated) == (None, False, None)
    assert "failed 3 times" in result.error_message
    assert len(server.seen) == 3


UNREAD = answer({"error": {"message": "Failed to parse tool call"}}, 500)


def play_all(server, *instructions, limits=None, **settings):
    """One episode after the other, with one policy."""
    given = {"model": "m", "base_url": server.url, **QUICK, **settings}
    policy = KIND.make(OpenAISettings.model_validate(given))

    async def run():
        try:
            return [
                await run_episode(
                    replace(ABOUT, task=Task(task_id=name, instruction=name, answers='["5"]')),
                    Adder(), Alone(policy), limits,
                )
                for name in instructions
            ]  # fmt: skip
        finally:
            await policy.close()

    return asyncio.run(run())


def test_the_same_500_twice_means_that_the_model_wrote_what_cannot_be_read():
    with serving(calling(), UNREAD, UNREAD, say("5")) as server:
        result = play(server, retries=50)
    assert len(server.seen) == 4
    assert (result.success, result.error_type) == (True, None)
    assert result.steps[2].observations[0].error_type == "parsing"
    assert "Failed to parse tool call" in result.steps[2].observations[0].text
    # An agent that does it for ever is cut by its own budget, not by a count of retries.
    with serving(calling(), UNREAD) as server:
        result = play(server, Limits(max_turns=3), retries=50)
    assert (result.truncated, result.stop_reason, len(server.seen)) == (True, "max_turns", 5)


INSIDE = answer({"error": {"message": "worker died", "code": 500}})


@pytest.mark.parametrize("dead", [answer(b"worker died", 500), INSIDE])
def test_a_server_that_never_answered_is_broken(dead):
    with serving(dead) as server:
        result = play(server)
    assert (result.error_type, result.stop_reason) == ("infrastructure", "http_500")
    assert (result.success, len(server.seen)) == (None, 3)


@pytest.mark.parametrize("dead", [answer(b"worker died", 500), INSIDE])
def test_a_server_that_says_the_same_in_every_conversation_is_broken(dead):
    with serving(say("5"), dead) as server:
        first, second, third, fourth, again = play_all(
            server, "one", "two", "three", "four", "two", limits=Limits(max_turns=2)
        )
    assert first.success is True
    assert second.steps[1].observations[0].error_type == "parsing"  # nothing else is known yet
    for item in (third, fourth, again):
        assert (item.error_type, item.stop_reason) == ("infrastructure", "http_500")


@pytest.mark.parametrize("code", [-1, 0, 200, 10**30, "x", None, [1]])
def test_an_odd_code_of_an_error_is_the_server_s(code):
    with serving(answer({"error": {"message": "no", "code": code}})) as server:
        result = play(server)
    assert (result.error_type, result.stop_reason) == ("infrastructure", "http_500")


@pytest.mark.parametrize("error", [{"code": 0}, "a warning", {"code": 500, "message": "x"}])
def test_an_answer_counts_whatever_stands_beside_it(error):
    with serving(answer({**message(content="5"), "error": error})) as server:
        result = play(server)
    assert (result.success, len(server.seen)) == (True, 1)
    with serving(events({**delta(content="5"), "error": error}, delta("stop"))) as server:
        result = play(server, stream=True)
    assert (result.success, len(server.seen)) == (True, 1)


def test_choices_that_say_that_they_are_an_error_are_one():
    body = message(content="half", finish_reason="error")
    body["error"] = {"code": 503, "message": "upstream"}
    with serving(answer(body)) as server:
        result = play(server)
    assert (result.error_type, result.stop_reason) == ("infrastructure", "http_503")


def test_different_500s_are_the_server_s():
    steps = [answer({"error": {"message": f"worker {n} died"}}, 500) for n in range(3)]
    with serving(*steps) as server:
        result = play(server)
    assert (result.error_type, result.stop_reason) == ("infrastructure", "http_500")
    assert len(server.seen) == 3


def test_a_500_between_two_others_is_not_the_same_twice_in_a_row():
    same = answer(b"oops", 500)
    with serving(same, TRANSIENT["503"], same, say("5")) as server:
        result = play(server, retries=3)
    assert (result.success, len(server.seen)) == (True, 4)


@pytest.mark.parametrize("step", [slow(PATIENCE), dripping])
def test_a_slow_answer_is_a_timeout(step):
    with serving(step) as server:
        result = play(server, timeout=1.0, retries=1)
        until(lambda: len(server.seen) >= 2)
    assert (result.error_type, result.stop_reason) == ("infrastructure", "timeout")
    assert len(server.seen) == 2


def test_the_time_of_the_episode_goes_before_the_patience():
    with serving(slow(PATIENCE)) as server:
        result = play(server, Limits(max_seconds=3), timeout=PATIENCE)
    assert (result.error_type, result.stop_reason, result.success) == (
        "infrastructure", "timeout", None,
    )  # fmt: skip


def test_the_time_for_all_tries_is_bounded():
    with serving(answer(b"", 429, retry_after="3600")) as server:
        result = play(server, longest_wait=600.0, retry_seconds=5.0, retries=100)
    assert (result.error_type, result.stop_reason) == ("infrastructure", "rate_limit")
    assert len(server.seen) == 1


def test_nobody_listens():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
        result = play(url)
    assert (result.error_type, result.stop_reason) == ("infrastructure", "connection")
    assert "failed 3 times" in result.error_message
    assert result.error_message.endswith("; start the server, or set base_url to where it is")


def test_an_answer_without_end_is_not_read_to_its_end(monkeypatch):
    monkeypatch.setattr(client, "LARGEST", 1 << 20)
    with serving(answer(b" " * (2 << 20))) as server:
        given = {"model": "m", "base_url": server.url, **QUICK}
        policy = OpenAIPolicy(OpenAISettings.model_validate(given))
        result = asyncio.run(run_episode(ABOUT, Adder(), Alone(policy)))
    assert (result.error_type, result.stop_reason) == ("infrastructure", "too_large")


# ---- the caller's fault ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "message", "messages"),
    [
        (401, "Incorrect key", "api_key_env"),
        (403, "no", "api_key_env"),
        (404, "The model `m` does not exist", "set model to one that this server has"),
        (404, "Not Found", "check base_url: it mostly ends in /v1, and model"),
        (405, "Method Not Allowed", "check base_url"),
        (400, "Use 'max_completion_tokens' instead", "max_tokens_field=max_completion_tokens"),
        (400, "m does not support tools", "set tools_in=text"),
        (400, "unknown parameter: 'top_k'", "unknown parameter"),
        (422, "bad", "does not take this request"),
        (307, "", "redirect"),
        (429, "You exceeded your current quota (insufficient_quota)", "quota"),
    ],
)
def test_a_wrong_call_is_one_sentence_and_is_not_made_again(status, message, messages):
    with serving(answer({"error": {"message": message}}, status)) as server:
        with pytest.raises(UsageError, match=messages) as caught:
            play(server)
        assert len(server.seen) == 1
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_named_by_where_it_is_from(status, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-wrong")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-elsewhere")
    none = "no key was sent: name the environment variable that holds it as api_key_env"
    wrong = "put a key into MY_KEY that may use this model, or name another as api_key_env"
    with serving(answer({"error": {"message": "Incorrect key"}}, status)) as server:
        for settings, messages in (
            ({}, none),  # the key of OpenAI is for api.openai.com alone
            ({"api_key_env": None}, none),
            ({"api_key_env": "MY_KEY"}, wrong),
            ({"headers": {"Api-Key": "$MY_KEY"}}, "check the key in the setting headers"),
        ):
            with pytest.raises(UsageError) as caught:
                play(server, **settings)
            assert str(caught.value).endswith(f"HTTP {status}: Incorrect key; {messages}")
    for seen, sent in zip(server.seen, (None, None, "Bearer sk-wrong", None), strict=True):
        assert seen.headers.get("authorization") == sent


def test_what_stays_broken_names_the_setting_that_helps():
    lasting = {
        "concurrency": answer({"error": {"message": "Rate limit reached"}}, 429),
        "base_url": answer(b"<html>a page</html>"),
        "timeout": slow(300.0),
    }
    for setting, step in lasting.items():
        with serving(step) as server:
            result = play(server, timeout=0.2 if setting == "timeout" else 300.0)
        assert setting in result.error_message.partition("; ")[2]
        assert setting in OpenAISettings.model_fields


def test_without_a_model_or_a_key_the_call_says_what_to_give(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match="'openai': model: it must be given; its settings: base_u"):
        load(POLICIES, "openai:")
    with pytest.raises(UsageError, match=r"OPENAI_API_KEY is not set; .*set base_url, as http"):
        KIND.make(OpenAISettings(model="m"))
    with pytest.raises(UsageError, match=r"MY_KEY is not set; put the key into it$"):
        KIND.make(OpenAISettings(model="m", api_key_env="MY_KEY"))


def test_a_refusal_of_one_request_among_others_does_not_end_the_run():
    with serving(calling(), answer({"error": "this message"}, 400)) as server:
        result = play(server)
    assert (result.error_type, result.stop_reason) == ("infrastructure", "bad_request")
    assert "the endpoint answers HTTP 400: this message" in result.error_message
    assert (len(server.seen), len(result.steps)) == (2, 2)


@pytest.mark.parametrize(
    "message",
    [
        {"code": "context_length_exceeded", "message": "too long"},
        {"message": "This model's maximum context length is 4096 tokens. However, you ..."},
        {"message": "the request exceeds the available context size", "code": 400},
        "prompt is too long: 210000 tokens > 200000 maximum",
    ],
)
def test_a_full_context_truncates_the_episode(message):
    with serving(calling(), answer({"error": message}, 400)) as server:
        result = play(server)
    assert (result.truncated, result.stop_reason) == (True, "context_length")
    assert (result.terminated, result.error_type, result.success) == (False, None, False)
    assert len(server.seen) == 2


def test_the_key_is_sent_and_never_told(monkeypatch, caplog):
    monkeypatch.setenv("MY_KEY", "sk-secret-1234\n")
    echo = answer({"error": {"message": "Incorrect API key provided: sk-secret-1234"}}, 401)
    caplog.set_level("DEBUG")
    with serving(say("5"), echo) as server:
        result = play(server, api_key_env="MY_KEY")
        assert server.seen[0].headers["authorization"] == "Bearer sk-secret-1234"
        with pytest.raises(UsageError, match=r"provided: \*\*\*") as caught:
            play(server, api_key_env="MY_KEY")
    settings = OpenAISettings(model="m", api_key_env="MY_KEY")
    policy = OpenAIPolicy(settings)
    written = [result.model_dump_json(), str(caught.value), caplog.text, repr(settings)]
    written += [step.model_dump_json() for step in result.steps] + [repr(vars(policy))]
    assert not any("sk-secret" in text for text in written)


SECRETS = {
    "key": "sk-secret-1234",
    "x-token": "t0p-secret",
    "x-plain": "plain-secret",
    "body": "body-secret",
    "url": "url-secret",
}


@pytest.mark.parametrize("status", [200, 400, 401, 404, 500, 302])
def test_nothing_that_was_sent_is_told(status, monkeypatch, caplog):
    caplog.set_level("DEBUG")
    monkeypatch.setenv("MY_KEY", SECRETS["key"])
    monkeypatch.setenv("MY_TOKEN", "Bearer " + SECRETS["x-token"])
    # One of them stands where a long message is cut.
    messages = " ".join(SECRETS.values()) + " " + "x" * 227 + SECRETS["x-plain"]
    echo = answer({"error": {"message": messages}}, status, location=f"/v2?k={SECRETS['url']}")
    with serving(calling(), echo) as server:
        try:
            result = play(
                f"{server.url}?api-key={SECRETS['url']}",
                Limits(max_turns=2),
                api_key_env="MY_KEY",
                headers={"x-token": "$MY_TOKEN", "x-plain": SECRETS["x-plain"]},
                extra_body={"auth": {"accessToken": SECRETS["body"]}},
                retries=1,
            )
        except UsageError as error:
            written = [str(error)]
        else:
            rows = [
                result,
                *result.steps,
                *(item for step in result.steps for item in step.observations),
            ]
            written = ["".join(row.model_dump_json() for row in rows)]
        assert server.seen[0].path == f"/v1/chat/completions?api-key={SECRETS['url']}"
        assert server.seen[0].body["auth"] == {"accessToken": SECRETS["body"]}
    assert "***" in written[0]
    assert not [text for text in written if "secret" in text or "plain-" in text]
    # What the HTTP library may log is the URL alone.
    assert not any(SECRETS[name] in caplog.text for name in SECRETS if name != "url")


@pytest.mark.parametrize("stream", [False, True])
def test_a_secret_in_an_answer_is_hidden_and_a_plain_header_is_not(stream, monkeypatch):
    monkeypatch.setenv("MY_KEY", SECRETS["key"])
    text = f"anna has the key {SECRETS['key']}"
    result = say(text) if not stream else events(delta(content=text), delta("stop"))
    with serving(result) as server:
        entry = play(server, api_key_env="MY_KEY", headers={"x-user": "anna"}, stream=stream)
    assert entry.final_answer == "anna has the key ***"


def test_secrets_are_not_in_the_file_of_the_run():
    extra = {
        "top_k": 20, "max_tokens": 64, "tokens": ["a"], "apiKey": "s1", "auth": {"user": "s2"},
        "deep": [{"x-api-key": "s3", "key": "s4", "monkey": "kept"}], "password": 12345,
        "nested": {"access_token": "s5"},
    }  # fmt: skip
    settings = OpenAISettings(model="m", base_url="http://h/v1?key=s6", extra_body=extra)
    written = kind_facts("openai", settings)["settings"]["extra_body"]
    text = json.dumps(written)
    assert not [word for word in ("s1", "s2", "s3", "s4", "s5", "s6", "12345") if word in text]
    assert (written["top_k"], written["max_tokens"]) == (20, 64)
    assert written["deep"][0]["monkey"] == "kept"


def test_a_header_that_cannot_be_sent_is_refused_without_its_value():
    with pytest.raises(UsageError, match="header 'x-bad'") as caught:
        KIND.make(OpenAISettings(model="m", base_url="http://h/v1", headers={"x-bad": "s\n1"}))
    assert "s\n1" not in str(caught.value)


def test_the_key_of_openai_is_not_sent_elsewhere_unless_it_is_named(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-real")
    with serving(say("5")) as server:
        play(server)
        play(server, api_key_env="OPENAI_API_KEY")
    assert "authorization" not in server.seen[0].headers
    assert server.seen[1].headers["authorization"] == "Bearer sk-real"


def test_settings_that_cannot_be_used(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match="OPENAI_API_KEY is not set"):
        KIND.make(OpenAISettings(model="m"))
    with pytest.raises(UsageError, match="is no URL"):
        KIND.make(OpenAISettings(model="m", base_url="localhost:8000"))
    with pytest.raises(UsageError, match="holds a password"):
        KIND.make(OpenAISettings(model="m", base_url="http://me:pw@localhost/v1"))


def test_headers_may_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "t0p")
    with serving(say("5")) as server:
        play(server, headers={"x-token": "$MY_TOKEN", "x-plain": "yes"})
    assert server.seen[0].headers["x-token"] == "t0p"
    assert server.seen[0].headers["x-plain"] == "yes"


# ---- what answers look like ------------------------------------------------------------------


def turn_of(body):
    with serving(answer(body), say("5")) as server:
        result = play(server)
    return result, result.steps[1], server


def test_arguments_may_be_an_object_or_missing_and_ids_too():
    calls = [
        {"function": {"name": "add", "arguments": {"a": 2, "b": 3}}},
        {"id": None, "function": {"name": "add", "arguments": None}},
        {"id": "", "function": {"name": "add", "arguments": '{"a": 1,'}},
    ]
    _, step, server = turn_of(message(content=None, tool_calls=calls))
    assert [call.arguments for call in step.calls] == ['{"a": 2, "b": 3}', "{}", None]
    assert step.calls[2].arguments_raw == '{"a": 1,'
    assert len({call.call_id for call in step.calls}) == 3
    errors = [item.error_type for item in step.observations]
    assert errors == [None, "invalid_args", "parsing"]
    # Servers give arguments to the template as objects; what is none is wrapped.
    sent = server.seen[1].body["messages"][1]["tool_calls"]
    assert json.loads(sent[2]["function"]["arguments"]) == {INVALID: '{"a": 1,'}
    assert sent[0]["function"]["arguments"] == '{"a": 2, "b": 3}'


@pytest.mark.parametrize(
    ("content", "reasoning", "text"),
    [
        ("<think>\nI add.\n</think>\n\n5", "I add.", "5"),
        ("I add.\n</think>\n\n5", "I add.", "5"),  # the prompt opened it
        ("<think>\n\n</think>\n\n5", None, "5"),
        ("<think>I add, and then", "I add, and then", ""),
        (" 5 <b>", None, " 5 <b>"),
    ],
)
def test_reasoning_that_a_server_left_in_the_text_is_taken_out(content, reasoning, text):
    _, step, _ = turn_of(message(content=content))
    assert (step.reasoning, step.text or "") == (reasoning, text)
    _, step, _ = turn_of(message(content=content, reasoning_content="said apart"))
    assert (step.reasoning, step.text) == ("said apart", content)


def test_reasoning_usage_tokens_and_refusals_are_kept():
    body = message(content="5", reasoning="I add.")
    body["usage"] = {
        "prompt_tokens": 9,
        "completion_tokens": 4,
        "prompt_tokens_details": {"cached_tokens": 8},
        "completion_tokens_details": {"reasoning_tokens": 2},
        "cost": 0.5,
    }
    body["prompt_token_ids"] = [1, 2]
    body["choices"][0]["token_ids"] = [3, 4]
    body["choices"][0]["logprobs"] = {"content": [{"logprob": -0.5}, {"logprob": -1}]}
    _, step, _ = turn_of(body)
    assert (step.text, step.reasoning) == ("5", "I add.")
    assert (step.tokens_cached, step.tokens_reasoning, step.cost_usd) == (8, 2, 0.5)
    assert (step.prompt_token_ids, step.completion_token_ids) == ([1, 2], [3, 4])
    assert step.logprobs == [-0.5, -1.0]
    result, step, _ = turn_of(message(content=None, refusal="I cannot do that."))
    assert (result.final_answer, json.loads(step.extra)["refusal"]) == ("I cannot do that.",) * 2


@pytest.mark.parametrize(
    "parts",
    [
        {"content": 7, "usage": "none"},
        {"content": [{"type": "text", "text": "5"}, None, {"text": 3}]},
        {"content": None},
        {"content": "5", "tool_calls": []},
        {"content": "5", "reasoning_content": 3, "refusal": 4},
    ],
)
def test_strange_answers_are_turns_all_the_same(parts):
    result, _, _ = turn_of(message(**parts))
    assert (result.terminated, result.error_type) == (True, None)


@pytest.mark.parametrize("cost", ["1e999", "-1e999", "NaN", "-5", '"x"', "true"])
def test_a_cost_that_is_none_is_left_out(cost):
    body = json.dumps({**message(content="5"), "usage": {"prompt_tokens": 1, "cost": 4242}})
    with serving(answer(body.replace("4242", cost).encode())) as server:
        result = play(server)
    assert (result.success, result.total_cost_usd, result.total_tokens_in) == (True, None, 1)
    encode(result)


@pytest.mark.parametrize(
    "parts",
    [
        {"id": "\ud83d"},
        {"model": "\ud83d"},
        {"usage": {"total": 10**40, "a": math.nan, "s": "\ud83d"}},
    ],
)
def test_odd_members_cost_themselves_alone(parts):
    for finish in ("stop", "\ud83d"):
        result, step, _ = turn_of({**message(content="5", finish_reason=finish), **parts})
        assert (result.success, result.error_type, step.text) == (True, None, "5")
        encode(result)


@pytest.mark.parametrize("calls", [[None], ["add"], [{"function": {}}], "add", [{"id": "x"}]])
def test_calls_without_a_name_are_a_malformed_turn(calls):
    result, step, _ = turn_of(message(content=None, tool_calls=calls))
    assert step.observations[0].error_type == "parsing"
    assert result.success is True


def test_half_characters_do_not_stop_an_episode():
    with serving(calling(arguments='{"a": "\\ud800", "b": 1}'), say("\ud800")) as server:
        result = play(server)
    assert (result.terminated, len(server.seen)) == (True, 2)


def test_tools_in_the_text():
    called = '<think>easy</think>Adding.\n<tool_call>{"name": "add", "arguments": {"a":2,"b":3}}'
    with serving(say(called + "</tool_call>"), say(called), say("5")) as server:
        entry = play(server, tools_in="text")
    first, second, _ = entry.steps[1:]
    assert (first.text, first.reasoning) == ("Adding.", "easy")
    assert first.calls[0].arguments == '{"a":2,"b":3}'
    assert second.observations[0].error_type == "parsing"
    assert "tools" not in server.seen[0].body
    system, *_, result = server.seen[1].body["messages"]
    assert '"name": "add"' in system["content"]
    assert result == {"role": "user", "content": "<tool_response>\n5\n</tool_response>"}


# ---- streams ---------------------------------------------------------------------------------


def streamed_call():
    first = {"index": 0, "id": "c1", "function": {"name": "add", "arguments": ""}}
    rest = ['{"a": 2', ', "b": 3}']
    pieces = [{"index": 0, "function": {"arguments": piece}} for piece in rest]
    return [
        delta(role="assistant", content=None),
        delta(reasoning_content="I "),
        delta(reasoning_content="add."),
        delta(tool_calls=[first]),
        *(delta(tool_calls=[piece]) for piece in pieces),
        delta(finish_reason="tool_calls"),
        {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}},
    ]


def test_a_stream_is_put_together():
    with serving(events(*streamed_call()), events(delta(content="5"), delta("stop"))) as server:
        result = play(server, stream=True)
    assert result.success is True
    step = result.steps[1]
    assert (step.calls[0].arguments, step.reasoning) == ('{"a": 2, "b": 3}', "I add.")
    assert (step.tokens_in, step.tokens_out, step.stop_reason) == (7, 2, "tool_calls")
    assert server.seen[0].body["stream"] is True


@pytest.mark.parametrize("index", [0, None])
def test_calls_of_a_stream_that_share_an_index_or_have_none(index):
    def piece(**more):
        return delta(tool_calls=[{**more} if index is None else {"index": index, **more}])

    stream = [
        piece(id="c1", function={"name": "add", "arguments": '{"a": 2'}),
        piece(function={"arguments": ', "b": 3}'}),
        piece(id="c2", function={"name": "add", "arguments": ""}),
        piece(function={"arguments": '{"a": 1, '}),
        piece(id="c2", function={"name": "add", "arguments": '"b": 1}'}),
        delta(finish_reason="tool_calls"),
    ]
    with serving(events(*stream), events(delta(content="5"), delta("stop"))) as server:
        result = play(server, stream=True)
    calls = [(call.call_id, call.arguments) for call in result.steps[1].calls]
    assert calls == [("c1", '{"a": 2, "b": 3}'), ("c2", '{"a": 1, "b": 1}')]


def test_a_stream_and_one_piece_give_the_same_turn():
    whole = message(content=None, reasoning_content="I add.", finish_reason="tool_calls")
    function = {"name": "add", "arguments": '{"a": 2, "b": 3}'}
    whole["choices"][0]["message"]["tool_calls"] = [{"id": "c1", "function": function}]
    whole["usage"] = {"prompt_tokens": 7, "completion_tokens": 2}
    results = []
    for step, stream in ((answer(whole), False), (events(*streamed_call()), True)):
        with serving(step, say("5")) as server:
            results.append(play(server, stream=stream).steps[1].model_dump_json())
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (events(*streamed_call()[:5], done=False), "cut_answer"),
        (events(done=False), "cut_answer"),
        (events(), "cut_answer"),
        (events("{broken"), "bad_answer"),
        (events("[1]"), "bad_answer"),
        (events({"error": {"code": 503, "message": "overloaded"}}), "http_503"),
    ],
)
def test_streams_that_break_are_asked_again_and_then_given_up(step, kind):
    with serving(step, events(delta(content="5"), delta("stop"))) as server:
        result = play(server, stream=True)
    assert (result.success, len(server.seen)) == (True, 2)
    with serving(step) as server:
        result = play(server, stream=True)
    assert (result.error_type, result.stop_reason, len(server.seen)) == ("infrastructure", kind, 3)


def test_an_error_in_the_stream_twice_is_the_model_s_too():
    broken = events('{"error": "could not parse "{x" as JSON"}', done=False)
    well = events(*streamed_call())
    with serving(well, broken, broken, events(delta(content="5"), delta("stop"))) as server:
        result = play(server, stream=True, retries=50)
    assert (result.success, len(server.seen)) == (True, 4)
    assert result.steps[2].observations[0].error_type == "parsing"


def test_a_server_that_does_not_stream_although_it_is_asked_to():
    with serving(calling(), say("5")) as server:
        assert play(server, stream=True).success is True


def test_many_episodes_share_one_client():
    with serving(say("5")) as server:
        given = {"model": "m", "base_url": server.url, "concurrency": 4, **QUICK}
        policy = OpenAIPolicy(OpenAISettings.model_validate(given))

        async def everything():
            about = [About(dataset="s", task=TASK, attempt=n, timed=False) for n in range(40)]
            episodes = (run_episode(item, Adder(), Alone(policy)) for item in about)
            gather = await asyncio.gather(*episodes)
            await policy.close()
            return gather

        result = asyncio.run(everything())
    assert [item.success for item in result] == [True] * 40
    assert len(server.seen) == 40
