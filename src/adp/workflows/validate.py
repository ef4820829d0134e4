"""Checking a store, or files that are converted for it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adp.converters.run import ConvertOptions, convert
from adp.core.progress import Progress
from adp.stores.checks.model import SEVERITIES, CheckResult
from adp.stores.checks.run import EXAMPLES, chosen, run_checks
from adp_schema import location
from adp_schema.errors import UsageError
from adp_schema.growing import GROWING
from adp_schema.manifest import MANIFEST, Counts, Manifest
from adp_schema.scratch import ScratchFolder
from adp_schema.store import Store
from adp_schema.verification import sentence


@dataclass
class ValidationReport:
    """What the checks found.

    Attributes:
        sources: what was checked, as it was named.
        converted: whether it was converted for the checks.
        manifest: manifest of the store.
        results: one result a check, in the order of the registry.
        not_run: checks that were left out, because the files of the store are damaged.
        damaged: what is wrong with the files of the store, as a sentence; None when nothing is.
    """

    sources: list[str]
    converted: bool
    manifest: Manifest
    results: list[CheckResult] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)
    damaged: str | None = None

    @property
    def counts(self) -> Counts:
        """What became of the records of the source."""
        return self.manifest.counts

    def failed(self, severity: str | None = None) -> list[CheckResult]:
        """The checks that found something, the worst first.

        Args:
            severity: one of ``error``, ``warning``, ``note``; None means all.
        """
        rank = {name: number for number, name in enumerate(SEVERITIES)}
        hits = [
            result
            for result in self.results
            if result.findings and severity in (None, result.check.severity)
        ]
        return sorted(hits, key=lambda result: rank[result.check.severity])

    def fails(self, severity: str) -> list[CheckResult]:
        """The checks of a severity or a worse one that found something."""
        worse = SEVERITIES[: SEVERITIES.index(severity) + 1]
        return [result for result in self.failed() if result.check.severity in worse]

    def as_json(self) -> dict[str, Any]:
        """The report for programs: every check that was run, also those without findings."""
        return {
            "sources": self.sources,
            "converted": self.converted,
            "counts": self.counts.model_dump(),
            "findings": {
                severity: sum(result.findings for result in self.failed(severity))
                for severity in SEVERITIES
            },
            "checks": [result.as_json() for result in self.results],
            "not_run": self.not_run,
        }


def validate(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    checks: Sequence[str] = (),
    examples: int = EXAMPLES,
    verify: bool = False,
    options: ConvertOptions | None = None,
    progress: Progress | None = None,
) -> ValidationReport:
    """Run checks over a store, or over files and folders, which are converted for it.

    Args:
        sources: a store (its path or URL), or files and folders of a known format.
        checks: names of the checks; none means all.
        examples: how many examples to keep of each.
        verify: hash the files of a store again.
        options: how to convert what is no store.
        progress: told how far the conversion is.

    Raises:
        UsageError: a check is unknown, or a store is named together with something else.
        InputError: a source is missing, or of no known format.
        StoreError: the store's manifest is damaged.
    """
    chosen(checks)  # a wrong name is told before a long conversion
    several = [sources] if isinstance(sources, str | os.PathLike) else sources
    paths = [os.fspath(source) for source in several]
    stores = [path for path in paths if _is_store(path)]
    if stores and len(paths) > 1:
        raise UsageError(f"{stores[0]} is a store: check stores one at a time, and without files")
    if stores:
        return _checked(Store.open(paths[0], check=False), paths, checks, examples, verify=verify)
    with ScratchFolder("validate") as folder:
        out = os.path.join(folder, "store")  # noqa: PTH118
        convert(paths, out, options=options, progress=progress)
        report = _checked(Store.open(out), paths, checks, examples, verify=False)
    report.converted = True
    return report


def _is_store(path: str) -> bool:
    """Whether a path is to be opened as a store; of a URL nothing else can be made."""
    if location.is_url(path):
        return True
    folder = Path(path)
    if (folder / "store" / MANIFEST).exists() and (folder / "croissant.json").exists():
        return True  # a publication
    return any((folder / name).exists() for name in (MANIFEST, GROWING))


def _checked(
    store: Store, paths: list[str], checks: Sequence[str], examples: int, *, verify: bool
) -> ValidationReport:
    results, not_run = run_checks(store, checks, examples=examples, verify=verify)
    wrong = store.damage(every_byte=True if verify else None)
    damaged = sentence(store.root, wrong) if wrong else None
    return ValidationReport(paths, False, store.manifest, results, not_run, damaged)
