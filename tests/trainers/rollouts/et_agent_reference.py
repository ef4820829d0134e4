"""ET-Agent's reward straight from its formula, with numpy, and groups of texts to try it on."""

from __future__ import annotations

import re
import string
from collections import Counter
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st


@dataclass(frozen=True)
class Response:
    """A text in tags, the tokens that it has, and the group that it belongs to."""

    text: str
    tokens: int
    group: str


def words_of(text: str) -> list[str]:
    kept = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", kept).split()


def right(text: str, truths: list[str], rule: str) -> float:
    answer = re.search(r"<answer>(.*?)</answer>", text, re.S)
    if answer is None:
        return 0.0
    boxes = re.findall(r"\\boxed\{([^{}]*)\}", text if rule == "math" else answer.group(1))
    if not boxes:
        return 0.0
    if rule == "math":
        return float(any(boxes[-1].replace(" ", "") == truth.replace(" ", "") for truth in truths))
    best = 0.0
    for truth in truths:
        given, wanted = words_of(boxes[-1]), words_of(truth)
        same = sum((Counter(given) & Counter(wanted)).values())
        closed = {"yes", "no", "noanswer"} & {" ".join(given), " ".join(wanted)}
        if same and not (closed and given != wanted):
            precision, recall = same / len(given), same / len(wanted)
            best = max(best, 2 * precision * recall / (precision + recall))
    return best


def valid(text: str) -> bool:
    """The first validator, by one pattern over the tags alone."""
    text = text.strip()
    tags = re.findall(r"</?(?:think|search|python|result|answer)>", text)
    counts = Counter(tags)
    if not counts["<think>"] or counts["<think>"] != counts["</think>"]:
        return False
    if counts["<answer>"] != 1 or counts["</answer>"] != 1:
        return False
    inside = re.search(r"<answer>(.*?)</answer>", text, re.S)
    if inside is None or not re.search(r"\\boxed\{.*", inside.group(1), re.S):
        return False
    return "}" in inside.group(1) and all(_closed(text, tool) for tool in ("search", "python"))


def _closed(text: str, tool: str) -> bool:
    place = 0
    while (start := text.find(f"<{tool}>", place)) >= 0:
        end = text.find(f"</{tool}>", start)
        result = text.find("<result>", start)
        place = text.find("</result>", result)
        if min(end, result, place) < 0 or not start < end < result < place:
            return False
    return True


def calls_of(text: str) -> int:
    tags = [re.findall(f"<{tool}>.*?</{tool}>", text, re.S) for tool in ("search", "python")]
    return sum(map(len, tags))


def rewards(
    responses: list[Response],
    truths: list[str],
    rule: str,
    sigmas: tuple[float, float],
    progress: tuple[int, int] | None,
) -> np.ndarray:
    """R = r * f_tool * f_len + f_fmt; ``progress`` is t and T."""
    left = 1.0
    if progress is not None:
        step, steps = progress
        left = 0.0 if steps <= 1 else max(0.0, (steps - step) / (steps - 1))
    sigma_tool, sigma_len = sigmas[0] * left, sigmas[1] * left
    out = np.zeros(len(responses))
    for group in {response.group for response in responses}:
        places = [i for i, response in enumerate(responses) if response.group == group]
        texts = [responses[i].text for i in places]
        n = np.array([calls_of(text) for text in texts], float)
        length = np.array([responses[i].tokens for i in places], float)
        deviation = np.std(length)
        z = (length - np.mean(length)) / deviation if deviation else np.zeros(len(places))
        r = np.array([right(text, truths, rule) for text in texts])
        f_tool = 2 / (1 + np.exp(sigma_tool * (n - np.mean(n))))
        f_len = 2 / (1 + np.exp(sigma_len * z))
        f_fmt = np.array([0.0 if valid(text) else -1.0 for text in texts])
        out[places] = r * f_tool * f_len + f_fmt
    return out


ANSWERS = st.sampled_from(["4", "the Nile", "Nile river", "yes", "no", "x + 1", "", "a"])
TRUTHS = st.lists(st.sampled_from(["4", "Nile", "The Nile River", "yes", "x+1"]), min_size=1)
_SEARCH = "<think>s</think><search>q</search><result>r</result>"
_PYTHON = "<think>p</think><python>1+1</python> <result>2</result>"
_STEPS = st.lists(
    st.sampled_from([_SEARCH, _PYTHON, "<think>only</think>", "<search>open", "</think>", "words"]),
    max_size=6,
).map("".join)
_ENDS = st.one_of(
    st.builds("<answer>It is \\boxed{{{}}}.</answer>".format, ANSWERS),
    st.builds("<answer>It is {}.</answer>".format, ANSWERS),
    st.builds("\\boxed{{{}}}".format, ANSWERS),
    st.just(""),
)
TEXTS = st.builds("{}<think>so</think>{}".format, _STEPS, _ENDS)
RESPONSES = st.lists(
    st.builds(Response, TEXTS, st.integers(1, 4096), st.sampled_from("ab")), min_size=1, max_size=12
)
SIGMAS = st.tuples(st.floats(0, 5), st.floats(0, 5))
