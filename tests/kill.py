"""Killing a run of the command at random moments: what it leaves must lead to the same store."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from adp_schema.ids import digest_file
from adp_schema.manifest import MANIFEST, RUN
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[1]
LONGEST = PATIENCE
"""Seconds after which a run counts as hanging."""


def listen() -> None:
    """Let Ctrl-C reach a new process: what a shell runs in the background ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def command(*words: object) -> list[str]:
    """A call of the command line in a process of its own."""
    return [sys.executable, "-m", "adp.cli.main", *map(str, words)]


def run(
    words: Sequence[str], kill_after: float | None = None, *, alone: bool = False
) -> tuple[float, int]:
    """Run a command; return its seconds and exit code, which is -9 when it was killed.

    Args:
        words: the command.
        kill_after: seconds until it is killed.
        alone: kill the run only; its workers must end by themselves.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    start = time.monotonic()
    process = subprocess.Popen(
        words,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, output = process.communicate(timeout=kill_after if kill_after is not None else LONGEST)
    except subprocess.TimeoutExpired:
        if alone:
            process.kill()
            # The workers hold the other end of the pipe: this waits until they are gone.
            _, output = process.communicate(timeout=LONGEST)
        else:
            os.killpg(process.pid, signal.SIGKILL)
            _, output = process.communicate()
        if kill_after is None:
            raise
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    if process.returncode not in (0, -signal.SIGKILL):
        raise AssertionError(f"{words} ended with {process.returncode}: {output.decode()}")
    return time.monotonic() - start, process.returncode


def hashes(store: Path) -> dict[str, str]:
    """Hashes of everything that is part of a store's contents."""
    return {
        str(path.relative_to(store)): digest_file(str(path))
        for path in sorted(store.rglob("*"))
        if path.is_file() and path.name != RUN
    }


@dataclass
class Series:
    """A series of kills.

    Attributes:
        seed: what the moments were drawn from.
        seconds: how long an undisturbed run took.
        moments: seconds after which a run was to be killed.
        killed: how many were killed in their work; the others had ended before.
        noted: how many shards were done at each kill.
        finished: how often a store was finished and compared.
    """

    seed: int
    seconds: float
    moments: list[float] = field(default_factory=list)
    killed: int = 0
    noted: list[int] = field(default_factory=list)
    finished: int = 0

    def text(self) -> str:
        """In one line."""
        moments = " ".join(f"{moment:.2f}" for moment in self.moments)
        return (
            f"seed {self.seed}: undisturbed {self.seconds:.2f} s; moments {moments}; "
            f"{self.killed} killed in their work, shards done then {self.noted}; "
            f"{self.finished} finished stores, all the same"
        )


def check(
    make: Callable[[Path], Sequence[str]], folder: Path, *, kills: int = 10, seed: int | None = None
) -> Series:
    """Kill a command at random moments, start it again and again, and compare what it leaves.

    The moments are spread over the time that an undisturbed run takes, each drawn from its own
    part of it, in an order drawn too. Every second kill leaves the workers alone. A killed run
    is gone on with by the next one. When a store is finished before its kill comes, it is
    compared and removed, and the next run starts anew.

    Args:
        make: the command, for the folder of its output.
        folder: an empty folder.
        kills: how many moments.
        seed: what they are drawn from; by default another one each time.
    """
    seed = random.randrange(1 << 32) if seed is None else seed
    draw = random.Random(seed)
    whole, out = folder / "whole", folder / "killed"
    seconds, _ = run(make(whole))
    wanted = hashes(whole)
    series = Series(seed, seconds)
    shares = [(number + draw.random()) / kills for number in range(kills)]
    draw.shuffle(shares)
    number = 0
    # On a machine that got faster all of them may end first; then they are killed earlier.
    while number < kills or not series.killed:
        share = shares[number] if number < kills else 0.5 ** (number - kills + 1)
        number += 1
        afresh, moment = not out.exists(), seconds * share
        series.moments.append(moment)
        took, code = run(make(out), moment, alone=number % 2 == 0)
        if not code and afresh:
            seconds = min(seconds, took)  # the machine was busier at the first run
        if code:
            series.killed += 1
            series.noted.append(len(list(out.glob(".run/shard-*.json"))))
        if (out / MANIFEST).exists():
            _compare(series, hashes(out), wanted)
            shutil.rmtree(out)
    if not (out / MANIFEST).exists():
        run(make(out))
        _compare(series, hashes(out), wanted)
    shutil.rmtree(out)
    print(series.text())
    return series


def _compare(series: Series, fields: dict[str, str], wanted: dict[str, str]) -> None:
    # A kill after the manifest was written may leave scratch files of a store that is finished.
    fields = {name: result for name, result in fields.items() if not name.startswith(".run/")}
    names = {name for name in fields.keys() | wanted.keys() if fields.get(name) != wanted.get(name)}
    if names:
        pytest.fail(f"{series.text()}, but for the last one: {sorted(names)} differ")
    series.finished += 1


def write_chats(path: Path, megabytes: float, seed: int) -> Path:
    """Write a file of chats whose ids repeat, in this file and in those of other seeds."""
    draw = random.Random(seed)
    words = ["".join(draw.choices("abcdefghijkl", k=draw.randint(2, 9))) for _ in range(2_000)]
    size, number = 0, 0
    with path.open("w") as file:
        while size < megabytes * 1_000_000:
            texts = [" ".join(draw.choices(words, k=400)) for _ in range(6)]
            call = {"name": "f", "arguments": json.dumps({"q": texts[1][:99]})}
            turn = [
                {"role": "assistant", "content": texts[2],
                 "tool_calls": [{"id": "c", "type": "function", "function": call}]},
                {"role": "tool", "tool_call_id": "c", "content": texts[3]},
            ]  # fmt: skip
            start = [{"role": "system", "content": texts[4]}, {"role": "user", "content": texts[5]}]
            record = {"id": f"r{number % 500}", "messages": [*start, *turn]}
            size += file.write(json.dumps(record) + "\n")
            number += 1
    return path
