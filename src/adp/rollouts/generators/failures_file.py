"""``make_failures.jsonl`` in a store: candidates that were not kept, with the reason; one a line.

It is what a run that was killed does not try again. A last line that a kill cut off is left out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from adp.core.json_values import json_object

FAILURES_FILE = "make_failures.jsonl"


def read_failures(root: Path) -> dict[str, str]:
    """Id of the candidate -> why it was not kept."""
    path = root / FAILURES_FILE
    if not path.exists():
        return {}
    lines = path.read_bytes().split(b"\n")
    entries = (json_object(line.decode("utf-8", "replace")) for line in lines[:-1])
    return {str(entry["candidate"]): str(entry["reason"]) for entry in entries if "reason" in entry}


def add_failures(root: Path, entries: Iterable[Mapping[str, Any]]) -> None:
    """Append candidates that were not kept; they are on the disk when it returns."""
    text = "".join(json.dumps(entry, ensure_ascii=True) + "\n" for entry in entries)
    if not text:
        return
    path = root / FAILURES_FILE
    content = path.read_bytes() if path.exists() else b""
    with path.open("ab") as file:
        if content and not content.endswith(b"\n"):  # a line that a kill cut off
            file.truncate(content.rfind(b"\n") + 1)
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
