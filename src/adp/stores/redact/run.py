"""Scanning a store, and writing a new one without what was found."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from adp.core.progress import Progress, Silent
from adp.stores import shards
from adp.stores.locks import alone
from adp.stores.redact import ids
from adp.stores.redact.cells import Cleaner
from adp.stores.redact.finder import ValueFinder
from adp.stores.redact.findings import Findings
from adp.stores.redact.options import DEFAULT_KINDS, RedactOptions
from adp.stores.redact.rules import SET_VERSION
from adp.stores.redact.shard import RedactJob, redact_shard
from adp.stores.remote_output import writes_to_urls
from adp.stores.stage import run_stage
from adp.stores.staged import StagedRun, WrittenShard, tables_of, versions
from adp_schema.ids import digest
from adp_schema.manifest import Lineage, Manifest
from adp_schema.store import Store

_PACKAGES = ("phonenumbers", "polars", "python-stdnum")


def scan(
    store: Store, options: RedactOptions | None = None, progress: Progress | None = None
) -> Findings:
    """Look for secrets and personal data in a store; nothing is written.

    Args:
        store: a finished store.
        options: what to look for.
        progress: told how far it is, in bytes.

    Returns:
        What `redact` with the same options would replace.

    Raises:
        UsageError: the options name a kind that there is not.
    """
    options = options or RedactOptions()
    search = _Search(store, options)
    jobs = search.jobs(None)
    written = run_stage(jobs, redact_shard, options.workers, progress or Silent())
    return search.add_up(written)[0]


@writes_to_urls
@alone
def redact(
    store: Store,
    out: str,
    options: RedactOptions | None = None,
    progress: Progress | None = None,
) -> Manifest:
    """Write a new store with placeholders for secrets and personal data.

    A stopped run goes on when it is called again. What was found is counted in the last entry of
    the new store's lineage.

    Args:
        store: a finished store.
        out: folder of the new store; it must not hold anything else.
        options: what to look for.
        progress: told how far it is, in bytes.

    Raises:
        UsageError: the options name a kind that there is not.
        OutputExistsError: the output holds a store, or something that is none.
    """
    options = options or RedactOptions()
    act = Lineage(
        act="redact",
        options={"kinds": list(options.kinds or DEFAULT_KINDS), "rules": SET_VERSION},
        versions=versions(*_PACKAGES),
        parents=[shards.manifest_hash(store)],
    )
    if options.given:
        given = [[rule.kind, rule.pattern] for rule in options.given]
        act.options["given"] = digest(str(given).encode())
    # The fingerprint depends on who runs it, and goes with the scratch files.
    run = StagedRun(out, {**act.model_dump(), "rules": options.fingerprint()}, options.workers)
    if run.finished is not None:
        return run.finished
    search = _Search(store, options)
    jobs = search.jobs(str(run.folder))
    written = run.shards(jobs, redact_shard, WrittenShard.parse, progress or Silent())
    findings, manifest, sources = search.add_up(written)
    manifest.tables = tables_of(written)
    manifest.tables["sources"] = run.sources(sources)
    act.options["found"] = dict(sorted(findings.by_kind.items()))
    manifest.lineage.append(act)
    run.finish(manifest)
    return manifest


def findings_of(manifest: Manifest) -> Findings:
    """What a redaction replaced, as its lineage counts it; without places."""
    options = manifest.lineage[-1].options
    return Findings(by_kind=Counter(options["found"]))


class _Search:
    """What is looked for in a store, and what was found in all of it."""

    def __init__(self, store: Store, options: RedactOptions) -> None:
        self._store = store
        self._options = options
        self._rules = options.rules()
        self._changes = ids.plan(store, ValueFinder(self._rules))

    def jobs(self, out: str | None) -> list[RedactJob]:
        """One job a shard."""
        return [
            RedactJob(
                index=index,
                size=size,
                out=out,
                files=files,
                renamed=self._store.renamed,
                rules=self._rules,
                ids=self._changes,
                places=self._options.places,
            )
            for index, (files, size) in enumerate(shards.shard_files(self._store))
        ]

    def add_up(self, written: list[WrittenShard]) -> tuple[Findings, Manifest, pa.Table]:
        """Findings of shards, of the table of input files and of the manifest; these, cleaned."""
        places = self._options.places
        findings = Findings(kinds=self._options.kinds_wanted())
        for shard in written:
            findings.add(Findings.parse(shard.facts["findings"]), places)
        rest = Findings()
        cleaner = Cleaner(self._rules, self._changes, rest, places)
        sources = cleaner.columns("sources", shards.source_rows(self._store))
        manifest = _manifest(self._store.manifest, cleaner, rest, places)
        findings.add(rest, places)
        findings.choose(places, list(dict.fromkeys(rule.kind for rule in self._rules)))
        return findings, manifest, sources


def _manifest(known: Manifest, cleaner: Cleaner, findings: Findings, places: int) -> Manifest:
    """The manifest without values and without tables."""

    def clean(value: Any, path: str) -> Any:
        if isinstance(value, str):
            cleaned = cleaner.finder.text(value)
            for item in cleaned.values if cleaned else ():
                findings.note("manifest", (None, path), item, places)
            return cleaned.text if cleaned else value
        if isinstance(value, dict):
            return {clean(key, path): clean(result, path) for key, result in value.items()}
        if isinstance(value, list):
            return [clean(entry, path) for entry in value]
        return value

    def counted(counts: dict[str, int], path: str) -> dict[str, int]:
        out: Counter[str] = Counter()
        for name, count in counts.items():
            out[clean(name, path)] += count
        return dict(sorted(out.items()))

    lineage = [
        act.model_copy(update={"options": clean(act.options, "adp.json lineage")})
        for act in known.lineage
    ]
    return Manifest(
        counts=known.counts.model_copy(),
        datasets=counted(known.datasets, "adp.json datasets"),
        reasons=counted(known.reasons, "adp.json reasons"),
        losses=counted(known.losses, "adp.json losses"),
        lineage=lineage,
    )
