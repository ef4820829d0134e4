r"""ET-Agent's text form of a trajectory: its two validators, and what is counted in it.

    <think>...</think> <search>query</search> <result>...</result> <think>...</think>
    <python>code</python> <result>...</result> ... <answer> ... \boxed{...} </answer>

**v1**, of the flywheel and of the reward: as many ``<think>`` as ``</think>``, at least one; one
``<answer>`` and one ``</answer>``, in this order; each ``<search>`` and ``<python>`` is followed by
its end tag, then by a result with both tags; ``\boxed{`` and ``}`` stand in the answer.

**v2**, of the Pareto sampling, asks besides: the text begins with ``<think>`` and ends with
``</answer>``; the answer holds exactly one ``\boxed{``, and no tag of thoughts or tools.
"""

from __future__ import annotations

import re

TOOLS = ("search", "python")
TAGS = re.compile(r"</?(?:think|search|python|result|answer)>")

ARGUMENTS = {"search": "query", "python": "code"}
"""The argument of a tool that stands between its tags."""

_ACTION = re.compile(r"<(search|python|answer)>(.*?)(?:</\1>|\Z)", re.DOTALL)

_END = "</result>"


def first_action(text: str) -> re.Match[str] | None:
    """The first call or answer of a turn: its tag is group 1, what stands inside group 2.

    The end tag at which a server stopped may be missing.
    """
    return _ACTION.search(text)


def without_result_tags(text: str) -> str:
    """What a tool brought, without the tags around it."""
    bare = text.strip()
    if bare.startswith("<result>") and bare.endswith(_END):
        return bare.removeprefix("<result>").removesuffix(_END).strip()
    return text


def invalid_v1(text: str) -> str | None:
    """What is wrong with a text by the first validator; None when it is valid."""
    text = text.strip()
    thoughts = text.count("<think>")
    if thoughts != text.count("</think>") or not thoughts:
        return "think tags are missing or do not match"
    if text.count("<answer>") != 1 or text.count("</answer>") != 1:
        return "there is not exactly one answer"
    if any(_is_broken(text, tool) for tool in TOOLS):
        return "a tool call without its result"
    start, end = text.find("<answer>"), text.find("</answer>")
    if start > end:
        return "the answer ends before it begins"
    inside = text[start:end]
    if "\\boxed{" not in inside or "}" not in inside:
        return "the answer has no box"
    return None


def invalid_v2(text: str) -> str | None:
    """What is wrong with a text by the second validator; None when it is valid."""
    text = text.strip()
    if wrong := invalid_v1(text):
        return wrong
    if not text.startswith("<think>"):
        return "the text does not begin with a thought"
    if not text.endswith("</answer>"):
        return "the text does not end with the answer"
    inside = text[text.find("<answer>") + len("<answer>") : text.find("</answer>")]
    if inside.count("\\boxed{") != 1:
        return "the answer has more than one box"
    if any(f"<{end}{tag}>" in inside for tag in ("think", *TOOLS) for end in ("", "/")):
        return "the answer holds tags"
    return None


def _is_broken(text: str, tool: str) -> bool:
    """Whether a call of a tool lacks its end tag or its result, or has them in another order."""
    place = 0
    while (start := text.find(f"<{tool}>", place)) >= 0:
        end = text.find(f"</{tool}>", start)
        # ET-Agent looks for the result of a search from the call on, of Python from its end on.
        result = text.find("<result>", start if tool == "search" else max(end, 0))
        place = text.find(_END, max(result, 0))
        if min(end, result, place) < 0 or not start < end < result < place:
            return True
    return False


def count_pairs(text: str, tag: str) -> int:
    """How many pairs of a tag follow each other in a text."""
    opened, closed = f"<{tag}>", f"</{tag}>"
    count = place = 0
    while (start := text.find(opened, place)) >= 0:
        end = text.find(closed, start + len(opened))
        if end < 0:
            break
        count, place = count + 1, end + len(closed)
    return count


def count_calls(text: str) -> int:
    """How many calls of ET-Agent's tools a text holds."""
    return sum(count_pairs(text, tool) for tool in TOOLS)
