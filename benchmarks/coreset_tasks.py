"""What bench_coreset.py runs in processes of their own: ``python coreset_tasks.py TASK '{...}'``.

Each task prints one line of JSON with the rows that it selected and the seconds of the work alone.
The task ``facility_apricot`` runs with another Python that has apricot-select, and nothing of adp.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from tasks import work


def k_center(data: str, size: int) -> dict[str, Any]:
    """Ours."""
    from adp.curation.ops.coreset.greedy import k_center

    matrix = np.load(data)
    answer: dict[str, Any] = {}
    with work(answer):
        rows = k_center(matrix, size).rows
    return answer | {"rows": rows.tolist()}


def k_center_plain(data: str, size: int, first: int) -> dict[str, Any]:
    """Plain greedy: one product of the matrix with a row for each selected row."""
    matrix = np.load(data)
    answer: dict[str, Any] = {}
    with work(answer):
        near = np.full(len(matrix), np.inf, np.float32)
        rows = [first]
        while True:
            near = np.minimum(near, 2 - 2 * (matrix @ matrix[rows[-1]]))
            if len(rows) == size:
                break
            rows.append(int(near.argmax()))
    return answer | {"rows": rows}


def facility(data: str, size: int) -> dict[str, Any]:
    """Ours."""
    from adp.curation.ops.coreset.facility import facility_location

    matrix = np.load(data)
    answer: dict[str, Any] = {}
    with work(answer):
        rows = facility_location(matrix, size).rows
    return answer | {"rows": rows.tolist()}


def facility_apricot(data: str, size: int) -> dict[str, Any]:
    """apricot's lazy greedy with its own cosine, twice: it compiles a function at each fit."""
    from apricot import FacilityLocationSelection

    matrix = np.load(data).astype(np.float64)
    answer: dict[str, Any] = {}
    again: dict[str, Any] = {}
    with work(answer):
        chosen = FacilityLocationSelection(size, metric="cosine", optimizer="lazy").fit(matrix)
    with work(again):
        FacilityLocationSelection(size, metric="cosine", optimizer="lazy").fit(matrix)
    return answer | {"rows": chosen.ranking.tolist(), "again": again["work"]}


def stars(data: str, threshold: float) -> dict[str, Any]:
    """Ours: clusters of vectors, exact."""
    from adp.curation.ops.dedup_semantic.stars import VectorRows, exact_stars

    matrix = np.load(data)
    answer: dict[str, Any] = {}
    with work(answer):
        result = exact_stars(VectorRows(matrix, np.full(len(matrix), -1), threshold))
    return answer | {"gone": int((result.anchor != np.arange(len(matrix))).sum())}


def all_pairs(data: str, threshold: float) -> dict[str, Any]:
    """Rows with a near row before them, by the product of all with all, block by block."""
    matrix = np.load(data)
    gone = np.zeros(len(matrix), bool)
    answer: dict[str, Any] = {}
    with work(answer):
        for start in range(0, len(matrix), 2048):
            products = matrix[start : start + 2048] @ matrix[start:].T
            row, column = np.nonzero(products >= threshold)
            gone[start + column[column > row]] = True
    return answer | {"near": int(gone.sum())}


def vectors(store: str) -> dict[str, Any]:
    """Ours: vectors of the words of all texts of a store."""
    import tempfile

    from adp.curation.inputs import open_inputs
    from adp.curation.load import load
    from adp.curation.texts.vectors import VectorOptions, vectors_of

    answer: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        pool = load(open_inputs({"s": store})).pool(Path(scratch), workers=1)
        with work(answer):
            result = vectors_of(pool, VectorOptions(views=("all",)))
        size = int(pool.members["size"].sum())
    return answer | {"rows": len(result.matrix), "characters": size}


TASKS = {
    task.__name__: task
    for task in (k_center, k_center_plain, facility, facility_apricot, stars, all_pairs, vectors)
}


def main() -> None:
    print(json.dumps(TASKS[sys.argv[1]](**json.loads(sys.argv[2]))))


if __name__ == "__main__":
    main()
