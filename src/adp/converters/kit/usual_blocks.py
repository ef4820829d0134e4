"""Content blocks in the forms that agents write nearly always: decoded at once, not key by key.

A list is only taken so when all its blocks have such a form, and writing it again gives as many
bytes: then no key stands in it twice. Any other list is left to `BlockReader`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from adp.converters.reading import NULL_VALUE
from adp_schema import jsontext


class UsualText(msgspec.Struct, tag_field="type", tag="text", forbid_unknown_fields=True):
    """A text."""

    text: str
    cache_prompt: bool | UnsetType = UNSET


class UsualInputText(UsualText, tag="input_text"):
    """A text of a prompt."""


class UsualOutputText(UsualText, tag="output_text"):
    """A text that the model wrote."""


class UsualSummaryText(UsualText, tag="summary_text"):
    """A summary of reasoning."""


class UsualReasoningText(UsualText, tag="reasoning_text"):
    """Reasoning in its own words."""


class UsualThinking(msgspec.Struct, tag_field="type", tag="thinking", forbid_unknown_fields=True):
    """Reasoning, with the signature of the provider."""

    thinking: str
    signature: str | UnsetType = UNSET
    thinkingSignature: str | UnsetType = UNSET

    def extra(self) -> dict[str, Any]:
        """What no column holds."""
        both = {"signature": self.signature, "thinkingSignature": self.thinkingSignature}
        return {key: value for key, value in both.items() if value is not UNSET}


class UsualPiCall(msgspec.Struct, tag_field="type", tag="toolCall", forbid_unknown_fields=True):
    """A call as Pi writes it."""

    id: str
    name: str
    arguments: Raw


class UsualAnthropicCall(
    msgspec.Struct, tag_field="type", tag="tool_use", forbid_unknown_fields=True
):
    """A call as Anthropic writes it."""

    id: str
    name: str
    arguments: Raw = msgspec.field(name="input")


class UsualResult(msgspec.Struct, tag_field="type", tag="tool_result", forbid_unknown_fields=True):
    """The result of a call as Anthropic writes it."""

    tool_use_id: str
    content: Raw
    is_error: bool | UnsetType = UNSET


UsualBlock = (
    UsualText | UsualInputText | UsualOutputText | UsualThinking | UsualPiCall | UsualAnthropicCall
)

TYPES = frozenset({"text", "input_text", "output_text", "thinking", "toolCall", "tool_use"})
"""Types of these blocks."""
_FALSE = Raw(b"false")
_LINE_END = 0x0A
_MARK = jsontext.NUMBER_MARK.encode()

_decode_blocks = msgspec.json.Decoder(list[UsualBlock]).decode
_decode_texts = msgspec.json.Decoder(list[UsualText | UsualSummaryText | UsualReasoningText]).decode
_decode_result = msgspec.json.Decoder(UsualResult).decode


def usual_blocks(raw: Raw, usual: Mapping[str, Raw]) -> list[UsualBlock] | None:
    """The blocks of a list; None when it has to be read key by key.

    Args:
        raw: the list.
        usual: keys that nearly all blocks have, with the value that is left out.
    """
    blocks: list[UsualBlock] = _decoded(raw, _decode_blocks)
    return blocks if blocks and all([_has_columns(block, usual) for block in blocks]) else None


def usual_texts(raw: Raw) -> list[str]:
    """The texts of a list of reasoning; none when it has to be read key by key."""
    blocks: list[UsualText] = _decoded(raw, _decode_texts) or []
    return [block.text for block in blocks] if all([_has_columns(it, {}) for it in blocks]) else []


def usual_result(raw: Raw) -> UsualResult | None:
    """The result of a call; None when it has to be read key by key."""
    result: UsualResult | None = _decoded(raw, _decode_result)
    return result if result is not None and result.content != NULL_VALUE else None


def _decoded(raw: Raw, decode: Callable[[Raw], Any]) -> Any:
    """What a value is in its usual form; None when it has another one."""
    if memoryview(raw)[1] == _LINE_END:  # nothing here has the layout of many lines
        return None
    try:
        value = decode(raw)
    except msgspec.ValidationError:
        return None
    written = jsontext.encode(value)
    if len(written) != len(raw) and len(msgspec.json.format(written, indent=0)) != len(raw):
        return None
    return None if _MARK in written else value  # a mark is a number that is no JSON


def _has_columns(block: UsualBlock, usual: Mapping[str, Raw]) -> bool:
    """Whether columns take all that a block says."""
    if isinstance(block, UsualText):
        left_out = block.cache_prompt is False and usual.get("cache_prompt") == _FALSE
        return block.cache_prompt is UNSET or left_out
    if isinstance(block, UsualPiCall | UsualAnthropicCall):
        return block.arguments != NULL_VALUE
    return True
