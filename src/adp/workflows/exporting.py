"""What `adp export` and a stage of a loop are told and do: formats, and trainers' files."""

from __future__ import annotations

import json
from typing import Literal

from pydantic import Field

from adp.converters.export import ExportReport
from adp.converters.export import export as write
from adp.converters.registry import formats
from adp.core.code_files import unknown_item
from adp.core.input_files import read_text
from adp.core.options import OptionsModel
from adp.core.progress import Progress
from adp.trainers.export.registry import exporters, is_exporter
from adp.trainers.export.run import RowsReport, export_rows
from adp_schema.errors import UsageError
from adp_schema.store import Store


class ExportOptions(OptionsModel):
    """Options of `adp export`, by their names on the command line."""

    to: str
    """Format or exporter; see: adp formats."""
    model: str | None = None
    """Trainers: whose tokens; a folder, a name on the Hub, or tiny."""
    settings: tuple[str, ...] = Field(default=(), alias="set")
    """Trainers: options, each NAME=VALUE."""
    system_prompt: str | None = None
    """Agent harnesses: a text file with the system prompt."""
    tool_names: Literal["adp", "source"] | None = None
    """Names of tools: adp or source."""
    structured: bool = False
    """Write calls that stood in texts as calls."""
    branches: tuple[str, ...] = ()
    """Trainers: kinds of branches to write too, or all. Formats: rows."""
    no_branches: bool = False
    """Leave all branches out, which is then no loss."""
    flavour: str | None = None
    """Way to write the format."""
    single: str | None = None
    """Write all into one file of this name."""
    strict: bool = False
    """Stop when something would be lost."""

    def check(self) -> None:
        """Check that the options go together.

        Raises:
            UsageError: one is for another format, or the format is not known.
        """
        if self.no_branches and self.branches:
            raise UsageError("--branches and --no-branches exclude each other")
        to = self.to
        if is_exporter(to):
            if self.flavour is not None or self.single is not None or self.structured:
                words = "--flavour, --single and --structured"
                raise UsageError(f"{to} is for a trainer; leave out {words}")
            return
        if ":" not in to and to not in formats:
            raise UsageError(unknown_item("format or exporter", to, [*formats, *exporters]))
        if self.model is not None or self.settings or self.system_prompt is not None:
            words = "--model, --set and --system-prompt"
            raise UsageError(f"{to} is for no trainer; leave out {words}")
        if self.branches and self.branches != ("rows",):
            raise UsageError(f"{to} is for no trainer, where --branches takes the word rows alone")


def export_store(
    store: Store, out: str, options: ExportOptions, progress: Progress | None = None
) -> ExportReport | RowsReport:
    """Write a store in another format, or as the file of a trainer.

    Args:
        store: the store.
        out: folder for the files.
        options: how.
        progress: told how far it is.

    Raises:
        UsageError: options do not go together, or a format or an option is not known.
        ConversionLossError: ``strict``, and something would be lost.
    """
    options.check()
    if is_exporter(options.to):
        given = [*options.settings]
        if options.system_prompt is not None:
            given.append(f"system_prompt={json.dumps(read_text(options.system_prompt))}")
        if options.tool_names:
            given.append(f"tool_names={options.tool_names}")
        return export_rows(
            *(store, options.to, out, given),
            model=options.model,
            branches=list(options.branches),
            progress=progress,
            strict=options.strict,
        )
    return write(
        store, options.to, out, flavour=options.flavour, single=options.single,
        strict=options.strict,
        branches=True if options.branches else False if options.no_branches else None,
        tool_names=options.tool_names, structured=options.structured, progress=progress,
    )  # fmt: skip
