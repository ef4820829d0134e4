"""Run the examples of a page of the docs, in order, in one shell and one empty folder.

    python -m tests.pages --write docs/tour.md     write what the commands print into the page

A block ``console`` holds commands (``$ ``) and what they print; ``pycon`` is a doctest; a block
with ``title="NAME"`` is a file that the reader saves. ``...`` in an output stands for
anything, and runs of blanks and line breaks are equal. A command must succeed, unless the page
shows a line ``error:`` of it.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TUTORIALS = ROOT / "docs" / "tutorials"

_BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_DOCTEST = "python -m doctest -o ELLIPSIS"
# What a command that takes seconds says meanwhile, where no terminal shows a bar.
_PROGRESS = re.compile(r"^[a-z][a-z ]*: [0-9]+%.*\n", re.MULTILINE)
_RESULT = re.compile("\x1e(.*?)\x1f([0-9]+)\n", re.DOTALL)


@dataclass
class Example:
    """A command of a page, what the page says that it prints, and what it printed.

    ``offset`` is where the command begins in the page, ``command`` its text without the ``$ ``.
    """

    offset: int
    command: str
    expected: str
    printed: str | None = None
    status: int | None = None

    @property
    def agrees(self) -> bool:
        """Whether the command ran, ended as the page shows it, and printed what the page shows."""
        if self.printed is None:
            return False
        fails = re.search(r"^error: ", self.expected, re.MULTILINE) is not None
        same = doctest.OutputChecker().check_output(self.expected, self.printed, _FLAGS)
        return same and fails == (self.status != 0)


def run_page(page: Path, folder: Path, environment: dict[str, str] | None = None) -> list[Example]:
    """Run the examples of ``page`` in ``folder``, beside a copy of the project's ``examples``.

    ``environment`` goes on top of this process's own; `adp` is the one of this Python.
    """
    work, files = folder / "work", folder / "files"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "examples", work / "examples", ignore=ignored)
    files.mkdir()
    examples, script = _script(page.read_text(encoding="utf-8"), files)
    done = subprocess.run(
        ["bash", "-c", script], cwd=work, capture_output=True, text=True, check=False,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "COLUMNS": "110", "NO_COLOR": "1", "FILES": str(files),
            "ADP_CACHE": str(folder / "cache"), "HF_HUB_OFFLINE": "1",
            **(environment or {}),
        },
    )  # fmt: skip
    for example, (printed, status) in zip(examples, _RESULT.findall(done.stdout), strict=False):
        example.printed, example.status = _PROGRESS.sub("", printed), int(status)
    return examples


def _script(text: str, files: Path) -> tuple[list[Example], str]:
    """The examples of a page, and the shell script of them; other blocks go to ``files``."""
    examples: list[Example] = []
    script = ["exec 2>&1 </dev/null"]
    for number, block in enumerate(_BLOCK.finditer(text)):
        kind, rest, body = block.groups()
        file = files / f"{number}.txt"
        if title := re.search(r'title="([^"]+)"', rest):
            file.write_text(body, encoding="utf-8")
            script.append(f'cp "$FILES/{file.name}" {shlex.quote(title[1])}')
            continue
        commands = _commands(body, block.start(3)) if kind == "console" else []
        if kind == "pycon":
            file.write_text(body, encoding="utf-8")
            commands = [Example(block.start(3), f'{_DOCTEST} "$FILES/{file.name}"\n', "")]
        for command in commands:
            script.append(f"printf '\\036'; {command.command}\nprintf '\\037%d\\n' $?")
        examples += commands
    return examples, "\n".join(script)


def _commands(body: str, start: int) -> list[Example]:
    """The commands of a block ``console``; one with an open quote goes on in the next line."""
    commands: list[Example] = []
    open_command = False
    offset = start
    for line in body.splitlines(keepends=True):
        if line.startswith("$ "):
            commands.append(Example(offset, line[2:], ""))
            open_command = not _complete(line[2:])
        elif open_command:
            commands[-1].command += line
            open_command = not _complete(commands[-1].command)
        else:
            commands[-1].expected += line
        offset += len(line)
    return commands


def _complete(command: str) -> bool:
    try:
        shlex.split(command)
    except ValueError:
        return False
    return not command.endswith("\\\n")


def faults(examples: list[Example]) -> str:
    """What does not agree, for reading; empty if all does."""
    return "\n".join(
        f"$ {example.command}expected:\n{example.expected}"
        f"printed ({example.status}):\n{example.printed}"
        for example in examples
        if not example.agrees
    )


def rewritten(text: str, examples: list[Example]) -> str:
    """The page with what the commands printed, where it differs from what stands there."""
    for example in reversed(examples):
        if (
            not example.agrees
            and example.printed is not None
            and not example.command.startswith(_DOCTEST)
        ):
            end = example.offset + len("$ " + example.command)
            printed = "".join(f"{line.rstrip()}\n" for line in example.printed.splitlines())
            text = text[:end] + printed + text[end + len(example.expected) :]
    return text


if __name__ == "__main__":
    for name in sys.argv[2:]:
        with tempfile.TemporaryDirectory() as scratch:
            results = run_page(Path(name), Path(scratch))
        print(faults(results))
        Path(name).write_text(rewritten(Path(name).read_text(), results), encoding="utf-8")
