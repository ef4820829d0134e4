"""Calls that a model wrote as text: found with the characters they came from, and written back.

Two ways of writing are known: `<tool_call>` tags around JSON (or a Python literal), and a text that
ends in the JSON of one or several calls. A piece that is no call stays text; nothing is invented.
Literals of Python are parsed by `ast.literal_eval` and never run.
"""

from __future__ import annotations

from adp.converters.text_calls.edit import rewrite, with_member
from adp.converters.text_calls.find import (
    CLOSE,
    OPEN,
    CallGroup,
    TextCall,
    find_bare,
    find_tagged,
    object_at,
    prose,
)
from adp.converters.text_calls.from_rows import call_edit, call_text

__all__ = [
    "CLOSE",
    "OPEN",
    "CallGroup",
    "TextCall",
    "call_edit",
    "call_text",
    "find_bare",
    "find_tagged",
    "object_at",
    "prose",
    "rewrite",
    "with_member",
]
