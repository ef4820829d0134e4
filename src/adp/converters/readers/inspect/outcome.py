"""How a sample of Inspect AI ended: its scores, errors, limits and tokens."""

from __future__ import annotations

import math
import re
from collections import Counter

from msgspec import Raw

from adp.converters.kit.session import inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import add_totals, set_usage
from adp.converters.readers.inspect.events import SampleEvents
from adp.converters.readers.inspect.parts import Attachments, score_number, success_of, usage_keys
from adp_schema import jsontext
from adp_schema.model import Columns


def set_scores(sample: SourceObject, columns: Columns) -> None:
    """All scores; the first one is the reward."""
    raws = inner(sample.values, "scores")
    old = inner(sample.values, "score")
    if not raws and "value" in old:
        raws = {"score": sample.values["score"]}
    rewards: dict[str, float] = {}
    for number, (name, raw) in enumerate(raws.items()):
        score = inner({"score": raw}, "score")
        value = score.get("value")
        if value is None:
            continue
        named = inner(score, "value")
        parts = {f"{name}.{key}": it for key, it in named.items()} or {name: value}
        numbers = {key: score_number(it) for key, it in parts.items()}
        usable = {key: it for key, it in numbers.items() if it is not None}
        rewards |= {key: it for key, it in usable.items() if math.isfinite(it)}
        if not number:
            columns["success"] = success_of(value)
            columns["reward"] = next(iter(rewards.values()), None)
            columns["final_answer"] = word(score, "answer") or None
    if rewards:
        columns["rewards"] = jsontext.text_of(rewards)
    if raws:
        columns["judge"] = sample.json_object("scores") or sample.json_object("score")


def set_outcome(
    sample: SourceObject, texts: Attachments, events: SampleEvents, columns: Columns
) -> None:
    """How a sample ended: an error, a limit, or by itself."""
    output = sample.values.get("output")
    if output is not None and jsontext.one_line(texts.resolve(output)) == events.output:
        sample.drop("output")
    error, limit = inner(sample.values, "error"), inner(sample.values, "limit")
    if error:
        message = word(error, "message")
        columns["error_message"] = message or None
        match = re.match(r"[A-Za-z_.]+(?=\()", message)
        columns["error_type"] = match[0] if match else "error"
    if limit:
        columns["stop_reason"] = word(limit, "type") or None
    columns["truncated"] = bool(limit)
    columns["terminated"] = not limit and not error


def set_sample_usage(sample: SourceObject, about: dict[str, Raw], columns: Columns) -> None:
    """Totals of the model that was evaluated; of all models where that is not known."""
    usage = inner(sample.values, "model_usage")
    if not usage:
        return
    model = word(about, "model")
    columns["final_metrics"] = sample.json_object("model_usage")
    totals = Counter[str]()
    for raw in [usage[model]] if model in usage else usage.values():
        record, part = SourceObject(raw, "$.model_usage", sample.losses), Columns()
        set_usage(record, part, usage_keys(record))
        totals.update(part)
    add_totals(totals, columns)
