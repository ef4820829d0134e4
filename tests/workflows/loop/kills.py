"""Killing a loop at random moments: what it leaves at the end is what an undisturbed run leaves."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.kill import ROOT, command
from tests.waiting import PATIENCE


def environment(cache: Path) -> dict[str, str]:
    """One thread, so that sums are added in one order; and a cache of their own."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        "ADP_CACHE": str(cache),
    }


def begin(words: list[str], out: Path) -> subprocess.Popen[bytes]:
    """Start a loop."""
    return subprocess.Popen(
        command("loop", *words, "-o", out),
        env=environment(out.parent / "cache"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[bytes]) -> None:
    """Wait until a loop has ended well."""
    try:
        _, errors = process.communicate(timeout=PATIENCE)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, errors.decode()


def rows(out: Path) -> list[dict[str, Any]]:
    """The ledger."""
    return [json.loads(line) for line in (out / "ledger.jsonl").read_text().splitlines()]


def results(out: Path) -> dict[str, str]:
    """Stage -> hash of what it made."""
    return {f"round-{row['round']}.{row['stage']}": row["hash"] for row in rows(out)}


def kill_in(process: subprocess.Popen[bytes], record: Path, delay: float) -> bool:
    """Kill a loop some time after a stage has begun; False when the loop has ended before."""
    until = time.monotonic() + PATIENCE
    while not record.exists() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    with suppress(subprocess.TimeoutExpired):
        process.wait(delay)
    ended = process.poll() is not None
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    _, errors = process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), errors.decode()
    return not ended


def check_kills(
    words: list[str], folder: Path, kills: int, seed: int, surely: tuple[str, ...] = ()
) -> dict[str, str]:
    """Run a loop undisturbed, and with kills in random stages at random moments of each.

    Each kill hits a run that goes on with what the one before has left.

    Args:
        words: the loop.
        folder: for both runs.
        kills: how many there are.
        seed: seed of stages and moments.
        surely: stages of which one each of the kills is, by their names.

    Returns:
        What both made.
    """
    whole, out = folder / "whole", folder / "killed"
    finish(begin(words, whole))
    draw = random.Random(seed)
    stages = rows(whole)
    count = 0
    fixed = [number for number, stage in enumerate(stages) if stage["stage"] in surely]
    assert len(fixed) == len(surely)
    for number in sorted(fixed + draw.choices(range(len(stages)), k=kills - len(fixed))):
        stage = stages[number]
        record = out / "records" / f"round-{stage['round']}" / f"{stage['stage']}.json"
        # A stage that was begun before is gone on with after some seconds of loading libraries.
        delay = 2.5 * record.exists() + draw.random() * stage["seconds"]
        count += kill_in(begin(words, out), record, delay)
    finish(begin(words, out))
    assert count >= kills - 1, "the loop ended before it could be killed"
    assert results(out) == results(whole)
    left = [path.name for path in (out / "work").iterdir()] if (out / "work").exists() else []
    assert not left, "work of a stage is left"
    return results(whole)
