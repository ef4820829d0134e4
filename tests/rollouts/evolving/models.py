"""An endpoint that plays policy, refiner, analyser and judge for sums, and answers badly at will.

What it answers depends on the request alone: the policy is right once it was corrected or hinted,
or with half of all seeds; what is wrong with an answer, and whether, is drawn by a hash of the
request and of how often it came. So a run that was killed meets what it would have met.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import time
from collections import Counter
from typing import Any

from adp.rollouts.environments.arithmetic import evaluate, written
from tests.rollouts.policies.chat_server import message, serving

FAULTS = ("malformed", "http_500", "timeout", "empty", "nonsense", "out_of_range")
_QUESTION = re.compile(r"What is (.+?)\? Answer")


def drawn(text: str, of: int) -> int:
    """A number below ``of`` that depends on a text alone."""
    return int(hashlib.blake2b(text.encode()).hexdigest()[:12], 16) % of


def role_of(body: dict[str, Any]) -> str:
    """Who is asked, by the beginning of the system's message."""
    first = body["messages"][0]
    if first["role"] != "system":
        return "policy"
    text = first["content"]
    if "waste" in text:
        return "redundant"
    if "polish the thoughts" in text:
        return "refinement"
    if "first step that is flawed" in " ".join(text.split()):
        return "flawed"
    if "one step of a solution that went wrong" in text:
        return "analysis"
    if "one step of a solution anew" in text:
        return "rewrite"
    return "judge" if "compare the answer" in text else "policy"


def good_answer(body: dict[str, Any]) -> dict[str, Any]:
    """A message that can be used."""
    role = role_of(body)
    text = "\n".join(str(item.get("content") or "") for item in body["messages"])
    if role == "policy":
        return policy_answer(body)
    if role == "judge":
        return {"content": judged(text)}
    expression = match[1] if (match := _QUESTION.search(text)) else "1 + 1"
    call = json.dumps({"name": "calculator", "arguments": {"expression": expression}})
    step = f"<thought>I Compute it whole.</thought>\n<call>{call}</call>"
    steps = text.partition("# Steps")[2]
    answers = {
        "redundant": f"Step: 1\nAnalysis: one call does.\nCorrected step:\n{step}",
        "flawed": "Step: 1\nAnalysis: logic: the sum is wrong.",
        "analysis": "The expression was not worked out as a whole.",
        "rewrite": step,
        "refinement": "\n".join(
            f'<step n="{number}">\n<thought>New Thought {number}.</thought>\n</step>'
            for number, block in re.findall(r"Step (\d+)\n(.*?)(?=\n\nStep|\Z)", steps, re.S)
            if "<thought>" in block
        ),
    }
    if role == "redundant" and drawn(text, 3) == 0:
        return {"content": "Step: none"}
    return {"content": answers[role]}


def judged(text: str) -> str:
    facts = json.loads(text[text.index("{") :].partition("\n\nAn earlier")[0])
    return "Correct" if facts["answer"] in facts["reference answers"] else "Incorrect"


def policy_answer(body: dict[str, Any]) -> dict[str, Any]:
    """Work the sum out, with a call before; sometimes one more, and sometimes wrongly."""
    texts = [str(item.get("content") or "") for item in body["messages"]]
    match = _QUESTION.search("\n".join(texts))
    expression = match[1] if match else "1 + 1"
    results = [item["content"] for item in body["messages"] if item["role"] == "tool"]
    seed = int(body.get("seed") or 0)
    wanted = 1 + seed % 2
    if len(results) < wanted:
        first = expression if len(results) else f"0 + {expression}"
        function = {"name": "calculator", "arguments": json.dumps({"expression": first})}
        call = {"id": f"c{len(results)}", "type": "function", "function": function}
        return {"content": "I calculate.", "tool_calls": [call], "finish_reason": "tool_calls"}
    value = written(evaluate(expression))
    hinted = "own thought so far" in texts[-1] or "whole" in "".join(texts)
    right = hinted or drawn(f"{seed}{expression}", 2)
    return {"content": value if right else f"{value}1", "reasoning_content": "So it is."}


class Badly:
    """Steps of a server that answers badly with a probability.

    Args:
        percent: how many of a hundred answers are bad.
        pause: seconds that a good answer takes.
        hang: seconds that a server says nothing where it does not answer in time.
    """

    def __init__(self, percent: int = 50, pause: float = 0.0, hang: float = 1.5) -> None:
        self.percent, self.pause, self.hang = percent, pause, hang
        self.faults: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        self.often: Counter[str] = Counter()

    def __call__(self, handler: Any, body: dict[str, Any]) -> None:
        key = json.dumps(body, sort_keys=True)
        with handler.server.lock:
            self.often[key] += 1
            draw = f"{key}/{self.often[key]}"
            self.asked[role_of(body)] += 1
        time.sleep(self.pause)
        if drawn(draw, 100) >= self.percent:
            return handler.send(200, message(**good_answer(body)))
        fault = FAULTS[drawn(draw + "!", len(FAULTS))]
        with handler.server.lock:
            self.faults[fault] += 1
        return self.bad(fault, handler, body)

    def bad(self, fault: str, handler: Any, body: dict[str, Any]) -> None:
        """Answer badly."""
        if fault == "http_500":
            return handler.send(500, {"error": {"message": "out of order"}})
        if fault == "timeout":
            handler.server.over.wait(self.hang)
            return handler.send(200, message(content="late"))
        if fault == "malformed":
            return handler.send(200, b'{"choices": [')
        if role_of(body) == "policy":  # its nonsense would be a wrong answer, and no bad one
            return handler.send(200, message(content=""))
        texts = {"empty": " ", "nonsense": "I do not know.", "out_of_range": "Step: 99"}
        return handler.send(200, message(content=texts[fault]))


if __name__ == "__main__":  # by hand: python -m tests.rollouts.evolving.models [PERCENT]
    with serving(Badly(int(sys.argv[1]) if sys.argv[1:] else 50)) as server:
        print(server.url, flush=True)
        time.sleep(3600)
