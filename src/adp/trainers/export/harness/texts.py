"""Texts of the harnesses that call functions in XML: calls, results, pages, tools."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from adp.rendering.chat import Message
from adp.trainers.export.exporter import UnwritableChatError
from adp.trainers.export.shapes import plain

_MARKS = ("<function=", "<function_calls>", "<invoke name=")
_NO_NAME = re.compile(r"[<>\n]")
_ENDS = ("</parameter>", "</function>", "<parameter=")


def function_text(
    name: str,
    arguments: Mapping[str, Any],
    changed: Counter[str],
    values: Literal["block", "inline"] = "block",
) -> str:
    """A call as ``<function=NAME>``.

    Args:
        name: name of the function.
        arguments: its arguments.
        changed: counts what the parsers of the harnesses read differently.
        values: ``block`` writes each value on lines of its own; ``inline`` only values of several
            lines, and lists and objects in ASCII, as OpenHands does.

    Raises:
        UnwritableChatError: a value holds what ends it.
    """
    if any(_NO_NAME.search(word) for word in (name, *arguments)):
        raise UnwritableChatError("a name of a tool or an argument that no mark of a call can hold")
    lines = [f"<function={name}>"]
    for key, value in arguments.items():
        text = _value_text(value, is_ascii=values == "inline")
        if any(mark in text for mark in _ENDS):
            raise UnwritableChatError("an argument that holds the marks of a call")
        if text != text.strip():
            changed["arguments whose outer white space the harness's parser cuts off"] += 1
        if values == "block" or (isinstance(value, str) and "\n" in text):
            lines.append(f"<parameter={key}>\n{text}\n</parameter>")
        else:
            lines.append(f"<parameter={key}>{text}</parameter>")
    lines.append("</function>")
    return "\n".join(lines)


def _value_text(value: Any, *, is_ascii: bool) -> str:
    if isinstance(value, list | dict):
        return str(plain(json.dumps(value, ensure_ascii=is_ascii)))
    return str(plain(str(value)))


def escaped(text: str, changed: Counter[str]) -> str:
    """A text in which nothing reads as a call.

    Args:
        text: words of anybody.
        changed: counts it.
    """
    result = text
    for mark in _MARKS:
        result = result.replace(mark, f"&lt;{mark[1:]}")
    if result != text:
        changed["texts in which marks of a call are escaped"] += 1
    return result


def page_text(message: Message) -> str:
    """The words of a message that shows a web page."""
    page = message.page
    if page is None:
        return message.text
    words = [] if page.is_text or not message.text else [message.text]
    if page.url:
        words.append(f"[Current URL: {page.url}]")
    tree = page.tree if page.tree is not None else message.text if page.is_text else None
    if tree is not None:
        words.append(
            "============== BEGIN accessibility tree ==============\n"
            f"{tree}\n============== END accessibility tree =============="
        )
    return "\n".join(words)


def joined(*parts: str | None) -> str:
    """Parts of a text with an empty line between them."""
    return "\n\n".join(part for part in parts if part)


_FORM = """\
To call a function, end your message with the call, in this form and with nothing after it:

<function=NAME>
<parameter=FIRST_PARAMETER>
its value, which may have several lines
</parameter>
</function>"""
_WHY = (
    "Say in your own words before the call why you make it. Parameters that are required must be "
    "given."
)


def functions_prompt(task: str, tools: Iterable[Mapping[str, Any]], end: str) -> str:
    """A system prompt that names functions and says how to call them.

    Args:
        task: what the agent is there for.
        tools: the functions.
        end: how to end the work.
    """
    have = "You have access to the following functions:"
    return joined(task, have, tool_docs(tools), _FORM, f"{_WHY} {end}")


def tool_docs(tools: Iterable[Mapping[str, Any]]) -> str:
    """What tools there are, each with its parameters."""
    return "\n\n".join(
        f"---- BEGIN FUNCTION #{number}: {tool['function']['name']} ----\n"
        f"{_described(tool['function'])}\n---- END FUNCTION #{number} ----"
        for number, tool in enumerate(tools, 1)
    )


def _described(function: Mapping[str, Any]) -> str:
    lines = [f"Description: {function.get('description') or 'none'}"]
    parameters = function.get("parameters")
    parameters = parameters if isinstance(parameters, Mapping) else {}
    properties = parameters.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return "\n".join([*lines, "Parameters: none"])
    required = parameters.get("required")
    required = required if isinstance(required, list) else []
    lines.append("Parameters:")
    for number, (name, schema) in enumerate(properties.items(), 1):
        schema = schema if isinstance(schema, Mapping) else {}
        need = "required" if name in required else "optional"
        kind = schema.get("type") or "any"
        kind = kind if isinstance(kind, str) else json.dumps(kind)
        line = f"  ({number}) {name} ({kind}, {need})"
        if schema.get("description"):
            line += f": {schema['description']}"
        if schema.get("enum"):
            line += f" Allowed values: {json.dumps(schema['enum'], ensure_ascii=False)}"
        lines.append(line)
    return "\n".join(lines)


def signatures(tools: Iterable[Mapping[str, Any]], place: str) -> str:
    """Tools as functions that are predefined somewhere; empty when there are none.

    Args:
        tools: the tools.
        place: where they are defined, such as ``bash``.
    """
    lines = []
    for tool in tools:
        function = tool["function"]
        parameters = function.get("parameters")
        properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
        names = ", ".join(properties) if isinstance(properties, Mapping) else ""
        lines.append(
            f"{function['name']}({names})\n    {function.get('description') or ''}".rstrip()
        )
    if not lines:
        return ""
    head = f"The following pre-defined functions are available in {place}. \n\n"
    return head + "\n\n".join(lines) + "\n\n"
