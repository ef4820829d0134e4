"""WebArena and BrowserGym: an action at the end of a turn, in a fence or in a tag.

- WebArena: three backticks around ``click [12]``, ``type [89] [text] [1]``, ``scroll [down]``. The
  words "the next action I will perform is" before it belong to the action. ``stop [words]`` is the
  final answer.
- BrowserGym (AgentLab, Go-Browse): calls with literals, ``click('12')`` or ``fill('12', 'text')``,
  a line each, in a fence, in ``<action>`` tags, behind ``Action:``, or as all of the turn.

The arguments are named as the Agent Data Protocol names them: ``click(bid)``, ``type(bid, text,
press_enter_after)``, ``goto(url)``, ``scroll(direction)``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from adp.converters.text_calls.browser_calls import BROWSER
from adp.converters.text_calls.dialect import Dialect, Marked, ParsedCall, ParsedTurn, Span
from adp.converters.text_calls.frames import framed, written_frame
from adp.converters.text_calls.labels import same_values, trim
from adp.converters.text_calls.literals import LiteralCall, calls_in
from adp.converters.text_calls.write_literals import write_arguments

_PHRASE = "In summary, the next action I will perform is "
_LEAD = re.compile(
    r"(?:In summary,? )?(?:the|my) next action (?:I will perform is|will be|is)[:,]?\s{1,9}\Z",
    re.IGNORECASE,
)
_FURTHEST = 80
_OPEN, _CLOSE = "<action>", "</action>"
_LABEL = re.compile(r"^(?:Action|action|ACTION):[ \t]*+\n?", re.MULTILINE)
_ID = r"\[([\w#-]{1,40})\]"
_FORMS: tuple[tuple[re.Pattern[str], str, tuple[str, ...]], ...] = tuple(
    (re.compile(pattern, re.DOTALL), name, names)
    for pattern, name, names in (
        (rf"click {_ID}", "click", ("bid",)),
        (rf"hover {_ID}", "hover", ("bid",)),
        (rf"type {_ID} \[(.*?)\](?: \[(?:press_enter_after=)?([01])\])?", "type",
         ("bid", "text", "press_enter_after")),
        (rf"clear {_ID}", "clear", ("bid",)),
        (rf"upload {_ID} \[(.*)\]", "upload", ("bid", "file")),
        (r"press \[(.{1,80})\]", "press", ("key_comb",)),
        (r"scroll \[(?:direction=)?(\w{1,10})\]", "scroll", ("direction",)),
        (r"goto \[(.*)\]", "goto", ("url",)),
        (r"(?:tab_focus|page_focus) \[(\d{1,4})\]", "tab_focus", ("index",)),
        (r"new_tab", "new_tab", ()),
        (r"close_tab|page_close", "close_tab", ()),
        (r"go_back", "go_back", ()),
        (r"go_forward", "go_forward", ()),
    )
)  # fmt: skip
_WRITTEN = {
    "type": "type [{bid}] [{text}]{more}",
    "upload": "upload [{bid}] [{file}]",
    **{name: f"{name} [{{bid}}]" for name in ("click", "hover", "clear")},
    "press": "press [{key_comb}]",
    "scroll": "scroll [{direction}]",
    "goto": "goto [{url}]",
    "tab_focus": "tab_focus [{index}]",
    **{name: name for name in ("new_tab", "close_tab", "go_back", "go_forward")},
}
_STOP = re.compile(r"stop \[(.*)\]", re.DOTALL)
_NUMBERS = ("press_enter_after", "index")


class WebArena(Dialect):
    """The dialect ``webarena``."""

    name = "webarena"
    title = "WebArena and BrowserGym (```click [12]``` and `click('12')`)"
    example = "I look for it. In summary, the next action I will perform is ```click [12]```"
    marks = ("```", "<action>", *(f"{name}(" for name in BROWSER))
    prompts = ("```click [", "```stop [", "click [id]", "press_enter_after", "send_msg_to_user")
    results = ("OBSERVATION:", "Observation:", "# Observation")

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        fence = _last_fence(text, len(text))
        if fence is not None:
            return _in_brackets(text, *fence) or _in_fences(text, fence) or ParsedTurn()
        tag = _last_tag(text)
        if tag is not None:
            return _calls(text, *tag) or ParsedTurn()
        label = None
        for match in _LABEL.finditer(text):
            label = match
        start = 0 if label is None else label.end()
        span = (0 if label is None else label.start(), len(text.rstrip()))
        return _calls(text, span, (start, len(text))) or ParsedTurn()

    def write(self, call: ParsedCall) -> str | None:
        """An action in a fence, or a call in function notation."""
        is_function = call.written_as == "python_literal"
        action = _function_text(call) if is_function else _bracket_text(call)
        written = f"```\n{action}\n```" if is_function else f"{_PHRASE}```{action}```"
        if action is None or same_values(self, written, call) is None:
            return None
        return written_frame(call, action) or written


def _last_fence(text: str, limit: int) -> tuple[Span, Span] | None:
    """The last pair of three backticks, when nothing but signs follows it, and its words.

    A phrase that announces the action belongs to the first span.

    Args:
        text: the text.
        limit: where it is taken to end.
    """
    trail = limit
    while trail and text[trail - 1] in " \n\r\t.`":
        trail -= 1
    closing = text.find("```", trail, limit)
    opening = text.rfind("```", 0, trail) if closing >= 0 else -1
    if opening < 0:
        return None
    words = (opening + 3, closing)
    end = closing + 3
    lead = _LEAD.search(text, max(0, opening - _FURTHEST), opening)
    return (opening if lead is None else lead.start(), min(_after_ticks(text, end), limit)), words


def _last_tag(text: str) -> tuple[Span, Span] | None:
    """The tag of an action at the end of a text, and its words."""
    end = len(text.rstrip())
    start = text.rfind(_OPEN)
    if start < 0 or not text.endswith(_CLOSE, start, end):
        return None
    return (start, end), (start + len(_OPEN), end - len(_CLOSE))


def _after_ticks(text: str, position: int) -> int:
    """The position after further backticks, which models write by mistake, and a full stop."""
    while text.startswith("`", position):
        position += 1
    return position + 1 if text.startswith(".", position) else position


def _in_brackets(text: str, span: Span, inside: Span) -> ParsedTurn | None:
    """The action of WebArena in a fence."""
    words = trim(text, inside)
    action = text[slice(*words)]
    stop = _STOP.fullmatch(action)
    if stop is not None:
        return ParsedTurn(answer=Marked(span, (words[0] + stop.start(1), words[0] + stop.end(1))))
    for pattern, name, names in _FORMS:
        match = pattern.fullmatch(action)
        if match is not None:
            pairs = zip(names, match.groups(), strict=True)
            values = {key: value for key, value in pairs if value is not None}
            arguments = {
                key: int(value) if key in _NUMBERS else value for key, value in values.items()
            }
            arguments_text = json.dumps(arguments, ensure_ascii=False)
            return ParsedTurn((framed(text, span, words, ParsedCall(span, name, arguments_text)),))
    return None


def _in_fences(text: str, fence: tuple[Span, Span]) -> ParsedTurn | None:
    """The calls in function notation of the last fences that follow each other."""
    calls: list[ParsedCall] = []
    following: tuple[Span, Span] | None = fence
    while following is not None and (turn := _calls(text, *following)) is not None:
        calls += reversed(turn.calls)
        following = _last_fence(text, following[0][0])
    return ParsedTurn(tuple(reversed(calls))) if calls else None


def _calls(text: str, span: Span, inside: Span) -> ParsedTurn | None:
    """The calls in function notation that some words are, with the marks around them."""
    words = trim(text, inside)
    language = text.find("\n", *words)
    if language >= 0 and text[words[0] : language].strip() in ("python", "py"):
        words = trim(text, (language, words[1]))
    listed = calls_in(text, words[0], end=words[1])
    if not listed or text[words[0]] == "[" or not all(map(_is_known, listed)):
        return None
    bounds = [span[0], *(call.span[0] for call in listed[1:])]
    ends = [*(call.span[1] for call in listed[:-1]), span[1]]
    return ParsedTurn(
        tuple(_call(text, *it) for it in zip(listed, zip(bounds, ends, strict=True), strict=True))
    )


def _is_known(call: LiteralCall) -> bool:
    """Whether a browser has such an action with such arguments."""
    names = BROWSER.get(call.name)
    if names is None or len(call.arguments) > len(names):
        return False
    return all(it.name is None or it.name in names for it in call.arguments)


def _call(text: str, call: LiteralCall, span: Span) -> ParsedCall:
    arguments = call.json(BROWSER[call.name])
    parsed = ParsedCall(span, call.name, arguments, written_as="python_literal")
    return framed(text, span, call.span, parsed)


def _bracket_text(call: ParsedCall) -> str | None:
    """A call as WebArena writes it."""
    values = json.loads(call.arguments or "{}")
    form = _WRITTEN.get(call.name)
    flag = values.get("press_enter_after")
    try:
        more = "" if flag is None else f" [{flag}]"
        return None if form is None else form.format(**values, more=more)
    except (KeyError, TypeError):
        return None


def _function_text(call: ParsedCall) -> str | None:
    """A call as BrowserGym writes it."""
    written = write_arguments(call.arguments or "{}")
    return None if written is None else f"{call.name}({written})"


DIALECT = WebArena()
