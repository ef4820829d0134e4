"""What a process of our own does before it works."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType


class _NoPandas(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if fullname == "pandas":
            raise ImportError("pandas is not wanted here")


def skip_pandas() -> None:
    """Keep pyarrow from importing pandas, which it does for its first array if it finds it.

    That costs a quarter of a second a process and serves nothing here. Only for processes that
    are ours, the command line and its workers: afterwards `to_pandas` does not work in them.
    """
    if "pandas" in sys.modules:
        return
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow as pa

        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
