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

ALIKE = 0.3
"""Share of the runs of a key that must go on with the same words, for these to be a preamble."""

Message = tuple[bool, str]
"""Whether the user says it, and the hash of its words."""


def word_keys(store: Store) -> pl.DataFrame:
    """Keys of the tasks of trajectories without a task id: ``seq`` and ``words``."""
    steps = _messages(store)
    # A preamble is that of a data set. The key itself does not name it: runs of two agents may be
    # in two data sets.
    sets: dict[str | None, dict[int, list[Message]]] = defaultdict(lambda: defaultdict(list))
    for seq, dataset, user, text in steps.iter_rows():
        messages = sets[dataset][seq]
        # Without words, what the agent did is not known here: it counts as a word of its own.
        digest = ids.digest(text.encode("utf-8")) if text is not None else f"{seq}/{len(messages)}"
        messages.append((user, digest))
    keys = {seq: key for runs in sets.values() for seq, key in keys_of(runs).items()}
    seqs = sorted(keys)
    return pl.DataFrame(
        {"seq": seqs, "words": [keys[seq] for seq in seqs]},
        schema={"seq": pl.Int64, "words": pl.String},
    )


def _messages(store: Store) -> pl.DataFrame:
    """``seq``, data set, whether the user says it, and the words, of the first messages."""
    rows = store.scan("trajectories").filter(pl.col("task_id").is_null())
    without = rows.select("seq", "dataset")
    text = pl.col("text")
    ends = pl.concat_str(text.str.head(TASK_CHARACTERS), text.str.tail(TASK_CHARACTERS))
    words = pl.when(text.str.len_chars() > 2 * TASK_CHARACTERS).then(ends).otherwise(text)
    plain = words.str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()
    user = pl.col("source") == "user"
    return (
        store.scan("steps")
        .filter((user & text.is_not_null()) | (pl.col("source") == "agent"))
        .select("seq", "step", user.alias("user"), plain.alias("text"))
        .join(without, on="seq", how="inner")
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
        start = 0
        while start < len(messages) and not messages[start][0]:
            start += 1  # what the agent says before it is asked
        end = _run_of(messages, start, user=True)
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


def _run_of(messages: Sequence[Message], start: int, *, user: bool) -> int:
    """The end of the messages of one speaker that begin at a place."""
    end = start
    while end < len(messages) and messages[end][0] == user:
        end += 1
    return end


def _key(before: str, messages: Sequence[Message], start: int, end: int) -> str:
    text = " ".join([before, *(result for _, result in messages[start:end])])
    return "words:" + ids.digest(text.encode("utf-8"))
