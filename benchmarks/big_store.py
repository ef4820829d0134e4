"""A store of very many small trajectories, made quickly: a thousand, again under new ids."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from generate import TOOLS, Words

from adp_schema.builder import Origin, RowBuilder
from adp_schema.ids import digest
from adp_schema.manifest import Counts, Lineage, Manifest
from adp_schema.tables import TABLES
from adp_schema.writer import ShardWriter, place

GROUP = 1_000
"""Trajectories that differ, and those of a row group."""

SHARD_GROUPS = 50


def base_tables(seed: int) -> dict[str, pa.Table]:
    """The tables of `GROUP` trajectories: six steps, two calls with results, a task each."""
    draw, words = random.Random(seed), Words(seed)
    builder = RowBuilder()
    for number in range(GROUP):
        columns = {"source_file": "made_up.jsonl", "source_hash": digest(str(number).encode())}
        builder.begin(Origin(seq=number, dataset=f"set-{number % 3}", columns=columns))
        model = f"model-{number % 5}"
        builder.trajectory(
            {
                "source_id": f"{number:04d}", "agent_name": "maker", "agent_model": model,
                "success": draw.choice((True, False, None)), "task_id": f"task-{number // 4}",
                "attempt": number % 4,
                "tools": f'[{{"type":"function","function":{{"name":"{TOOLS[0]}"}}}}]',
            }
        )  # fmt: skip
        builder.step({"source": "user", "kind": "message", "text": words.text(200)})
        for turn in range(2):
            step = {"source": "agent", "kind": "llm_turn", "text": words.text(80), "model": model}
            usage = {"tokens_in": 500 * turn, "tokens_out": draw.randint(5, 90)}
            builder.step({**step, **usage, "duration_ms": draw.random() * 1e3})
            call: dict[str, Any] = {"kind": "function", "name": draw.choice(TOOLS[:6])}
            call |= {"arguments": f'{{"q":"{words.text(40)}"}}', "call_id": f"c{turn}"}
            builder.call(call)
            error = draw.random() < 0.1
            text = f"error: {words.text(12)}" if error else words.text(150)
            result = {"source": "environment", "name": call["name"], "is_error": error}
            builder.observation({**result, "text": text}, answers=call["call_id"])
            builder.step({"source": "user", "kind": "message", "text": words.text(50)})
        builder.step({"source": "agent", "kind": "llm_turn", "text": words.text(100)})
        builder.finish()
    return {name: rows for name, rows in builder.tables().items() if rows.num_rows}


def again(tables: dict[str, pa.Table], group: int) -> dict[str, pa.Table]:
    """The same trajectories under other ids, as another group of a store."""
    names = tables["trajectories"]["trajectory_id"].to_pylist()
    ids = pa.array([f"{name}-{group:05d}" for name in names])
    tasks = [f"{task}-{group:05d}" for task in tables["trajectories"]["task_id"].to_pylist()]
    result = {}
    for name, rows in tables.items():
        seq = rows["seq"].to_numpy()
        changed = {"seq": pa.array(seq + group * GROUP), "trajectory_id": ids.take(pa.array(seq))}
        if name == "trajectories":
            changed["task_id"] = pa.array(tasks)
        for column, values in changed.items():
            index = rows.schema.get_field_index(column)
            rows = rows.set_column(index, rows.schema.field(index), values)
        result[name] = rows
    return result


def make_big(folder: Path, count: int) -> Path:
    """A store of so many trajectories, in whole thousands; what is there already is kept."""
    if (folder / "adp.json").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    tables = base_tables(seed=5)
    manifest = Manifest(lineage=[Lineage(act="convert")])
    groups = -(-count // GROUP)
    for index, first in enumerate(range(0, groups, SHARD_GROUPS)):
        writer = ShardWriter(folder / "staging")
        for group in range(first, min(first + SHARD_GROUPS, groups)):
            for name, rows in again(tables, group).items():
                writer.write(name, rows)
        for name in writer.close():
            staged = writer.folder / f"{name}.parquet"
            shard = place(staged, folder, name, index, writer.rows.get(name, 0))
            manifest.tables.setdefault(name, []).append(shard)
    total = groups * GROUP
    writer = ShardWriter(folder / "staging")
    source = {"source_file": "made_up.jsonl", "records": total, "used": total}
    writer.write("sources", pa.Table.from_pylist([source], schema=TABLES["sources"].schema))
    writer.close()
    staged = writer.folder / "sources.parquet"
    manifest.tables["sources"] = [place(staged, folder, "sources", 0, 1)]
    shutil.rmtree(writer.folder)
    sets = np.bincount(np.arange(GROUP) % 3) * groups
    manifest.datasets = {f"set-{number}": int(size) for number, size in enumerate(sets)}
    manifest.counts = Counts(records=total, used=total, trajectories=total)
    manifest.write(folder)
    return folder
