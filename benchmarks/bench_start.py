"""Start: CPU seconds of ``adp --help`` and of importing ``adp_schema``.

python benchmarks/bench_start.py [--rounds 10]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from measure import Goal, Run, command, print_goals, run_command, save, spread

COMMANDS = {
    "adp --help": "import sys; sys.argv = ['adp', '--help']; from adp.cli.main import main; main()",
    "import adp_schema": "import adp_schema",
    "import adp_schema.store": "import adp_schema.store",
    "python alone": "pass",
}
TARGETS = {"adp --help": 0.4}


def measure(rounds: int) -> dict[str, Any]:
    """CPU and wall seconds of each command, in turn; the first round only warms up."""
    runs: dict[str, list[Run]] = {name: [] for name in COMMANDS}
    for number in range(rounds + 1):
        for name, code in COMMANDS.items():
            done = run_command([sys.executable, "-c", code])
            if number:
                runs[name].append(done)
    return {
        name: {
            "cpu": spread([run.cpu for run in done]),
            "wall": spread([run.wall for run in done]),
        }
        for name, done in runs.items()
    }


def run(data: Path, *, small: bool, rounds: int = 10) -> list[Goal]:
    """Measure, print and save. ``data`` is not used: there is none."""
    rounds = 3 if small else rounds
    numbers = measure(rounds)
    goals = []
    for name, values in numbers.items():
        cpu = values["cpu"]
        note = f"best {cpu['min']:.2f}, worst {cpu['max']:.2f}; {values['wall']['median']:.2f} wall"
        goals.append(Goal(name, cpu["median"], TARGETS.get(name), "CPU s", True, note))
    print_goals(f"Start, median of {rounds}", goals)
    save("start", numbers, goals, small=small)
    return goals


if __name__ == "__main__":
    command(run, __doc__)
