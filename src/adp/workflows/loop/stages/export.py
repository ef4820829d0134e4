"""The stage ``export``: `adp export` of a store, such as the file for another trainer."""

from __future__ import annotations

import shutil
from pathlib import Path

from adp.workflows.exporting import ExportOptions, export_store
from adp.workflows.loop.hashes import combined
from adp.workflows.loop.stage_kind import StageContext, StageFacts, StageKind
from adp_schema.ids import digest_file
from adp_schema.store import Store


class ExportStage(ExportOptions):
    """Options of a stage ``export``: those of the command."""

    store: str
    """The store that is written out."""


def _check(options: ExportStage, context: StageContext) -> None:
    options.check()


def _run(options: ExportStage, context: StageContext, out: Path) -> None:
    if out.exists():
        return  # it appears when it is whole
    store = Store.open(context.given_path(options.store))
    changes = {}
    if options.system_prompt is not None:
        changes["system_prompt"] = context.given_path(options.system_prompt)
    part = out.with_name(f"{out.name}-part")
    shutil.rmtree(part, ignore_errors=True)
    export_store(store, str(part), options.model_copy(update=changes), context.progress)
    part.rename(out)


def _facts(options: ExportStage, folder: Path) -> StageFacts:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    hashes = {str(path.relative_to(folder)): digest_file(str(path)) for path in files}
    return StageFacts(combined(hashes), {"files": len(files)}, line=f"{len(files):,} files")


KIND = StageKind(
    name="export",
    about="A store is written in another format, or as the file of a trainer.",
    options=ExportStage,
    run=_run,
    facts=_facts,
    check=_check,
)
