"""What a recipe of a data set says: the model of its YAML, checked word by word."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from adp.converters.datasets.reader_specs import (
    ColumnsSpec,
    ListsSpec,
    MessagesSpec,
    StepsSpec,
    TranscriptSpec,
)
from adp.converters.datasets.spec_types import FieldSpec, Path, Paths, Regex, Spec, as_field
from adp.core.options import OptionsModel
from adp_schema.model import Task, Trajectory

NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
"""What a recipe may be called."""

NOT_TO_TRAIN_ON = "do-not-train"
"""The tag of runs of evaluation sets."""

FAMILIES = ("messages", "columns", "transcript", "steps", "lists", "tasks")
"""The readers of the engine; any other word under ``reader`` is the name of a format."""


class MatchSpec(OptionsModel):
    """How a row of the data set is recognised; all that is given must hold."""

    keys: tuple[str, ...] = ()
    """Keys that the row has on its first level."""
    absent: tuple[str, ...] = ()
    """Keys that it has not."""
    no_other_keys: bool = False
    """Whether it has no keys but those of ``keys``."""
    values: dict[Path, Regex] = Field(default_factory=dict)
    """Path -> regular expression that is found in the string there; ``.`` for any text. A number
    counts as its digits, a list as ``[`` and an object as ``{`` with what stands in it."""
    file: Regex | None = None
    """Regular expression that is found in the path of the file, with its folder."""
    priority: int = 0
    """The higher one is taken when two recipes recognise a file."""
    gives_way: bool = False
    """Whether any format that recognises the file goes before; for keys that many rows have."""
    every: bool = False
    """Whether it must hold of all rows that are looked at, not of one."""
    logs: bool = False
    """Whether it is tried on files that are surely logs of sessions, too."""


class DropRule(OptionsModel):
    """Rows that become no run: counted as skipped, with the reason."""

    path: Path
    """What is looked at."""
    equals: Any = None
    """The value that makes a row drop."""
    regex: Regex | None = None
    """Or what is found in its text."""
    missing: bool = False
    """Or that there is nothing, null or an empty value."""
    reason: str
    """Why, for ``adp rejects``."""

    @model_validator(mode="after")
    def _has_test(self) -> DropRule:
        if self.equals is None and self.regex is None and not self.missing:
            raise ValueError("give equals, regex or missing: true")
        return self


class DialectRule(OptionsModel):
    """The dialect of some runs of a data set that mixes environments."""

    id: Regex | None = None
    """What is found in the id of the run or of its task. Without it and ``text``, all others."""
    text: Regex | None = None
    """What is found in one of its first four texts."""
    dialect: str
    """Name of the dialect; ``none`` for texts without calls."""


class ToolsSpec(OptionsModel):
    """Where the tools on offer stand."""

    path: Paths = ()
    """Paths of a list, or of a text that holds it."""
    given: tuple[dict[str, Any], ...] = ()
    """The tools themselves, where no row has them."""
    form: Literal[
        "auto", "objects", "lines", "python", "numbered", "documented", "described", "signatures"
    ] = "auto"
    """How a text holds them: a JSON list (also as a Python literal), objects one after another, an
    object a line, ``1. Name: ...``, or ``name: ...`` with a line ``Parameters:`` each.
    ``described``: an object from names to such texts. ``signatures``: ``name(a: str): words``."""
    after: str | None = None
    """The tools stand behind this, in a text."""
    before: str | None = None
    """And end before this."""
    infer: bool = False
    """Without any, they are made of the calls: names, and the arguments that occur."""


class FinishSpec(OptionsModel):
    """What says that a run came to an end of its own, and its answer."""

    calls: dict[str, str | None] = Field(default_factory=dict)
    """Name of a tool -> the argument that is the answer, if it has one."""
    text: Regex | None = None
    """Or what is found in the last text of the agent; its first group is the answer."""


class PartOfTask(FieldSpec):
    """Where a part of a task stands."""

    value: Any = None
    """The value itself."""
    path: Paths = ()


def _columns(value: Any, row: type[Any], kind: str) -> Any:
    if isinstance(value, dict):
        for name in value:
            if name not in row.model_fields:
                near = get_close_matches(name, row.model_fields, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise ValueError(f"{name} is no column of a {kind}{hint}")
    return value


_REFERENCES = {"ground_truth", "gold", "gold_answer", "reference_answer", "expected"}
"""Keys of what is right, which say nothing of what happened in a run."""


class DatasetRecipe(OptionsModel):
    """A data set: what it is called, how its rows are recognised, and how they become runs."""

    name: str
    """Name for ``--from``."""
    title: str
    """A line about it."""
    source: str | None = None
    """Address of the data set."""
    license: str | None = None
    """License, as its owner names it."""
    may_publish: bool | None = None
    """False where the license forbids it."""
    citation: str | None = None
    """What to cite."""
    rows: Literal["seen", "fixture", "described"]
    """What the recipe was written from: rows, rows that others made in the shape, or descriptions
    alone."""
    purpose: Literal["train", "test"] = "train"
    """test: an evaluation set; its runs are marked as not to be trained on."""
    match: tuple[MatchSpec, ...] = ()
    """How its rows are recognised; one of several ways. A recipe of the user's may have none."""
    any_set: bool = False
    """Whether it is for rows of many data sets, whose name is that of their file or folder."""
    unit: Literal["record", "file"] = "record"
    """Whether a record is a run by itself, or all records of a file belong together."""
    rows_at: Path | None = None
    """Where the rows stand in a record that holds several: a list, or an object by its keys; ``*``
    is every value of the record, ``*.*`` every value of each."""
    rows_of: dict[str, Path] = Field(default_factory=dict)
    """Lists in a record that belong together, item by item: key in the row -> path of the list."""
    split: str | None = None
    """Name of a module of `adp.converters.datasets.hooks` that cuts a record into rows."""
    reader: str
    """messages, columns, transcript, steps, lists, tasks, or the name of a format."""
    hook: str | None = None
    """Name of a module of `adp.converters.datasets.hooks` that makes the turns."""
    messages: MessagesSpec = MessagesSpec()
    columns: ColumnsSpec = ColumnsSpec()
    transcript: TranscriptSpec | None = None
    steps: StepsSpec = StepsSpec()
    lists: ListsSpec = ListsSpec()
    tasks: dict[str, Annotated[PartOfTask, BeforeValidator(as_field)]] = Field(default_factory=dict)
    """Column of the task -> where it stands. Beside another reader: the task of each run."""
    dialect: str | tuple[DialectRule, ...] | None = None
    """How calls stand in texts; without it, it is chosen by the texts; ``none`` for texts that
    hold none."""
    fields: dict[str, Spec] = Field(default_factory=dict)
    """Column of the trajectory -> where it stands."""
    constants: dict[str, Any] = Field(default_factory=dict)
    """Column of the trajectory -> value."""
    drop: tuple[DropRule, ...] = ()
    """Rows that become no run."""
    tools: ToolsSpec | None = None
    """The tools on offer."""
    finish: FinishSpec | None = None
    """What says that the run ended, and its answer."""

    @field_validator("name")
    @classmethod
    def _usable_name(cls, name: str) -> str:
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name; use small letters, digits and underscores")
        return name

    @field_validator("match", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        return [value] if isinstance(value, dict) else value

    @field_validator("fields", "constants", mode="before")
    @classmethod
    def _trajectory_columns(cls, value: Any) -> Any:
        return _columns(value, Trajectory, "trajectory")

    @field_validator("tasks", mode="before")
    @classmethod
    def _task_columns(cls, value: Any) -> Any:
        return _columns(value, Task, "task")

    @model_validator(mode="after")
    def _fits(self) -> DatasetRecipe:
        for column in ("success", "reward", "final_answer"):
            spec, wrong = self.fields.get(column), _REFERENCES
            if column != "final_answer":
                wrong = {*_REFERENCES, "answer", "answers"}
            if spec and any(path.split(".")[-1] in wrong for path in spec.path):
                raise ValueError(f"fields.{column}: a reference answer is no outcome")
        if self.reader == "transcript" and self.transcript is None:
            raise ValueError("the reader transcript needs transcript: with text and marks")
        if self.reader == "tasks" and not ({"instruction", "turns"} & self.tasks.keys()):
            raise ValueError("the reader tasks needs tasks: with an instruction")
        if len([it for it in (self.rows_at, self.rows_of, self.split) if it]) > 1:
            raise ValueError("give one of rows_at, rows_of and split")
        return self

    def shared_columns(self) -> dict[str, Any]:
        """The columns that all runs of the data set have alike."""
        tags = [*(self.constants.get("tags") or ())]
        if self.purpose == "test":
            tags.append(NOT_TO_TRAIN_ON)
        known = {
            "license": self.license, "source_url": self.source, "may_publish": self.may_publish,
            **self.constants, "tags": tags or None,
        }  # fmt: skip
        known.pop("dataset", None)
        return {name: value for name, value in known.items() if value is not None}

    def looks_into_lists(self) -> bool:
        """Whether a path of a column, of the task or of the tools begins at a list of rows."""
        specs = [*self.fields.values(), *self.tasks.values()]
        texts = [text for spec in specs for text in (*spec.path, spec.format or "")]
        texts += () if self.tools is None else self.tools.path
        return any(text == "$" or "$[" in text for text in texts)

    @property
    def dataset(self) -> str | None:
        """The data set that its runs are of; None where the path of a file says it."""
        name: str | None = self.constants.get("dataset")
        return name or (None if self.any_set else self.name)

    @property
    def overlaid(self) -> str | None:
        """The format that reads the rows; None when the engine does."""
        return None if self.reader in FAMILIES else self.reader
