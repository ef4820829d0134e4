"""The plan of a loop: every stage of every round with its options checked, before anything runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from adp.core.option_errors import names, sentence
from adp.core.options import OptionsModel
from adp.trainers.config import TINY
from adp.workflows.loop.loop_file import LoopFile, StageEntry
from adp.workflows.loop.references import BASE, LAST, LoopNames
from adp.workflows.loop.stage_kind import ModelPlace, StageContext, StageKind, kind_of
from adp_schema.errors import InputError, UsageError
from adp_schema.ids import digest


@dataclass(frozen=True)
class LoopStage:
    """A stage that is to be done.

    Attributes:
        key: ``round-1.train``.
        kind: what it does.
        options: its options, checked.
        context: what else it knows.
        inputs: keys of the stages that it takes something from.
        values: values of its round, for the report.
        plain: its options as they stand in records: the folder of the file is not written out.
    """

    key: str
    kind: StageKind
    options: OptionsModel
    context: StageContext
    inputs: tuple[str, ...]
    values: Mapping[str, Any]
    plain: Mapping[str, Any]

    @property
    def path(self) -> str:
        """Its folder, from that of the loop."""
        return self.context.path

    @property
    def hash(self) -> str:
        """Hash of the options that decide the result."""
        counted = {name: value for name, value in self.plain.items() if name not in self.kind.free}
        text = {"kind": self.kind.name, "options": counted, "seed": self.context.seed}
        return digest(json.dumps(text, sort_keys=True, default=str).encode())


@dataclass(frozen=True)
class LoopPlan:
    """All stages of a loop, in order.

    Attributes:
        file: what stands in its file.
        stages: its stages.
    """

    file: LoopFile
    stages: tuple[LoopStage, ...]

    @property
    def rounds(self) -> int:
        """How many rounds there are."""
        return max((stage.context.round for stage in self.stages), default=0)

    def find(self, text: str) -> LoopStage:
        """A stage by its key, or by its name where only one round has it.

        Raises:
            UsageError: there is none, or there are several.
        """
        matches = [item for item in self.stages if text in (item.key, item.context.name)]
        if not matches:
            known = ", ".join(stage.key for stage in self.stages)
            raise UsageError(f"there is no stage '{text}'; there are {known}")
        if len(matches) > 1:
            keys = ", ".join(stage.key for stage in matches)
            raise UsageError(f"several rounds have a stage '{text}'; name one of {keys}")
        return matches[0]

    def after(self, key: str) -> set[str]:
        """The stages that take something from one, and from these, and so on."""
        results = {key}
        for stage in self.stages:
            if results.intersection(stage.inputs):
                results.add(stage.key)
        return results - {key}


def make_plan(file: LoopFile, here: Path | None = None, *, allow_python: bool = False) -> LoopPlan:
    """Put references in, and check the options of every stage.

    Args:
        file: the loop.
        here: folder of its file, to which paths in it are relative; None: the working folder.
        allow_python: let files name Python functions.

    Raises:
        UsageError: an option or a name is wrong; the message names round and stage.
        InputError: a file that an option names cannot be read.
    """
    planner = _Planner(file, (here or Path()).resolve(), allow_python)
    number = 0
    for entry in file.rounds:
        for repeated in range(entry.repeat):
            number += 1
            planner.begin(number, entry.values_of(repeated))
            for stage in entry.stages:
                planner.add(stage)
    return LoopPlan(file, tuple(planner.stages))


def _with_model(given: dict[str, Any], options: type[OptionsModel]) -> dict[str, Any]:
    """The options with ``model: last``, where they leave out a model whose default that is."""
    field_info = options.model_fields.get("model")
    if field_info is None or field_info.default != LAST or "model" in given:
        return given
    return {**given, "model": LAST}


@dataclass
class _Planner:
    """Plans one stage after the other."""

    file: LoopFile
    here: Path
    allow_python: bool
    stages: list[LoopStage] = field(default_factory=list)
    _round: int = 0
    _values: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._last = ModelPlace(BASE if self.file.model == TINY else self._base())
        self._models = {self._last.path: self._last}
        self._start = self._last.path
        self._trained: str | None = None

    def _base(self) -> str:
        model = self.file.model
        path = Path(model).expanduser()
        place = self.here / path
        if not place.is_dir() and (path.is_absolute() or model.startswith((".", "~"))):
            raise UsageError(
                f"model: there is no folder {model}; give that of a model, or a name on the Hub"
            )
        return str(place) if place.is_dir() else model

    def begin(self, number: int, values: dict[str, Any]) -> None:
        """Begin a round."""
        self._round, self._values = number, values

    def add(self, entry: StageEntry) -> None:
        """Plan a stage."""
        key = f"round-{self._round}.{entry.name}"
        try:
            self._add(key, entry)
        except (UsageError, InputError) as error:
            raise type(error)(f"{key}: {error}") from error

    def _add(self, key: str, entry: StageEntry) -> None:
        kind = kind_of(entry.kind)
        names_ = self._names()
        given = names_.put_in(_with_model(entry.options, kind.options))
        try:
            options = kind.options.model_validate(given)
        except ValidationError as error:
            known = names(kind.options)
            raise UsageError(f"{kind.name}: {sentence(error, known)}") from None
        context = StageContext(
            name=entry.name,
            round=self._round,
            path=f"round-{self._round}/{entry.name}",
            seed=self.file.seed,
            here=self.here,
            last=self._last,
            models=dict(self._models),
            allow_python=self.allow_python,
        )
        self._check_rights(given)
        with context.guarded():
            kind.check(options, context)
        plain = self._bare(options.model_dump(mode="json", by_alias=True))
        stage = LoopStage(
            *(key, kind, options, context), tuple(names_.used), dict(self._values), plain
        )
        self.stages.append(stage)
        made = kind.model(options, context)
        if made is not None:
            self._last, self._trained = made, key
            self._models[made.path] = made

    def _check_rights(self, given: Mapping[str, Any]) -> None:
        if given.get("unsafe_python") and not self.allow_python:
            raise UsageError("unsafe_python needs --allow-python in the call")

    def _names(self) -> LoopNames:
        """What names stand for at this place of the loop."""
        values = {
            **self.file.values,
            **self._values,
            BASE: self._start,
            "here": str(self.here),
            "name": self.file.name,
            "round": self._round,
            "seed": self.file.seed,
        }
        stages: dict[str, str] = {}
        for stage in self.stages:
            stages[stage.key] = stage.path
            if stage.context.round == self._round - 1:
                stages[f"previous.{stage.context.name}"] = stage.path
            elif stage.context.round == self._round:
                stages[stage.context.name] = stage.path
        return LoopNames(values, stages, self._last.path, self._trained)

    def _bare(self, value: Any) -> Any:
        """Options without the folder of the file, so that this may lie elsewhere the next time."""
        if isinstance(value, dict):
            return {name: self._bare(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self._bare(item) for item in value]
        if isinstance(value, str) and self.here.parent != self.here:
            return value.replace(str(self.here), "${here}")
        return value
