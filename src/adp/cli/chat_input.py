"""What a person writes to ``adp chat``: messages of one line or several, and commands."""

from __future__ import annotations

import sys
from contextlib import suppress

BLOCK = '"""'
"""A line of it begins a message of several lines, and ends it."""

COMMANDS = {
    "/tools": "the tools on offer, with their arguments",
    "/reset": "end this conversation and begin another one",
    "/undo": "go back to before your last message",
    "/save [STORE]": "keep what is said in STORE, or say where it is kept",
    "/help": "this list",
    "/quit": "end; so does Ctrl-D",
}
"""What each command does."""

HELP = f"""\
A message ends with its line. A backslash at the end goes on in the next line, and lines between
{BLOCK} are one message. Ctrl-C stops what is under way. A blank before / makes it a message."""


class ChatInput:
    """Reads messages from standard input: with a prompt on a terminal, else plain lines.

    Attributes:
        asks: whether a person is at a terminal.
    """

    def __init__(self) -> None:
        self.asks = sys.stdin.isatty() and sys.stdout.isatty()
        if self.asks:
            with suppress(ImportError):
                import readline  # noqa: F401 - input() then has a history and can be edited
        elif hasattr(sys.stdin, "reconfigure"):
            sys.stdin.reconfigure(encoding="utf-8", errors="replace")

    def read(self) -> tuple[str, bool] | None:
        """The next message or command; None at the end of the input.

        Returns:
            The text, and whether it is a command.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed.
        """
        line = self._line("> ")
        if line is None:
            return None
        if line.strip() == BLOCK:
            return self._block(), False
        if line.startswith("/"):
            return line.strip(), True
        lines = [line]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            more = self._line(". ")
            if more is None:
                break
            lines.append(more)
        return "\n".join(lines), False

    def _block(self) -> str:
        lines = []
        while (line := self._line(". ")) is not None and line.strip() != BLOCK:
            lines.append(line)
        return "\n".join(lines)

    def _line(self, prompt: str) -> str | None:
        if self.asks:
            try:
                return input(prompt)
            except EOFError:
                print()
                return None
        line = sys.stdin.readline()
        return line.removesuffix("\n").removesuffix("\r") if line else None
