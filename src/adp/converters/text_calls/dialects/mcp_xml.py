"""Elements named by the tool: ``<use_mcp_tool>`` (MiroVerse, Cline) and the tools of Cline.

``<use_mcp_tool>`` holds ``<server_name>``, ``<tool_name>`` and JSON ``<arguments>``; its call has
the name of the tool. The other tools, of Cline, Roo Code and Kilo Code, hold an element for each
argument.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from adp.converters.readers.cline_calls import TOOLS
from adp.converters.text_calls.dialect import Dialect, Marked, ParsedCall, ParsedResult, ParsedTurn
from adp.converters.text_calls.frames import (
    framed,
    json_arguments,
    scanned,
    written_frame,
)
from adp.converters.text_calls.objects import checked, json_of, skip_space
from adp.converters.text_calls.thoughts import trimmed
from adp_schema import jsontext

_NAMES = "|".join(TOOLS)
_OPEN = rf"<(?P<tag>{_NAMES})>"
_TEXTS = ("content", "diff", "result", "regex", "command", "search", "replace")
_KEY = re.compile(r"<([A-Za-z_]\w{0,60})>")
_HEADER = re.compile(rf"^\[({_NAMES})\b[^\n]*\] Result:[ \t]*\n?", re.MULTILINE)
_FAILED = ("The tool execution failed", "<error>", "Error: ")
_SERVER = re.compile(
    r"\s*<server_name>([^<]*)</server_name>\s*<tool_name>([^<]*)</tool_name>\s*(?:<arguments>)?"
)


class McpXml(Dialect):
    """The dialect ``mcp_xml``."""

    name = "mcp_xml"
    title = "Elements named by the tool (`<use_mcp_tool>`, `<read_file><path>`): MiroVerse, Cline"
    example = (
        "<use_mcp_tool>\n<server_name>s</server_name>\n<tool_name>f</tool_name>\n<arguments>\n"
        '{"a": 1}\n</arguments>\n</use_mcp_tool>'
    )
    marks = tuple(f"</{name}>" for name in TOOLS)
    prompts = ("<use_mcp_tool>", "<attempt_completion>")
    results = tuple(f"[{name}" for name in TOOLS)

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        missing: set[str] = set()
        reason = "the element of a tool does not hold its arguments"
        turn = scanned(text, _OPEN, lambda match: _calls(text, match, missing), reason)
        if turn.calls and text[turn.calls[-1].span[1] :].strip():
            return ParsedTurn()  # an element ends its turn; before other words it explains one
        if turn.left is not None and not any(mark in text for mark in self.marks):
            return replace(turn, left=None)
        return turn

    def results_in(self, text: str, calls: Sequence[ParsedCall]) -> tuple[ParsedResult, ...]:
        """The results in a turn that follows calls."""
        matches = list(_HEADER.finditer(text))
        if not matches or text[: matches[0].start()].strip():
            return super().results_in(text, calls)
        borders = pairwise([0, *(match.start() for match in matches[1:]), len(text)])
        out = []
        for match, span in zip(matches, borders, strict=True):
            words = text[match.end() : span[1]].lstrip()
            marked = Marked(span, (match.end(), span[1]))
            out.append(ParsedResult(marked, name=match[1], is_error=words.startswith(_FAILED)))
        return tuple(out)

    def write(self, call: ParsedCall) -> str | None:
        """The characters of a call."""
        if call.kind == "mcp":
            return written_frame(call)
        if call.arguments is None or call.name not in TOOLS:
            return None
        lines = [f"<{call.name}>"]
        for key, raw in jsontext.decode_object(call.arguments).items():
            if not bytes(raw).startswith(b'"'):
                return None
            value = jsontext.decode_text(raw)
            value = f"\n{value}\n" if "\n" in value else value
            lines.append(f"<{key}>{value}</{key}>")
        return checked(self, call, "\n".join([*lines, f"</{call.name}>"]))


def _calls(text: str, match: re.Match[str], missing: set[str]) -> list[ParsedCall]:
    """The call of an element."""
    tag = match["tag"]
    closing = f"</{tag}>"
    if closing in missing:
        return []
    if tag == "use_mcp_tool":
        call = _mcp_call(text, match.start(), match.end(), closing)
        return [call] if call is not None else []
    values: dict[str, str] = {}
    position = skip_space(text, match.end())
    while not text.startswith(closing, position):
        key = _KEY.match(text, position)
        end = -1 if key is None else _value_end(text, key, closing)
        if key is None or end < 0 or key[1] in values:
            if text.find(closing, position) < 0:
                missing.add(closing)
            return []
        values[key[1]] = text[key.end() : end].strip("\n")
        position = skip_space(text, end + len(f"</{key[1]}>"))
    if not values:
        return []
    span = (match.start(), position + len(closing))
    return [ParsedCall(span, tag, json_of(values), None, "dsl")]


def _value_end(text: str, key: re.Match[str], closing: str) -> int:
    """Where a value ends: texts may hold the tag that closes them, if no other tag follows it."""
    tag = f"</{key[1]}>"
    end = text.find(tag, key.end())
    if key[1] not in _TEXTS:
        return end
    while end >= 0:
        after = skip_space(text, end + len(tag))
        if text.startswith(closing, after) or _KEY.match(text, after):
            return end
        end = text.find(tag, end + len(tag))
    return -1


def _mcp_call(text: str, start: int, position: int, closing: str) -> ParsedCall | None:
    """The call of ``<use_mcp_tool>``."""
    head = _SERVER.match(text, position)
    end = -1 if head is None else text.find(closing, head.end())
    if head is None or end < 0 or not head[2].strip():
        return None
    last = text.rfind("</arguments>", head.end(), end)
    words = trimmed(text, (head.end(), end if last < 0 else last))
    given = json_arguments(text[slice(*words)] or "{}")
    values = (given.arguments, given.raw, given.written_as)
    call = ParsedCall((start, end + len(closing)), head[2].strip(), *values, "mcp")
    return framed(text, call.span, words, call, name=trimmed(text, head.span(2)), closing=closing)


DIALECT = McpXml()
