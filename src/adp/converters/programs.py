"""The programs whose sessions are written: where they look for them, and how they go on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


@dataclass(frozen=True, slots=True)
class SessionProgram:
    """A program that goes on with sessions of a format.

    Attributes:
        files: the end of the path of a session, as the program names it; the group ``session`` is
            what its command takes, where that is no path.
        command: how to go on, with ``{file}``, ``{session}`` and ``{folder}``, which is where the
            path in ``files`` begins.
        kept_files: the end of the path of files beside sessions, which keep their names in the
            folder of the session; the command does not take them.
    """

    files: re.Pattern[str]
    command: str
    kept_files: re.Pattern[str] | None = None

    def finds(self, path: str, framing: str | None) -> bool:
        """Whether a file of the format has a name as the program gives it.

        Args:
            path: its path.
            framing: how records stand in it.
        """
        return framing == "session" and self.files.search(path) is not None

    def go_on(self, folder: Path, path: str) -> str | None:
        """How to go on with a session; None for a file that the program does not look for.

        Args:
            folder: where files were written.
            path: the file of a session below it.
        """
        match = self.files.search(path)
        session = "" if match is None else match.groupdict("").get("session")
        if match is None or session == "":
            return None
        above = quote(str(folder / path[: match.start()]))
        file = quote(str(folder / path))
        return self.command.format(file=file, session=session, folder=above)


PROGRAMS = {
    "claude_code": SessionProgram(
        re.compile(
            r"(?<![^/])(?:-|[A-Za-z]--)[^/]*/"
            rf"(?:(?P<session>{_UUID})|(?:.+/)?agent-[^/]+)\.jsonl$"
        ),
        "copy what is in {folder} to ~/.claude/projects, then, in the folder of the session: "
        "claude --resume {session}",
        kept_files=re.compile(r"(?<![^/])agent-[^/]+\.jsonl$"),
    ),
    "codex": SessionProgram(
        re.compile(
            r"(?<![^/])(?:archived_)?sessions/(?:\d{4}/\d\d/\d\d/)?"
            rf"rollout-[^/]*?(?P<session>{_UUID})\.jsonl$"
        ),
        "copy what is in {folder} to ~/.codex, then: codex resume {session}",
    ),
    # A document of the source is laid out otherwise, and `opencode import` takes any path.
    "opencode": SessionProgram(re.compile(r"[^/]+\.json$"), "opencode import {file}"),
    "pi": SessionProgram(re.compile(r"(?<![^/])--[^/]*--/[^/]+\.jsonl$"), "pi --session {file}"),
}
"""Format -> the program that goes on with its sessions."""
