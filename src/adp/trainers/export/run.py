"""Writing a store as the file of a trainer: every trained step is in a row or counted."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from adp.core.progress import Progress, Silent
from adp.rendering.chat import Chat
from adp.rendering.drops import check_drops
from adp.rendering.report import check_ends
from adp.stores.locks import alone
from adp.stores.staged import versions
from adp.trainers.export.exporter import ExportCounts, Exporter, ExportItem
from adp.trainers.export.fit import Fitter, UnfitError
from adp.trainers.export.output import RowFile, UnwritableError, staged
from adp.trainers.export.registry import exporters
from adp.trainers.export.settings import ExportSettings, read_settings
from adp.trainers.export.source import StoreItems
from adp_schema.errors import EmptyResultError, UsageError
from adp_schema.ids import digest, digest_file
from adp_schema.store import Store

RECORD = "export.json"
README = "README.md"

_UNITS = {
    "chats": "steps",
    "pairs": "pairs",
    "prompts": "trajectories",
    "rollouts": "trajectories",
}


@dataclass
class RowsReport:
    """What an export for a trainer wrote: ``in_store == in_rows + sum(left_out.values())``.

    Attributes:
        exporter: its name.
        rows: rows written.
        unit: what is counted: steps (with a weight in the loss), pairs or trajectories.
        in_store: how many of them the store has.
        in_rows: how many are in the rows.
        left_out: reason -> how many are not.
        changed: what was written differently from the store -> how often.
        files: name -> size in bytes and hash.
    """

    exporter: str
    rows: int = 0
    unit: str = "steps"
    in_store: int = 0
    in_rows: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    files: dict[str, dict[str, Any]] = field(default_factory=dict)


@alone
def export_rows(
    store: Store,
    to: str,
    out: str,
    settings: Sequence[str] | Mapping[str, Any] = (),
    *,
    model: str | None = None,
    branches: Sequence[str] = (),
    progress: Progress | None = None,
    strict: bool = False,
) -> RowsReport:
    """Write the file that a trainer reads, with a README.md that says how to train on it.

    Args:
        store: the store.
        to: name of the exporter, such as ``trl-sft``.
        out: folder for the files; it must be empty or absent. It appears when it is whole.
        settings: options of the exporter, ``NAME=VALUE`` each, or names with values.
        model: whose tokens are written, by those exporters that write tokens: a folder, a name
            on the Hugging Face Hub, or ``tiny``.
        branches: kinds of branches to write besides the main lines; ``all`` for all.
        progress: told how far it is, in trajectories or pairs.
        strict: refuse to write tokens that lack something of the store.

    Raises:
        ConversionLossError: ``strict``, and something is dropped.
        UsageError: no such exporter or option, or the format cannot carry the mask; says what
            to do. Nothing is written.
        OutputExistsError: the folder holds something, or cannot be written.
        EmptyResultError: there is nothing to write.
        MissingExtraError: tokens are asked for, and transformers is not installed.
    """
    exporter = exporters.get(to)
    chosen_settings = read_settings(exporter, settings)
    if strict and not chosen_settings.form.model:
        raise UsageError(
            f"{exporter.name} writes no tokens here, so what a template drops is not known; leave "
            "out --strict, and look at the counts of what is changed"
        )
    job = _Export(
        store,
        exporter,
        chosen_settings,
        _renderer(exporter, chosen_settings, model),
        progress or Silent(),
    )
    with staged(out) as folder:
        job.write(
            folder,
            StoreItems(store, chosen_settings.form, branches, job.tally, chosen_settings.options),
        )
        if not job.report.rows:
            raise EmptyResultError(_nothing(store, job.report))
        call = _command(store, exporter, chosen_settings, model, branches)
        if strict:
            check_drops(job.report.left_out, job.report.changed)
        job.describe(folder, call)
    return job.report


def _renderer(exporter: Exporter, export_settings: ExportSettings, model: str | None) -> Any:
    if not export_settings.form.model:
        if model is not None:
            raise UsageError(f"{exporter.name} writes no tokens here; leave out --model")
        return None
    if model is None:
        if export_settings.form.model == "optional":
            return None
        raise UsageError(
            f"{exporter.name} writes tokens here; say of which model: --model FOLDER_OR_NAME"
        )
    from adp.rendering.render import Renderer

    return Renderer.load(model, export_settings.render)


def _nothing(store: Store, report: RowsReport) -> str:
    why = "; ".join(f"{count:,} {reason}" for reason, count in list(report.left_out.items())[:3])
    return f"nothing to write: {store.name} has {report.in_store:,} {_word(report.unit)}" + (
        f", and all are left out ({why})" if why else ""
    )


def _word(unit: str) -> str:
    return "trained steps" if unit == "steps" else unit


def _command(
    store: Store,
    exporter: Exporter,
    export_settings: ExportSettings,
    model: str | None,
    branches: Sequence[str],
) -> str:
    """The call that makes the export again, without paths of this machine."""
    words = ["adp", "export", store.name, "--to", exporter.name]
    if model is not None:
        words += ["--model", model.rstrip("/").rsplit("/", 1)[-1] if _local(model) else model]
    for name, value in _given(export_settings).items():
        if name == "system_prompt":
            words += ["--system-prompt", "FILE"]
            continue
        text = yaml.safe_dump(value, default_flow_style=True, width=10**9).splitlines()[0]
        words += ["--set", f"{name}={text}"]
    for kind in branches:
        words += ["--branches", kind]
    return shlex.join([*words, "-o", "OUT"])


def _local(model: str) -> bool:
    return Path(model).exists()


def _given(export_settings: ExportSettings) -> dict[str, Any]:
    """The options that differ from their defaults."""
    fields = export_settings.options.model_dump(exclude_defaults=True, mode="json")
    if export_settings.render is not None:
        render = export_settings.render.model_dump(exclude_defaults=True, mode="json")
        fields |= {name: value for name, value in render.items() if name not in fields}
    return fields


class _Export:
    """One export: from items to rows, with the counts."""

    def __init__(
        self,
        store: Store,
        exporter: Exporter,
        reporter: ExportSettings,
        renderer: Any,
        progress: Progress,
    ) -> None:
        self.tally = ExportCounts()
        self.report = RowsReport(exporter.name, unit=_UNITS[reporter.form.takes])
        self._store = store
        self._exporter = exporter
        self._reporter = reporter
        self._renderer = renderer
        self._progress = progress
        self._fitter = Fitter(exporter.name, reporter.form, reporter.options, self.tally.changed)

    def write(self, folder: Path, source: StoreItems) -> None:
        """Write the data file and fill the report."""
        form, options = self._reporter.form, self._reporter.options
        path = folder / form.file
        path.parent.mkdir(parents=True, exist_ok=True)
        file = RowFile(path, self._exporter.schema(options), unique=form.unique, mix=form.mix)
        try:
            for item in source.items(self._progress):
                for fitted in self._fitted(item):
                    self._rows(fitted, file)
        finally:
            file.close()
        tally, report = self.tally, self.report
        if self._reporter.render is not None:
            check_ends(tally.changed, self._reporter.render)
        report.rows, report.in_rows, report.in_store = file.rows, tally.trained, source.count
        missing = source.count - tally.trained - sum(tally.left_out.values())
        if missing:
            raise AssertionError(f"{missing} {_word(report.unit)} are neither written nor counted")
        report.left_out = _sorted(tally.left_out)
        report.changed = _sorted(tally.changed)

    def _fitted(self, item: ExportItem) -> Iterable[ExportItem]:
        """An item as the format can carry it; several when it is expanded."""
        try:
            if item.pair is not None:
                pair = self._fitter.pair(item.pair)
                if isinstance(pair, str):
                    self.tally.left_out[pair] += 1
                    return []
                return [ExportItem(None, pair, item.trajectory)]
            if self._reporter.form.takes == "rollouts":
                return [replace(item, renderer=self._renderer)]
            assert item.chat is not None
            if self._reporter.form.takes == "prompts":
                return [replace(item, chat=self._fitter.written(item.chat))]
            chats = list(self._fitter.chats(item.chat))
        except UnfitError as error:
            if self._reporter.options.unfit == "refuse":
                raise UsageError(str(error)) from None
            self.tally.left_out[error.reason] += _steps(item.chat) if item.chat else 1
            return []
        return (ExportItem(chat, None, item.trajectory, self._tokens(chat)) for chat in chats)

    def _tokens(self, chat: Chat) -> Any:
        return None if self._renderer is None else self._renderer.chat(chat)

    def _rows(self, item: ExportItem, file: RowFile) -> None:
        """Write the rows of an item, and count what is in it."""
        asked = _steps(item.chat) if self._reporter.form.takes == "chats" else 1
        export_counts = ExportCounts()
        rows = list(self._exporter.rows(item, self._reporter.options, export_counts))
        try:
            fresh = file.add(rows)
        except UnwritableError as error:
            export_counts = ExportCounts(
                left_out=Counter({str(error): asked}), changed=export_counts.changed
            )
        else:
            if not fresh:
                export_counts.left_out["a repeat of an earlier row"] += asked
        lost = sum(export_counts.left_out.values())
        if lost > asked or (lost < asked and not rows):
            raise AssertionError(f"{self._exporter.name} lost count of what it left out")
        self.tally.left_out += export_counts.left_out
        self.tally.changed += export_counts.changed
        self.tally.trained += asked - lost

    def describe(self, folder: Path, command: str) -> None:
        """Write the other files: those of the exporter, and the record of the export."""
        report, options = self.report, self._reporter.options
        facts = {
            **asdict(report),
            "store": self._store.name,
            "file": self._reporter.form.file,
            "command": command,
        }
        texts = dict(self._exporter.files(options, facts))
        if README not in texts:
            raise AssertionError(f"{self._exporter.name} writes no {README}")
        for name, text in texts.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*"))
        report.files = {
            name: {"size": (folder / name).stat().st_size, "hash": digest_file(str(folder / name))}
            for name in names
        }
        render = self._reporter.render
        record = {
            **asdict(report),
            "store": self._store.name,
            "store_hash": digest(self._store.manifest.text().encode()),
            "options": options.model_dump(mode="json"),
            "render": None if render is None else render.model_dump(mode="json"),
            "template_hash": getattr(getattr(self._renderer, "template", None), "digest", None),
            "command": command,
            "versions": versions(*([] if self._renderer is None else ["transformers"])),
        }
        text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
        (folder / RECORD).write_text(text, encoding="utf-8")


def _steps(chat: Chat | None) -> int:
    assert chat is not None
    return len({chat.messages[index].step for index in chat.trained()})


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return {reason: count for reason, count in sorted(counts.items()) if count}
