"""Policies in the wire forms of M3: what a model sees and writes is what a training row holds."""

from __future__ import annotations

import asyncio
import json

import pytest

from adp.rendering.m3_forms import FORMS
from adp.rendering.options import RenderOptions
from adp.rendering.render import Renderer
from adp.rollouts.collecting.actor import Alone
from adp.rollouts.collecting.episode import run_episode
from adp.rollouts.collecting.recorder import About
from adp.rollouts.environments.m3 import M3Environment, M3Settings
from adp.rollouts.policies.openai import KIND, OpenAISettings
from adp.rollouts.policies.prompts import Generated, Prompter
from adp.rollouts.policies.settings import InProcessSettings
from adp_schema.errors import InputError, UsageError
from tests.rendering.families import tokenizer_of
from tests.rendering.test_m3_forms import CHATML, EVERY, MARKS, STUDENTS
from tests.rollouts.environments.test_m3 import TASK
from tests.rollouts.policies.chat_server import say, serving

ABOUT = About(dataset="m3", task=TASK, policy="m", environment="m3", timed=False)


def call_in(form, name, **arguments):
    value = json.dumps({"name": name, "arguments": arguments})
    head, end = FORMS[form].call
    return f"<think>I look.</think>{head}{f'[{value}]' if FORMS[form].listed else value}{end}"


def turns_of(form):
    """A run with an unreadable turn, a bad call and both answers."""
    return [
        "Twelve, I guess.",
        call_in(form, "count", garden="mill"),
        call_in(form, "nothing"),
        "<think>done</think><FINAL>Twelve.</FINAL>",
        call_in(form, "owner", garden="mill"),
        "<think>read</think>\n<FINAL> Ada </FINAL>",
    ]


class Writer:
    """A policy in process whose model writes given texts."""

    name = "writer"

    def __init__(self, form, texts):
        settings = InProcessSettings(model="tiny", wire_form=form)
        template = MARKS if form in STUDENTS else CHATML
        self.prompter = Prompter(tokenizer_of(template), settings)
        self.texts, self.prompts = list(texts), []
        self.end = {"m3_mistral": "</s>", "m3_granite3": "<|end_of_text|>"}.get(form, "<|im_end|>")

    async def act(self, request):
        prompt = self.prompter.prompt(request)
        self.prompts.append(prompt.text)
        text = f"{self.texts.pop(0)}{self.end}"
        ids = self.prompter.renderer.tokenizer.encode(text, add_special_tokens=False)
        return self.prompter.turn(request, prompt, Generated(ids, ended=True))

    async def close(self):
        pass


def played(policy):
    async def run():
        try:
            return await run_episode(ABOUT, M3Environment(M3Settings()), Alone(policy))
        finally:
            await policy.close()

    return asyncio.run(run())


@pytest.mark.parametrize("form", EVERY)
def test_an_episode_is_read_and_its_rows_are_what_the_model_saw(form):
    writer = Writer(form, turns_of(form))
    entry = played(writer)
    turns = [step for step in entry.steps if step.kind == "llm_turn"]
    acted = [step for step in turns if not step.is_copied_context]
    assert [step.calls[0].name if step.calls else step.text for step in acted] == [
        *("Twelve, I guess.", "count", "nothing", "Twelve.", "owner", "Ada"),
    ]
    assert [step.labels[-1] for step in acted] == [
        *("REWARD_PARSING_ERROR", "REWARD_SUCCESS_TOOL_CALL", "REWARD_BAD_TOOL_CALL"),
        *("REWARD_FINAL_ANSWER_MATCH", "REWARD_SUCCESS_TOOL_CALL", "REWARD_FINAL_ANSWER_MATCH"),
    ]
    assert acted[0].observations[0].text.startswith("NoThoughtError: ")
    assert "How many trees?" in writer.prompts[0]
    assert "<FINAL>Twelve.</FINAL>" in writer.prompts[-1]
    template = MARKS if form in STUDENTS else CHATML
    options = RenderOptions(wire_form=form)
    rendered = Renderer(tokenizer_of(template), options).trajectory(entry)
    assert not rendered.lost
    prompts = dict(zip((step.step for step in acted), writer.prompts, strict=True))
    spans = [(row.text[:start], step) for row in rendered.rows for step, start, _ in row.spans]
    assert len(spans) == len(acted)
    for text, step in spans:
        assert text == prompts[step]


@pytest.mark.parametrize("form", EVERY)
def test_behind_a_server(form):
    with serving(*map(say, turns_of(form))) as server:
        settings = {"model": "m", "base_url": server.url, "wire_form": form, "retries": 0}
        policy = KIND.make(OpenAISettings.model_validate(settings))
        entry = played(policy)
    assert entry.success
    first, *_, last = (seen.body for seen in server.seen)
    assert first["stop"] == list(FORMS[form].stops)
    assert "tools" not in first
    assert {message["role"] for message in last["messages"]} == {"system", "user", "assistant"}
    assert [message["content"] for message in last["messages"][1:-2]] == [
        "How many trees?",
        f"{FORMS[form].empty_thought}<FINAL>Twelve.</FINAL>",
        "And the owner?",
    ]
    assert "ToolCallSuccessful: {'owner': 'Ada'}" in last["messages"][-1]["content"]


def test_a_thought_that_a_server_took_out_is_the_thought():
    body = {"choices": [{"message": {"content": "<FINAL>x</FINAL>", "reasoning": "r"}}]}
    with serving(lambda handler, _: handler.send(200, body)) as server:
        settings = {"model": "m", "base_url": server.url, "wire_form": "m3_qwen3", "stop": ["E"]}
        entry = played(KIND.make(OpenAISettings.model_validate(settings)))
    agent = [step for step in entry.steps if step.kind == "llm_turn"]
    assert (agent[0].text, agent[0].reasoning) == ("x", "r")
    assert server.seen[0].body["stop"] == ["E"]


def test_a_system_file_is_read_and_said_when_it_does_not_fit(tmp_path):
    file = tmp_path / "system.txt"
    file.write_text("Mine. {tool_text}")
    settings = InProcessSettings(model="tiny", wire_form="m3_qwen3", system_file=file)
    assert settings.words() == "Mine. {tool_text}"
    with pytest.raises(InputError, match="cannot be read"):
        settings.model_copy(update={"system_file": tmp_path / "none"}).words()
    with pytest.raises(UsageError, match="needs wire_form"):
        InProcessSettings(model="tiny", system_file=file).words()
    with pytest.raises(UsageError, match="leave out chat_template"):
        Prompter(tokenizer_of(MARKS), settings.model_copy(update={"chat_template": file}))
    for wrong in ({"tools_in": "text"}, {"tool_choice": "auto"}):
        given = OpenAISettings(model="m", base_url="http://localhost:1/v1", wire_form="m3_qwen3")
        with pytest.raises(UsageError, match="wire"):
            KIND.make(given.model_copy(update=wrong))
