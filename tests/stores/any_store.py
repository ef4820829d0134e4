"""Stores of any shape for the tests of merging and dropping, with a word of its own for each run.

A store is described by shards, a shard by what is true of each of its runs; so hypothesis can
look for the store that goes wrong, and make it small.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from adp_schema.builder import Origin, RowBuilder
from adp_schema.ids import digest
from adp_schema.losses import Losses
from adp_schema.manifest import Counts
from adp_schema.media import media_of_bytes, reference_of_media
from adp_schema.parts import Parts
from adp_schema.store import Store
from tests.store_builders import reject_row, write_store


@dataclass(frozen=True)
class Run:
    """What is true of one run.

    Attributes:
        name: its source id; several runs may share it. None gives none.
        same_record: it comes from the record of the run before it.
        branch: it starts from the run before it.
        image: number of an image that it shows; None for none.
        inline: the image is inside a text, not a part of its own.
        task: number of its task; None for none.
        loss: something of it was lost.
        go: whether it is to be dropped.
    """

    name: str | None = None
    same_record: bool = False
    branch: bool = False
    image: int | None = None
    inline: bool = False
    task: int | None = None
    loss: bool = False
    go: bool = False


runs = st.builds(
    Run,
    name=st.sampled_from(["a", "b", "a#2", None]),
    same_record=st.booleans(),
    branch=st.booleans(),
    image=st.none() | st.integers(0, 2),
    inline=st.booleans(),
    task=st.none() | st.integers(0, 1),
    loss=st.booleans(),
    go=st.booleans(),
)
shards = st.lists(st.lists(runs, max_size=6), min_size=1, max_size=3)


def image_bytes(number: int) -> bytes:
    """The bytes of an image."""
    return f"IMAGE-{number}-".encode() * 30


def write(folder: Path, described: list[list[Run]], word: str, file: str = "x") -> Store:
    """Write a store: shards of runs, each with a word of its own, and a reject a shard.

    Args:
        folder: folder of the store.
        described: the shards.
        word: how the words of its runs begin: ``<word>-<seq>-``.
        file: name of the input files, of which each shard has one.
    """
    builders, sources, counts = [], [], Counts()
    names: list[str] = []
    losses: Counter[str] = Counter()
    for index, members in enumerate(described):
        builder = RowBuilder()
        known = Losses()
        source = f"{file}{index}.jsonl"
        records = _fill(builder, members, word, source, index * 1000, names, known)
        reject = reject_row(f"REJECT-{word}".encode(), "odd", record=99)
        builder.reject({**reject, "seq": index * 1000 + 99, "source_file": source})
        builder.pair({"pair_id": f"p{index}", **_sides(names)})
        builders.append(builder)
        ours = Counts(records=records + 1, used=records, rejected=1, trajectories=len(members))
        counts.add(ours)
        sources.append({"source_file": source, **ours.model_dump()})
        losses.update(known.counts)
    store = write_store(folder, *builders, sources=sources, losses=dict(losses))
    store.manifest.counts = counts
    store.manifest.reasons = {"rejected: odd - at $": len(described)}
    store.manifest.write(folder)
    return Store.open(str(folder))


def _sides(names: list[str]) -> dict[str, str]:
    sides = dict(zip(("context_id", "chosen_id", "rejected_id"), names[-2:], strict=False))
    return sides or {"chosen_id": "elsewhere/z"}


def _fill(
    builder: RowBuilder,
    members: list[Run],
    word: str,
    source: str,
    start: int,
    names: list[str],
    losses: Losses,
) -> int:
    """Add runs to a builder and return the number of their records."""
    record = 0
    for position, run in enumerate(members):
        if not (run.same_record and position):
            if record:
                builder.close_record(losses)
                builder.keep_raw(b" ".join(_raw(builder)))
            record += 1
            hashed = digest(f"{word}{start}{record}".encode())
            columns = {"source_file": source, "source_records": [record], "source_hash": hashed}
            columns["source_offsets"] = [record * 10]
            builder.begin(Origin(seq=start + 10 * position, dataset=f"d{position % 2}",
                                 columns=columns))  # fmt: skip
        _add_run(builder, run, f"{word}-{start + position}-", names)
        names.append(_unique(builder, names))
        if run.loss:
            losses.add(f"$.lost[{position}]", "no place")
    if record:
        builder.close_record(losses)
        builder.keep_raw(b" ".join(_raw(builder)))
    return record


def _raw(builder: RowBuilder) -> list[bytes]:
    """The words of all runs of the record that is open."""
    last = builder.rows["trajectories"][-1]["source_records"]
    return [
        row["notes"].encode()
        for row in builder.rows["trajectories"]
        if row["source_records"] == last
    ]


def _unique(builder: RowBuilder, names: list[str]) -> str:
    """Make an id unique over the shards, as a conversion does."""
    row = builder.rows["trajectories"][-1]
    name, number = row["trajectory_id"], 1
    while name in names:
        number += 1
        name = f"{builder.base_ids[-1]}#{number}"
    if name != row["trajectory_id"]:
        old = row["trajectory_id"]
        for keys in builder._keys.values():
            keys[:] = [(s, name if s == row["seq"] else t, n) for s, t, n in keys]
        for table in ("media", "tasks"):
            for child in builder.rows[table]:
                if child["seq"] == row["seq"] and child["trajectory_id"] == old:
                    child["trajectory_id"] = name
        row["trajectory_id"] = name
    return str(name)


def _add_run(builder: RowBuilder, run: Run, secret: str, names: list[str]) -> None:
    columns: dict[str, object] = {"notes": secret + "notes", "source_id": run.name}
    if run.branch and names:
        columns |= {"parent_id": names[-1], "parent_step": 0, "branch_kind": "subagent"}
    if run.task is not None:
        columns["task_id"] = f"task-{run.task}"
    columns["extra"] = f'{{"go": {str(run.go).lower()}}}'
    builder.trajectory({name: value for name, value in columns.items() if value is not None})
    if run.task is not None:
        builder.task({"task_id": f"task-{run.task}", "instruction": f"TASK-{run.task}"})
    parts = Parts()
    if run.image is not None:
        blob = media_of_bytes(image_bytes(run.image), "image/png")
        if run.inline:
            parts.text(builder.text(secret + reference_of_media(blob)))
        else:
            parts.media(builder.media(blob))
    parts.text(secret + "text")
    builder.step({"source": "user", "kind": "message", **parts.columns()})
    builder.step({"source": "agent", "kind": "llm_turn", "text": secret + "answer"})
    call = {"call_id": "c", "kind": "function", "name": "f", "arguments_kind": "object"}
    builder.call({**call, "arguments": f'{{"q":"{secret}call"}}'})
    builder.observation({"text": secret + "result"}, answers="c")
    made = {"made_from_trajectory": names[0], "made_from_step": 0} if names else {}
    builder.step({"source": "agent", "kind": "llm_turn", "text": secret, **made})
    if names:
        builder.link({"kind": "subagent", "step": 1, "target_id": names[-1], "target_path": "p"})
    builder.finish()
