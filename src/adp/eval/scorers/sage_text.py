"""SAGE's arithmetic over the text of a response: substrings, shared words, and marks of a plan.

Source: intellistream/SAGE, ``AgentCapabilityEvaluator``, ``AgentTrainingEvaluator`` and
``AgentRewardModel``. They judge one text, so the text of a run is what the agent wrote, with its
calls: as SAGE's template writes them, in ``<tool_call>`` with JSON of name and arguments; or, for
AgentCapabilityEvaluator, which looks for ``tool:``, as ``tool: NAME ARGUMENTS``.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence

from adp.rollouts.task_references import expected_calls, reference_answers
from adp.rollouts.trajectory_reading import agent_steps
from adp_schema.model import Task, Trajectory

OPEN, CLOSE = "<tool_call>", "</tool_call>"

TOOL_ID = re.compile(r"[a-z]+(_[a-z]+)*_\d{3}")
"""How SAGE names a tool: words with underscores and three digits."""

_TAGGED = r'<tool_call>\s*(?:\{\s*)?"?name"?\s*:\s*"?([^"}\s]+)"?'
_STEPS = ("step 1", "1.", "first", "- ")
_REASONS = ("because", "therefore", "thus", "so", "since")
_ITEMS = ("- ", "* ", "1.")
_MARKED = re.compile(r"step\s*\d")
_FIRST_ITEM, _SECOND_ITEM = re.compile(r"(?=1\.\s*(\w))"), re.compile(r"(?=2\.\s*\w)")


def response_text(trajectory: Trajectory, *, tagged: bool = True) -> str:
    """What the agent wrote in a run, with its calls, as one text.

    Args:
        trajectory: the run.
        tagged: calls stand in tags; else as ``tool: NAME ARGUMENTS``.
    """
    parts: list[str] = []
    for step in agent_steps(trajectory):
        parts += [text for text in (step.row.reasoning, step.row.text) if text]
        for call in step.calls:
            if not tagged:
                parts.append(f"tool: {call.name} {call.text}")
                continue
            name = json.dumps(call.name, ensure_ascii=False)
            parts.append(f'{OPEN}\n{{"name": {name}, "arguments": {call.text or "{}"}}}\n{CLOSE}')
    return "\n".join(parts)


def expected_texts(task: Task | None) -> list[str]:
    """The texts that a response is held against: the answers, else the names of the calls."""
    answers = reference_answers(task)
    calls = expected_calls(task)
    return answers or ([" ".join(call.name for call in calls)] if calls else [])


# ---- AgentCapabilityEvaluator --------------------------------------------------------------


def sage_tool_use(response: str, expected: str) -> float:
    """1 where the response holds what is expected; of a marked call, any word of it.

    Args:
        response: what the agent wrote.
        expected: what is right.
    """
    wanted, text = _plain(expected), _plain(response)
    marked = "tool:" in text or "function:" in text
    return float(wanted in text or (marked and any(word in text for word in wanted.split())))


def sage_planning(response: str, expected: str) -> float:
    """0.3 for marks of steps, and up to 0.7 for shared words."""
    return _marked_and_shared(response, expected, _STEPS)


def sage_reasoning(response: str, expected: str) -> float:
    """0.3 for words that give a reason, and up to 0.7 for shared words."""
    return _marked_and_shared(response, expected, _REASONS)


def sage_instruction(response: str, expected: str, form: str | None = None) -> float:
    """0.3 for the form, half of it when it is not kept, and 0.7 for shared words.

    Args:
        response: what the agent wrote.
        expected: what is right.
        form: ``json``, ``list``, or nothing that is checked.
    """
    text = _plain(response)
    wrong = (form == "json" and not text.startswith(("{", "["))) or (
        form == "list" and not any(mark in text for mark in _ITEMS)
    )
    return (0.5 if wrong else 1.0) * 0.3 + _shared(response, expected) * 0.7


def _marked_and_shared(response: str, expected: str, marks: Sequence[str]) -> float:
    text = _plain(response)
    marked = 0.3 if any(mark in text for mark in marks) else 0.0
    return marked + min(_shared(response, expected) * 0.7, 0.7)


def _plain(text: str) -> str:
    return text.strip().lower()


def _shared(response: str, expected: str) -> float:
    """Share of the words of the second text that the first has."""
    wanted, words = (set(_plain(text).split()) for text in (expected, response))
    return len(wanted & words) / max(len(wanted), 1)


# ---- AgentTrainingEvaluator, AgentRewardModel ----------------------------------------------


def tools_in_text(response: str, verbs: str = "call|use|invoke") -> list[str]:
    """Tools that a response names, in SAGE's order and without repeats.

    Those in tags come first, then ids of tools behind a verb, such as ``use weather_query_001``.

    Args:
        response: what the agent wrote.
        verbs: the verbs, with bars between them; with ``execute`` as AgentRewardModel has it, which
            reads the tags without regard to case, too.
    """
    tagged = re.findall(_TAGGED, response, re.IGNORECASE if "execute" in verbs else 0)
    return list(dict.fromkeys([*tagged, *named_by_verb(response, verbs)]))


def named_by_verb(response: str, verbs: str) -> list[str]:
    """Ids of tools behind a verb."""
    return re.findall(rf"(?:{verbs})\s+([a-z_]+_\d{{3}})", response, re.IGNORECASE)


def tool_selection_f1(named: Collection[str], wanted: Collection[str], idle: float) -> float:
    """F1 of two sets of tools.

    Args:
        named: the tools of the response.
        wanted: the right tools; where there are none, naming none is 1.
        idle: the score of naming some where there are none.
    """
    first, second = set(named), set(wanted)
    if not second:
        return idle if first else 1.0
    common = len(first & second)
    if not common:
        return 0.0
    precision, recall = common / len(first), common / len(second)
    return 2 * precision * recall / (precision + recall)


def plan_success(response: str, named: Collection[str], wanted: Collection[str]) -> float:
    """0 without marks of a plan; with them 0.5 and as much for the right tools, else 0.8."""
    if not has_plan(response):
        return 0.0
    if not wanted:
        return 0.8
    # The right tools are counted with repeats, the tools that were named are not.
    return 0.5 + 0.5 * (len(set(named) & set(wanted)) / len(wanted))


def has_plan(response: str) -> bool:
    """Whether a response has marks of a plan: numbered steps, first and then, a list to 2."""
    text = response.lower()
    if _MARKED.search(text) or "plan:" in text or "步骤" in text:
        return True
    for line in text.split("\n"):
        place = line.find("first")
        if place >= 0 and line.find("then", place + len("first")) >= 0:
            return True
    return _is_numbered(text)


def _is_numbered(text: str) -> bool:
    """Whether an item 2 follows an item 1 in the line in which the words of that one begin."""
    seconds = [match.start() for match in _SECOND_ITEM.finditer(text)]
    for match in _FIRST_ITEM.finditer(text):
        place = bisect_left(seconds, match.end(1))
        if place < len(seconds) and "\n" not in text[match.end(1) : seconds[place]]:
            return True
    return False


def format_faults(response: str) -> Iterator[tuple[str, float]]:
    """What AgentRewardModel finds wrong with the form of a response, and what each costs.

    Yields:
        ``verb``: a tool is named behind a verb and none in tags, 0.2; ``tags``: not as many ends as
        beginnings, 0.3; ``json``: the first flat object in tags is no JSON, 0.2.
    """
    verbs = "call|use|invoke|execute"
    if not re.search(_TAGGED, response, re.IGNORECASE) and named_by_verb(response, verbs):
        yield "verb", 0.2
    if response.count(OPEN) != response.count(CLOSE):
        yield "tags", 0.3
    flat = _flat_object(response)
    if flat is not None:
        try:
            json.loads(flat)
        except (ValueError, RecursionError):
            yield "json", 0.2


def _flat_object(response: str) -> str | None:
    """The first ``{...}`` without a brace inside that alone stands between the tags."""
    place = end = -1
    while (place := response.find(OPEN, place + 1)) >= 0:
        start = place + len(OPEN)
        while start < len(response) and response[start].isspace():
            start += 1
        if response[start : start + 1] != "{":
            continue
        if end < start + 1 and (end := response.find("}", start + 1)) < 0:
            return None
        if end > start + 1 and re.compile(rf"\s*{CLOSE}").match(response, end + 1):
            return response[start : end + 1]
    return None
