"""The stage ``convert``: `adp convert`, such as of traces from elsewhere that are mixed in."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from adp.converters.run import ConvertOptions, convert
from adp.core.options import OptionsModel
from adp.workflows.loop.hashes import store_hash
from adp.workflows.loop.stage_kind import StageContext, StageFacts, StageKind
from adp_schema.manifest import MANIFEST
from adp_schema.store import Store


class ConvertStage(OptionsModel):
    """Options of a stage ``convert``: those of the command."""

    sources: tuple[str, ...] = Field(min_length=1)
    """Files, folders or patterns; or a data set on the Hub, hf://datasets/OWNER/NAME."""
    format: str | None = Field(default=None, alias="from")
    """Format of the input; null recognises it."""
    workers: int | None = Field(default=None, ge=1)
    """Processes; null: one a core."""
    strict: bool = False
    """Stop at the first reject or loss."""
    keep_raw: bool = False
    """Keep the raw records in the store as well."""
    dataset: str | None = None
    """Name of the data set."""
    license: str | None = None
    """License of the content."""
    follow_links: bool = False
    """Read what links lead to, outside of the sources as well."""
    dialect: str | None = None
    """Grammar of the actions in texts, or none."""
    tool_names: Literal["adp", "source"] = "source"
    """Names of tools: adp or source."""
    recipe: tuple[str, ...] = ()
    """Files that describe data sets."""


def _run(options: ConvertStage, context: StageContext, out: Path) -> None:
    if (out / MANIFEST).exists() and not (out / ".run").exists():
        return  # a call before was killed when all was written
    sources = [_source(text, context) for text in options.sources]
    how = ConvertOptions(
        options.format,
        options.workers,
        options.strict,
        options.keep_raw,
        options.dataset,
        options.license,
        follow_links=options.follow_links,
        dialect=options.dialect,
        recipes=tuple(context.given_path(name) for name in options.recipe),
        tool_names=options.tool_names,
    )
    convert(sources, str(out), options=how, progress=context.progress)


def _source(text: str, context: StageContext) -> str:
    """A source; a pattern stands beside the file of the loop, as a file does."""
    if any(sign in text for sign in "*?[") and "://" not in text and not text.startswith("/"):
        return str(context.here / text)
    return context.given_path(text)


def _facts(options: ConvertStage, folder: Path) -> StageFacts:
    counts = Store.open(str(folder)).manifest.counts
    line = f"{counts.trajectories:,} trajectories, {counts.rejected:,} rejected"
    rows = {"trajectories": counts.trajectories, "rejected": counts.rejected}
    return StageFacts(store_hash(folder), rows, line=line)


KIND = StageKind(
    name="convert",
    about="Files in any format become a store.",
    options=ConvertStage,
    run=_run,
    facts=_facts,
    free=frozenset({"workers"}),
)
