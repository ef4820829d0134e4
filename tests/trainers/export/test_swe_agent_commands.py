"""Commands of SWE-agent's own editor and search in rows for it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

import pytest

from adp.rendering.chat import ChatCall
from adp.trainers.export.swe_agent import EXPORTER, SweAgentOptions
from tests.trainers.export.chats import agent, chat_of, export, result, user

COMMAND = re.compile(r"<parameter=command>\n(.*?)\n</parameter>", re.DOTALL)


def exported(name: str, arguments: Mapping[str, Any], **settings: Any) -> tuple[str, str]:
    """The command that a call of a tool becomes, and the system prompt."""
    call = ChatCall(name, dict(arguments), json.dumps(arguments), "c")
    chat = chat_of(user("go"), agent("I act.", call), result("c", "ok"), agent("Done."))
    rows, _ = export(EXPORTER, chat, SweAgentOptions(**settings))
    (row,) = rows
    texts = [it["content"] for it in row["conversations"] if it["role"] == "assistant"]
    match = COMMAND.search(texts[0])
    assert match is not None
    return match[1], row["system"]


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("find_file", {"file_name": "image.py", "dir": "a b"}, ["find_file", "image.py", "a b"]),
        ("find_file", {"dir": "x", "file_name": "it's $(a)"}, ["find_file", "it's $(a)", "x"]),
        ("open", {"path": "a.py"}, ["open", "a.py"]),
        ("open", {"path": "a.py", "line_number": 20}, ["open", "a.py", "20"]),
        ("goto", {"line_number": "7"}, ["goto", "7"]),
        ("search_dir", {"search_term": "def f(", "dir": "src"}, ["search_dir", "def f(", "src"]),
        ("scroll_down", {}, ["scroll_down"]),
        ("create", {"filename": "n.py"}, ["create", "n.py"]),
    ],
)
def test_a_shell_reads_the_words_of_a_command(
    name: str, arguments: dict[str, Any], expected: list[str]
) -> None:
    command, system = exported(name, arguments)
    assert shlex.split(command) == expected
    assert f"\n{name}" in system
    assert f"{name}(" not in system


def test_an_edit_has_its_lines_and_its_end() -> None:
    for text, line_end in (("    a\n    b\n", ""), ("x", "\n"), ("", "")):
        values = {"start_line": 5, "end_line": 7, "replacement_text": text}
        command, system = exported("edit", values)
        assert command == f"edit 5:7\n{text}{line_end}end_of_edit"
        assert "edit <start_line>:<end_line>\n<replacement_text>\nend_of_edit" in system


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("open", {"path": "a.py", "mode": "w"}),
        ("open", {"path": 3}),
        ("goto", {"line_number": "last"}),
        ("goto", {"url": "https://a.b"}),
        ("find_file", {"dir": "src"}),
        ("edit", {"start_line": 1, "end_line": 2, "replacement_text": "a\nend_of_edit\n"}),
        ("find_stone", {"color": "grey"}),
    ],
)
def test_other_calls_stay_functions(name: str, arguments: dict[str, Any]) -> None:
    assert exported(name, arguments)[0].startswith(f"{name}(")


def test_without_quotes_it_is_written_as_the_protocol_does() -> None:
    command, system = exported("find_file", {"file_name": "image.py"}, quotes="none")
    assert command == "find_file(file_name=image.py)"
    assert "find_file(file_name)" in system
