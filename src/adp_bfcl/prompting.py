"""Prompt mode: functions in the system's message, calls as text.

The wording of the prompt decides about the scores, so it is taken from the user's own bfcl-eval.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from adp_bfcl.categories import Language
from adp_bfcl.installed_bfcl import module
from adp_bfcl.offers import hinted


def system_prompt(functions: Sequence[Mapping[str, Any]], language: Language) -> str:
    """BFCL's default prompt (plain text, calls in Python's syntax, functions as JSON).

    Args:
        functions: documentation of the functions.
        language: language of the category.

    Raises:
        BfclMissingError: bfcl-eval is not installed.
    """
    words = module(
        "constants.default_prompts",
        "BFCL's prompt mode takes its prompt from bfcl-eval",
        "use mode=fc",
    )
    style = words.PROMPT_STYLE_TEMPLATES["classic"]
    form = words.OUTPUT_FORMAT_MAPPING["python"]
    types = words.PARAM_TYPE_MAPPING["python"]
    documents = [hinted(function, language) for function in functions]
    text: str = words.PROMPT_TEMPLATE_MAPPING["plaintext"].format(
        persona=style["persona"],
        task=style["task"],
        tool_call_format=style["tool_call_no_tag"].format(output_format=form, param_types=types),
        multiturn_behavior=style["multiturn_behavior"],
        available_tools=style["available_tools"].format(
            format="json", functions=json.dumps(documents, indent=4)
        ),
    )
    return text


def told_in_prompt(calls: Sequence[str], texts: Sequence[str]) -> str:
    """What calls brought, as the message of the user that BFCL sends in prompt mode."""
    results = [
        {"role": "tool", "name": call, "content": text}
        for call, text in zip(calls, texts, strict=True)
    ]
    return repr(results)
