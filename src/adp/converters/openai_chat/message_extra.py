"""The column ``extra`` of a message: what no column holds, and its form."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from adp.converters.openai_chat import keys as k
from adp_schema import extra_column

_shape_cache: dict[Any, str | None] = {}

MessageKeys = tuple[tuple[str, ...], tuple[str, ...]]
"""The keys of a message in order, and those whose value was null."""


def pack_message(
    keys: MessageKeys, rest: dict[str, Raw], form: dict[str, Any], *, is_step: bool
) -> str | None:
    """``extra`` of a message: what is left of it, and its form.

    Nearly all messages of a data set have one of a few forms, so the texts are kept.

    Args:
        keys: its keys.
        rest: what no column took.
        form: what a writer would not guess; takes the keys, when they belong to that.
        is_step: whether it is a step, not an observation.
    """
    if rest or "exact" in form or "tool_calls" in form:
        _note_keys(keys, rest, form, is_step=is_step)
        return extra_column.pack(rest, shape=form)
    cache_key = (keys, is_step, tuple(form.items()))
    if cache_key not in _shape_cache:
        if len(_shape_cache) > 10_000:
            _shape_cache.clear()
        _note_keys(keys, rest, form, is_step=is_step)
        _shape_cache[cache_key] = extra_column.pack(None, shape=form)
    return _shape_cache[cache_key]


def _note_keys(
    keys: MessageKeys, rest: dict[str, Raw], form: dict[str, Any], *, is_step: bool
) -> None:
    """Note the keys when a writer would not guess them."""
    names, nulls = keys
    reasoning = form.get("reasoning", "reasoning_content")
    usual = k.STEP_KEYS if is_step else k.RESULT_KEYS
    order = [reasoning if name == "reasoning" else name for name in usual]
    later = [name for name in names if name in rest and name != "role"]
    guessed = [name for name in order if name in names and name not in later] + later
    unguessed_null = any(name != "content" for name in nulls)
    if list(names) != guessed or unguessed_null or "content" not in names:
        form["keys"] = names
