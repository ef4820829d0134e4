"""Calls that Cline and Roo Code have a model write as tags in its text, and their results.

``<read_file><path>a.py</path></read_file>`` is a call; the next message of the user begins its
result with ``[read_file for 'a.py'] Result:``. Newer versions call tools by the API instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import ObservationDraft, StepDraft
from adp.converters.kit.session import SessionLog
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE
from adp_schema import jsontext

TOOLS = (
    *("execute_command", "read_file", "write_to_file", "replace_in_file", "apply_diff"),
    *("insert_content", "search_and_replace", "edit_file", "search_files", "list_files"),
    *("list_code_definition_names", "browser_action", "use_mcp_tool", "access_mcp_resource"),
    *("ask_followup_question", "attempt_completion", "new_task", "condense", "new_rule"),
    *("plan_mode_respond", "plan_mode_response", "act_mode_respond", "load_mcp_documentation"),
    *("report_bug", "web_fetch", "web_search", "use_skill", "use_subagents", "generate_image"),
    *("switch_mode", "fetch_instructions", "codebase_search", "update_todo_list"),
    *("run_slash_command", "focus_chain", "generate_explanation", "delete_file"),
)
"""Names of tools, of both programs and their forks."""

_CALL = re.compile(rf"<({'|'.join(TOOLS)})>(.*?)</\1>", re.DOTALL)
_LONG = re.compile(rf"<({'|'.join(TOOLS)})>(.*)</\1>", re.DOTALL)
_VALUE = re.compile(r"<(content|diff)>(.*)</\1>|<(\w+)>(.*?)</\3>", re.DOTALL)
_HEADER = re.compile(rf"\[({'|'.join(TOOLS)})\b[^\n]*\] Result:[ \t]*(\n|$)")
_FAILED = ("The tool execution failed", "<error>", "Error: ")
_AFTER = ("<environment_details>", "<task>", "<feedback>")


def calls_in(text: str) -> Iterator[tuple[str, dict[str, str], int, int]]:
    """The calls in a text of the model: tool, arguments, begin, end.

    Args:
        text: the text.
    """
    if jsontext.has_mark(text) or ";base64," in text:
        return  # the text of the column is another one
    place = 0
    while (match := _CALL.search(text, place)) is not None:
        if "<content>" in match[2] and "</content>" not in match[2]:
            match = _LONG.match(text, match.start()) or match  # a file that holds such tags
        pairs = _VALUE.finditer(match[2])
        values = {(it[1] or it[3]): (it[2] if it[1] else it[4]).strip("\n") for it in pairs}
        yield match[1], values, match.start(), match.end()
        place = match.end()


def add_calls(step: StepDraft) -> None:
    """Add the calls that the text of a turn makes."""
    text = step.parts.columns().get("text")
    if step.calls or not isinstance(text, str):
        return
    rest, last = "", 0
    for name, values, start, end in calls_in(text):
        rest, last = rest + text[last:start], end
        columns = call_columns(name, None, jsontext.raw(jsontext.text_of(values)))
        columns |= {"origin": "parsed_from_text", "span_start": start, "span_end": end}
        step.call(columns)
    if step.calls:
        step.columns["prose"] = (rest + text[last:]).strip()


def take_results(
    session: SessionLog, source: SourceObject, blocks: list[Raw]
) -> tuple[list[Raw], ObservationDraft | None]:
    """Add the results that blocks of a user's message hold.

    Args:
        session: takes them.
        source: the message, for its time.
        blocks: its content.

    Returns:
        The blocks that are no results, and the last result.
    """
    others: list[Raw] = []
    draft: ObservationDraft | None = None
    last: ObservationDraft | None = None
    for block in blocks:
        text = _text(session, source, block)
        header = _HEADER.match(text) if text else None
        if header:
            draft = last = session.begin_result(source.copy(), None, name=header[1])
        elif text is None or text.startswith(_AFTER):
            draft = None
        if draft is None or text is None:
            others.append(block)
            continue
        draft.parts.text(session.builder.text(text))
        body = text[header.end() :] if header else text
        if body:
            draft.columns["is_error"] = body.startswith(_FAILED)
    return others, last


def _text(session: SessionLog, source: SourceObject, block: Raw) -> str | None:
    """The text of a block that is nothing else."""
    if jsontext.first_byte(block) != BRACE:
        return None
    item = SourceObject(block, source.path, session.losses)
    if set(item.values) != {"type", "text"} or item.word("type") != "text":
        return None
    return item.text("text")
