"""Processes that a test of growing stores starts and kills: a writer, a reader, one that seals.

python growing_worker.py write STORE ACKS NAME COUNT
python growing_worker.py read STORE ACKS REPORT
python growing_worker.py seal STORE
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from adp_schema.errors import SealedError
from adp_schema.growing import GrowingStore
from adp_schema.store import Store
from tests.growing import numbered, plain


def write(root: str, acks: str, name: str, count: str) -> None:
    """Append trajectories and note those that were acknowledged; begin again with all of them."""
    try:
        # Small journals: most kills shall hit a store that is being sealed.
        with (
            GrowingStore(root, seal_bytes=200_000) as store,
            (Path(acks) / f"{name}.txt").open("a") as known,
        ):
            for number in range(int(count)):
                store.append(numbered(f"{name}-{number}", blob=number % 5))
                known.write(f"d/{name}-{number}\n")
                known.flush()
                os.fsync(known.fileno())
    except SealedError:
        print("sealed")


def acknowledged(acks: Path) -> set[str]:
    """What was acknowledged; a line that a kill cut short does not count."""
    texts = [path.read_text() for path in acks.glob("*.txt")]
    return {line for text in texts for line in text[: text.rfind("\n") + 1].splitlines()}


def check(store: Store, promised: set[str]) -> int:
    """Check that a store holds what was promised, all of it whole and once; return how many."""
    results = []
    for trajectory in store.trajectories():
        name = trajectory.source_id or ""
        results.append(trajectory.trajectory_id)
        wanted = plain(numbered(name, blob=int(name.split("-")[1]) % 5))
        assert plain(trajectory) == wanted, f"{name} is torn"
    assert len(results) == len(set(results)), "something is there twice"
    assert promised <= set(results), f"lost: {sorted(promised - set(results))[:5]}"
    counts = store.manifest.counts
    assert counts.trajectories == len(results), "the counts are wrong"
    assert store.manifest.datasets == ({"d": len(results)} if results else {})
    sql = "SELECT count(*) AS n, count(DISTINCT trajectory_id) AS ids FROM trajectories"
    assert store.query(sql).to_pylist() == [{"n": len(results), "ids": len(results)}]
    return len(results)


def read(root: str, acks: str, report: str) -> None:
    """Read the store over and over, and report after each time."""
    seen = reads = 0
    while True:
        promised = acknowledged(Path(acks))
        store = Store.open(root)
        try:
            result = check(store, promised)
        except Exception as error:
            # The end of the store removes early shards: who opened it before opens it again.
            sealed = store.journal is not None and (Path(root) / "adp.json").exists()
            if isinstance(error, AssertionError) or not sealed:
                raise
            result = check(Store.open(root), promised)
        assert result >= seen, "the store got smaller"
        seen, reads = result, reads + 1
        Path(report + ".tmp").write_text(json.dumps({"reads": reads, "seen": seen}))
        Path(report + ".tmp").replace(report)
        time.sleep(0.1)  # the writers need the processor, too


def seal(root: str) -> None:
    """End the store."""
    from adp_schema.growing import seal as end

    end(root)


if __name__ == "__main__":
    {"write": write, "read": read, "seal": seal}[sys.argv[1]](*sys.argv[2:])
