"""Checks of texts: what terminals, templates and encoders left in them."""

from __future__ import annotations

from adp.stores.checks.model import ALL_TEXTS, Check, TextRule

_AGENT_TEXT = (("steps", "text"),)
_RUN = "[A-Za-z0-9+/]{200,}={0,2}"
_DATA_URI = r"data:[\w.+-]+/[\w.+-]+;base64,[A-Za-z0-9+/]{32}"
_CONTROL = r"[\x00-\x08\x0B\x0E-\x1A\x1C-\x1F\x7F]"
_TOKENS = (
    r"<\|(?:im_start|im_end|im_system|im_middle|eot_id|start_header_id|end_header_id"
    r"|begin_of_text|endoftext|end_of_text|eom_id)\|>|\[/INST\]|<start_of_turn>|<end_of_turn>"
)
_THINK = r"(?:^|\n)\s*<(?:think|thinking|thought|reasoning)>"


def _braces(pattern: str) -> str:
    """A pattern inside of a condition that is formatted."""
    return pattern.replace("{", "{{").replace("}", "}}")


def _matches(pattern: str, *parts: str) -> str:
    """Condition that a text matches; the engine looks for the parts first, which is quick."""
    quick = " OR ".join(f"contains({{x}}, '{part}')" for part in parts)
    match = f"regexp_matches({{x}}, '{_braces(pattern)}')"
    return f"CASE WHEN {quick} THEN {match} ELSE false END"


def _base64() -> str:
    """Runs that have the letters of base64 in its mixture; paths and hexadecimal do not."""
    run = f"regexp_extract({{x}}, '{_braces(_RUN)}')"
    mixed = " AND ".join(f"regexp_matches({run}, '{item}')" for item in ("[a-z]", "[A-Z]", "[0-9]"))
    there = f"regexp_matches({{x}}, '{_braces(_RUN)}')"
    mixed = f"{mixed} AND length(replace({run}, '/', '')) > 0.9 * length({run})"
    return (
        f"CASE WHEN length({{x}}) < 50 THEN false WHEN {there} AND {mixed} THEN true "
        f"ELSE {_matches(_DATA_URI, ';base64,')} END"
    )


CHECKS = (
    Check(
        "escape-codes",
        "warning",
        "A text holds escape codes of a terminal: colours, cursor moves, window titles.",
        "Remove them from what a model reads.",
        TextRule("contains({x}, chr(27))", "\x1b"),
    ),
    Check(
        "control-characters",
        "note",
        "A text holds control characters other than escape, tab, line end and form feed.",
        "Remove them, or replace them by the characters that were meant.",
        TextRule(f"regexp_matches({{x}}, '{_CONTROL}')", _CONTROL),
    ),
    Check(
        "replacement-character",
        "note",
        "A text holds U+FFFD: a character was lost when the text was decoded, or it was half a "
        "character, which adp replaces and gives back on export.",
        "Read the source again with the right encoding if characters are missing.",
        TextRule("contains({x}, chr(65533))", "\ufffd"),
    ),
    Check(
        "base64-in-text",
        "warning",
        "A text holds a blob in base64: a data URI, or a run of 200 characters and more. Long keys "
        "and encoded strings that belong to the task look the same.",
        "Move the blob into media, or cut it.",
        TextRule(_base64(), f"{_DATA_URI}|{_RUN}", (*ALL_TEXTS, ("tool_calls", "arguments_raw"))),
    ),
    Check(
        "template-tokens",
        "warning",
        "A text holds tokens of a chat template, such as <|im_start|>. Written out again, they "
        "would be taken for the borders of a turn.",
        "Parse the text into turns, or remove the tokens.",
        TextRule(_matches(_TOKENS, "<|", "[/INST]", "_of_turn>"), _TOKENS),
    ),
    Check(
        "reasoning-in-text",
        "warning",
        "A text of the agent holds its reasoning in tags, such as <think>.",
        "Move it into the column reasoning.",
        TextRule(_matches(_THINK, "<th", "<reasoning>"), _THINK, _AGENT_TEXT, "agent"),
    ),
    Check(
        "orphan-think-end",
        "warning",
        "A text of the agent has </think> without <think> before it: the template opened the tag.",
        "Move what stands before it into the column reasoning.",
        TextRule(
            "contains({x}, '</think>') AND NOT contains(split_part({x}, '</think>', 1), '<think>')",
            "</think>",
            _AGENT_TEXT,
            "agent",
        ),
    ),
)
