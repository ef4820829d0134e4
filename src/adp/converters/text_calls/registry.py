"""The dialects: name -> module and object, imported when they are asked for."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from adp.converters.text_calls.dialect import Dialect
from adp_schema.errors import UsageError, unknown_name

_PACKAGE = "adp.converters.text_calls.dialects"

DIALECTS: tuple[str, ...] = (
    "function_xml",
    "rlla",
    "hermes",
    "alfworld",
    "webshop",
    "agentinstruct_os",
    "agentinstruct_db",
    "agentinstruct_kg",
    "mind2web",
    "ui_tars",
    "webarena",
    "webvoyager",
    "mobile",
    "cognitive_kernel",
    "pyautogui",
    "lumos",
    "swe_agent",
    "python_calls",
    "react",
    "glaive",
    "toolace",
    "codeact",
    "mini_swe",
    "search_tags",
    "afm_tags",
    "mcp_xml",
    "terminus",
    "tool_call_brackets",
    "m3",
    "llama_python_tag",
    "kimi_tags",
    "deepseek_tags",
    "harmony_text",
    "json_actions",
    "fenced_code",
    "sage_steps",
    "think",
)
"""Names of the dialects, and of their modules. Earlier ones win when two claim as many turns."""


@cache
def dialect(name: str) -> Dialect:
    """A dialect by its name.

    Raises:
        UsageError: there is none.
    """
    if name not in DIALECTS:
        raise UsageError(unknown_name("dialect", name, DIALECTS))
    result: Dialect = import_module(f"{_PACKAGE}.{name}").DIALECT
    return result


def dialects() -> list[Dialect]:
    """All dialects."""
    return [dialect(name) for name in DIALECTS]
