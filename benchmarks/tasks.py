"""What the benchmarks run in processes of their own: ``python tasks.py TASK '{"a": 1}'``.

Each task prints one line of JSON. ``work`` in it says the wall and CPU seconds without the
imports, and the processes that it started included.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

GROUP_BYTES = 32 << 20


def cpu_seconds() -> float:
    """User and system seconds of this process and of those that it waited for."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, kinds))


def family_seconds() -> float:
    """The same, with the processes that are at work now."""
    import psutil

    total = cpu_seconds()
    for child in psutil.Process().children(recursive=True):
        try:
            times = child.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system
    return total


def load_arrow() -> None:
    """Load what pyarrow loads at its first array (pandas, where it is installed)."""
    import pyarrow as pa

    pa.array([None])


@contextmanager
def work(answer: dict[str, Any]) -> Iterator[None]:
    """Measure the block and put the result into the answer."""
    wall, cpu = time.perf_counter(), cpu_seconds()
    yield
    answer["work"] = {"wall": time.perf_counter() - wall, "cpu": cpu_seconds() - cpu}


class Stopwatch:
    """CPU seconds by part. Parts may nest; each second counts for the innermost one."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._open: list[str] = ["rest"]
        self._last = time.process_time()

    def _charge(self) -> None:
        now = time.process_time()
        part = self._open[-1]
        self.seconds[part] = self.seconds.get(part, 0.0) + now - self._last
        self._last = now

    def call(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, timed."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            self._charge()
            self._open.append(part)
            try:
                return function(*args, **kwargs)
            finally:
                self._charge()
                self._open.pop()

        return timed

    def iterate(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """A generator function, timed at each step."""

        def timed(*args: Any, **kwargs: Any) -> Iterator[Any]:
            step = self.call(part, lambda items: next(items, None))
            items = function(*args, **kwargs)
            while (item := step(items)) is not None:
                yield item

        return timed

    def result(self) -> dict[str, float]:
        """Seconds by part, the biggest first."""
        self._charge()
        return dict(sorted(self.seconds.items(), key=lambda item: -item[1]))


# ---- conversion ----------------------------------------------------------------------------------


def convert(source: str, out: str, workers: int, name: str = "openai_chat") -> dict[str, Any]:
    """Our conversion, with provenance, hashes and the report of losses."""
    from adp.converters.run import ConvertOptions
    from adp.converters.run import convert as run

    answer: dict[str, Any] = {}
    with work(answer):
        options = ConvertOptions(format=name, workers=workers)
        manifest = run([source], out, options=options)
    size = sum(shard.size for shards in manifest.tables.values() for shard in shards)
    rows = {table: manifest.rows(table) for table in manifest.tables}
    return answer | {
        "counts": manifest.counts.model_dump(),
        "rows": rows,
        "losses": sum(manifest.losses.values()),
        "megabytes": size / 1e6,
    }


def convert_parts(source: str, out: str) -> dict[str, Any]:
    """Our conversion by one process, with CPU seconds by part."""
    from adp.converters import framing, run, shard
    from adp.converters.registry import formats
    from adp_schema import jsontext
    from adp_schema.builder import RowBuilder
    from adp_schema.writer import ShardWriter

    watch = Stopwatch()
    patches: list[tuple[Any, str, str]] = [
        (shard, "digest", "hash of the records"),
        (jsontext, "is_valid", "check that it is JSON"),
        (type(formats.get("openai_chat")), "read", "decode and map"),
        (RowBuilder, "tables", "Arrow tables"),
        (ShardWriter, "write", "Parquet"),
        (ShardWriter, "close", "Parquet"),
        (shard, "place", "hash of the files"),
    ]
    rows = ("begin", "trajectory", "step", "call", "observation", "finish", "close_record")
    patches += [(RowBuilder, name, "rows") for name in rows]
    for owner, name, part in patches:
        if hasattr(owner, name):
            setattr(owner, name, watch.call(part, getattr(owner, name)))
    framing.frames = watch.iterate("cut into records", framing.frames)
    run.convert([source], out, options=run.ConvertOptions(format="openai_chat", workers=1))
    return {"parts": watch.result()}


def load_dataset(source: str, out: str) -> dict[str, Any]:
    """The baseline: the JSON reader of ``datasets``, written as Parquet."""
    import datasets

    datasets.disable_progress_bars()
    answer: dict[str, Any] = {}
    folder = Path(out)
    with work(answer):
        data = datasets.load_dataset(
            "json", data_files=source, cache_dir=str(folder / "cache"), split="train"
        )
        data.to_parquet(str(folder / "out.parquet"))
    megabytes = (folder / "out.parquet").stat().st_size / 1e6
    return answer | {"rows": len(data), "megabytes": megabytes}


BARE_COLUMNS = ("id", "step", "role", "text", "reasoning", "call_id", "name", "arguments")


def _add_bare(record: dict[str, Any], columns: list[list[Any]], dumps: Any) -> None:
    """Append a record's messages to the columns, one row a call."""

    def as_text(value: Any) -> str | None:
        return value if value is None or isinstance(value, str) else dumps(value).decode()

    for step, message in enumerate(record["messages"]):
        for call in message.get("tool_calls") or ({},):
            function = call.get("function", {})
            row = (
                record["id"],
                step,
                message["role"],
                as_text(message.get("content")),
                message.get("reasoning_content"),
                call.get("id"),
                function.get("name"),
                as_text(function.get("arguments")),
            )
            for column, value in zip(columns, row, strict=True):
                column.append(value)


def bare_loop(source: str, out: str, parts: bool = False) -> dict[str, Any]:
    """The least that a conversion must do: decode, columns, Parquet. No provenance, no checks."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        from orjson import dumps, loads

        decoder = "orjson"
    except ImportError:
        from msgspec.json import decode as loads
        from msgspec.json import encode as dumps

        decoder = "msgspec"
    load_arrow()
    schema = pa.schema([(n, pa.int32() if n == "step" else pa.string()) for n in BARE_COLUMNS])
    watch = Stopwatch()
    answer: dict[str, Any] = {"decoder": decoder}

    def timed(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        return watch.call(part, function) if parts else function

    loads, add = timed("decode and map", loads), timed("rows", _add_bare)
    make_table = timed("Arrow tables", lambda columns: pa.table(columns, schema=schema))
    path = Path(out) / "flat.parquet"
    with work(answer), Path(source).open("rb") as file:
        writer = pq.ParquetWriter(path, schema, compression="zstd", compression_level=3)
        write = timed("Parquet", writer.write_table)
        columns: list[list[Any]] = [[] for _ in BARE_COLUMNS]
        size = 0
        for line in watch.iterate("cut into records", iter)(file) if parts else file:
            add(loads(line), columns, dumps)
            size += len(line)
            if size >= GROUP_BYTES:
                write(make_table(columns))
                columns, size = [[] for _ in BARE_COLUMNS], 0
        write(make_table(columns))
        timed("Parquet", writer.close)()
    answer["megabytes"] = path.stat().st_size / 1e6
    return answer | ({"parts": watch.result()} if parts else {})


# ---- streaming -----------------------------------------------------------------------------------


def stream(store: str) -> dict[str, Any]:
    """Go through all trajectories; memory after 10, 50 and 100 % of them."""
    import psutil

    from adp_schema.store import Store

    opened = Store.open(store)
    total = opened.manifest.rows("trajectories")
    marks = {max(1, total * share // 100): share for share in (10, 50, 100)}
    process = psutil.Process()
    memory: dict[str, Any] = {}
    answer: dict[str, Any] = {}
    steps = calls = observations = count = 0
    with work(answer):
        for trajectory in opened.trajectories():
            count += 1
            steps += len(trajectory.steps)
            for step in trajectory.steps:
                calls += len(step.calls)
                observations += len(step.observations)
            if count in marks:
                used = process.memory_full_info()
                memory[f"{marks[count]} %"] = {"rss": used.rss / 1e6, "uss": used.uss / 1e6}
    counts = {
        "trajectories": count,
        "steps": steps,
        "tool_calls": calls,
        "observations": observations,
    }
    return answer | {"counts": counts, "memory": memory}


def redact(store: str, out: str, kinds: str) -> dict[str, Any]:
    """Look for secrets and personal data in a store; write it anew if ``out`` is not empty."""
    from adp.stores.redact import RedactOptions, scan
    from adp.stores.redact import redact as run
    from adp.stores.redact.run import findings_of
    from adp_schema.store import Store

    answer: dict[str, Any] = {}
    native = (("/home/somebody-here",), ("somebody-here",))
    options = RedactOptions(kinds=tuple(kinds.split(",")), user=native, workers=1)
    with work(answer):
        opened = Store.open(store)
        findings = findings_of(run(opened, out, options)) if out else scan(opened, options)
    return answer | {"found": dict(findings.by_kind)}


def curate(recipe: dict[str, Any], folder: str, out: str, workers: int) -> dict[str, Any]:
    """Run a recipe of curation; say how long each stage took."""
    from pathlib import Path

    from adp.core.progress import Silent
    from adp.curation.recipe_file import check
    from adp.curation.run import CurateOptions, run

    class Notes(Silent):
        """Takes the time at which each part begins."""

        def __init__(self) -> None:
            self.begun = [("loading", time.perf_counter(), family_seconds())]

        def note(self, message: str) -> None:
            self.begun.append((message, time.perf_counter(), family_seconds()))

    answer: dict[str, Any] = {}
    notes = Notes()
    with work(answer):
        options = CurateOptions(Path(folder), workers)
        done = run(check(recipe, "recipe"), out, options=options, progress=notes)
    notes.note("end")
    parts = [
        {"part": name, "wall": round(later[1] - wall, 2), "cpu": round(later[2] - cpu, 2)}
        for (name, wall, cpu), later in zip(notes.begun, notes.begun[1:], strict=False)
    ]
    return answer | {"parts": parts, "report": done.report}


def redact_plain(store: str, megabytes: float, kinds: str) -> dict[str, Any]:
    """The baseline: each rule as an expression of Python over each cell, without a prefilter."""
    import re

    import pyarrow as pa

    from adp.stores.redact.options import RedactOptions
    from adp_schema.store import Store
    from adp_schema.tables import TABLES

    rules = RedactOptions(kinds=tuple(kinds.split(",")), user=((), ())).rules()
    patterns = [(rule, re.compile(rule.pattern)) for rule in rules]
    cells: list[str] = []
    size = 0
    for shard in Store.open(store).shards():
        for table in ("trajectories", "steps", "tool_calls", "observations"):
            rows = shard.group(table, 0)
            for field in TABLES[table].schema:
                if pa.types.is_string(field.type):
                    for cell in rows[field.name].drop_null().to_pylist():
                        if size < megabytes * 1e6:
                            cells.append(cell)
                            size += len(cell)
    answer: dict[str, Any] = {}
    count = 0
    with work(answer):
        for cell in cells:
            for rule, pattern in patterns:
                for match in pattern.finditer(cell):
                    start, end = match.span("v" if "v" in pattern.groupindex else 0)
                    count += rule.check is None or rule.check(cell, max(start, 0), max(end, 0))
    return answer | {"found": count, "characters": size}


def dedup_near(store: str, workers: int) -> dict[str, Any]:
    """Near deduplication of a store, from its files to the clusters."""
    import duckdb  # noqa: F401
    import polars as pl

    from adp.curation.apply import apply

    answer: dict[str, Any] = {}
    with work(answer):
        outcome = apply("dedup_near", store, workers=workers, alarm="warn")
    assert outcome.columns is not None
    near = outcome.columns.filter(pl.col("near_jaccard").is_not_null())
    pairs = near.select("seq", "near_cluster").rows()
    return answer | {"summary": outcome.summary, "pairs": pairs if len(pairs) < 20_000 else []}


def _ready_shingles(store: str, documents: int) -> tuple[Any, Any]:
    """Hashes and numbers of the shingles of the first documents of a store."""
    import tempfile

    import numpy as np

    from adp.curation.inputs import open_inputs
    from adp.curation.load import load
    from adp.curation.texts.shingles import shingles
    from adp.curation.texts.views import views

    with tempfile.TemporaryDirectory() as scratch:
        pool = load(open_inputs({"store": store})).pool(Path(scratch))
        parts, result = [], 0
        for partition in pool.partitions:
            if result < documents:
                parts.append(shingles(views(partition, ["agent", "actions"])))
                result += len(parts[-1].sizes)
    sizes = np.concatenate([part.sizes for part in parts])[:documents]
    return np.concatenate([part.hashes for part in parts])[: sizes.sum()], sizes


def near_candidates(store: str, documents: int) -> dict[str, Any]:
    """Ours on ready shingles: signatures, bands, documents with an equal band."""
    from adp.curation.ops.dedup_near.minhash import band_hashes, signatures
    from adp.curation.ops.dedup_near.stars import buckets

    hashes, sizes = _ready_shingles(store, documents)
    answer: dict[str, Any] = {}
    with work(answer):
        result = buckets(band_hashes(signatures(hashes, sizes, 128), 21, 6))
    return answer | {"buckets": len(result.sizes), "documents": len(sizes)}


def near_datasketch(store: str, documents: int, hashed: bool) -> dict[str, Any]:
    """The baseline on the same shingles: sketches, then a query and an insertion each.

    Its own SHA-1 hashes the 8 bytes of a shingle; with ``hashed`` it takes numbers of 32 bits as
    they are, which is the fastest that it can.
    """
    import numpy as np
    from datasketch import MinHash, MinHashLSH

    hashes, sizes = _ready_shingles(store, documents)
    ends = [0, *np.cumsum(sizes).tolist()]
    texts: Any
    if hashed:
        numbers = (hashes >> np.uint64(20)).astype(np.uint32)
        texts = (numbers[a:b].tolist() for a, b in pairwise(ends))
        more = {"hashfunc": lambda number: number}
    else:
        data = hashes.tobytes()
        texts = ([data[at : at + 8] for at in range(8 * a, 8 * b, 8)] for a, b in pairwise(ends))
        more = {}
    answer: dict[str, Any] = {}
    candidates = 0
    with work(answer):
        index = MinHashLSH(num_perm=128, params=(21, 6))
        for number, sketch in enumerate(MinHash.generator(texts, num_perm=128, **more)):
            candidates += len(index.query(sketch))
            index.insert(number, sketch, check_duplication=False)
    return answer | {"candidates": candidates, "documents": len(sizes)}


TASKS = {
    task.__name__: task
    for task in (
        *(convert, convert_parts, load_dataset, bare_loop, stream, redact, redact_plain, curate),
        *(dedup_near, near_candidates, near_datasketch),
    )
}


def main() -> None:
    print(json.dumps(TASKS[sys.argv[1]](**json.loads(sys.argv[2]))))


if __name__ == "__main__":
    main()
