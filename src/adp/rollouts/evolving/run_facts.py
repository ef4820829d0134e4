"""``evolve.json`` or ``make.json`` in a store: what it was begun with, so nothing else is added."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from adp.rollouts.collecting.setting_differences import check_same
from adp.version import __version__
from adp_schema.errors import OutputExistsError, StoreError
from adp_schema.manifest import write_atomic
from adp_schema.store import Store

RUN_FILE = "evolve.json"


def settle_facts(
    root: Path,
    facts: Mapping[str, Any],
    *,
    sealed: bool,
    command: str = "evolve",
    file: str = RUN_FILE,
) -> None:
    """Note what a run makes its trajectories with; or check that it is what the store began with.

    Args:
        root: the store.
        facts: what must not change; JSON.
        sealed: whether the store is finished.
        command: the command that writes there.
        file: name of the file.

    Raises:
        OutputExistsError: the store was begun with other settings, or by something else.
        StoreError: the file is damaged.
    """
    path = root / file
    if path.exists():
        try:
            before = json.loads(path.read_text(encoding="utf-8"))["settings"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{path} is damaged: {error}; restore it from a copy") from error
        check_same(root, before, facts)
        return
    if sealed or len(Store.open(str(root))):
        raise OutputExistsError(
            f"{root} holds trajectories that adp {command} did not make; choose another -o"
        )
    began = datetime.now(UTC).isoformat(timespec="seconds")
    content = {"adp": __version__, "began": began, "settings": facts}
    write_atomic(path, json.dumps(content, indent=2, ensure_ascii=True) + "\n")
