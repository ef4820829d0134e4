"""Results of tau-bench: a row for each attempt at a task, with its messages and its reward.

The user is simulated by a model; what it says is what a user says. Sources: the code and the
historical trajectories of the first version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.chat import chat_message
from adp.converters.kit.drafts import merge_extra
from adp.converters.kit.rewards import set_named, set_reward
from adp.converters.kit.session import LogReader, SessionLog, first_item, inner
from adp.converters.kit.source_object import SourceObject
from adp_schema.model import Columns
from adp_schema.protocols import Match

_KEYS = frozenset({"task_id", "reward", "traj"})


class TauBenchRow(SessionLog):
    """One attempt."""

    agent: ClassVar[str | None] = "tau-bench"

    def line(self, source: SourceObject) -> None:
        """Read a row."""
        columns = self.run.columns
        columns["task_id"] = source.name("task_id")
        columns["attempt"] = source.integer("trial", bits=32)
        if columns["task_id"] is not None and columns["attempt"] is not None:
            columns["source_id"] = f"{columns['task_id']}_{columns['attempt']}"
        set_reward(columns, source.number("reward"))
        for message in source.objects("traj"):
            chat_message(message, self.blocks)
        info = source.child("info")
        self._task(info.child("task"))
        set_named(columns, info.child("reward_info").child("info").values)
        if "error" in info:
            columns["error_message"] = info.text("error")
        merge_extra(self.run.extra, source.rest())

    def _task(self, about: SourceObject) -> None:
        task_id = self.run.columns["task_id"]
        if task_id is None or not about:
            return
        task: Columns = {"task_id": task_id, "instruction": about.text("instruction")}
        task["expected_calls"] = about.json_list("actions")
        task["answers"] = about.json_list("outputs")
        self.builder.task({key: value for key, value in task.items() if value is not None})


class TauBenchReader(LogReader):
    """The format ``tau_bench``."""

    name = "tau_bench"
    title = "Results of tau-bench"
    container = "json_array"
    recognised = "task_id, reward and traj, a list of messages"
    versions = "reads the rows of the first version, also a single one"
    log = TauBenchRow

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """An attempt with its messages; of one that failed before there were any, its error."""
        if not set(record) >= _KEYS:
            return Match.NO
        is_failed = bytes(record["traj"]) == b"[]" and "error" in inner(record, "info")
        return Match.STAMP if is_failed or "role" in first_item(record, "traj") else Match.NO


CONVERTER = TauBenchReader()
