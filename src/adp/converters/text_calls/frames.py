"""Actions between tags: walks over a text, calls with places for edits, results, pieces."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from adp.converters.text_calls.dialect import (
    Marked,
    ParsedCall,
    ParsedResult,
    ParsedTurn,
    Piece,
    Span,
)
from adp.converters.text_calls.objects import json_of
from adp.converters.text_calls.thoughts import Openings, stands_alone, trimmed
from adp_schema import jsontext

MOST_FAILED = 200
"""Tags without an action behind them: after so many a text is taken to be no text of actions."""


_NAME = re.compile(r"[^\s<>|\[\]{}\"]+")


@dataclass(frozen=True, slots=True)
class FramedCall(ParsedCall):
    """A call between marks, with what an edit keeps of its characters.

    Attributes:
        source: all of its characters.
        name_place: those of its name, in ``source``; empty when a tag is its name.
        value_place: those of its arguments, its code or its text.
        key: the argument that the text is; empty when the text is JSON or code.
        closing: what its text may not hold.
    """

    source: str = ""
    name_place: Span = (0, 0)
    value_place: Span = (0, 0)
    key: str = ""
    closing: str = ""


def framed(
    text: str,
    span: Span,
    value: Span,
    call: ParsedCall,
    *,
    name: Span | None = None,
    key: str = "",
    closing: str = "",
) -> FramedCall:
    """A call with the places that an edit changes.

    Args:
        text: the text that it is in.
        span: all of its characters.
        value: those of its arguments, its code or its text.
        call: what it says.
        name: those of its name, where the text says it.
        key: the argument that the text is; its value is taken from the text.
        closing: what its text may not hold.
    """
    if key:
        arguments = json_of({key: text[slice(*value)]})
        call = replace(call, arguments=arguments, raw=None, written_as="dsl")
    start = span[0]
    return FramedCall(
        span,
        *(call.name, call.arguments, call.raw, call.written_as, call.kind, call.language),
        call.call_id,
        source=text[slice(*span)],
        name_place=(0, 0) if name is None else (name[0] - start, name[1] - start),
        value_place=(value[0] - start, value[1] - start),
        key=key,
        closing=closing,
    )


def written_frame(call: ParsedCall, words: str | None = None) -> str | None:
    """The characters of a framed call as it shall be; None when it cannot be written.

    Args:
        call: the call.
        words: what stands in the place of its value, when the dialect writes it and the name is
            any; None for JSON, code or text as the call says it.
    """
    if not isinstance(call, FramedCall):
        return None
    value = _value(call) if words is None else words
    old_name = call.source[slice(*call.name_place)]
    has_name = call.name_place[0] < call.name_place[1]
    if value is None or (words is None and has_name and not _NAME.fullmatch(call.name)):
        return None
    if call.closing and call.closing in value:
        return None
    name = call.name if has_name else old_name
    pieces, position = [], 0
    for place, new in sorted([(call.name_place, name), (call.value_place, value)]):
        pieces += [call.source[position : place[0]], new]
        position = place[1]
    return "".join([*pieces, call.source[position:]])


def _value(call: FramedCall) -> str | None:
    """What stands between the marks of a call."""
    if not call.key:
        value = call.raw if call.arguments is None else call.arguments
    else:
        values = json.loads(call.arguments or "null")
        if not isinstance(values, dict) or list(values) != [call.key]:
            return None
        value = values[call.key]
    if not isinstance(value, str):
        return None
    if call.kind != "code":
        return value if value == value.strip() else None
    on_line = call.source[: call.value_place[0]].endswith("\n")
    is_kept = not value[:1].isspace() or (on_line and value[:1] in " \t")
    return value if value.strip() and is_kept and not value[-1].isspace() else None


def code_words(text: str, span: Span) -> Span:
    """Code without empty lines around it; its first line keeps its indentation.

    Args:
        text: the text.
        span: the code, with the white space around it.
    """
    start, end = trimmed(text, span)
    line = text.rfind("\n", span[0], start)
    return (start if line < 0 else line + 1, end)


def code_call(
    text: str, span: Span, code: Span, language: str, *, name: str = "", closing: str = ""
) -> FramedCall | None:
    """Code as a call; None when there is none.

    Args:
        text: the text that it is in.
        span: all of its characters, with its tags or fences.
        code: the code, with the white space around it.
        language: its language.
        name: name of the call; that of the language unless given.
        closing: what code may not hold here.
    """
    words = code_words(text, code)
    raw = text[slice(*words)]
    if not raw:
        return None
    call = ParsedCall(span, name or language, None, raw, "text", "code", language)
    return framed(text, span, words, call, closing=closing)


def json_arguments(token: str) -> ParsedCall:
    """A call without a name, of the characters of its arguments.

    Args:
        token: the characters.
    """
    words = token.strip()
    if words.startswith("{") and jsontext.is_valid(words):
        return ParsedCall((0, 0), "", words, None, "object")
    try:
        value = json.loads(words, strict=False)
    except (ValueError, RecursionError):
        value = None
    written = json_of(value) if isinstance(value, dict) else None
    if written is not None:
        return ParsedCall((0, 0), "", written, None, "dsl")
    return ParsedCall((0, 0), "", None, words, "invalid" if words[:1] in "{[" else "text")


def scanned(
    text: str,
    opening: str,
    read: Callable[[re.Match[str]], Sequence[ParsedCall]],
    reason: str,
) -> ParsedTurn:
    """The calls of a text, where they may begin; those in the middle of a sentence are none.

    Args:
        text: the text.
        opening: regular expression of what begins calls.
        read: the calls that begin at a match; none when there is none.
        reason: why something is left in the text.
    """
    calls: list[ParsedCall] = []
    left, failed, position = None, 0, 0
    walk = Openings(text, opening)
    while failed < MOST_FAILED and (match := walk.after(position)) is not None:
        more = read(match)
        if more and (calls or stands_alone(text, (match.start(), more[-1].span[1]))):
            calls += more
            position = more[-1].span[1]
            continue
        failed += 1
        position = match.end()
        if not more and stands_alone(text, match.span()):
            left = reason
    return ParsedTurn(tuple(calls), left=left)


def tagged_results(
    text: str, opening: str, closing: str, *, first: int = 0
) -> tuple[ParsedResult, ...]:
    """The results in pairs of tags, one for each call in order; the last may not be closed.

    Args:
        text: the words of the turn.
        opening: tag before a result.
        closing: tag after it.
        first: where to begin.
    """
    results = []
    start = text.find(opening, first)
    while start >= 0:
        inside = start + len(opening)
        end = text.find(closing, inside)
        stop = len(text) if end < 0 else end + len(closing)
        words = trimmed(text, (inside, len(text) if end < 0 else end))
        results.append(ParsedResult(Marked((start, stop), words)))
        start = text.find(opening, stop)
    return tuple(results)


def after_mark(text: str, marks: Sequence[str]) -> tuple[ParsedResult, ...]:
    """A turn that begins with a mark, as a result: the mark and the rest of its line break cut off.

    Args:
        text: the words of the turn.
        marks: what results begin with.
    """
    start = len(text) - len(text.lstrip())
    for mark in marks:
        if text.startswith(mark, start):
            begin = start + len(mark)
            while text[begin : begin + 1] in (" ", "\r"):
                begin += 1
            begin += text.startswith("\n", begin)
            return (ParsedResult(Marked((0, len(text)), (begin, len(text)))),)
    return ()


def elements(
    text: str, names: Sequence[str], *, unclosed: bool = True
) -> list[tuple[str, Span, Span]]:
    """Pairs of tags outside of reasoning and code: name, all characters, those inside.

    Args:
        text: the text.
        names: names of the tags.
        unclosed: as `Openings` takes it.
    """
    out: list[tuple[str, Span, Span]] = []
    missing: set[str] = set()
    walk, position = Openings(text, f"<(?P<tag>{'|'.join(names)})>", unclosed=unclosed), 0
    while (match := walk.after(position)) is not None:
        position, name = match.end(), match["tag"]
        closing = f"</{name}>"
        end = -1 if closing in missing else text.find(closing, position)
        if end < 0:
            missing.add(closing)
            continue
        span = (match.start(), end + len(closing))
        if out or stands_alone(text, span):
            out.append((name, span, (position, end)))
            position = span[1]
    return out


def unfenced(text: str, span: Span) -> Span:
    """What stands in a code fence that fills a span; the span when none does.

    Args:
        text: the text.
        span: first character and the character after the last one.
    """
    start, end = trimmed(text, span)
    if not text.startswith("```", start) or not text.endswith("```", start + 6, end):
        return span
    line = text.find("\n", start, end)
    if line < 0 or text.find("```", line, end - 3) >= 0:
        return span
    return (line + 1, end - 3)


def split_at_results(text: str, opening: str, closing: str) -> list[Piece]:
    """The turns of a run in one text whose results stand between tags; none when it has none.

    Args:
        text: the text.
        opening: regular expression of the tag before a result.
        closing: regular expression of the tag after it.
    """
    pieces: list[Piece] = []
    end_tag = re.compile(closing)
    walk, position = Openings(text, opening), 0
    while (match := walk.after(position)) is not None:
        closed = end_tag.search(text, match.end())
        end = len(text) if closed is None else closed.end()
        before = text[position : match.start()]
        if pieces and not before.strip():
            pieces[-1] = Piece("result", (pieces[-1].span[0], end))
        elif not before.strip():
            return []  # it begins with a result
        else:
            pieces.append(Piece("agent", (position, match.start())))
            pieces.append(Piece("result", (match.start(), end)))
        position = end
    if not pieces:
        return []
    if position < len(text):
        if not text[position:].strip():
            pieces[-1] = Piece("result", (pieces[-1].span[0], len(text)))
        else:
            pieces.append(Piece("agent", (position, len(text))))
    return pieces
