"""Thoughts and answers of a model for a store of M3's ground truth."""

from __future__ import annotations

import asyncio
import copy
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from adp.converters.m3 import CONVERTER
from adp.converters.m3.gold_write import was_gold
from adp.core.progress import Progress, Silent
from adp.rollouts.background import run_in_background
from adp.rollouts.environments.m3_scenario import RETRIEVE
from adp.rollouts.judging.judge import Judge, JudgeQuestion, check_called
from adp.workflows.m3_data.folder import check_output, write_store
from adp.workflows.m3_data.questions import CUTOFF, Hop, answer_question, thoughts_question
from adp.workflows.m3_data.raw import LeftOutError, value_at
from adp.workflows.m3_data.report import M3DataReport
from adp.workflows.m3_data.turns import length_of
from adp_schema import jsontext
from adp_schema.errors import EmptyResultError, RolloutError
from adp_schema.losses import Losses
from adp_schema.model import Trajectory
from adp_schema.store import Store

_NO_ANSWER = "no answer"
_RETRIEVER: Mapping[str, Any] = {"name": RETRIEVE, "description": "Finds documents."}


@dataclass(frozen=True)
class ThoughtsOptions:
    """How thoughts are asked for.

    Attributes:
        cutoff: lowest and highest number of items of a list that an answer names; each sample
            draws its own.
        longest: samples with a longer list at the end of a turn are left out.
        seed: draws the numbers.
        concurrency: samples that are worked on at once.
        max_failures: samples in a row without an answer stop the run.
        dataset: name of the data set; None takes it from the store.
    """

    cutoff: tuple[int, int] = (5, 10)
    longest: int = 1024
    seed: int = 0
    concurrency: int = 8
    max_failures: int = 20
    dataset: str | None = None


@dataclass
class _Sample:
    """A sample of the store, and what became of it."""

    file: str
    number: int
    record: Any
    error: LeftOutError | None = None
    lengths: list[int] = field(default_factory=list)


def make_thoughts(
    store: str,
    judge: Judge,
    out: str,
    options: ThoughtsOptions,
    *,
    progress: Progress | None = None,
) -> M3DataReport:
    """Ask a model for the thoughts and answers of ground truth, and write it with them.

    Args:
        store: a store of ground truth, with or without thoughts.
        judge: one model, with its cache; what it answered once is not asked again.
        out: folder of the new store.
        options: everything else.
        progress: told how far it is, in samples.

    Raises:
        EmptyResultError: there is no ground truth, or nothing is left of it.
        OutputExistsError: the output holds something.
        RolloutError: the model cannot be reached.
        UsageError: the model cannot be called like this.
    """
    check_output(out)
    samples = list(_samples(Store.open(store)))
    if not samples:
        raise EmptyResultError(f"{store} has no trajectory; adp make m3-turns makes ground truth")
    watch = progress or Silent()
    watch.total(len(samples))
    try:
        run_in_background(_Run(judge, options, watch).run(samples))
    finally:
        judge.close()
    report, records = M3DataReport(), {sample.file: list[Any]() for sample in samples}
    for sample in samples:
        report.total[sample.file] += 1
        if sample.error is not None:
            report.leave_out(sample.file, sample.number, sample.record, sample.error)
        else:
            records[sample.file].append(sample.record)
            report.keep(sample.file, sample.record, sample.lengths)
    costs = judge.costs[judge.panel[0].name]
    report.costs = costs.words
    report.tokens_in, report.tokens_out = costs.tokens_in, costs.tokens_out
    report.cost_usd = costs.cost_usd
    write_store(out, records, report, dataset=options.dataset)
    return report


def _samples(store: Store) -> Iterator[_Sample]:
    """The samples of a store, in their order."""
    for run in store.trajectories(resolve=True):
        if run.branch_kind is not None:
            continue
        path = PurePosixPath(run.source_file or "samples")
        parts = [part for part in path.parts if part not in ("/", "..", ".")]
        file = str(PurePosixPath(*parts).with_suffix(".json"))
        number = run.source_records[0] if run.source_records else (run.seq or 0) + 1
        yield _sample(run, file, number)


def _sample(run: Trajectory, file: str, number: int) -> _Sample:
    if not was_gold(run):
        error = LeftOutError("no ground truth of M3", dropped=True)
        return _Sample(file, number, {"sample_id": run.task_id}, error)
    record = json.loads(jsontext.encode(CONVERTER.write(run, Losses())))
    return _Sample(file, number, record)


class _Run:
    """One call of `make_thoughts`."""

    def __init__(self, judge: Judge, options: ThoughtsOptions, watch: Progress) -> None:
        self._judge, self._options, self._watch = judge, options, watch
        self._free = asyncio.Semaphore(options.concurrency)
        self._failed = 0

    async def run(self, samples: Sequence[_Sample]) -> None:
        """Work on all samples; the first error that stops a run ends them all."""
        work = [asyncio.ensure_future(self._sample(sample)) for sample in samples]
        try:
            await asyncio.gather(*work)
        finally:
            for task in work:
                task.cancel()

    async def _sample(self, sample: _Sample) -> None:
        async with self._free:
            if sample.error is None:
                try:
                    sample.record, sample.lengths = await self._with_thoughts(sample.record)
                    self._failed = 0
                except LeftOutError as error:
                    sample.error = error
                    self._count(error)
            self._watch.advance(1)

    def _count(self, error: LeftOutError) -> None:
        self._failed = self._failed + 1 if error.reason.startswith(_NO_ANSWER) else 0
        if self._failed >= self._options.max_failures:
            raise RolloutError(
                f"{self._failed} samples in a row got {error.reason}; what was answered is kept: "
                "mend the cause, and give the same command again"
            )

    async def _with_thoughts(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[int]]:
        """A record with thoughts and answers, and the lengths of its raw answers."""
        record = copy.deepcopy(dict(given))
        turns = value_at(record, "trajectory", "$", list)
        if not turns:
            raise LeftOutError("no reference run", "$.trajectory", dropped=True)
        k = self.cutoff_of(str(record.get("sample_id")))
        cutoff = CUTOFF.format(k=k)
        earlier: list[tuple[str, Any]] = []
        facts, lengths = [], []
        for n, items in enumerate(turns):
            path = f"$.trajectory[{n}]"
            query, hops, raw = _parts(items, record.get("tools"), path)
            length = length_of(raw)
            if length > self._options.longest:
                raise LeftOutError("a list that is too long", path, dropped=True)
            thoughts = await self._thoughts(earlier, query, hops, path)
            question = answer_question(query, hops, thoughts, cutoff if length > k else None)
            thought, answer = await self._asked(question, "an answer", path)
            for item, text in zip((i for i in items if "output" in i), thoughts, strict=True):
                item["plan"] = text
            items[-1] = {"plan": thought, "answer": answer, "raw_answer": json.dumps(raw)}
            facts.append(
                {
                    "query": query,
                    "answer": answer,
                    "raw_answer": json.dumps(raw),
                    "was_raw_answer_truncated": length > k,
                }
            )
            earlier.append((query, raw))
            lengths.append(length)
        record.setdefault("tool_availability_policy", "both_api_rag")
        record.setdefault("tool_usage_policy", "")
        more = {"resp_cutoff_thresh": k, "resp_cutoff_inst": cutoff, "turns": facts}
        return {**record, **more}, lengths

    def cutoff_of(self, sample_id: str) -> int:
        """Items of a list that the answers of a sample name."""
        draw = random.Random(f"m3/cutoff/{self._options.seed}/{sample_id}")
        return draw.randint(*self._options.cutoff)

    async def _thoughts(
        self, earlier: Sequence[tuple[str, Any]], query: str, hops: Sequence[Hop], path: str
    ) -> list[str]:
        if not hops:
            return []
        result = await self._asked(thoughts_question(earlier, query, hops), "thoughts", path)
        return [str(text) for text in result]

    async def _asked(self, question: JudgeQuestion, what: str, path: str) -> Any:
        (judgement,) = await self._judge.judgements(question)
        check_called(self._judge, [judgement])
        if judgement.label is None:
            reason = judgement.reason or ""
            unread = not reason.startswith(_NO_ANSWER)
            text = judgement.text if unread else None
            raise LeftOutError(f"{what} that cannot be read" if unread else reason, path, text=text)
        return json.loads(judgement.label)


def _parts(items: Any, tools: Any, path: str) -> tuple[str, list[Hop], Any]:
    """Query, calls and raw answer of a turn."""
    if not isinstance(items, list) or len(items) < 2 or len(items) % 2:
        raise LeftOutError("a turn that is no query, calls with responses, and answer", path)
    query = value_at(items[0], "input", f"{path}[0]", str)
    hops = [
        _hop(items[n], items[n + 1], tools, f"{path}[{n}]") for n in range(1, len(items) - 1, 2)
    ]
    last = f"{path}[{len(items) - 1}]"
    raw = value_at(items[-1], "answer", last)
    if isinstance(items[-1].get("raw_answer"), str):
        try:
            raw = json.loads(items[-1]["raw_answer"])
        except (ValueError, RecursionError):
            raise LeftOutError("raw_answer is no JSON", f"{last}.raw_answer") from None
    return query, hops, raw


def _hop(item: Any, response: Any, tools: Any, path: str) -> Hop:
    call = value_at(item, "output", path, dict)
    name = value_at(call, "name", f"{path}.output", str)
    listed = [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    tool = next((tool for tool in listed if tool.get("name") == name), None)
    if tool is None and name == RETRIEVE:
        tool = dict(_RETRIEVER)
    if tool is None:
        raise LeftOutError("a call of a tool that is not on offer", f"{path}.output.name")
    value = value_at(response, "response", f"{path} + 1")
    return Hop(str(item.get("question") or ""), tool, call, value)
