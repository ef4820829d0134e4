"""The tools that come with the harnesses, in our own words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_EDITS = ("view", "create", "str_replace", "insert", "undo_edit")


def tool(
    name: str,
    description: str,
    properties: Mapping[str, Mapping[str, Any]],
    required: tuple[str, ...] = (),
) -> dict[str, Any]:
    """A tool in the manner of OpenAI.

    Args:
        name: its name.
        description: what it does.
        properties: its arguments.
        required: those that must be there.
    """
    parameters: dict[str, Any] = {"type": "object", "properties": dict(properties)}
    if required:
        parameters["required"] = list(required)
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


def _text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def shell(name: str) -> dict[str, Any]:
    """The tool that runs a command."""
    description = "Runs a command in a bash shell that stays open between calls."
    return tool(name, description, {"command": _text("The command.")}, ("command",))


def notebook(name: str) -> dict[str, Any]:
    """The tool that runs Python code."""
    description = "Runs a cell of Python code in an IPython session that stays open between calls."
    return tool(name, description, {"code": _text("The code.")}, ("code",))


def editor(name: str) -> dict[str, Any]:
    """The tool that shows and changes files."""
    properties = {
        "command": _text("What to do.", enum=list(_EDITS)),
        "path": _text("Absolute path of the file or folder."),
        "file_text": _text("create: the content of the file."),
        "old_str": _text("str_replace: the text to replace; it stands in the file exactly once."),
        "new_str": _text("str_replace, insert: the new text."),
        "insert_line": {
            "type": "integer",
            "description": "insert: number of the line after which the new text comes.",
        },
        "view_range": {
            "type": "array",
            "items": {"type": "integer"},
            "description": "view: first and last line to show; -1 is the end of the file.",
        },
    }
    description = "Shows, creates and changes text files."
    return tool(name, description, properties, ("command", "path"))


def thinker() -> dict[str, Any]:
    """The tool that keeps a thought."""
    description = "Keeps a thought in the log. It changes nothing and finds nothing out."
    return tool("think", description, {"thought": _text("The thought.")}, ("thought",))


def finisher(*, completed: bool) -> dict[str, Any]:
    """The tool that ends the run.

    Args:
        completed: whether it asks if the task is done.
    """
    properties = {"message": _text("The last message to the user.")}
    if completed:
        states = ["true", "false", "partial"]
        properties["task_completed"] = _text("Whether the task is done.", enum=states)
    return tool("finish", "Ends the work on the task.", properties, tuple(properties))


def browser() -> dict[str, Any]:
    """The tool that acts in a web browser."""
    description = (
        "Acts in a web browser by calls such as goto(url), click(bid), fill(bid, value), "
        "select_option(bid, options), press(bid, key_comb), scroll(delta_x, delta_y), go_back()."
    )
    return tool("browser", description, {"code": _text("The calls, as Python.")}, ("code",))


def submitter() -> dict[str, Any]:
    """SWE-agent's tool that ends the run."""
    return tool("submit", "Submits the changes and ends the work on the task.", {})


def inferred(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a tool that nobody described, as far as one call shows it."""
    return tool(name, "", {key: {"type": _kind(value)} for key, value in arguments.items()})


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    kinds = {str: "string", int: "integer", float: "number", list: "array", dict: "object"}
    return kinds.get(type(value), "string")
