"""DeepSeek: special tokens around a name and JSON, which V3 and R1 write in a fence, V3.1 bare."""

from __future__ import annotations

import re
from collections.abc import Sequence

from adp.converters.text_calls.dialect import Dialect, ParsedCall, ParsedResult, ParsedTurn
from adp.converters.text_calls.frames import scanned, tagged_results, unfenced, written_frame
from adp.converters.text_calls.special_tokens import end_of, token_call


def _token(words: str) -> str:
    """A special token: wide bars, and low blocks between its words."""
    return "<\uff5c" + words.replace(" ", "\u2581") + "\uff5c>"


_BEGIN, _SEPARATOR, _CLOSE = map(_token, ("tool call begin", "tool sep", "tool call end"))
_ALL_BEGIN, _ALL_END = _token("tool calls begin"), _token("tool calls end")
_OPEN = rf"(?:{_ALL_BEGIN}\s*)?{_BEGIN}(?P<first>[^<\n]{{0,200}}){_SEPARATOR}"
_AFTER = re.compile(rf"\s*{_ALL_END}(?:{_token('end of sentence')})?")
_OUTPUTS, _RESULT, _RESULT_END = map(
    _token, ("tool outputs begin", "tool output begin", "tool output end")
)
_KINDS = ("function", "")
_MOST_NAME = 200


class DeepSeekTags(Dialect):
    """The dialect ``deepseek_tags``."""

    name = "deepseek_tags"
    title = "DeepSeek (special tokens `tool call begin`, `tool sep`, `tool call end`)"
    example = (
        f'{_ALL_BEGIN}{_BEGIN}function{_SEPARATOR}f\n```json\n{{"a": 1}}\n```{_CLOSE}{_ALL_END}'
    )
    marks = (_BEGIN,)
    results = (_OUTPUTS, _RESULT)

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        missing: set[str] = set()
        reason = "the tokens of a call hold no call"
        return scanned(text, _OPEN, lambda match: _calls(text, match, missing), reason)

    def results_in(self, text: str, calls: Sequence[ParsedCall]) -> tuple[ParsedResult, ...]:
        """The results in a turn that follows calls."""
        results = tagged_results(text, _RESULT, _RESULT_END)
        return results or super().results_in(text, calls)

    def write(self, call: ParsedCall) -> str | None:
        """The characters of a call."""
        return written_frame(call)


def _calls(text: str, match: re.Match[str], missing: set[str]) -> list[ParsedCall]:
    """The call that begins here."""
    end = -1 if _CLOSE in missing else text.find(_CLOSE, match.end())
    if end < 0:
        missing.add(_CLOSE)
        return []
    span = (match.start(), end_of(text, _AFTER, end + len(_CLOSE)))
    if match["first"].strip() in _KINDS:
        line = text.find("\n", match.end(), min(end, match.end() + _MOST_NAME))
        if line < 0:
            return []
        value = unfenced(text, (line, end))
        call = token_call(text, span, (match.end(), line), value, _CLOSE)
    else:
        call = token_call(text, span, match.span("first"), (match.end(), end), _CLOSE)
    return [] if call is None else [call]


DIALECT = DeepSeekTags()
