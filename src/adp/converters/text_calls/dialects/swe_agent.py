"""SWE-agent: a discussion, then one command in the last code fence of the turn.

Commands of its editor are calls, with the arguments of the Agent Data Protocol: ``open(path,
line_number)``, ``goto(line_number)``, ``create(filename)``, ``search_dir(search_term, dir)``,
``search_file(search_term, file)``, ``find_file(file_name, dir)``, ``edit(start_line, end_line,
replacement_text)``, ``scroll_down``, ``scroll_up``, ``submit``. Anything else is code for bash. The
fence ends the turn, and has no language or that of a shell. ``DISCUSSION`` marks reasoning.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence

from adp.converters.text_calls.dialect import Dialect, Marked, ParsedCall, ParsedTurn, Span
from adp.converters.text_calls.frames import framed, written_frame
from adp.converters.text_calls.labels import Fence, code_of, fences, same_values, trim
from adp.core.swe_agent_commands import COMMANDS, NUMBERS

_SHELLS = ("", "bash", "sh", "shell")
_EDIT = re.compile(
    r"edit[ \t]+(\d{1,9}):(\d{1,9})[ \t]*\n(.*?)^end_of_edit\s*+", re.DOTALL | re.MULTILINE
)
_DISCUSSION = re.compile(r"\s*+DISCUSSION[ \t]*+:?[ \t]*+\n")
_LONGEST = 2000


class SweAgentDialect(Dialect):
    """The dialect ``swe_agent``."""

    name = "swe_agent"
    title = "SWE-agent (`DISCUSSION`, then a command in the last code fence)"
    example = "DISCUSSION\nI open the file.\n```\nopen src/a.py 20\n```"
    marks = ("```",)
    prompts = ("DISCUSSION", "end_of_edit", "search_dir")
    automatic = False

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        blocks = fences(text)
        block = blocks[-1] if blocks else None
        if block is None or not _is_command(text, block):
            return ParsedTurn()
        code = code_of(text, block)
        if not code.strip():
            return ParsedTurn(left="its command is empty")
        thought = _discussion(text, block.span[0])
        words = (block.words[0], block.words[0] + len(code))
        call = framed(text, block.span, words, _command(code, block.span))
        return ParsedTurn((call,), () if thought is None else (thought,))

    def write(self, call: ParsedCall) -> str | None:
        """A command in a fence."""
        words = call.raw if call.kind == "code" else _words(call)
        written = None if words is None else same_values(self, f"```\n{words}\n```", call)
        return None if written is None else written_frame(call, words) or written


def _is_command(text: str, block: Fence) -> bool:
    """Whether a fence ends the turn and may hold a command."""
    if not block.is_closed or block.language not in _SHELLS or text[block.span[1] :].strip():
        return False
    return text[block.span[0] :].lstrip().startswith("```")


def _discussion(text: str, end: int) -> Marked | None:
    """The reasoning before a fence, when it is marked."""
    match = _DISCUSSION.match(text)
    if match is None or match.end() > end:
        return None
    start = len(text) - len(text.lstrip())
    stop = end
    words = trim(text, (match.end(), stop))
    if text.startswith("COMMAND", words[1] - len("COMMAND")) and words[1] - words[0] > 7:
        words = trim(text, (words[0], words[1] - len("COMMAND")))
    return Marked((start, stop), words)


def _command(code: str, span: Span) -> ParsedCall:
    """The call or the code that a command is."""
    edit = _EDIT.fullmatch(code.lstrip())
    if edit is not None:
        values: dict[str, object] = {
            "start_line": int(edit[1]), "end_line": int(edit[2]), "replacement_text": edit[3]
        }  # fmt: skip
        return ParsedCall(span, "edit", json.dumps(values, ensure_ascii=False))
    arguments = _editor_call(code.strip())
    if arguments is not None:
        return ParsedCall(span, *arguments)
    return ParsedCall(span, "bash", None, code, "text", kind="code", language="bash")


def _editor_call(line: str) -> tuple[str, str] | None:
    """Name and JSON text of the arguments of a command of the editor; None when it is none."""
    name = line.split(" ", 1)[0]
    if name not in COMMANDS or "\n" in line or len(line) > _LONGEST:
        return None
    needed, names = COMMANDS[name]
    words = _shell_words(line)
    if words is None or not needed < len(words) <= len(names) + 1:
        return None
    values: dict[str, object] = {}
    for key, word in zip(names, words[1:], strict=False):
        if key in NUMBERS and not (word.isascii() and word.isdigit()):
            return None
        values[key] = int(word) if key in NUMBERS else word
    return name, json.dumps(values, ensure_ascii=False)


def _shell_words(line: str) -> list[str] | None:
    """The words of a command; None when a shell sees more in it than one command."""
    reader = shlex.shlex(line, posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    reader.commenters = ""
    try:
        words = list(reader)
    except ValueError:
        return None
    return None if any(word and not word.strip("();<>|&") for word in words) else words


def _words(call: ParsedCall) -> str | None:
    """The command that a call is."""
    values = json.loads(call.arguments or "{}")
    if call.name == "edit":
        if set(values) != {"start_line", "end_line", "replacement_text"}:
            return None
        head = f"edit {values['start_line']}:{values['end_line']}"
        return f"{head}\n{values['replacement_text']}end_of_edit"
    if call.name not in COMMANDS or not set(values) <= set(COMMANDS[call.name][1]):
        return None
    words = (str(values[name]) for name in COMMANDS[call.name][1] if name in values)
    return " ".join([call.name, *map(shlex.quote, words)])


DIALECT = SweAgentDialect()
