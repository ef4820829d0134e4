"""Start: CPU seconds of ``adp --help`` and of importing ``adp_schema``.

python benchmarks/bench_start.py [--rounds 10]
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from measure import Goal, Run, print_goals, run_command, save, spread

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


def run(*, small: bool, rounds: int = 10) -> list[Goal]:
    """Measure, print and save."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    run(small=False, rounds=parser.parse_args().rounds)


if __name__ == "__main__":
    main()
