"""A format that is made of a recipe."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module

from msgspec import Raw

from adp.converters.datasets.complete import complete_record
from adp.converters.datasets.drop import dropped
from adp.converters.datasets.families import (
    columns,
    lists,
    messages,
    prefixes,
    steps,
    tasks,
    transcript,
)
from adp.converters.datasets.match import tests_of
from adp.converters.datasets.overlay import read_overlaid
from adp.converters.datasets.recipe import DatasetRecipe
from adp.converters.datasets.rows_in import holds_several, rows_in
from adp.converters.datasets.tools import find_tools
from adp.converters.datasets.turns import DatasetRow
from adp.converters.datasets.values import set_fields
from adp.converters.format import Format
from adp.converters.kit.drafts import TrajectoryDraft, emit, merge_extra
from adp.converters.kit.lines import log_lines
from adp.converters.kit.source_object import SourceObject
from adp.converters.preference.read import pair_of
from adp.converters.reading import BRACE, BRACKET, QUOTE
from adp.converters.text_calls.of_file import BY_RUN
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.errors import RecordError
from adp_schema.ids import digest
from adp_schema.losses import Losses
from adp_schema.model import Columns, Trajectory
from adp_schema.protocols import LIST_LINE, Match, RawRecord, SkipRecordError

ENGINE_VERSION = "1"
"""Raised when the rows that recipes give change."""


_FAMILIES = {"messages": messages.read, "columns": columns.read, "transcript": transcript.read,
             "lists": lists.read, "tasks": tasks.read}  # fmt: skip


class DatasetFormat(Format):
    """The rows of a data set.

    Args:
        recipe: what they are.
    """

    gathers_rows = True
    holds_text_actions = True

    def __init__(self, recipe: DatasetRecipe) -> None:
        self.recipe = recipe
        self.name = recipe.name
        self.title = recipe.title
        self.version = f"{ENGINE_VERSION}.{digest(recipe.model_dump_json().encode())[:8]}"
        self.container = "session" if recipe.unit == "file" else "jsonl"
        self.recognised = "by its recipe"
        self.versions = f"reads the rows of {recipe.source or recipe.title}"
        self.stored_as = recipe.overlaid or recipe.name
        self._tests = tests_of([it.model_dump() for it in recipe.match])

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """Whether a row is of the data set, whatever its file is called."""
        return Match.DATA_SET if any(test.fits(record) for test in self._tests) else Match.NO

    def fits(self, rows: Sequence[Mapping[str, Raw]], source_file: str) -> bool:
        """Whether a file is of the data set; a recipe without ``match`` takes any."""
        usable = [test for test in self._tests if test.fits_file(source_file)]
        return not self._tests or any(test.fits_rows(rows) for test in usable)

    def read(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        """Read a record: a row, an object or a list of rows, or all rows of a file.

        Raises:
            RecordError: it has none of what the recipe says.
            SkipRecordError: the recipe drops it.
        """
        if self.recipe.overlaid is not None:
            read_overlaid(self.recipe, record, builder, losses)
            return
        reader = _Reading(self.recipe, record, builder, losses)
        reader.read()

    @property
    def given_dialect(self) -> str | None:
        """The dialect that the recipe says; None when texts are to say it."""
        given = self.recipe.dialect
        return BY_RUN if isinstance(given, tuple) else given

    def complete(self, builder: RowBuilder) -> None:
        """Fill in what only the calls in texts say, once those are rows."""
        complete_record(self.recipe, builder)

    def dialect_for(self, trajectory: Columns, texts: Sequence[str]) -> str | None:
        """Name of the dialect of a run; None when it is chosen by the texts.

        Args:
            trajectory: its columns.
            texts: its first texts.
        """
        given = self.recipe.dialect
        if given is None or isinstance(given, str):
            return given
        names = [str(trajectory.get(name) or "") for name in ("source_id", "task_id")]
        for rule in given:
            by_id = rule.id is None or any(re.search(rule.id, name) for name in names)
            if by_id and (rule.text is None or any(re.search(rule.text, it) for it in texts[:4])):
                return rule.dialect
        return None


class _Reading:
    """One record while it is read."""

    def __init__(
        self, recipe: DatasetRecipe, record: RawRecord, builder: RowBuilder, losses: Losses
    ) -> None:
        self.recipe = recipe
        self.record = record
        self.builder = builder
        self.losses = losses
        self.reasons: list[str] = []
        self.made = 0
        self.around: SourceObject | None = None

    def read(self) -> None:
        for row in self._rows():
            reason = dropped(self.recipe.drop, self._view(row)) if self.recipe.drop else None
            if reason is not None:
                self._leave_out(row, reason)
            elif self.recipe.reader == "steps":
                self._drop_steps(row)
                for group in self._groups(row):
                    self._read_steps(row, group)
            else:
                self._read(row)
        if not self.made:
            raise SkipRecordError(self.reasons[0] if self.reasons else "there are no rows in it")

    def _read_steps(self, row: DatasetRow, group: steps.StepGroup) -> None:
        """Read the rows of a run."""
        name = group.name or row.key
        single = self._row(SourceObject(None, "$", self.losses), [], name)
        single.around = row.around
        self._keep_around(single)
        views = steps.run_views(single, group.rows)
        if self.recipe.hook is not None:
            single.rows = group.rows
            self._by_hook(single)
        else:
            steps.read(single, group)
        self._finish(single, views)

    def _drop_steps(self, row: DatasetRow) -> None:
        """Take the rows that the recipe drops out of those of a file."""
        kept = []
        for source in row.rows if self.recipe.drop else ():
            reason = dropped(self.recipe.drop, source)
            if reason is None:
                kept.append(source)
            else:
                self.reasons.append(reason)
                self.losses.add(source.path, f"left out: {reason}")
        row.rows = kept if self.recipe.drop else row.rows

    def _groups(self, row: DatasetRow) -> list[steps.StepGroup]:
        spec = self.recipe.steps
        groups = steps.groups(row)
        if not spec.prefixes or spec.messages is None:
            return groups
        return [run for group in groups for run in prefixes.longest(group, spec.messages)]

    def _leave_out(self, row: DatasetRow, reason: str) -> None:
        self.reasons.append(reason)
        if row.key:
            self.losses.add(row.source.path, f"left out: {reason}")

    def _row(self, source: SourceObject, rows: list[SourceObject], key: str = "") -> DatasetRow:
        return DatasetRow(
            source, rows, self.recipe, self.builder, self.losses, TrajectoryDraft(),
            self.record.source_file, key, self.record.number,
        )  # fmt: skip

    def _rows(self) -> Iterator[DatasetRow]:
        data = self.record.data
        if holds_several(self.recipe):
            yield from self._cut()
        elif self.recipe.unit == "file":
            row = self._row(SourceObject(None, "$", self.losses), [])
            broken = []
            for source, text in log_lines(self.record, self.builder, self.losses):
                if text:
                    broken.append(text)
                else:
                    row.rows.append(source)
            if broken:
                row.run.extra["lines"] = broken
            yield row
        elif jsontext.first_byte(data) == BRACKET:
            items = jsontext.decode_array(data)
            rows = [messages.item_object(it, f"$[{n}]", self._bare()) for n, it in enumerate(items)]
            yield self._row(SourceObject(None, "$", self.losses), rows)
        elif jsontext.first_byte(data) == BRACE:
            source = SourceObject(data, "$", self.losses)
            if self.recipe.reader == "steps":
                yield self._row(SourceObject(None, "$", self.losses), [source])
            else:
                yield self._row(source, [])
        elif jsontext.first_byte(data) == QUOTE:
            row = self._row(SourceObject(None, "$", self.losses), [])
            row.source.values = {"text": Raw(data)}
            yield row
        else:
            raise RecordError("expected an object")

    def _bare(self) -> DatasetRow:
        return self._row(SourceObject(None, "$", self.losses), [])

    def _cut(self) -> Iterator[DatasetRow]:
        """The rows inside of a record."""
        cut = rows_in(self.recipe, self.record.data, self.losses)
        self.around = cut.around
        single: DatasetRow | None = None  # steps that stand one by one, not in lists
        for key, path, raw in cut.rows:
            row = self._row(messages.item_object(raw, path, self._bare()), [], key)
            if jsontext.first_byte(raw) == BRACKET and self.recipe.reader != "tasks":
                row.source = SourceObject(None, path, self.losses)
                row.rows = [
                    messages.item_object(it, f"{path}[{n}]", row)
                    for n, it in enumerate(jsontext.decode_array(raw))
                ]
            row.around = None if cut.record is None else cut.record.copy()
            if self.recipe.reader == "steps" and not row.rows:
                single = single or self._row(SourceObject(None, "$", self.losses), [])
                single.rows.append(row.source)
                single.around = row.around
            else:
                yield row
        if single is not None:
            yield single

    def _read(self, row: DatasetRow) -> None:
        """Read a row that is not dropped; the first one keeps what is around it in its record."""
        self._keep_around(row)
        if self.recipe.reader == "tasks":
            tasks.read(row)
            self.made += 1
            return
        rows, source = row.rows, row.source
        copy = self._view(row)
        if rows:
            row.source = copy
        self._set(row, late=False)
        row.source = source
        if self.recipe.hook is not None:
            self._by_hook(row)
        else:
            _FAMILIES[self.recipe.reader](row)
        self._finish(row, [copy])

    def _keep_around(self, row: DatasetRow) -> None:
        if self.around is not None and (rest := self.around.rest()):
            row.run.extra["record"] = rest
        self.around = None

    def _by_hook(self, row: DatasetRow) -> None:
        hook = import_module(f"adp.converters.datasets.hooks.{self.recipe.hook}")
        row.add(hook.turns(row))
        if not row.run.steps:
            raise RecordError("there is nothing that was said, seen or done")

    def _view(self, row: DatasetRow) -> SourceObject:
        """What fields are looked up in: the row as it is, or the list that it is."""
        if not row.rows:
            return row.source.copy()
        view = SourceObject(None, "$", self.losses)
        items = b",".join(jsontext.encode(item.values) for item in row.rows)
        view.values = {LIST_LINE: Raw(b"[" + items + b"]")}
        return view

    def _set(self, row: DatasetRow, *, late: bool) -> None:
        set_fields(self.recipe.fields, row.run.columns, row, Trajectory, late=late)

    def _finish(self, row: DatasetRow, views: list[SourceObject]) -> None:
        """Complete a run and write its rows.

        Args:
            row: the run.
            views: its rows as they were.
        """
        run, recipe = row.run, self.recipe
        source = row.source
        row.source = views[0]
        if recipe.reader == "steps":
            steps.set_run_fields(row, views)
            run.columns.setdefault("source_id", row.key or None)
        else:
            self._set(row, late=True)
        self._tools(row)
        if recipe.tasks:
            self._task(row)
        row.source = source
        merge_extra(run.extra, row.source.rest())
        for left in row.rows:
            merge_extra(run.extra, left.rest())
        for name, value in recipe.shared_columns().items():
            if run.columns.get(name) is None:
                run.columns[name] = value
        self.made += 1
        main = emit(run, self.builder)
        if row.pair_from is not None:
            self._pair(row.pair_from, main, run)

    def _tools(self, row: DatasetRow) -> None:
        if self.recipe.tools is None:
            return
        tools = find_tools(self.recipe.tools, row)
        if tools is not None:
            row.run.columns["tools"], row.run.columns["tools_origin"] = tools

    def _task(self, row: DatasetRow) -> None:
        """The task of a run, by the id that the run has."""
        task = tasks.task_columns(row)
        name = task.get("task_id") or row.run.columns.get("task_id")
        if name is None and self.recipe.reader == "steps" and task.get("instruction"):
            # Runs of one instruction are attempts at one task.
            name = f"{self.recipe.name}_{digest(task['instruction'].encode())[:12]}"
        if name is not None:
            row.run.columns["task_id"] = name
            self.builder.task({**task, "task_id": name})

    def _pair(self, first: int, main: str, run: TrajectoryDraft) -> None:
        """The preference pair of a run and its last branch."""
        other = self.builder.made("trajectories")[-1]["trajectory_id"]
        last, end = len(run.steps), first + len(run.branches[-1].steps)
        if last > first:
            self.builder.pair(pair_of(main, other, first, last, end))
