"""What a model is asked about a turn of ground truth, and how its answers are read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adp.rollouts.judging.judge import JudgeQuestion

THOUGHTS = """\
An agent answered a question of a user by calls of tools. The calls and their results are known;
what it thought before each call is not. Write these thoughts.

For each step write one short thought, in the first person, as if the result of that step were not
yet known. It says what is still missing for the answer, why this tool gets it, and where the values
of its arguments come from: the question, the earlier turns, or results of earlier steps.

Write a line for each step, in order, and nothing else:
{form}
"""

ANSWER = """\
An agent called tools to answer a question of a user. Its steps and their results are below. Write
its last thought and its final answer.

The thought sums up what the results say and why that suffices. The answer is one or a few whole
sentences for the user, and says nothing that the results do not say.{cutoff}

Write exactly this and nothing else:
<thought>the thought</thought>
<FINAL>the answer</FINAL>
"""

CUTOFF = (
    "When the last result is a list of more than {k} items that would all belong into the answer, "
    "name any {k} of them. Say in the thought that you keep only a part of the list, and why that "
    "is enough."
)
"""What is said about long lists; it becomes ``resp_cutoff_inst``."""

_RESOLVER = "Your answer cannot be read. Write it again, in this form and with nothing else:\n"
# The client of an endpoint takes what stands in <think> for reasoning, as models that reason do.
ANSWER_FORM = "<thought>...</thought>\n<FINAL>...</FINAL>"

_NUMBERED = re.compile(r"^[ \t*#]*thought[ _](\d+)[ \t*]*:[ \t*]*", re.IGNORECASE | re.MULTILINE)
_FINAL = re.compile(r"<thought>((?:(?!<thought>).)*?)</thought>\s*<FINAL>(.*?)</FINAL>", re.DOTALL)


@dataclass(frozen=True)
class Hop:
    """A call of a turn, with what came back.

    Attributes:
        question: the part of the question that it answers.
        tool: what is known of its tool, JSON.
        call: name and arguments.
        response: what came back.
    """

    question: str
    tool: Mapping[str, Any]
    call: Mapping[str, Any]
    response: Any


def thoughts_question(
    earlier: Sequence[tuple[str, Any]], query: str, hops: Sequence[Hop]
) -> JudgeQuestion:
    """Ask for the thoughts of all calls of a turn.

    Args:
        earlier: queries of the turns before, and their raw answers.
        query: what the user asks in this turn.
        hops: its calls.
    """
    form = "\n".join(f"Thought_{n}: ..." for n in range(1, len(hops) + 1))
    parts = [THOUGHTS.format(form=form)]
    for asked, answer in earlier:
        parts.append(f"Earlier turn\nUser: {asked}\nAnswer: {_text(answer)}\n")
    parts.append(f"Question of the user: {query}\n")
    for n, hop in enumerate(hops, 1):
        parts.append(
            f"Step {n}\nAsked: {hop.question}\nTool: {json.dumps(hop.tool)}\n"
            f"Call: {json.dumps(hop.call)}\nResult: {_text(hop.response)}\n"
        )

    def read(text: str) -> str | None:
        thoughts = read_thoughts(text, len(hops))
        return None if thoughts is None else json.dumps(thoughts)

    return JudgeQuestion("\n".join(parts), read, form, _RESOLVER)


def answer_question(
    query: str, hops: Sequence[Hop], thoughts: Sequence[str], cutoff: str | None
) -> JudgeQuestion:
    """Ask for the last thought of a turn, and for the answer.

    Args:
        query: what the user asks.
        hops: the calls.
        thoughts: one for each.
        cutoff: what is said about long lists; None: the list is short.
    """
    parts = [ANSWER.format(cutoff="" if cutoff is None else f"\n\n{cutoff}")]
    parts.append(f"Question of the user: {query}\n")
    for n, (hop, thought) in enumerate(zip(hops, thoughts, strict=True), 1):
        parts.append(
            f"Step {n}\nThought: {thought}\nCall: {json.dumps(hop.call)}\n"
            f"Result: {_text(hop.response)}\n"
        )

    def read(text: str) -> str | None:
        both = read_answer(text)
        return None if both is None else json.dumps(both)

    return JudgeQuestion("\n".join(parts), read, ANSWER_FORM, _RESOLVER)


def read_thoughts(text: str, count: int) -> list[str] | None:
    """The thoughts of all steps; None when a number is missing, comes twice, or has no words."""
    parts = _NUMBERED.split(text)[1:]
    numbers, thoughts = parts[::2], [thought.strip() for thought in parts[1::2]]
    if numbers != [str(n) for n in range(1, count + 1)] or not all(thoughts):
        return None
    return thoughts


def read_answer(text: str) -> tuple[str, str] | None:
    """The last thought and the answer; None when one is missing, or there are several."""
    matches = _FINAL.findall(text)
    if len(matches) != 1:
        return None
    thought, answer = (text.strip() for text in matches[0])
    return (thought, answer) if thought and answer else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
