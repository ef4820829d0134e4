"""Write very many small runs as chats: ``python -m benchmarks.big_runs FILE COUNT``.

A run has seven messages, two calls and two results, about 1 kB. Four attempts try each task. Of a
hundred runs three are equal to an earlier one, and three nearly so. Sentences come from a pool that
grows with the count, so two runs share as much whatever the count is.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

SENTENCES_PER_RUN = 0.1
ATTEMPTS = 4
TOOLS = ("search", "read_file", "run_tests", "open_page")
MODELS = ("small-8b", "large-70b", "tiny-1b")

_RUN = (
    '{"id": "run-%d", "task_id": "task-%d", "model": "%s", "success": %s, "reward": %s, '
    '"messages": [{"role": "system", "content": "You are an agent. Use the tools, then answer."}, '
    '{"role": "user", "content": "%s"}, '
    '{"role": "assistant", "content": "%s", "tool_calls": [{"id": "c0", "type": "function", '
    '"function": {"name": "%s", "arguments": "{\\"query\\": \\"%s\\"}"}}]}, '
    '{"role": "tool", "tool_call_id": "c0", "content": "%s"}, '
    '{"role": "assistant", "content": "%s", "tool_calls": [{"id": "c1", "type": "function", '
    '"function": {"name": "%s", "arguments": "{\\"query\\": \\"%s\\"}"}}]}, '
    '{"role": "tool", "tool_call_id": "c1", "content": "%s"}, '
    '{"role": "assistant", "content": "%s"}]}\n'
)


def sentences(count: int, draw: random.Random) -> list[str]:
    """Sentences of 8 to 14 words out of 20,000 made-up ones."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(draw.choices(letters, k=draw.randint(3, 9))) for _ in range(20_000)]
    return [" ".join(draw.choices(words, k=draw.randint(8, 14))) for _ in range(count)]


def big_runs(count: int, seed: int = 7) -> Iterator[str]:
    """Lines of JSON, each a run."""
    draw = random.Random(seed)
    pool = sentences(max(2_000, int(count * SENTENCES_PER_RUN)), draw)
    choose, chance = draw.choices, draw.random
    texts: tuple[str, ...] = ()
    like, error = 0, False
    for number in range(count):
        kind = number % 100
        if kind in (33, 66, 99):
            task = count + number
        elif kind in (32, 65, 98):
            task = count + number
            texts = (*texts[:-1], f"{texts[-1]} indeed")
        else:
            task = number // ATTEMPTS
            if kind and number % ATTEMPTS:
                texts = (texts[0], *choose(pool, k=8))
            else:
                texts = tuple(choose(pool, k=9))
            like, error = number, chance() < 0.1  # what repeats a run calls the same tools
        ask, think, query, result, more, again, answer, end, last = texts
        success = chance() < 0.6
        yield _RUN % (
            *(number, task, MODELS[number % 3], "true" if success else "false"),
            round(chance(), 3),
            *(ask, think, TOOLS[like % 4], query),
            *(f"Error: {result}" if error else result, more),
            *(TOOLS[like * 7 % 4], again, f"{answer} {end}", last),
        )


def write(path: Path, count: int, seed: int = 7) -> None:
    """Write a file of runs."""
    with path.open("w", encoding="ascii") as file:
        file.writelines(big_runs(count, seed))


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]))
    with Path(sys.argv[1]).open("rb") as written:
        json.loads(written.readline())
