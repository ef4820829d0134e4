"""Which trajectories try to solve the same task, where data set and task id do not say it.

Where the source gives no task id, the key is a hash of what the user asks for: the messages before
the agent's first step. Many data sets begin all their runs alike, though: with rules that the agent
acknowledges, or with a worked example. So where many runs of a key go on with the very same words
of the agent, and then the user says different things, those words of the user are what tells the
tasks apart. Attempts at one task part ways at a step of the agent, so they keep one key.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import polars as pl

from adp_schema import ids
from adp_schema.store import Store

TASK_CHARACTERS = 800
"""Of longer messages, so many characters of the begin and of the end count."""

LOOKED_AT = 32
"""Messages of user and agent that are looked at."""

CHUNK = 50_000
"""Trajectories whose messages are in memory at a time."""

ALIKE = 0.3
"""Share of the runs of a key that must go on with the same words, for these to be a preamble."""

Message = tuple[bool, str]
"""Whether the user says it, and the hash of its words."""


def word_keys(store: Store) -> pl.DataFrame:
    """Keys of the tasks of trajectories without a task id: ``seq`` and ``words``.

    Messages are read `CHUNK` trajectories at a time, and of most of them only two hashes are kept.
    """
    rows = store.scan("trajectories").filter(pl.col("task_id").is_null())
    without = rows.select("seq", "dataset").collect().sort("seq")
    chunks = [without.slice(start, CHUNK) for start in range(0, without.height, CHUNK)]
    keys = pl.concat([_EMPTY, *(_first_keys(store, chunk) for chunk in chunks)])
    group = ["dataset", "words"]
    alike = pl.when(pl.col("agent").is_not_null()).then(pl.len().over([*group, "agent"]))
    preamble = (alike > 1) & (alike >= ALIKE * pl.len().over(group))
    looked_at = keys.filter(preamble.any().over(group)).select("seq", "dataset").sort("seq")
    new = _told_apart_keys(store, looked_at)
    return (
        keys.join(new, on="seq", how="left")
        .select("seq", pl.coalesce("new", "words").alias("words"))
        .sort("seq")
    )


_EMPTY = pl.DataFrame(
    schema={"seq": pl.Int64, "dataset": pl.String, "words": pl.String, "agent": pl.String}
)


def _first_keys(store: Store, without: pl.DataFrame) -> pl.DataFrame:
    """``seq``, ``dataset``, ``words`` (the key) and a hash of what the agent says next.

    Trajectories in which the user says nothing have no row.
    """
    rows = []
    for dataset, runs in _messages_by_run(store, without).items():
        for seq, messages in runs.items():
            start, end = _asked(messages)
            if end > start:
                after = _run_of(messages, end, user=False)
                agent = _key("", messages, end, after) if after > end else None
                rows.append((seq, dataset, _key("", messages, start, end), agent))
    return pl.DataFrame(rows, schema=_EMPTY.schema, orient="row")


def _told_apart_keys(store: Store, looked_at: pl.DataFrame) -> pl.DataFrame:
    """``seq`` and ``new``: the keys of whole groups in which the agent's next words are alike."""
    # A preamble is that of a data set. The key itself does not name it: runs of two agents may be
    # in two data sets.
    keys = {
        seq: key
        for runs in _messages_by_run(store, looked_at).values()
        for seq, key in keys_of(runs).items()
    }
    schema = {"seq": pl.Int64, "new": pl.String}
    return pl.DataFrame({"seq": list(keys), "new": list(keys.values())}, schema=schema)


def _messages_by_run(
    store: Store, wanted: pl.DataFrame
) -> Mapping[str | None, Mapping[int, Sequence[Message]]]:
    """Data set -> ``seq`` -> the first messages of a trajectory."""
    sets: dict[str | None, dict[int, list[Message]]] = defaultdict(lambda: defaultdict(list))
    for start in range(0, wanted.height, CHUNK):
        steps = _messages(store, wanted.slice(start, CHUNK))
        for seq, dataset, user, text in steps.iter_rows():
            messages = sets[dataset][seq]
            # Without words, what the agent did is not known here: a word of its own.
            unknown = f"{seq}/{len(messages)}"
            digest = ids.digest(text.encode("utf-8")) if text is not None else unknown
            messages.append((user, digest))
    return sets


def _messages(store: Store, wanted: pl.DataFrame) -> pl.DataFrame:
    """``seq``, data set, whether the user says it, and the words, of the first messages."""
    text = pl.col("text")
    ends = pl.concat_str(text.str.head(TASK_CHARACTERS), text.str.tail(TASK_CHARACTERS))
    words = pl.when(text.str.len_chars() > 2 * TASK_CHARACTERS).then(ends).otherwise(text)
    plain = words.str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()
    user = pl.col("source") == "user"
    return (
        store.scan("steps")
        .filter(pl.col("seq").is_between(wanted["seq"][0], wanted["seq"][-1]))
        .filter((user & text.is_not_null()) | (pl.col("source") == "agent"))
        .select("seq", "step", user.alias("user"), plain.alias("text"))
        .join(wanted.lazy(), on="seq", how="inner")
        .sort("seq", "step")
        .filter(pl.int_range(pl.len()).over("seq") < LOOKED_AT)
        .select("seq", "dataset", "user", "text")
        .collect()
    )


def keys_of(runs: Mapping[int, Sequence[Message]]) -> dict[int, str]:
    """The keys of some runs; those in which the user says nothing have none.

    Args:
        runs: ``seq`` -> its first messages, in order.
    """
    groups: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for seq, messages in runs.items():
        start, end = _asked(messages)
        if end > start:
            groups[_key("", messages, start, end)].append((seq, end))
    keys: dict[int, str] = {}
    waiting = list(groups.items())
    while waiting:
        key, members = waiting.pop()
        keys.update((seq, key) for seq, _ in members)
        if len(members) > 1:
            waiting += _told_apart(runs, key, members)
    return keys


def _told_apart(
    runs: Mapping[int, Sequence[Message]], key: str, members: Sequence[tuple[int, int]]
) -> list[tuple[str, list[tuple[int, int]]]]:
    """The groups into which runs with one key part, when the agent's next words are a preamble."""
    branches: dict[tuple[Message, ...], list[tuple[int, int]]] = defaultdict(list)
    for seq, place in members:
        end = _run_of(runs[seq], place, user=False)
        branches[tuple(runs[seq][place:end])].append((seq, end))
    groups: list[tuple[str, list[tuple[int, int]]]] = []
    for words, branch in branches.items():
        if words and 1 < len(branch) >= ALIKE * len(members):
            asked: dict[str, list[tuple[int, int]]] = defaultdict(list)
            for seq, place in branch:
                end = _run_of(runs[seq], place, user=True)
                if end > place:
                    asked[_key(key, runs[seq], place, end)].append((seq, end))
            if len(asked) == 1:  # they all say the same: still the preamble
                groups += [(key, same) for same in asked.values()]
            else:
                groups += asked.items()
    return groups


def _asked(messages: Sequence[Message]) -> tuple[int, int]:
    """The first messages of the user, behind what the agent says before it is asked."""
    start = _run_of(messages, 0, user=False)
    return start, _run_of(messages, start, user=True)


def _run_of(messages: Sequence[Message], start: int, *, user: bool) -> int:
    """The end of the messages of one speaker that begin at a place."""
    end = start
    while end < len(messages) and messages[end][0] == user:
        end += 1
    return end


def _key(before: str, messages: Sequence[Message], start: int, end: int) -> str:
    text = " ".join([before, *(result for _, result in messages[start:end])])
    return "words:" + ids.digest(text.encode("utf-8"))
