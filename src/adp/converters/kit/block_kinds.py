"""Types of content blocks that do not say their type."""

from __future__ import annotations

from adp.converters.kit.source_object import SourceObject

_BY_KEY = {
    "functionCall": "gemini_call",
    "function_call": "gemini_call",
    "functionResponse": "gemini_result",
    "function_response": "gemini_result",
    "inlineData": "gemini_blob",
    "inline_data": "gemini_blob",
    "fileData": "gemini_file",
    "file_data": "gemini_file",
    "text": "text",
}


def kind_by_keys(block: SourceObject) -> str:
    """The type of a block that does not say it: Gemini's parts, and plain texts; else nothing."""
    return next((kind for key, kind in _BY_KEY.items() if key in block), "")
