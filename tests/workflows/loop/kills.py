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

from tests.kill import ROOT, command
from tests.waiting import PATIENCE


def environment(cache: Path) -> dict[str, str]:
    """One thread, so that sums are added in one order; and a cache of their own."""
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        "ADP_CACHE": str(cache),
    }


def call(words: list[str], out: Path, kill_after: float | None = None) -> tuple[float, int]:
    """Run a loop; its seconds and exit code, which is -9 when it was killed."""
    began = time.monotonic()
    process = subprocess.Popen(
        command("loop", *words, "-o", out),
        env=environment(out.parent / "cache"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, errors = process.communicate(timeout=PATIENCE if kill_after is None else kill_after)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        _, errors = process.communicate()
        if kill_after is None:
            raise
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    if process.returncode not in (0, -signal.SIGKILL):
        raise AssertionError(f"{words} ended with {process.returncode}: {errors.decode()}")
    return time.monotonic() - began, process.returncode


def results(out: Path) -> dict[str, str]:
    """Stage -> hash of what it made."""
    rows = [json.loads(line) for line in (out / "ledger.jsonl").read_text().splitlines()]
    return {f"round-{row['round']}.{row['stage']}": row["hash"] for row in rows}


def killed_at(words: list[str], folder: Path, kills: int, seed: int) -> tuple[dict[str, str], int]:
    """Run a loop with kills at random moments, until it ends.

    The moments are drawn from the time that an undisturbed run takes; each kill hits a run that
    goes on with what the one before has left.

    Returns:
        What the undisturbed run made, and how many runs were killed in their work.
    """
    whole, out = folder / "whole", folder / "killed"
    seconds, _ = call(words, whole)
    draw = random.Random(seed)
    count = 0
    for number in range(kills):
        # A run that goes on has less to do, and needs some seconds to begin.
        moment = 3 + (seconds - 3) * draw.random() * (1 - number / (2 * kills))
        _, code = call(words, out, moment)
        count += code != 0
        if code == 0:
            break
    call(words, out)
    assert results(out) == results(whole)
    assert not list((out / "work").glob("round-*")), "work of a stage is left"
    return results(whole), count
