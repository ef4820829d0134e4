"""Logs of Inspect AI: a document with all samples, or a member with one sample of an archive.

Each sample and epoch is a trajectory. What the log says about all of them stands with the first
one. Sources: the log schema of inspect_ai 0.3.285, and logs since 0.3.40.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.file_names import session_name
from adp.converters.files.writing import without_compression
from adp.converters.kit.drafts import TrajectoryDraft, emit
from adp.converters.kit.key_tables import take_columns
from adp.converters.kit.session import LogReader, SessionLog, first_item, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.readers.inspect.archive import MEMBERS, header_of, is_first, rest_of
from adp.converters.readers.inspect.events import SampleEvents
from adp.converters.readers.inspect.outcome import set_outcome, set_sample_usage, set_scores
from adp.converters.readers.inspect.parts import Attachments, line_of
from adp.converters.reading import BRACE, QUOTE
from adp.converters.session_writers.names import NamedRun
from adp.converters.session_writers.values import EPOCH
from adp_schema import jsontext
from adp_schema.losses import Losses
from adp_schema.model import Columns, Trajectory
from adp_schema.protocols import Match, SkipRecordError

_EVENTS = frozenset({"span_begin", "sample_init", "step", "model", "state", "tool"})
"""Events that a list of them begins with."""
_EVAL = ("eval_id", "run_id", "created", "task", "task_id", "model", "solver")


class InspectLog(SessionLog):
    """One document, or one sample with the header that lies beside it."""

    agent: ClassVar[str | None] = "inspect"

    def read(self) -> None:
        """Read the record; each sample is written by itself.

        Raises:
            SkipRecordError: it holds no samples.
        """
        for source, broken in self.sources():
            if broken:
                raise SkipRecordError("it is no object")
            if "eval" not in source and ("epoch" in source or "events" in source):
                self._member(source)
                continue
            samples = source.objects("samples")
            if not samples:
                raise SkipRecordError("the log holds no samples")
            rest = dict(source.values)
            for number, sample in enumerate(samples):
                self._sample(sample, source, {} if number else rest)

    def _member(self, sample: SourceObject) -> None:
        """A sample of an archive; the first one has what the other members say."""
        files = self.record.side_files
        header = header_of(files, self.losses)
        first = is_first(sample, files, header)
        self._sample(sample, header, rest_of(files, header, self.losses) if first else {})

    def _sample(self, sample: SourceObject, header: SourceObject, rest: dict[str, Any]) -> None:
        self.run = TrajectoryDraft()
        columns, about = self.run.columns, inner(header.values, "eval")
        self._identity(sample, about)
        old = sample.child("transcript")
        place, key = (old, "content") if "content" in old else (sample, "attachments")
        attachments = inner(place.values, key)
        texts = Attachments(attachments)
        data = sample.child("events_data")
        pool = sample.items("message_pool") or data.items("messages")
        events = SampleEvents(self.blocks, texts, pool)
        events.read(sample.objects("events") or old.objects("events"))
        messages = events.finish(sample.items("messages"))
        self.blocks.run = self.run
        kept = {"messages": messages, "events": events.structure(), "message_pool": events.unused()}
        self.run.extra.update({name: value for name, value in kept.items() if value})
        for name in ("scores", "score", "target"):
            if name in sample:
                sample.values[name] = texts.resolve(sample.values[name])
        self._task(sample, texts, events)
        set_scores(sample, columns)
        set_outcome(sample, texts, events, columns)
        set_sample_usage(sample, about, columns)
        if attachments:
            place.values[key] = jsontext.raw(jsontext.text_of(texts.rest(attachments)))
        if texts.replaced:
            self.run.extra["attachments_in_place"] = texts.replaced
        self.run.extra.update(sample.rest())
        if rest:
            self.run.extra["log"] = {key: line_of(value) for key, value in rest.items()}
        else:
            self.run.extra["eval"] = {key: line_of(about[key]) for key in _EVAL if key in about}
        if columns.get("final_answer") is None and self.run.steps:
            answers = [it for it in self.run.steps if it.columns["source"] == "agent"]
            text = answers[-1].parts.columns().get("text") if answers else None
            columns["final_answer"] = text
        emit(self.run, self.builder)

    def _identity(self, sample: SourceObject, about: dict[str, Raw]) -> None:
        columns = self.run.columns
        raw = sample.values.get("id")
        name = "" if raw is None else _plain(raw)
        epoch = sample.integer_at("epoch", 32)
        task = word(about, "task")
        if raw is not None:  # a list of events belongs to no task
            columns["task_id"] = f"{task}/{name}" if task else name
            columns["source_id"] = f"{word(about, 'eval_id') or task or 'sample'}/{name}_{epoch}"
        columns["session_id"] = sample.text("uuid")
        columns["attempt"] = epoch - 1 if epoch is not None else None
        columns["agent_name"] = word(about, "solver") or self.agent
        columns["agent_model"] = word(about, "model") or None
        columns["source_version"] = word(inner(about, "packages"), "inspect_ai") or None
        take_columns(sample, columns, {"started_at": "started_at", "ended_at": "completed_at"})

    def _task(self, sample: SourceObject, texts: Attachments, events: SampleEvents) -> None:
        """The task: input, target, choices; the files and the setup of its sandbox."""
        task: Columns = {"task_id": self.run.columns.get("task_id")}
        if task["task_id"] is None:
            return
        raw = sample.values.get("input")
        if raw is not None and jsontext.first_byte(raw) == QUOTE:
            task["instruction"] = jsontext.decode_value(texts.resolve(raw))
            sample.drop("input")
        elif items := sample.items("input"):
            sample.values["input"] = jsontext.raw(jsontext.text_of(events.refer(items)))
            words = [word(jsontext.decode_object(texts.resolve(it)), "content") for it in items
                     if jsontext.first_byte(it) == BRACE]  # fmt: skip
            task["instruction"] = words[-1] if words else None
        task["answers"] = sample.json("target")
        limits = {key: sample.values.pop(key) for key in ("choices", "files", "setup", "sandbox")
                  if key in sample}  # fmt: skip
        if limits:
            task["environment_config"] = jsontext.text_of(
                {key: line_of(value) for key, value in limits.items()}
            )
        self.builder.task(task)


def _plain(raw: Raw) -> str:
    text: str = jsontext.decode_value(raw) if jsontext.first_byte(raw) == QUOTE else ""
    return text or jsontext.one_line(raw)


class InspectReader(LogReader):
    """The format ``inspect``."""

    name = "inspect"
    title = "Logs of Inspect AI"
    container = "json"
    recognised = "version, status and eval; a sample with an epoch and a target; a list of events"
    written_anew = True
    versions = (
        "reads logs (.json, .eval) of 0.3.40 to 0.3.285, single samples, lists of events; writes "
        "a log (.json) a trajectory"
    )
    log = InspectLog
    file_a_trajectory = True

    def write(
        self, trajectory: Trajectory, losses: Losses, flavour: str | None = None
    ) -> dict[str, Any]:
        """Convert a trajectory into a log with one sample."""
        from adp.converters.writers.inspect import write_log

        return write_log(trajectory, losses)

    def session_file(self, run: NamedRun) -> str:
        """``FILE/TIME_TRAJECTORY.json``: ``inspect view`` lists what begins with a time."""
        folder = without_compression(Path(run.source_file or "trajectories")).with_suffix("")
        time = run.started_at or EPOCH
        name = session_name(run.trajectory_id or "", run.dataset)
        return f"{folder}/{time:%Y-%m-%dT%H-%M-%S}+00-00_{name}.json"

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A log, or a sample of one."""
        log = {"version", "status", "eval"} <= set(record) and "task" in inner(record, "eval")
        sample = {"id", "epoch", "input", "target", "messages"} <= set(record)
        event = first_item(record, "events")
        events = word(event, "event") in _EVENTS and "timestamp" in event and "session" not in event
        return Match.STAMP if log or sample or events else Match.NO

    def side_files(self, source_file: str) -> tuple[str, ...]:
        """The other members of the archive that a sample is in."""
        root, middle, _ = source_file.rpartition("/samples/")
        return tuple(f"{root}/{name}" for name in MEMBERS) if middle else ()


CONVERTER = InspectReader()
