"""What the keys of ET-Agent's records say, and what is derived from their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import Raw

from adp.converters.reading import BRACE, BRACKET, NUMBER, QUOTE, begins
from adp.converters.systems.objects import without_marks
from adp_schema import jsontext
from adp_schema.ids import digest
from adp_schema.model import Columns

PROMPTS = (("system", "instruction"), ("user", "input"))
"""Sources of the first steps, and the keys of their texts."""


@dataclass(frozen=True)
class EtKeys:
    """What the keys of a kind of record say.

    Attributes:
        output: key of the texts, or of the only one.
        prediction: key of the answers that were taken from them.
        several: whether both are lists.
        verdicts: key of a list -> column of each attempt: ``reward`` or ``success``.
        more: keys of further lists of one item an attempt.
        copies: key that repeats the first attempt -> key of the list that it repeats.
        order: the usual order of the keys.
    """

    output: str
    prediction: str
    several: bool
    order: tuple[str, ...]
    verdicts: Mapping[str, str]
    more: tuple[str, ...] = ()
    copies: tuple[tuple[str, str], ...] = ()

    @property
    def lists(self) -> tuple[str, ...]:
        """All keys of lists that attempts have their items of."""
        return (self.output, self.prediction, *self.verdicts, *self.more)


def derived(kept: Mapping[str, Any]) -> Columns:
    """What ``metrics`` of an evaluated row say, which stay where they are, too."""
    raw = kept.get("metrics")
    if not isinstance(raw, Raw) or not begins(raw, BRACE):
        return {}
    metrics = jsontext.decode_exact(raw)
    named = {
        key: metrics[key]
        for key in ("em", "acc", "f1", "math_equal", "llm_equal")
        if jsontext.first_byte(metrics.get(key, b"")) in NUMBER and metrics.get(key)
    }
    columns: Columns = {"rewards": jsontext.text_of(named)} if named else {}
    if "llm_response" in metrics and bytes(metrics.get("llm_equal", b"")) in (b"0", b"1"):
        columns["success"] = bytes(metrics["llm_equal"]) == b"1"
    return columns


def task_columns(values: Mapping[str, Raw]) -> Columns:
    """The row of the table of tasks."""
    question = values.get("input")
    text = jsontext.decode_value(question) if begins(question, QUOTE) else None
    key = text.encode("utf-8", "surrogatepass") if text is not None else bytes(question or b"")
    task: Columns = {"task_id": digest(key), "instruction": text}
    answer = values.get("answer")
    if begins(answer, BRACKET):
        task["answers"] = jsontext.one_line(answer)
    elif answer is not None and jsontext.first_byte(answer) != 0x6E:
        task["answers"] = jsontext.text_of([answer])
    return without_marks(task)
