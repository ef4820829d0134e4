"""A teacher for measurements: it proposes calls by rules, and errs in three of ten."""

import json
import random

from adp.rollouts.turns import Turn

NO_TOOL, BAD_ARGUMENTS, NO_JSON = 0.12, 0.24, 0.3
ERRS = 0.2
"""Share of second tries that are wrong, too."""


def teacher(request):
    """Answer one question of the generator."""
    rng = random.Random(request.seed)
    draw, facts = rng.random(), request.messages[1]["content"]
    if "Question: " in facts:
        question = facts.split("Question: ")[1].split("\n\nCall:")[0]
        call = json.loads(question[question.index("{") : question.rindex("}") + 1])
        return Turn(text=json.dumps(call if draw > ERRS else {**call, "name": "another_tool"}))
    tool = json.loads(facts.split("\n")[1])
    shown = json.loads(facts.split("Values:\n")[1].split("\n")[0])
    call = {"name": tool["name"], "arguments": shown}
    question = f"What does this call bring: {json.dumps(call)}"
    if draw < NO_TOOL:
        call = {**call, "name": f"{tool['name']}_v2"}
    elif draw < BAD_ARGUMENTS:
        call = {**call, "arguments": {"unknown": 1}}
    elif draw < NO_JSON:
        return Turn(text="I do not know.")
    return Turn(text=json.dumps({"question": question, **call}))
