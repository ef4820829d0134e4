"""Calls and turns of the environment that were kept as text: counted in the first steps of a store.

It is the cheap sibling of the checks ``call-left-in-text`` and ``environment-as-user``, which look
at all steps and at what surrounds them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from adp.stores.checks.text_marks import ACTS, CALL_IN_TEXT, OUTPUT_BEGINS
from adp_schema import location
from adp_schema.manifest import Manifest

STEPS = 2000
"""Steps that are looked at."""


@dataclass(frozen=True)
class KeptAsText:
    """What the first steps hold.

    Attributes:
        steps: steps that were looked at.
        complete: whether these are all.
        calls: texts of an agent without calls that look like a call.
        outputs: texts of a user, after an act of the agent, that begin like output of a tool.
    """

    steps: int = 0
    complete: bool = True
    calls: int = 0
    outputs: int = 0


def kept_as_text(store: str, manifest: Manifest) -> KeptAsText:
    """Look at the first steps of a store.

    Args:
        store: its folder or URL.
        manifest: its manifest.
    """
    # pyarrow.compute makes all its functions as it is imported, which takes longer than these.
    from pyarrow._compute import MatchSubstringOptions, SliceOptions, call_function

    def holds(words: pa.Array, part: str, *, regex: bool = False) -> np.ndarray:
        name = "match_substring_regex" if regex else "match_substring"
        answers = call_function(name, [words], MatchSubstringOptions(part))
        return np.array([answer is True for answer in answers.to_pylist()], dtype=bool)

    steps = _first(store, manifest, "steps", ["seq", "step", "source", "text", "extra"])
    if steps is None:
        return KeptAsText()
    calls = _first(store, manifest, "tool_calls", ["seq", "step"])
    called = set(zip(*(calls[name].to_pylist() for name in ("seq", "step")), strict=True)
                 ) if calls is not None else set()  # fmt: skip
    places = zip(steps["seq"].to_pylist(), steps["step"].to_pylist(), strict=True)
    calling = np.array([place in called for place in places], dtype=bool)
    # A text that was parsed holds nothing more, unless something is said to be left in it.
    extra, text = steps["extra"], steps["text"]
    calling |= holds(extra, '"$parsed"') & ~holds(extra, '"left":')
    source, seq = np.array(steps["source"].to_pylist()), np.array(steps["seq"].to_pylist())

    left = (source == "agent") & ~calling & holds(text, CALL_IN_TEXT, regex=True)
    acted = (source == "agent") & (calling | holds(text, ACTS, regex=True))
    beginnings = call_function("utf8_slice_codeunits", [text], SliceOptions(0, 400))
    begins = holds(beginnings, OUTPUT_BEGINS, regex=True)
    same = seq[1:] == seq[:-1]
    output = (source[1:] == "user") & begins[1:] & acted[:-1] & same
    count = len(source)
    full = count == manifest.rows("steps")
    return KeptAsText(count, full, int(left.sum()), int(output.sum()))


def _first(store: str, manifest: Manifest, table: str, columns: list[str]) -> pa.RecordBatch | None:
    """The first rows of a table."""
    shards = [shard for shard in manifest.tables.get(table, []) if shard.rows]
    if not shards:
        return None
    with location.open_parquet(location.join(store, shards[0].path)) as file:
        return next(file.iter_batches(STEPS, columns=columns), None)
