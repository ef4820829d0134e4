"""Reasoning that a text marks by tags, and where in a text something may begin at all.

A tag counts when it stands at the beginning of a line or behind another tag, and neither in a code
fence nor in inline code: texts that only talk about tags have no reasoning.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from adp.converters.text_calls.dialect import Marked, ParsedTurn, Span

_NAMES = ("think", "thinking", "thought", "thoughts", "scratch_pad", "scratchpad", "reasoning")
TAGS = {
    **{f"<{name}>": f"</{name}>" for name in _NAMES},
    **{f"<{name.title()}>": f"</{name.title()}>" for name in _NAMES[:3]},
    "<THINK>": "</THINK>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|START_THINKING|>": "<|END_THINKING|>",
}
"""Tags that open reasoning, with those that close it."""

LONE = ("</think>", "</thinking>", "</seed:think>", "[/THINK]", "◁/think▷")
"""Tags that close reasoning whose opening tag a chat template wrote before the text."""

_ANY = (*TAGS, *LONE)
_CODE = (
    r"(?P<_fence>^[ \t]*(?P<_bar>`{3,}|~{3,})(?P<_info>[^`\n]*)$)|(?P<_tick>`+)"
    rf"|(?P<_thought>{'|'.join(map(re.escape, TAGS))})"
)
_LAYOUT = " \t"
_FENCE_END = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*\r?$", re.MULTILINE)
_LINE_BACK = 200
_LONGEST_BAR = 8
_TICKS = {count: re.compile(f"(?<!`){'`' * count}(?!`)") for count in (1, 2, 3)}


@lru_cache(maxsize=64)
def _events(opening: str) -> re.Pattern[str]:
    return re.compile(f"(?P<_opening>{opening})|{_CODE}" if opening else _CODE, re.MULTILINE)


class CodeInText:
    """The code fences and inline code of a text, which a walk over it passes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._missing: set[str] = set()
        self._lines_without: dict[str, int] = {}
        self._line_end = -1

    def fence_end(self, match: re.Match[str]) -> int:
        """The end of a code fence.

        A bare one that nothing closes is the end of another one, and hides nothing.

        Args:
            match: the line that begins it.
        """
        bar, position = match["_bar"][:_LONGEST_BAR], match.end()
        if bar in self._missing:
            return len(self.text) if match["_info"].strip() else match.end()
        while (closing := _FENCE_END.search(self.text, position)) is not None:
            if closing[1].startswith(bar):
                return closing.end()
            position = closing.end()
        self._missing.add(bar)
        return len(self.text) if match["_info"].strip() else match.end()

    def inline_end(self, match: re.Match[str]) -> int:
        """The end of inline code, which stands in one line.

        Args:
            match: the backticks that begin it.
        """
        bar, start = match.group(), match.end()
        if len(bar) > 3 or start <= self._lines_without.get(bar, 0):
            return start
        if start > self._line_end:
            line_end = self.text.find("\n", start)
            self._line_end = len(self.text) if line_end < 0 else line_end
        closing = _TICKS[len(bar)].search(self.text, start, self._line_end)
        if closing is not None:
            return closing.end()
        self._lines_without[bar] = self._line_end
        return start


class Openings(CodeInText):
    """Where actions may begin: outside of reasoning, code fences and inline code.

    A dialect asks for the next place after the end of its last action, so tags and fences inside of
    an action hide nothing.

    Attributes:
        text: the text.
        thoughts: the reasoning that was passed so far.
    """

    def __init__(self, text: str, opening: str, *, unclosed: bool = True) -> None:
        """Prepare a walk.

        Args:
            text: the text.
            opening: regular expression of what begins an action; ``^`` is the beginning of a line.
            unclosed: whether reasoning that begins the text and is never closed hides the rest.
        """
        super().__init__(text)
        self.thoughts: list[Marked] = []
        self._events = _events(opening)
        self._start = 0
        self._leading = len(text) - len(text.lstrip()) if unclosed else -1
        lone = _lone_close(text)
        if lone:
            self.thoughts.append(Marked((0, lone[1]), trimmed(text, (0, lone[0]))))
            self._start = lone[1]

    def after(self, position: int) -> re.Match[str] | None:
        """The next place from a position on where an action may begin.

        Args:
            position: end of the action before.
        """
        position = max(position, self._start)
        while (match := self._events.search(self.text, position)) is not None:
            if match.lastgroup == "_opening":
                return match
            if match.lastgroup == "_thought":
                position = self._thought(match)
            elif match.lastgroup == "_fence":
                position = self.fence_end(match)
            else:
                position = self.inline_end(match)
        return None

    def _thought(self, match: re.Match[str]) -> int:
        """Take reasoning that begins here; the position after it."""
        text, closing = self.text, TAGS[match.group()]
        if not _begins_here(text, match.start()):
            return match.end()
        end = -1 if closing in self._missing else text.find(closing, match.end())
        if end >= 0:
            span = (match.start(), end + len(closing))
        else:
            self._missing.add(closing)
            if match.start() > self._leading:
                return match.end()
            end = len(text)
            span = (match.start(), end)
        self.thoughts.append(Marked(span, trimmed(text, (match.end(), end))))
        return span[1]


def thoughts_in(text: str) -> tuple[Marked, ...]:
    """The reasoning in tags of a turn, in order.

    Args:
        text: the words of the turn.
    """
    if not any(tag in text for tag in _ANY):
        return ()
    openings = Openings(text, "")
    openings.after(0)
    return tuple(openings.thoughts)


def with_thoughts(turn: ParsedTurn, text: str) -> ParsedTurn:
    """A turn with the reasoning in tags, too; what stands inside of a call is none.

    Args:
        turn: what a dialect says of the text.
        text: the words of the turn.
    """
    others = thoughts_in(text)
    if not others:
        return turn
    taken = [call.span for call in turn.calls] + [thought.span for thought in turn.thoughts]
    if turn.answer is not None:
        taken.append(turn.answer.span)
    taken.sort()
    free, place = [], 0
    for thought in others:
        while place < len(taken) and taken[place][1] <= thought.span[0]:
            place += 1
        if place == len(taken) or taken[place][0] >= thought.span[1]:
            free.append(thought)
    return replace(turn, thoughts=tuple(sorted([*turn.thoughts, *free])))


def _lone_close(text: str) -> Span | None:
    """The tag that closes reasoning which the text does not open; None when there is none."""
    first = min((at for tag in LONE if (at := text.find(tag)) >= 0), default=-1)
    if first < 0:
        return None
    events = re.compile(f"(?P<_lone>{'|'.join(map(re.escape, LONE))})|{_CODE}", re.MULTILINE)
    code = CodeInText(text)
    position = 0
    while (match := events.search(text, position)) is not None:
        if match["_lone"] is not None:
            return match.span() if _ends_here(text, *match.span()) else None
        if match["_thought"] is not None:
            if _begins_here(text, match.start()):
                return None
            position = match.end()
        else:
            is_fence = match["_fence"] is not None
            position = code.fence_end(match) if is_fence else code.inline_end(match)
    return None


def _begins_here(text: str, start: int) -> bool:
    """Whether a tag stands at the beginning of a line, or behind another tag."""
    before = text[max(0, start - _LINE_BACK) : start].rstrip(_LAYOUT)
    return before[-1:] in ("", "\n", "\r", ">", "]", "▷")


def _ends_here(text: str, start: int, end: int) -> bool:
    """Whether a tag that closes reasoning stands at the border of a line, or before an action."""
    before = text[max(0, start - _LINE_BACK) : start].rstrip(_LAYOUT)
    after = text[end : end + _LINE_BACK].lstrip(_LAYOUT)
    return before[-1:] in ("", "\n", "\r") or after[:1] in ("", "\n", "\r", "<", "{", "[")


def trimmed(text: str, span: Span) -> Span:
    """A span without the white space around what is in it.

    Args:
        text: the text.
        span: first character and the character after the last one.
    """
    words = text[span[0] : span[1]]
    start = span[0] + len(words) - len(words.lstrip())
    return (start, max(start, span[0] + len(words.rstrip())))


def stands_alone(text: str, span: Span) -> bool:
    """Whether an action is set off from words around it: it begins a line, or ends one.

    Args:
        text: the text.
        span: the action.
    """
    if _begins_here(text, span[0]):
        return True
    after = text[span[1] : span[1] + _LINE_BACK].lstrip(_LAYOUT)
    return after[:1] in ("", "\n", "\r", "<")
