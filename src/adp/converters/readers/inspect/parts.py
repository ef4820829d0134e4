"""Parts of Inspect's logs: texts that stand apart, messages by identity, scores as numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Raw

from adp.converters.exchanges.conversations import message_key
from adp.converters.kit.drafts import CallDraft, ObservationDraft, merge_extra
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.kit.usage import UsageKeys, set_usage
from adp.converters.reading import BRACE, BRACKET, QUOTE
from adp_schema import jsontext
from adp_schema.losses import Losses
from adp_schema.model import Columns

_REFERENCE = re.compile(rb"(?:attachment|tc)://([0-9a-f]{32})")
_CACHES = ("input_tokens_cache_read", "input_tokens_cache_write")
_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}


class Attachments:
    """Long texts that strings of a sample refer to as ``attachment://HASH``, once ``tc://HASH``.

    Args:
        values: hash -> the text, as JSON.
    """

    def __init__(self, values: dict[str, Raw]) -> None:
        self._values = {
            key.encode("utf-8"): bytes(raw)
            for key, raw in values.items()
            if jsontext.first_byte(raw) == QUOTE
        }
        self._used: dict[bytes, bytes] = {}

    def resolve(self, raw: Raw) -> Raw:
        """A JSON value with the texts in the place of the references."""
        data = bytes(raw)
        if b"attachment://" not in data and b"tc://" not in data:
            return raw
        return Raw(_REFERENCE.sub(self._text, data))

    def _text(self, match: re.Match[bytes]) -> bytes:
        text = self._values.get(match[1])
        if text is None:
            return match[0]
        self._used[match[0]] = match[1]
        return text[1:-1]

    @property
    def replaced(self) -> list[str]:
        """The references that a text was put in the place of."""
        return [text.decode("ascii") for text in self._used]

    def rest(self, values: dict[str, Raw]) -> dict[str, Raw]:
        """Those that were not put in the place of a reference."""
        used = set(self._used.values())
        return {key: raw for key, raw in values.items() if key.encode("utf-8") not in used}


def identities(messages: Sequence[Raw], before: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """What tells messages of a list apart, and their texts.

    That is the id; without one the text, numbered where a list has it several times.

    Args:
        messages: as the log has them.
        before: identities of the messages before them.
    """
    counts = Counter(name.rpartition("#")[0] for name in before)
    names, texts = [], []
    for raw in messages:
        text = jsontext.one_line(raw)
        name = text
        if jsontext.first_byte(raw) == BRACE:
            value = jsontext.decode_object(raw).get("id")
            if value is not None and jsontext.first_byte(value) == QUOTE:
                name = jsontext.decode_value(value)
        counts[name] += 1
        names.append(f"{name}#{counts[name]}")
        texts.append(text)
    return names, texts


def aligned(
    names: list[str], texts: list[str], context: Sequence[str], known: Mapping[str, str]
) -> list[str]:
    """Identities of messages, those of the context for the messages that differ by the id alone.

    A pool keeps equal messages once, with the id of the first one.

    Args:
        names: see `identities`.
        texts: the messages.
        context: identities of the messages that the list should begin with.
        known: identity -> message.
    """
    out = list(names)
    for place, (before, text) in enumerate(zip(context, texts, strict=False)):
        if names[place] == before or before in names or before not in known:
            continue
        if message_key(jsontext.raw(known[before])) == message_key(jsontext.raw(text)):
            out[place] = before
    return out


def score_number(raw: Raw) -> float | None:
    """The number that the value of a score stands for: grades are numbers, too."""
    first = jsontext.first_byte(raw)
    if first == QUOTE:
        return _GRADES.get(jsontext.decode_value(raw))
    text = bytes(raw)
    if text in (b"true", b"false"):
        return float(text == b"true")
    return float(text) if first in b"-0123456789" else None


def success_of(raw: Raw) -> bool | None:
    """Whether a score says that the task was solved; None for numbers and other grades."""
    return {b'"C"': True, b'"I"': False, b"true": True, b"false": False}.get(bytes(raw))


def inputs_of(event: SourceObject, pool: list[Raw], used: set[int]) -> list[Raw]:
    """The input of a model event, as a list, or by its places in a pool.

    Args:
        event: the event; the places stay in it.
        pool: messages that events refer to.
        used: takes the places.
    """
    inputs = event.items("input")
    raw = event.values.get("input_refs")
    if inputs or raw is None or jsontext.first_byte(raw) != BRACKET:
        return inputs
    for start, end in _ranges(raw):
        places = range(start, min(end, len(pool)))
        used.update(places)
        inputs += [pool[place] for place in places]
    return inputs


def _ranges(raw: Raw) -> list[tuple[int, int]]:
    """Ranges of places, as ``[[start, end]]``; what is none is passed over."""
    out: list[tuple[int, int]] = []
    for item in jsontext.decode_array(raw):
        if jsontext.first_byte(item) != BRACKET:
            continue
        texts = [bytes(it) for it in jsontext.decode_array(item)]
        if len(texts) == len([it for it in texts if it.isdigit()]) == 2:
            out.append((int(texts[0]), int(texts[1])))
    return out


def take_usage(output: SourceObject, columns: Columns, losses: Losses) -> None:
    """Tokens; providers differ in whether the prompt counts what came from a cache."""
    text = output.json_object("usage")
    if text is None:
        return
    columns["usage"] = text
    record = SourceObject(text.encode("utf-8"), "usage", losses)
    set_usage(record, columns, usage_keys(record))


def usage_keys(record: SourceObject) -> UsageKeys:
    """Where the numbers of a usage record are."""
    caches = sum(record.integer_at(key) or 0 for key in _CACHES)
    rest = (record.integer_at("input_tokens") or 0) + (record.integer_at("output_tokens") or 0)
    return UsageKeys(
        prompt=("input_tokens",),
        written=("output_tokens",),
        cached=_CACHES[:1],
        cache_write=_CACHES[1:],
        reasoning=("reasoning_tokens",),
        cost=("total_cost",),
        apart=bool(caches) and record.integer_at("total_tokens") == rest + caches,
    )


def line_of(value: Any) -> Any:
    """A value for ``extra``; JSON text stands on one line."""
    return jsontext.raw_line(value) if isinstance(value, Raw) else value


def set_error(source: SourceObject, draft: ObservationDraft) -> None:
    """Fill the columns about an error; its message is the text where there is no other."""
    error = SourceObject(source.values.get("error"), source.path, source.losses)
    if error:
        draft.columns["is_error"] = True
        draft.columns["error_type"] = error.word("type") or None
        if not draft.parts.columns().get("text") and error.word("message"):
            draft.parts.text(error.word("message"))


def set_event(
    event: SourceObject, draft: ObservationDraft, call: CallDraft | None, text: str | None
) -> None:
    """Fill an observation from the event of its call; ``extra`` takes what is new in it.

    Args:
        event: the event.
        draft: the observation.
        call: the call.
        text: the result of the event, as a text.
    """
    take_time(event, draft.columns, "completed", "timestamp")
    set_duration(event, draft.columns)
    raw = event.values.get("arguments")
    if call is not None and raw is not None:
        if jsontext.one_line(raw) == call.columns.get("arguments"):
            event.drop("arguments")
        event.drop_text("function", call.columns["name"])
    if text is not None and text == draft.parts.columns().get("text"):
        event.drop("result")
    event.drop("event")
    if call is not None:
        event.drop_text("id", call.columns["call_id"])
    merge_extra(draft.extra, {"event": event.rest()})


def set_duration(event: SourceObject, columns: Columns) -> None:
    """Fill the duration from ``working_time``, which stays: it is in seconds."""
    seconds = event.values.get("working_time")
    duration = event.number("working_time")
    if duration is not None and seconds is not None:
        columns["duration_ms"] = duration * 1000
        event.values["working_time"] = seconds
