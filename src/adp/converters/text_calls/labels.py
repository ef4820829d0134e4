"""Texts of lines with labels (``Thought:``, ``Action:``) and code fences, for several dialects."""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from adp.converters.text_calls.dialect import Dialect, Marked, ParsedCall, Piece, Span
from adp.converters.text_calls.literals import literal_at
from adp_schema import jsontext

_FENCE = re.compile(r"^[ \t]*+(`{3,}+|~{3,}+)[ \t]*+([^`\n]*+)$", re.MULTILINE)


class Fence(NamedTuple):
    """A code fence.

    Attributes:
        span: both of its lines and what is between them.
        words: what is between them.
        language: what stands behind the first marks.
        is_closed: whether it ends; else it goes on to the end of the text.
    """

    span: Span
    words: Span
    language: str
    is_closed: bool


class Labelled(NamedTuple):
    """A label with what follows it, up to the next label.

    Attributes:
        label: its name in lower case, without a number.
        span: from the label to the last character that is no white space.
        words: what follows the label, without white space around it.
    """

    label: str
    span: Span
    words: Span


@dataclass(frozen=True, slots=True)
class ArgumentWords:
    """What arguments say: columns arguments, arguments_raw and arguments_kind of a call."""

    arguments: str | None
    raw: str | None
    written_as: Literal["object", "python_literal", "text", "invalid"]


def label_pattern(labels: Sequence[str]) -> re.Pattern[str]:
    """Pattern of a line that begins with a label, a number perhaps, and a colon.

    Asterisks may stand around it, as Markdown has them.

    Args:
        labels: the labels; of two that begin alike the longer one first.
    """
    names = "|".join(map(re.escape, labels))
    return re.compile(
        rf"^[ \t]*+\*{{0,2}}({names})(?: ?\d{{1,3}})?\*{{0,2}}:\*{{0,2}}", re.MULTILINE
    )


def fences(text: str, start: int = 0) -> list[Fence]:
    """The code fences of a text, in order. One that never closes goes on to the end.

    Args:
        text: the text.
        start: where to begin.
    """
    results: list[Fence] = []
    opening: re.Match[str] | None = None
    if "```" not in text and "~~~" not in text:
        return results
    for match in _FENCE.finditer(text, start):
        if opening is None:
            opening = match
        elif match[1].startswith(opening[1]) and not match[2].strip():
            words = (min(opening.end() + 1, match.start()), match.start())
            span = (opening.start(), match.end())
            results.append(Fence(span, words, opening[2].strip(), is_closed=True))
            opening = None
    if opening is not None:
        words = (min(opening.end() + 1, len(text)), len(text))
        span = (opening.start(), len(text))
        results.append(Fence(span, words, opening[2].strip(), is_closed=False))
    return results


def trim(text: str, span: Span) -> Span:
    """A span without the white space around its words."""
    words = text[slice(*span)]
    start = span[0] + len(words) - len(words.lstrip())
    return (start, max(start, span[0] + len(words.rstrip())))


def sections(text: str, pattern: re.Pattern[str]) -> list[Labelled]:
    """The labels of a text that stand outside of code fences, in order.

    Args:
        text: the text.
        pattern: of `label_pattern`.
    """
    hidden = fences(text)
    starts = [fence.span[0] for fence in hidden]
    matches = []
    for match in pattern.finditer(text):
        index = bisect_right(starts, match.start()) - 1
        if index < 0 or match.start() >= hidden[index].span[1]:
            matches.append(match)
    results = []
    for index, match in enumerate(matches):
        end = matches[index + 1].start() if index + 1 < len(matches) else len(text)
        words = trim(text, (match.end(), end))
        start = match.start() + len(match[0]) - len(match[0].lstrip(" \t"))
        results.append(Labelled(match[1].lower(), (start, max(match.end(), words[1])), words))
    return results


def thought(part: Labelled, end: int) -> Marked:
    """The reasoning that a label marks, with the white space behind it.

    Args:
        part: the label with what follows it.
        end: where what comes next begins.
    """
    return Marked((part.span[0], max(end, part.span[1])), part.words)


def structured(words: str) -> ArgumentWords:
    """What arguments of any notation say: JSON, a literal of Python, or free text.

    Args:
        words: the arguments, perhaps in a code fence.
    """
    inside = _without_fence(words)
    if inside.startswith("{"):
        if jsontext.is_valid(inside):
            return ArgumentWords(inside, None, "object")
        literal = literal_object(inside)
        if literal is not None:
            return ArgumentWords(literal, None, "python_literal")
        return ArgumentWords(None, words, "invalid")
    return ArgumentWords(None, words, "text")


def literal_object(text: str) -> str | None:
    """JSON text of a dict of Python that a text is; None when it is none."""
    literal = literal_at(text)
    if literal is None or literal[1] != len(text) or not literal[0].startswith("{"):
        return None
    return literal[0]


def _without_fence(words: str) -> str:
    if not words.startswith("```") or not words.endswith("```") or words.count("\n") < 2:
        return words
    return words[words.index("\n") : words.rindex("\n")].strip()


def fence_after(text: str, position: int, blocks: Sequence[Fence]) -> Fence | None:
    """The code fence that follows a position with nothing but white space between.

    Args:
        text: the text.
        position: where to look.
        blocks: the code fences of the text.
    """
    index = bisect_left(blocks, position, key=lambda block: block.span[0])
    if index >= len(blocks) or text[position : blocks[index].span[0]].strip():
        return None
    return blocks[index]


def code_of(text: str, block: Fence) -> str:
    """The code in a fence, without the line break at its end."""
    return text[slice(*block.words)].removesuffix("\n")


def object_text(**members: str | None) -> str:
    """JSON text of an object of strings; members that are None are left out."""
    pairs = {name: value for name, value in members.items() if value is not None}
    return json.dumps(pairs, ensure_ascii=False)


def string_members(text: str | None) -> dict[str, str] | None:
    """The members of a JSON object of strings; None when it is something else."""
    try:
        members = json.loads(text or "")
    except ValueError:
        return None
    if not isinstance(members, dict):
        return None
    return members if all(isinstance(value, str) for value in members.values()) else None


def same_values(grammar: Dialect, written: str | None, call: ParsedCall) -> str | None:
    """A written call, when the dialect reads from it what the call says; else None.

    Args:
        grammar: the dialect.
        written: the characters.
        call: what they shall say.
    """
    if written is None:
        return None
    turn = grammar.parse(written, (call.name,))
    if len(turn.calls) != 1 or turn.thoughts or turn.answer:
        return None
    read = turn.calls[0]
    if read.span != (0, len(written)) or (read.name, read.raw) != (call.name, call.raw):
        return None
    return written if _value(read.arguments) == _value(call.arguments) else None


def _value(text: str | None) -> object:
    if text is None:
        return None
    return json.loads(text, parse_int=str, parse_float=str, parse_constant=str)


def run_pieces(
    text: str, parts: Sequence[Labelled], results: Sequence[str], actions: Sequence[str]
) -> list[Piece]:
    """The turns of a text that holds a run with its results; none when it holds no result.

    Args:
        text: the text.
        parts: its sections.
        results: labels of results; those of nothing are none.
        actions: labels of what a result can follow.
    """
    bounds: list[tuple[int, bool]] = [(0, False)]
    has_acted = has_result = False
    for part in parts:
        is_result = part.label in results
        has_acted = has_acted or part.label in actions
        if is_result and not has_acted:
            continue
        if is_result != bounds[-1][1]:
            bounds.append((part.span[0], is_result))
        has_result = has_result or (is_result and part.words[1] > part.words[0])
    if not has_result:
        return []
    ends = [start for start, _ in bounds[1:]] + [len(text)]
    return [
        Piece("result" if is_result else "agent", (start, end))
        for (start, is_result), end in zip(bounds, ends, strict=True)
    ]
