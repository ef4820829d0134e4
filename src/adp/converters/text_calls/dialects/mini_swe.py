"""mini-swe-agent: ``THOUGHT:`` and exactly one block of bash; results with a return code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from adp.converters.text_calls.dialect import Dialect, Marked, ParsedCall, ParsedResult, ParsedTurn
from adp.converters.text_calls.dialects import function_xml
from adp.converters.text_calls.dialects.fenced_code import fence_end
from adp.converters.text_calls.frames import code_call, written_frame
from adp.converters.text_calls.thoughts import Openings, trimmed

_OPEN = r"^[ \t]*(?P<bar>`{3})(?:bash|sh|mswea_bash_command)[ \t]*\r?\n"
_LABEL = re.compile(r"\s*(?:\*\*)?THOUGHT:?(?:\*\*)?:?[ \t]*")
_CODE = re.compile(r"\s*<returncode>\s*(-?\d{1,10})\s*</returncode>[ \t]*\n?")
_OUTPUT, _OUTPUT_END = "<output>", "</output>"


class MiniSwe(Dialect):
    """The dialect ``mini_swe``."""

    name = "mini_swe"
    title = "mini-swe-agent (`THOUGHT:`, one block of bash, `<returncode>`)"
    example = "THOUGHT: I look.\n\n```bash\nls -l\n```"
    marks = ("```bash", "```sh", "```mswea_bash_command", "<function=submit>")
    prompts = ("exactly ONE bash code block", "ONE bash code block", "<returncode>")
    results = ("<returncode>",)

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        blocks: list[tuple[re.Match[str], tuple[int, int]]] = []
        missing: set[str] = set()
        position = 0
        walk = Openings(text, _OPEN)
        while len(blocks) < 2 and (match := walk.after(position)) is not None:
            end = fence_end(text, match, missing)
            position = end[1] if end else match.end()
            if end is not None:
                blocks.append((match, end))
        if not blocks and "<function=submit>" in text:
            turn = function_xml.DIALECT.parse(text, tools)
            return replace(turn, thoughts=_thought(text, turn.calls))
        if len(blocks) != 1:
            left = "it has more blocks of bash than the one that is run" if blocks else None
            return ParsedTurn(left=left)
        match, end = blocks[0]
        if text[end[1] :].strip() or not _is_labelled(text):
            return ParsedTurn(left="it has other words than a thought before a block of bash")
        span = (match.start("bar"), end[1])
        call = code_call(text, span, (match.end() - 1, end[0]), "bash", closing="\n```")
        calls = () if call is None else (call,)
        return ParsedTurn(calls, _thought(text, calls))

    def results_in(self, text: str, calls: Sequence[ParsedCall]) -> tuple[ParsedResult, ...]:
        """The results in a turn that follows calls."""
        match = _CODE.match(text)
        if match is None:
            return super().results_in(text, calls)
        start, end = match.end(), len(text)
        if text.startswith(_OUTPUT, start):
            start += len(_OUTPUT)
            start += text.startswith("\n", start)
            last = text.rfind(_OUTPUT_END, start)
            end = last if last >= 0 and not text[last + len(_OUTPUT_END) :].strip() else end
        code = int(match[1])
        marked = Marked((0, len(text)), (start, end))
        return (ParsedResult(marked, is_error=code != 0, exit_code=code),)

    def write(self, call: ParsedCall) -> str | None:
        """The characters of a call."""
        if call.kind != "code":
            return function_xml.DIALECT.write(call)
        return written_frame(call) if call.name == "bash" else None


def _is_labelled(text: str) -> bool:
    """Whether a text begins with its thought, if it has a label for it."""
    return _LABEL.match(text) is not None or "THOUGHT" not in text


def _thought(text: str, calls: Sequence[ParsedCall]) -> tuple[Marked, ...]:
    """The words behind ``THOUGHT:``, up to the call."""
    match = _LABEL.match(text)
    end = calls[0].span[0] if calls else 0
    if match is None or match.end() >= end:
        return ()
    return (Marked((0, end), trimmed(text, (match.end(), end))),)


DIALECT = MiniSwe()
