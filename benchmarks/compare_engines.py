"""Bytes of every engine over real files: processes and Ray, with any number of workers.

python benchmarks/compare_engines.py DATA

Converts a folder with 1, 2 and 4 processes and on Ray clusters of one and two nodes, carries out
four recipes over the store, and compares every file. Shards and partitions are cut small, so that
there are many. The exit status is 1 when a byte differs.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import adp
from adp.converters import plan
from adp.curation import partitions, write
from adp.stores import stage

SMALL = 1 << 20

RECIPES: dict[str, list[Any]] = {
    "rows for training": [
        {"measure": {}},
        {"filter": {"sql": "n_steps > 1"}},
        {"dedup_exact": {}},
        {"dedup_near": {"alarm": "warn"}},
        {"mask": {"policy": ["errors"], "errors": "likely"}},
        {"split": {"shares": {"train": 0.8, "test": 0.2}}},
    ],
    "mixed": [
        {"dedup_exact": {"of": "actions"}},
        {"mix": {"by": "dataset", "method": "balanced", "total": 300}},
        {"mask": {"policy": ["history"]}},
    ],
    "pairs": [
        {"measure": {"only": ["sizes", "loops"]}},
        {"pairs": {"rule": "format_corruption", "max_pairs": 200}},
    ],
    "coreset": [
        {"measure": {"only": ["sizes"]}},
        {"coreset": {"method": "random", "share": 0.5, "coverage": False}},
        {"split": {"shares": {"train": 0.5, "test": 0.5}}},
    ],
}


def main(data: str) -> int:
    """Compare, and print a line for each engine; 1 when a byte differs."""
    stage.SMALL, plan.SHARD_BYTES = 0, SMALL
    partitions.PARTITION_BYTES = write.SHARD_BYTES = SMALL
    known: dict[str, dict[str, str]] = {}
    differ = 0
    with tempfile.TemporaryDirectory() as folder:
        for engine, workers, block in engines():
            with block:
                for name, out, seconds in made(data, Path(folder, engine), workers):
                    files = hashes(out)
                    first = known.setdefault(name, files)
                    same = files == first
                    differ += not same
                    changed = sorted(
                        p for p in files.keys() | first if files.get(p) != first.get(p)
                    )
                    verdict = "the same bytes" if same else f"DIFFERENT: {changed[:5]}"
                    print(
                        f"{engine:22} {name:18} {len(files):4} files {seconds:6.1f} s  {verdict}",
                        flush=True,
                    )
    print(f"{differ} of the outputs differ")
    return 1 if differ else 0


def engines() -> Iterator[tuple[str, int | None, AbstractContextManager[Any]]]:
    """Name, workers and the block in which it does the work."""
    for count in (1, 2, 4):
        yield f"{count} processes", count, nullcontext()
    for nodes in (1, 2):
        yield f"Ray, nodes: {nodes}", None, on_ray(nodes)


@contextmanager
def on_ray(nodes: int) -> Iterator[None]:
    """Work on a Ray cluster of some nodes of this machine."""
    from tests.ray_cluster import local_cluster

    with local_cluster(nodes) as cluster, adp.use_engine("ray", cluster.address):
        yield


def made(data: str, folder: Path, workers: int | None) -> Iterator[tuple[str, Path, float]]:
    """What is made of the data: name, folder and seconds."""
    start = time.monotonic()
    adp.convert(data, folder / "store", workers=workers)
    yield "convert", folder / "store", time.monotonic() - start
    for name, ops in RECIPES.items():
        recipe = {"recipe": 1, "seed": 3, "inputs": {"runs": str(folder / "store")}, "ops": ops}
        start = time.monotonic()
        adp.curate(recipe, folder / name, workers=workers)
        yield name, folder / name, time.monotonic() - start


def hashes(folder: Path) -> dict[str, str]:
    """Hashes of all files but the one that says when and where they were made."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "run.json"
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
