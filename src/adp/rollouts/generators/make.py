"""Candidates of a generator are carried out, and those that went well become a store.

The streams of a generator take turns: the first candidate of each, then the second of each, and so
on until there are as many samples as were asked for. What is kept depends on that order alone, so
neither the number of workers nor a kill in between changes the store.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from adp.core.json_values import json_object
from adp.rollouts.collecting.counts import Episode, Streak
from adp.rollouts.collecting.output_store import is_sealed, together
from adp.rollouts.collecting.recorder import INFRASTRUCTURE
from adp.rollouts.collecting.threads import DaemonThreads
from adp.rollouts.evolving.run_facts import settle_facts
from adp.rollouts.generators.carry_out import KEY, DraftRunner, made_calls
from adp.rollouts.generators.drafts import Candidate, CandidateResult, Draft, Stream, key_of
from adp.rollouts.generators.failures_file import (
    FAILURES_FILE,
    add_failures,
    read_failures,
)
from adp.rollouts.generators.report import MakeReport, coverage_of
from adp.rollouts.turns import Tool
from adp.stores.locks import holding
from adp_schema.errors import EmptyResultError, SealedError
from adp_schema.growing import GrowingStore
from adp_schema.ids import digest
from adp_schema.model import Trajectory
from adp_schema.seal_store import seal
from adp_schema.store import Store

RUN_FILE = "make.json"

DUPLICATE = "duplicate"
UNREACHABLE = "unreachable"
SEALED = "sealed"
"""Reasons why a candidate is not kept; the next call tries those of `UNREACHABLE` again."""

Watch = Callable[[int], None]
"""Told how many samples are kept."""


@dataclass(frozen=True)
class MakeSettings:
    """What a run of a generator is told.

    Attributes:
        count: samples, at most; None: as many as the streams have.
        patience: candidates in a row that bring nothing new end a stream.
        concurrency: candidates that are carried out at once.
        max_failures: candidates in a row that broke for one reason stop the run.
        facts: what must not change while the store grows; JSON.
        without: finished stores whose samples are left out.
        seal: end the store.
    """

    count: int | None = None
    patience: int = 200
    concurrency: int = 16
    max_failures: int = 20
    facts: dict[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    seal: bool = True


@dataclass
class _Turns:
    """A stream that takes turns."""

    stream: Stream
    candidates: Iterator[Candidate]
    number: int = 0
    kept: int = 0
    misses: int = 0
    over: bool = False


def make_now(
    out: str | Path,
    streams: Sequence[Stream],
    runner: DraftRunner,
    tools: Sequence[Tool],
    settings: MakeSettings,
    *,
    watch: Watch | None = None,
    closing: Sequence[Any] = (),
) -> MakeReport:
    """Carry candidates out, and keep those that went well.

    Args:
        out: folder of the store; it is made, or gone on with.
        streams: the candidates.
        runner: carries them out.
        tools: the tools on offer, for the report.
        settings: everything else.
        watch: told how far it is.
        closing: policies to close at the end.

    Raises:
        OutputExistsError: the store was begun with other settings, or by something else.
        EmptyResultError: nothing could be kept.
        RolloutError: one candidate after the other broke for the same reason.
        StoreError: the store cannot be written.
    """

    async def call() -> MakeReport:
        asyncio.get_running_loop().set_default_executor(DaemonThreads("adp-tool"))
        try:
            return await _Run(Path(out), streams, runner, settings, watch).run(tools)
        finally:
            for policy in closing:
                await policy.close()

    with holding(out):
        return asyncio.run(call())


class _Run:
    """One call of `make_now`."""

    def __init__(
        self,
        root: Path,
        streams: Sequence[Stream],
        runner: DraftRunner,
        settings: MakeSettings,
        watch: Watch | None,
    ) -> None:
        self._root, self._runner, self._settings, self._watch = root, runner, settings, watch
        self._turns = [_Turns(stream, stream.candidates()) for stream in streams]
        self._report = MakeReport(settings.count)
        self._streak = Streak(
            settings.max_failures, settings.concurrency, "mend the cause, and run the same call"
        )
        self._keys: set[str] = set()
        for place in settings.without:
            self._keys.update(_members_of(Store.open(place)).values())

    async def run(self, tools: Sequence[Tool]) -> MakeReport:
        """Carry out what is missing, and end the store."""
        began, report, sealed = time.monotonic(), self._report, is_sealed(self._root)
        if not sealed:
            sealed = self._open()
        try:
            settle_facts(self._root, self._settings.facts, sealed=sealed, command="make",
                         file=RUN_FILE)  # fmt: skip
            self._held = _members_of(Store.open(str(self._root)))
            self._failed = read_failures(self._root)
            await self._all(sealed=sealed)
        finally:
            if not sealed:
                self._store.close()
        if not report.kept:
            raise EmptyResultError(
                f"no sample was kept of {report.tried:,} candidates ({_reasons(report)}); "
                f"{self._root} holds what was tried"
            )
        if self._settings.seal and not sealed:
            await asyncio.to_thread(seal, self._root)
        store = Store.open(str(self._root))
        report.tools = coverage_of(store, tools)
        branches = store.scan("trajectories").filter(pl.col("parent_id").is_not_null())
        report.failed_beside = branches.select(pl.len()).collect().item()
        report.sealed, report.seconds = is_sealed(self._root), time.monotonic() - began
        return report

    def _open(self) -> bool:
        """Open the store; whether it is sealed, such as one that was killed while it was."""
        self._store = GrowingStore(self._root)
        try:
            empty = not self._store.ids()
        except SealedError:
            self._store.close()
            seal(self._root)
            return True
        if empty:  # nothing is lost when it is begun anew, and with other settings
            for name in (RUN_FILE, FAILURES_FILE):
                (self._root / name).unlink(missing_ok=True)
        return False

    async def _all(self, *, sealed: bool) -> None:
        """Let the streams take turns until there is enough, or nothing more."""
        while not self._enough() and (live := [turns for turns in self._turns if not turns.over]):
            block = self._block(live)
            made = (
                [CandidateResult(reason=SEALED)] * len(block) if sealed else await self._made(block)
            )
            self._settle(block, made)
            if SEALED in self._report.failures:
                del self._report.failures[SEALED]
                self._report.notes.append(
                    f"{self._root} is sealed and takes no more; choose another -o for more samples"
                )
                return

    def _enough(self) -> bool:
        return self._settings.count is not None and self._report.kept >= self._settings.count

    def _block(self, live: list[_Turns]) -> list[tuple[_Turns, str, Candidate]]:
        """The next candidates, in order."""
        block = []
        for _ in range(max(1, 2 * self._settings.concurrency // len(live))):
            for turns in live:
                candidate = next(turns.candidates, None)
                if candidate is None:
                    turns.over = True
                    continue
                block.append((turns, f"{turns.stream.name}/{turns.number}", candidate))
                turns.number += 1
            live = [turns for turns in live if not turns.over]
        return block

    def _known(self, name: str) -> str | None:
        """Why a candidate is not kept, or an empty text when the store holds it; None: unknown."""
        return "" if name in self._held else self._failed.get(name)

    async def _made(self, block: list[tuple[_Turns, str, Candidate]]) -> list[CandidateResult]:
        """Carry out a block, several at once."""
        results: list[CandidateResult] = [CandidateResult()] * len(block)
        waiting = iter([i for i, (_, name, _) in enumerate(block) if self._known(name) is None])

        async def work() -> None:
            for index in waiting:
                _, name, candidate = block[index]
                if isinstance(candidate, Draft):
                    results[index] = await self._runner.run(candidate, name)
                else:
                    results[index] = await candidate(self._runner, name)

        await together(*(work() for _ in range(self._settings.concurrency)))
        return results

    def _settle(
        self, block: list[tuple[_Turns, str, Candidate]], made: list[CandidateResult]
    ) -> None:
        """Keep or count each, in order; those beyond the end of a stream are forgotten."""
        kept: list[Trajectory] = []
        failed: list[dict[str, Any]] = []
        ended = {id(turns): turns.over for turns, _, _ in block}
        for turns, name, result in zip(
            (part[0] for part in block), (part[1] for part in block), made, strict=True
        ):
            if self._enough() or self._is_over(turns):
                continue
            reason = self._known(name)
            if reason is None and result.reason == SEALED:
                self._report.failures[SEALED] += 1
                return
            if reason is None:
                reason = self._judged(result)
                if reason and reason != UNREACHABLE:
                    failed.append({"candidate": name, "reason": reason, **_failure_facts(result)})
                elif not reason and result.trajectory is not None:
                    kept.append(result.trajectory)
            else:
                self._report.kept_before += not reason
                self._keys.add(self._held.get(name, ""))
            self._count(turns, reason)
        for turns in {id(part[0]): part[0] for part in block}.values():
            turns.over = ended[id(turns)] or self._is_over(turns)
            if turns.misses >= self._settings.patience:
                self._report.exhausted.append(turns.stream.name)
        if kept:
            self._store.extend(kept)
        add_failures(self._root, failed)
        if self._watch is not None:
            self._watch(self._report.kept)

    def _is_over(self, turns: _Turns) -> bool:
        most = turns.stream.most
        return turns.misses >= self._settings.patience or (most is not None and turns.kept >= most)

    def _count(self, turns: _Turns, reason: str) -> None:
        self._report.tried += 1
        if reason:
            turns.misses += 1
            self._report.failures[reason] += 1
        else:
            turns.kept, turns.misses = turns.kept + 1, 0
            self._report.kept += 1

    def _judged(self, result: CandidateResult) -> str:
        """Why a new candidate is not kept; empty when it is."""
        broken = result.reason == UNREACHABLE or (result.reason or "").startswith("broken")
        kind = INFRASTRUCTURE if broken else None
        message = str(result.detail.get("said") or result.reason)
        self._streak.add(Episode("", kind, message, *[None] * (len(Episode._fields) - 3)))
        if result.reason is not None:
            return result.reason
        assert result.trajectory is not None
        key = json_object(result.trajectory.extra)[KEY]["key"]
        if key in self._keys:
            return DUPLICATE
        self._keys.add(key)
        return ""


def _failure_facts(result: CandidateResult) -> dict[str, Any]:
    """What is written down of a candidate that is not kept."""
    run = result.trajectory
    if run is None:
        return dict(result.detail)
    calls = [{"name": name, "arguments": arguments} for name, arguments in made_calls(run)]
    asked = run.task.instruction if run.task is not None else None
    return {"instruction": asked, "calls": calls, **result.detail}


def _members_of(store: Store) -> dict[str, str]:
    """Candidates that a store holds, and their keys.

    Samples of other origin have a key, too: it is made of their instruction and calls.
    """
    keys: dict[str, str] = {}
    frame = store.scan("trajectories").filter(pl.col("parent_id").is_null())
    for name, extra in frame.select("trajectory_id", "extra").collect().iter_rows():
        members = json_object(extra).get(KEY)
        if isinstance(members, dict) and isinstance(members.get("key"), str):
            keys[f"{members.get('stream')}/{members.get('candidate')}"] = members["key"]
        else:
            run = store.get(name, exact=True)
            asked = run.task.instruction if run.task is not None else None
            keys[str(name)] = key_of(asked or "", made_calls(run))
    return keys


def _reasons(report: MakeReport) -> str:
    listed = (f"{reason}: {count:,}" for reason, count in report.failures.most_common())
    return ", ".join(listed) or "there is none"


def facts_hash(value: Any) -> str:
    """A hash of something that must not change."""
    return digest(repr(value).encode("utf-8", "surrogatepass"))
