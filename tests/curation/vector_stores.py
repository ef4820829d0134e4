"""Stores of small runs with texts or vectors, for tests of ops that compare vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from adp_schema.builder import Origin, RowBuilder
from adp_schema.store import Store
from tests.store_builders import write_store


def chat_store(folder: Path, dialogs: Sequence[dict[str, Any]], *, shards: int = 1) -> Store:
    """A store with a trajectory for each dialog.

    A dialog has ``turns`` (role and content) and may have columns of the table of trajectories.
    """
    builders = []
    for part in np.array_split(np.arange(len(dialogs)), shards):
        builder = RowBuilder()
        for place in part.tolist():
            dialog = dialogs[place]
            columns = {name: value for name, value in dialog.items() if name != "turns"}
            builder.begin(Origin(seq=place * 3, dataset=columns.get("dataset", "d")))
            builder.trajectory({"source_id": f"t{place}", **columns})
            for role, text in dialog["turns"]:
                if role == "tool":
                    builder.observation({"text": text, "source": "environment"})
                else:
                    source = {"assistant": "agent"}.get(role, role)
                    kind = "llm_turn" if role == "assistant" else "message"
                    builder.step({"source": source, "kind": kind, "text": text})
            builder.finish()
        builders.append(builder)
    return write_store(folder, *builders)


def one_liners(texts: Sequence[str], **columns: Sequence[Any]) -> list[dict[str, Any]]:
    """Dialogs in which the agent says one text each."""
    return [
        {
            "turns": [("assistant", text)],
            **{name: values[place] for name, values in columns.items()},
        }
        for place, text in enumerate(texts)
    ]


def with_column(pool: Any, name: str, values: Sequence[Any]) -> None:
    """Give the members of a pool a column, as an earlier op would."""
    pool.members = pool.members.with_columns(pl.Series(name, values))
