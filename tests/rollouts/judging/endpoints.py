"""Judges behind a real server of this machine, whose answers follow from what is asked."""

from __future__ import annotations

import contextlib
import re

from adp.rollouts.judging.settings import JudgeSettings, judge_of
from tests.rollouts.policies.chat_server import message, serving


def judge_at(server, timeout=30, **settings):
    """A judge that asks a server, without long waits between its requests."""
    spec = f"openai:model=m,base_url={server.url},retries=1,first_wait=0,timeout={timeout}"
    return judge_of(JudgeSettings(policy=spec, **settings))


@contextlib.contextmanager
def answering(answer):
    """A server; ``answer(prompt, messages)`` is a text, a step of the server, or a status."""

    def step(handler, body):
        messages = body["messages"]
        given = answer(messages[0]["content"], messages)
        if callable(given):
            given(handler, body)
        elif isinstance(given, int):
            handler.send(given, {"error": {"message": "broken"}})
        else:
            handler.send(200, message(content=given))

    with serving(step) as server:
        yield server


def material(prompt):
    """What stands between the marks of a prompt, each with its name."""
    return dict(re.findall(r"<<<([A-Z ]+?) ([^\n]*\n.*?)\n\1 \w+>>>", prompt, re.DOTALL))
