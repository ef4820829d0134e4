"""Elements named by the tool: MCP and Cline."""

from __future__ import annotations

import pytest

from adp.converters.readers.cline_calls import calls_in
from adp.converters.text_calls.dialects.mcp_xml import DIALECT
from tests.converters.text_calls.dialects.common import (
    PROSE,
    calls,
    check_example,
    check_prose,
    check_work,
    check_write,
    results,
)

MCP = (
    "<use_mcp_tool>\n<server_name>tool-search</server_name>\n<tool_name>google</tool_name>\n"
    '<arguments>\n{"q": "a <b>"}\n</arguments>\n</use_mcp_tool>'
)
CLINE = [
    "Ok.\n<read_file>\n<path>a.py</path>\n</read_file>",
    "<execute_command>\n<command>ls && echo '</command>'</command>\n"
    "<requires_approval>false</requires_approval>\n</execute_command>",
    "<write_to_file>\n<path>a</path>\n<content>\n  x = 1\n<path>y</path>\n</content>\n"
    "</write_to_file>",
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MCP, [("google", {"q": "a <b>"})]),
        (f"{MCP}\n\n{MCP}", [("google", {"q": "a <b>"})] * 2),
        (CLINE[0], [("read_file", {"path": "a.py"})]),
        (CLINE[1], [("execute_command", {"command": "ls && echo '</command>'",
                                         "requires_approval": "false"})]),
        (CLINE[2], [("write_to_file", {"path": "a", "content": "  x = 1\n<path>y</path>"})]),
        (f"This is a template:\n\n{MCP}\n\nReplace the values by yours.", []),
        ("<read_file></read_file>", []),
        ("<read_file>a.py</read_file>", []),
        ("<read_file>\n<path>a", []),
        ("Use <read_file><path>p</path></read_file> to read.", []),
        ("<use_mcp_tool>\n<server_name>a</server_name>\n</use_mcp_tool>", []),
    ],
)  # fmt: skip
def test_calls_are_found(text: str, expected: list[object]) -> None:
    assert calls(DIALECT, text) == expected


def test_kind_is_mcp() -> None:
    assert DIALECT.parse(MCP).calls[0].kind == "mcp"


def test_reader_of_cline_has_the_same_calls() -> None:
    for text in (CLINE[0], CLINE[2]):
        assert calls(DIALECT, text) == [(name, values) for name, values, _, _ in calls_in(text)]


def test_results_are_taken_apart() -> None:
    text = "[read_file for 'a'] Result:\nx\n\n[execute_command for 'ls'] Result:\n<error>no</error>"
    assert results(DIALECT, text) == ["x\n\n", "<error>no</error>"]
    assert [(it.name, it.is_error) for it in DIALECT.results_in(text, ())] == [
        ("read_file", False),
        ("execute_command", True),
    ]


def test_edited_calls_are_written() -> None:
    check_example(DIALECT)
    for text in (f"a\n{MCP}\n", *CLINE):
        check_write(DIALECT, text)


def test_texts_about_tools_have_no_calls() -> None:
    check_prose(DIALECT, [*PROSE, "```\n<read_file><path>a</path></read_file>\n```"])


def test_work_is_linear() -> None:
    check_work(
        DIALECT,
        [
            *("<read_file>", "<read_file><path>", "<write_to_file><content></content>x"),
            *("<use_mcp_tool>", "<use_mcp_tool><server_name>a</server_name>"),
            "<use_mcp_tool><server_name>a</server_name><tool_name>b</tool_name>",
            *("[read_file] Result:\n", "<read_file><path></path>", "<read_file>\n<a>"),
        ],
    )
