"""A hasty agent for sums, and a careful reviewer: policies without a model, to try operators with.

adp collect --env calculator --policy models.py:hasty --tasks test:12 -o sums
adp evolve sums --env calculator --policy models.py:hasty --refiner models.py:careful -o evolved
"""

from __future__ import annotations

import json
import re

from adp.rollouts.evolving.prompts import prompt
from adp.rollouts.policy import Request
from adp.rollouts.turns import Call, Turn

QUESTION = re.compile(r"What is (.+?)\? Answer")


def hasty(request: Request) -> Turn:
    """Guess, with two of three seeds; else calculate, sometimes twice. After a hint, calculate."""
    texts = [str(message.get("content") or "") for message in request.messages]
    expression = QUESTION.search("\n".join(texts))[1]
    results = [message["content"] for message in request.messages if message["role"] == "tool"]
    hinted = texts[-1].startswith(prompt("opening"))
    if not results and not hinted and request.seed % 3:
        return Turn(text=expression.split()[0].strip("("), reasoning="That looks easy.")
    if len(results) <= request.seed % 2 and len(results) < 2:
        call = Call("calculator", json.dumps({"expression": expression}))
        return Turn(calls=(call,), reasoning="I calculate it.")
    return Turn(text=results[-1], reasoning="The calculator says so.")


def careful(request: Request) -> Turn:
    """Review: the first step is always to blame, and one call of the calculator is what to do."""
    asked, facts = (message["content"] for message in request.messages)
    call = json.dumps(
        {"name": "calculator", "arguments": {"expression": QUESTION.search(facts)[1]}}
    )
    step = f"<thought>The whole expression at once.</thought>\n<call>{call}</call>"
    if asked == prompt("flawed_step"):
        return Turn(text="Step: 1\nAnalysis: inappropriate: it guesses instead of calculating.")
    if asked == prompt("analyse_step"):
        return Turn(text="Nothing was calculated; the calculator takes the expression as it is.")
    if asked == prompt("rewrite_step"):
        return Turn(text=step)
    steps = facts.partition("# Steps")[2]
    if asked == prompt("redundant_step"):
        if steps.count("<call>") < 2:
            return Turn(text="Step: none")
        return Turn(text=f"Step: 1\nAnalysis: the second call repeats it.\nCorrected step:\n{step}")
    numbers = re.findall(r"Step (\d+)\n<thought>", steps)
    thought = "<thought>The calculator decides.</thought>"
    return Turn(text="\n".join(f'<step n="{number}">{thought}</step>' for number in numbers))
