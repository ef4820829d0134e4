"""The real samples that may lie beside the checkout, in ``../shared/data``: never needed.

Tests that use them skip when they are not there. Some of them may be gone as well, one file of many
or all files of a folder. Then a test that uses samples and fails is skipped, and says what is gone:
it would fail for that reason anywhere. With all samples in place a failure is a failure.

``python -m tests.samples`` counts them anew.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2] / "shared" / "data"
COUNTS = Path(__file__).with_name("samples.json")
"""Folder -> number of files in it, as the tests know them."""


def count() -> dict[str, int]:
    """How many files lie in each folder of the samples."""
    results: dict[str, int] = {}
    for path in sorted(ROOT.rglob("*")):
        folder = path.parent.relative_to(ROOT).as_posix()
        if path.is_file() and folder != ".":  # there stands only what tells of them
            results[folder] = results.get(folder, 0) + 1
    return results


@cache
def gone() -> str | None:
    """What is not there of the samples, in one clause; None when all of them are."""
    here = count()
    known: dict[str, int] = json.loads(COUNTS.read_text(encoding="utf-8"))
    for folder, number in known.items():
        if here.get(folder, 0) < number:
            return f"{here.get(folder, 0)} of {number} files are in ../shared/data/{folder}"
    return None


def uses_samples(module: ModuleType) -> bool:
    """Whether a module of tests, or a helper that it takes names from, names the samples."""
    helpers = {getattr(value, "__module__", None) for value in vars(module).values()}
    modules = [module, *(sys.modules[str(name)] for name in helpers if _is_helper(name))]
    return any(
        isinstance(value, Path) and value.is_relative_to(ROOT)
        for item in modules
        for value in vars(item).values()
    )


def _is_helper(name: object) -> bool:
    return isinstance(name, str) and name.startswith("tests.") and name in sys.modules


if __name__ == "__main__":
    COUNTS.write_text(json.dumps(count(), indent=0, sort_keys=True) + "\n", encoding="utf-8")
