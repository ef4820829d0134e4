"""Running a loop: stage after stage, each once, from where the last call was stopped.

OUT/
  loop.json            the plan: options of every stage after substitution
  base/                the model that the loop begins with, when that is made
  round-1/NAME/        what a stage has made
  records/             what is known of each stage, see `adp.workflows.loop.records`
  ledger.jsonl         a line for each finished stage
  report.html, .md     success, calls, length, format by round
  work/                what a stage that is under way has made so far
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from adp.core.extras import need
from adp.core.progress import Progress, Silent
from adp.rollouts.plugin_errors import error_text
from adp.stores.locks import holding
from adp.trainers.config import TINY, TinySection
from adp.version import __version__
from adp.workflows.loop.hashes import GivenFiles, model_hash
from adp.workflows.loop.plan import LoopPlan, LoopStage
from adp.workflows.loop.records import (
    LEDGER,
    StageRecord,
    read_record,
    record_path,
    write_ledger,
)
from adp.workflows.loop.references import BASE
from adp_schema.errors import AdpError, OutputExistsError, UsageError
from adp_schema.manifest import write_atomic

WORK, PLAN = "work", "loop.json"

_PACKAGES = ("duckdb", "polars", "pyarrow", "torch", "transformers", "trl", "peft")


@dataclass(frozen=True)
class StageNews:
    """What happens to a stage.

    Attributes:
        key: ``round-1.train``.
        kind: what it does.
        what: ``begins``, ``done``, ``done before`` or ``failed``.
        line: what it brought, or why it failed.
        seconds: how long it took.
    """

    key: str
    kind: str
    what: str
    line: str = ""
    seconds: float = 0.0


Watch = Callable[[StageNews], None]
"""Told when a stage begins and ends."""


@dataclass(frozen=True)
class LoopOptions:
    """How a loop is run.

    Attributes:
        only: only this stage.
        until: end after this stage.
        redo: do these stages again, and after them those whose inputs changed.
        watch: told about stages.
        progress: told how far a stage is.
        keep_going: go past a stage that fails, and those that need it; `watch` is told why.
    """

    only: str | None = None
    until: str | None = None
    redo: Collection[str] = ()
    watch: Watch = lambda news: None
    progress: Progress = field(default_factory=Silent)
    keep_going: bool = False


def run_loop(
    plan: LoopPlan, out: str | os.PathLike[str], options: LoopOptions | None = None
) -> list[StageRecord]:
    """Do the stages of a loop that are not done yet.

    The working folder is that of the loop meanwhile, so that what is noted does not depend on
    where it lies.

    Args:
        plan: the loop.
        out: folder for all that it makes.
        options: how it is run.

    Returns:
        The records of all finished stages, in order.

    Raises:
        OutputExistsError: the folder holds something else, or a stage was done with other options.
        UsageError: a stage is not known, or needs another one first.
        AdpError: a stage cannot be done.
    """
    options = options or LoopOptions()
    root = Path(out).absolute()
    chosen = _chosen(plan, options)
    with holding(root):
        _check_out(root)
        root.mkdir(parents=True, exist_ok=True)
        with contextlib.chdir(root):
            return _Run(plan, root, options, chosen).run()


def _chosen(plan: LoopPlan, options: LoopOptions) -> list[LoopStage]:
    """The stages that this call is about."""
    if options.only is not None and options.until is not None:
        raise UsageError("--only and --until exclude each other")
    if options.only is not None:
        return [plan.find(options.only)]
    if options.until is not None:
        return list(plan.stages[: plan.stages.index(plan.find(options.until)) + 1])
    return list(plan.stages)


def _check_out(root: Path) -> None:
    fresh = not root.exists() or (root.is_dir() and not any(root.iterdir()))
    if not fresh and not (root / PLAN).exists():
        raise OutputExistsError(f"{root} is there and holds no loop; choose another -o")


@dataclass
class _Run:
    """One call for a loop."""

    plan: LoopPlan
    root: Path
    options: LoopOptions
    chosen: list[LoopStage]
    done: dict[str, StageRecord] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    _files: GivenFiles = field(default_factory=GivenFiles)

    def run(self) -> list[StageRecord]:
        """Do what is left."""
        self._write_plan()
        self._redo([self.plan.find(text) for text in self.options.redo])
        base = self._make_base()
        for stage in self.plan.stages:
            record = read_record(self.root, stage.key)
            if stage in self.chosen:
                record = self._tried(stage, record, base)
            if record is not None and record.done and not record.stale:
                self.done[stage.key] = record
        self._write_ledger()
        return list(self.done.values())

    def _write_plan(self) -> None:
        stages = [
            {
                "key": stage.key,
                "kind": stage.kind.name,
                "options": stage.plain,
                "inputs": stage.inputs,
            }
            for stage in self.plan.stages
        ]
        file = self.plan.file
        head = {"adp": __version__, "name": file.name, "about": file.about, "seed": file.seed}
        text = json.dumps({**head, "model": file.model, "stages": stages}, indent=2, default=str)
        write_atomic(self.root / PLAN, text + "\n")

    def _redo(self, again: list[LoopStage]) -> None:
        """Forget stages, and let those that come of them look at their inputs."""
        for stage in again:
            for key in self.plan.after(stage.key):
                record = read_record(self.root, key)
                if record is not None and record.done:
                    record.stale = True
                    record.write(self.root)
            self._forget(stage)

    def _forget(self, stage: LoopStage) -> None:
        record_path(self.root, stage.key).unlink(missing_ok=True)
        for folder in (self.root / stage.path, self._work(stage).parent):
            if folder.exists():
                gone = folder.with_name(f"{folder.name}.gone")
                shutil.rmtree(gone, ignore_errors=True)
                folder.rename(gone)
                shutil.rmtree(gone)

    def _make_base(self) -> str:
        """Make the model ``tiny``, if the loop begins with it; the hash of the model."""
        if self.plan.file.model != TINY:
            return self.plan.file.model
        folder = self.root / BASE
        if not folder.exists():
            need("train")
            from adp.trainers.library_output import quiet
            from adp.trainers.model import build_tiny

            staged = self.root / WORK / BASE
            shutil.rmtree(staged, ignore_errors=True)
            staged.parent.mkdir(parents=True, exist_ok=True)
            with quiet():
                build_tiny(staged, TinySection(seed=self.plan.file.seed))
            staged.rename(folder)
        return model_hash(folder)

    def _tried(self, stage: LoopStage, record: StageRecord | None, base: str) -> StageRecord | None:
        """Do a stage; with `keep_going`, None when it or one that it needs fails."""
        if not self.options.keep_going:
            return self._stage(stage, record, base)
        reasons = [self.failed[key] for key in stage.inputs if key in self.failed]
        if not reasons:
            try:
                return self._stage(stage, record, base)
            except OutputExistsError:  # the call asks for something else than what was begun
                raise
            except AdpError as error:
                reasons = [str(error)]
            except Exception as error:  # of a library that trains or acts
                reasons = [f"{stage.key}: {error_text(error)}"]
        self.failed[stage.key] = reasons[0]
        self.options.watch(StageNews(stage.key, stage.kind.name, "failed", reasons[0]))
        return None

    # ---- one stage ------------------------------------------------------------------------

    def _stage(self, stage: LoopStage, record: StageRecord | None, base: str) -> StageRecord | None:
        inputs = self._inputs(stage, base)
        if record is not None:
            changed = self._changed(stage, record, inputs)
            nothing = not record.done and not list(self._work(stage).parent.glob("*"))
            if changed and (nothing or (record.stale and record.options_hash == stage.hash)):
                self._forget(stage)
            elif changed:
                raise OutputExistsError(
                    f"{stage.key} was {'done' if record.done else 'begun'} with {changed}; "
                    f"--redo {stage.key} does it again, or choose another -o"
                )
            elif record.done:
                if record.stale:
                    record.stale = False
                    record.write(self.root)
                self._tell(stage, "done before", record)
                return record
        return self._do(stage, inputs)

    def _inputs(self, stage: LoopStage, base: str) -> dict[str, str]:
        inputs = {BASE: base}
        for key in stage.inputs:
            if key not in self.done:
                raise UsageError(f"{stage.key} needs {key}, which is not done; do that first")
            inputs[key] = self.done[key].hash
        given = stage.options.model_dump(mode="json", by_alias=True)
        files = self._files.hashes([given, _beside_file(given, stage)], self.root)
        return {**inputs, **{f"file {name}": value for name, value in sorted(files.items())}}

    def _changed(
        self, stage: LoopStage, record: StageRecord, inputs: Mapping[str, str]
    ) -> str | None:
        """What is different from what a stage was begun with."""
        if record.options_hash != stage.hash:
            return f"another {_difference(record.options, stage.plain)}"
        names = {*record.inputs, *inputs}
        other = sorted(name for name in names if record.inputs.get(name) != inputs.get(name))
        return f"another {', '.join(other)}" if other else None

    def _do(self, stage: LoopStage, inputs: dict[str, str]) -> StageRecord:
        self.options.watch(StageNews(stage.key, stage.kind.name, "begins"))
        record = StageRecord(
            key=stage.key,
            round=stage.context.round,
            stage=stage.context.name,
            kind=stage.kind.name,
            values=stage.values,
            options=stage.plain,
            options_hash=stage.hash,
            inputs=inputs,
            versions=_versions(),
        )
        record.write(self.root)
        began = time.monotonic()
        target, work = self.root / stage.path, self._work(stage)
        if not target.exists():
            work.parent.mkdir(parents=True, exist_ok=True)
            context = replace(stage.context, progress=self.options.progress)
            try:
                # Relative, so that nothing that is noted depends on the place of the loop.
                with context.guarded():
                    stage.kind.run(stage.options, context, work.relative_to(self.root))
            except AdpError as error:
                raise _named(stage.key, error) from error
            finally:
                _free_memory()
            target.parent.mkdir(parents=True, exist_ok=True)
            work.rename(target)
        shutil.rmtree(work.parent, ignore_errors=True)
        facts = stage.kind.facts(stage.options, Path(stage.path))
        record.hash, record.counts = facts.hash, facts.counts
        record.figures, record.line = facts.figures, facts.line
        record.seconds, record.done = round(time.monotonic() - began, 1), True
        record.write(self.root)
        self.done[stage.key] = record
        self._write_ledger()
        self._tell(stage, "done", record)
        return record

    def _work(self, stage: LoopStage) -> Path:
        """Where a stage works; the last part is its name, by which stores and models are called."""
        return self.root / WORK / stage.key / stage.context.name

    def _tell(self, stage: LoopStage, what: str, record: StageRecord) -> None:
        self.options.watch(StageNews(stage.key, stage.kind.name, what, record.line, record.seconds))

    def _write_ledger(self) -> None:
        """The ledger has the stages that are done, in the order of the loop."""
        records = dict(self.done)
        for stage in self.plan.stages:
            if stage.key not in records and (self.root / LEDGER).exists():
                record = read_record(self.root, stage.key)
                if record is not None and record.done:
                    records[stage.key] = record
        ordered = [records[stage.key] for stage in self.plan.stages if stage.key in records]
        write_ledger(self.root, ordered)


def _beside_file(value: Any, stage: LoopStage) -> Any:
    """The same texts as paths beside the file of the loop, where there is such a file."""
    if isinstance(value, dict):
        return [_beside_file(item, stage) for item in value.values()]
    if isinstance(value, list):
        return [_beside_file(item, stage) for item in value]
    return stage.context.given_path(value.partition(".py:")[0]) if isinstance(value, str) else None


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    now = json.loads(json.dumps(new, default=str))
    names = sorted(name for name in {*old, *now} if old.get(name) != now.get(name))
    return ", ".join(names) or "seed"


def _named(key: str, error: AdpError) -> AdpError:
    """The error with the stage before its sentence; its class and exit code stay."""
    named = error.__class__.__new__(error.__class__)
    named.__dict__.update(error.__dict__)
    named.args = (f"{key}: {error}",)
    return named


def _free_memory() -> None:
    """Let models of a stage go before the next one loads its own."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


def _versions() -> dict[str, str]:
    versions = {"adp": __version__}
    for package in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions
