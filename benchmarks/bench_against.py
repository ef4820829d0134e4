"""This checkout against another commit: CPU seconds of convert, export and redact, in one run.

    make bench-against BASE=REV

Both sides run the same commands on the same data with the same packages, in turn, each in a process
of its own with one worker; the base lies in a git worktree that is removed afterwards. The ratio is
taken per round, ours to the base's: 1.03 means 3 % more CPU. The median counts.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import generate
from measure import Goal, command, print_goals, run_command, save, spread

ROOT = Path(__file__).parents[1]

LIMITS = {"convert": 1.03, "export": 1.10, "redact": 1.10}
"""Ratio that a change may cost."""

NO_VERIFY = ("export", "redact")
"""What is measured once more without the hashes of the store's files."""


@contextmanager
def worktree(revision: str) -> Iterator[Path]:
    """The source of a commit in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "base")
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(place), revision], check=True)
        try:
            yield place
        finally:
            subprocess.run([*git, "remove", "--force", str(place)], check=True)


def words(name: str, chats: Path, store: Path, out: Path) -> list[str]:
    """The words of a command."""
    if name == "convert":
        return ["convert", str(chats), "-o", str(out), "--workers", "1"]
    if name == "export":
        return ["export", str(store), "--to", "sharegpt", "-o", str(out)]
    return ["redact", str(store), "-o", str(out), "--workers", "1"]


def seconds(source: Path, call: list[str], out: Path) -> float:
    """CPU seconds of a command of a checkout, with its children."""
    program = "import sys; from adp.cli.main import main; sys.exit(main())"
    started = [sys.executable, "-c", program, *call]
    used = run_command(started, environment={"PYTHONPATH": str(source / "src")}).cpu
    shutil.rmtree(out)
    return used


def compare(data: Path, base: Path, megabytes: float, rounds: int) -> dict[str, Any]:
    """CPU seconds of each command on both sides, by round."""
    chats, out = data / f"against-{megabytes:g}.jsonl", data / "out"
    if not chats.exists():
        generate.chat_jsonl(chats, megabytes)
    stores = {"ours": data / "store-ours", "base": data / "store-base"}
    sources = {"ours": ROOT, "base": base}
    for side, store in stores.items():
        shutil.rmtree(store, ignore_errors=True)
        program = "import sys; from adp.cli.main import main; sys.exit(main())"
        call = words("convert", chats, store, store)
        environment = {"PYTHONPATH": str(sources[side] / "src")}
        run_command([sys.executable, "-c", program, *call], environment=environment)
    used: dict[str, dict[str, list[float]]] = {}
    for number in range(rounds):
        for name in LIMITS:
            sides = ["base", "ours"] if number % 2 else ["ours", "base"]
            for side in sides:
                call = words(name, chats, stores[side], out)
                used.setdefault(name, {}).setdefault(side, []).append(
                    seconds(sources[side], call, out)
                )
            if name in NO_VERIFY:
                call = [*words(name, chats, stores["ours"], out), "--no-verify"]
                used[name].setdefault("no verify", []).append(seconds(ROOT, call, out))
    return used


def run(
    data: Path, *, small: bool, base: str = "HEAD", megabytes: float = 100, rounds: int = 5
) -> list[Goal]:
    """Compare this checkout with a commit."""
    if small:
        megabytes, rounds = 5, 1
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short", base],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    with worktree(commit) as place:
        used = compare(data, place, megabytes, rounds)
    goals = []
    numbers: dict[str, Any] = {"base": commit, "megabytes": megabytes, "rounds": rounds}
    for name, sides in used.items():
        ratios = {
            side: [ours / other for ours, other in zip(values, sides["base"], strict=True)]
            for side, values in sides.items()
            if side != "base"
        }
        note = f"{min(ratios['ours']):.3f} to {max(ratios['ours']):.3f}"
        limit = LIMITS[name]
        goals.append(Goal(name, median(ratios["ours"]), limit, "times", at_most=True, note=note))
        if "no verify" in ratios:
            goals.append(Goal(f"{name} --no-verify", median(ratios["no verify"]), unit="times"))
        numbers[name] = {side: spread(values) for side, values in sides.items()}
        numbers[name]["ratios"] = {side: spread(values) for side, values in ratios.items()}
    print_goals(f"CPU seconds against {commit}, {megabytes:g} MB, {rounds} rounds", goals)
    save("against", numbers, goals, small=small)
    return goals


if __name__ == "__main__":
    command(run, __doc__, base="commit to compare with", megabytes="size of the generated chats")
