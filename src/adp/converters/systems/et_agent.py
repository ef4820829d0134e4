"""Records of ET-Agent: rollouts, flywheel buffers, and the output of its evaluation.

A rollout is one text in tags: ``<think>``, ``<search>`` or ``<python>``, ``<result>``,
``<answer>``. Several rollouts of a question stand in one record; each becomes a trajectory, an
attempt at one task, whose id is the hash of the question. Sources: the code of ET-Agent that
writes the records; no row of them was published.

``$shape`` of a trajectory: ``keys`` as everywhere; ``spread``: keys of lists of which each attempt
has its item; ``empty``: the record holds no attempt; ``same``: keys that repeat the first attempt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from adp.converters.format import Format
from adp.converters.json_objects import JsonObject
from adp.converters.reading import BRACKET, NUMBER, QUOTE, begins, opaque_columns
from adp.converters.scalars import read_number
from adp.converters.systems.et_agent_keys import PROMPTS, EtKeys, derived, task_columns
from adp.converters.systems.objects import record_object
from adp_schema import extra_column, jsontext
from adp_schema.losses import Losses
from adp_schema.model import Columns, Trajectory
from adp_schema.protocols import Match, RawRecord

if TYPE_CHECKING:
    from adp_schema.builder import RowBuilder

_COPIED = 1024
"""Bytes of a value that every attempt at a task has; a longer one stands with the first."""


class EtRecords(Format):
    """A kind of record.

    Args:
        name: name of the format.
        title: one line for the list of formats.
        keys: its keys.
    """

    container = "json_array"
    given_dialect = "search_tags"
    versions = (
        "Reads and writes what the code of ET-Agent writes; its published files hold no such row."
    )

    def __init__(self, name: str, title: str, keys: EtKeys) -> None:
        self.name, self.title, self.keys = name, title, keys
        listed = "a list" if keys.several else "a text"
        self.recognised = f"`input` and `answer` beside {listed} `{keys.output}`" + (
            "" if keys.several else f" and `{keys.prediction}`"
        )

    def joins(self, run: Trajectory, other: Trajectory) -> bool:
        """Whether both are attempts at one task, of one record where they were read from one."""
        if not self.keys.several or run.task_id is None or run.task_id != other.task_id:
            return False
        formats = {run.source_format, other.source_format}
        if self.name not in formats:
            return True
        same = (run.source_file, run.source_records) == (other.source_file, other.source_records)
        return len(formats) == 1 and same

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """The texts, with the question that they answer."""
        if not {"input", self.keys.output} <= set(record) or "messages" in record:
            return Match.NO
        texts = record[self.keys.output]
        if self.keys.several:
            return Match.STAMP if begins(texts, BRACKET) else Match.NO
        fits = begins(texts, QUOTE) and begins(record["input"], QUOTE)
        named = {"answer", self.keys.prediction} <= set(record)
        return Match.STAMP if fits and named else Match.NO

    def read(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        """Convert a record into a trajectory for each attempt."""
        _Record(record_object(record, losses), self.keys, builder).read()

    def write(
        self, trajectory: Trajectory, losses: Losses, flavour: str | None = None
    ) -> dict[str, Any]:
        """Convert the attempts at a task into a record."""
        from adp.converters.systems.et_agent_write import EtWriter

        return EtWriter(self.name, self.keys, trajectory, losses).record()


class _Record:
    """A record while it is read."""

    def __init__(self, top: JsonObject, keys: EtKeys, builder: RowBuilder) -> None:
        self._top, self._keys, self._builder = top, keys, builder

    def read(self) -> None:
        top, keys = self._top, self._keys
        task = task_columns(top.values)
        attempts, spread = self._attempts()
        prompts = [(source, top.text(key)) for source, key in PROMPTS]
        copies = self._copies(attempts)
        form = top.end(keys.order)
        if keys.several:
            form["spread"] = spread
            form |= {"same": copies} if copies else {}
            form |= {} if attempts else {"empty": True}
        for number, attempt in enumerate(attempts or [{}]):
            kept = {key: raw for key, raw in top.values.items() if not number or _is_short(raw)}
            columns: Columns = {"task_id": task["task_id"]}
            if keys.several and attempts:
                columns["attempt"] = number
            self._attempt(columns, attempt, prompts, kept, form)
            if not number:
                self._builder.task(task)
        if not attempts:
            return

    def _attempts(self) -> tuple[list[dict[str, Raw]], list[str]]:
        """What each attempt has of the record, and the keys that it comes from."""
        top, keys = self._top, self._keys
        if not keys.several:
            names = [key for key in (keys.output, keys.prediction) if key in top.values]
            return [{key: top.take(key) for key in names}], names
        lists = {
            key: jsontext.decode_array(top.values[key])
            for key in keys.lists
            if begins(top.values.get(key), BRACKET)
        }
        count = len(lists.get(keys.output, ()))
        names = [key for key, items in lists.items() if len(items) == count]
        for key in names:
            top.take(key)
        return [{key: lists[key][n] for key in names} for n in range(count)], names

    def _copies(self, attempts: list[dict[str, Raw]]) -> list[str]:
        """The keys that repeat the first attempt, which are taken."""
        names = []
        for key, listed in self._keys.copies:
            first = attempts[0].get(listed) if attempts else None
            if first is not None and self._top.values.get(key) == first:
                self._top.take(key)
                names.append(key)
        return names

    def _attempt(
        self,
        columns: Columns,
        attempt: dict[str, Raw],
        prompts: list[tuple[str, str | None]],
        kept: dict[str, Raw],
        form: dict[str, Any],
    ) -> None:
        """Add the trajectory of an attempt."""
        keys, builder, rest = self._keys, self._builder, dict(attempt)
        form = dict(form)
        output = rest.pop(keys.output, None)
        if begins(rest.get(keys.prediction), QUOTE):
            columns["final_answer"] = jsontext.decode_value(rest.pop(keys.prediction))
        for key, column in keys.verdicts.items():
            columns[column] = _verdict(rest, key, column, form)
        columns |= derived(kept)
        columns["extra"] = extra_column.pack({**kept, **rest}, shape=form)
        builder.trajectory({k: v for k, v in columns.items() if v is not None})
        for source, text in prompts:
            if text is not None:
                builder.step({"source": source, "kind": "message", "text": builder.text(text)})
        if output is None:
            return
        step: Columns = {"source": "agent", "kind": "llm_turn"}
        if begins(output, QUOTE):
            step["text"] = builder.text(jsontext.decode_value(output))
        else:
            step |= opaque_columns(output)
        builder.step(step)


def _verdict(rest: dict[str, Raw], key: str, column: str, form: dict[str, Any]) -> Any:
    """Take the verdict on an attempt, when it is one."""
    raw = rest.get(key)
    first = jsontext.first_byte(raw) if raw is not None else 0
    value: Any = None
    if column == "success" and first in (0x74, 0x66):
        value = jsontext.decode_value(rest[key])
    elif column == "reward" and first and first in NUMBER:
        value = read_number(rest[key], key, form)
    if value is not None:
        del rest[key]
    return value


def _is_short(raw: Raw) -> bool:
    return len(raw) <= _COPIED


ROLLOUTS = EtRecords(
    "et_agent_rollouts",
    "Rollouts of ET-Agent: several attempts at a question, as texts in tags",
    EtKeys(
        output="rollout_outputs",
        prediction="predictions",
        several=True,
        verdicts={"correctness": "reward"},
        more=("tool_counts",),
        order=(
            *("instruction", "input", "answer", "source", "rollout_outputs", "predictions"),
            *("tool_counts", "correctness"),
        ),
    ),
)
FLYWHEEL = EtRecords(
    "et_agent_flywheel",
    "Buffers of ET-Agent's flywheel: a rollout and what it was evolved into",
    EtKeys(
        output="evolve_trajectories_buffer",
        prediction="evolve_predictions",
        several=True,
        verdicts={"evolve_trajectories_llm_judge_results": "success"},
        copies=(
            ("initial_output", "evolve_trajectories_buffer"),
            ("prediction", "evolve_predictions"),
        ),
        order=(
            *("instruction", "input", "initial_output", "prediction", "answer", "source"),
            *("initial_logs", "evolve_trajectories_buffer"),
            *("evolve_trajectories_llm_judge_results", "evolve_judgements", "evolve_predictions"),
        ),
    ),
)
RESULTS = EtRecords(
    "et_agent_results",
    "Output of ET-Agent's evaluation: question, answer, output and prediction",
    EtKeys(
        output="output",
        prediction="prediction",
        several=False,
        verdicts={},
        order=("instruction", "input", "output", "prediction", "answer"),
    ),
)
