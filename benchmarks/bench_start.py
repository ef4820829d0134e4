"""Small things: CPU seconds of starting, of imports, and of commands on a log of a megabyte.

    python benchmarks/bench_start.py [--rounds 10]

All processes of a round run one after another, so that what else a machine does falls on each of
them. ``import pyarrow.parquet`` is among them: nothing that touches a store can be quicker, and
the ratio to it is nearly the same on every machine.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from log_documents import write_log
from measure import Goal, Run, command, print_goals, run_command, save, spread

BASE = "import pyarrow.parquet"
CODE = {
    "python alone": "pass",
    BASE: BASE,
    "adp --help": "import sys; sys.argv = ['adp', '--help']; from adp.cli.main import main; main()",
    "import adp_schema": "import adp_schema",
    "import adp_schema.store": "import adp_schema.store",
}
FORMATS = ("claude_code", "codex", "openai_chat")
MEGABYTES = 1
QUERY = "SELECT count(*) FROM steps"
_ADP = "import sys; from adp.cli.entry import run; sys.exit(run())"
_TARGETS = {"adp --help": 0.4, "adp convert": 0.6, "adp": 0.5}
_STORE_TARGET = 2.0
_IMPORTED = re.compile(r"import time:\s+(\d+) \|\s+\d+ \| +(\S+)")
_MOST_PACKAGES = 12


def _adp(*words: str) -> list[str]:
    """The call of a command, as the installed script makes it."""
    return [sys.executable, "-c", _ADP, *words]


def _commands(sources: dict[str, Path], stores: dict[str, Path]) -> dict[str, Sequence[str]]:
    """Name -> the call. Conversions stand before what reads their stores."""
    calls: dict[str, Sequence[str]] = {
        name: [sys.executable, "-c", code] for name, code in CODE.items()
    }
    for name, source in sources.items():
        calls[f"adp convert ({name})"] = _adp("convert", str(source), "-o", str(stores[name]))
    store = str(stores[FORMATS[0]])
    calls["adp info"] = _adp("info", store)
    calls["adp head"] = _adp("head", store)
    calls["adp show"] = _adp("show", store, "0195a000-0000-7000-8000-000000000001")
    calls["adp query"] = _adp("query", store, "-c", QUERY)
    return calls


def measure(data: Path, rounds: int) -> dict[str, Any]:
    """CPU and wall seconds of each call, in turn; the first round only warms up."""
    folder = data / "small-logs"
    folder.mkdir(exist_ok=True)
    sources = {name: write_log(name, folder, MEGABYTES) for name in FORMATS}
    stores = {name: folder / f"store-{name}" for name in FORMATS}
    calls = _commands(sources, stores)
    runs: dict[str, list[Run]] = {name: [] for name in calls}
    for number in range(rounds + 1):
        for store in stores.values():
            shutil.rmtree(store, ignore_errors=True)
        for name, call in calls.items():
            done = run_command(call, quiet=True)
            if number:
                runs[name].append(done)
    base = spread([run.cpu for run in runs[BASE]])["median"]
    times = {
        name: {
            "cpu": spread([run.cpu for run in done]),
            "wall": spread([run.wall for run in done]),
            "times_pyarrow": round(spread([run.cpu for run in done])["median"] / base, 2),
        }
        for name, done in runs.items()
    }
    sizes = {
        name: {"log": sources[name].stat().st_size, "store": _size(stores[name])}
        for name in FORMATS
    }
    shutil.rmtree(stores[FORMATS[0]])
    return {
        "times": times,
        "sizes": sizes,
        "imports_of_convert": imports(calls[f"adp convert ({FORMATS[0]})"]),
        "imports_of_info": imports(_adp("info", str(stores[FORMATS[0]]))),
    }


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def imports(call: Sequence[str]) -> dict[str, float]:
    """Milliseconds that the modules of each package take to be imported, the most first.

    Args:
        call: a call of Python.
    """
    done = subprocess.run(
        [call[0], "-X", "importtime", *call[1:]], capture_output=True, text=True, check=True
    )
    packages: Counter[str] = Counter()
    for micros, module in _IMPORTED.findall(done.stderr):
        first, *others = module.split(".")
        packages[".".join([first, *others[:1]]) if first == "adp" else first] += int(micros)
    rest = sum(packages.values()) - sum(n for _, n in packages.most_common(_MOST_PACKAGES))
    named = {name: round(micros / 1000, 1) for name, micros in packages.most_common(_MOST_PACKAGES)}
    return {**named, "all others": round(rest / 1000, 1)}


def _goals(numbers: dict[str, Any]) -> list[Goal]:
    goals = []
    for name, values in numbers["times"].items():
        cpu = values["cpu"]
        note = f"best {cpu['min']:.2f}, worst {cpu['max']:.2f}; {values['wall']['median']:.2f} wall"
        note += f"; {values['times_pyarrow']:.1f} times {BASE}"
        kind = name.partition(" (")[0]
        target = _TARGETS.get(kind, _TARGETS["adp"] if name.startswith("adp ") else None)
        goals.append(Goal(name, cpu["median"], target, "CPU s", True, note))
    for name, sizes in numbers["sizes"].items():
        ratio = sizes["store"] / sizes["log"]
        note = f"{sizes['store']:,} of {sizes['log']:,} bytes"
        goals.append(Goal(f"store of a log ({name})", ratio, _STORE_TARGET, "times", True, note))
    return goals


def run(data: Path, *, small: bool, rounds: int = 10) -> list[Goal]:
    """Measure, print and save."""
    rounds = 3 if small else rounds
    numbers = measure(data, rounds)
    goals = _goals(numbers)
    print_goals(f"Start, median of {rounds}; logs of {MEGABYTES} MB", goals)
    for name in ("imports_of_convert", "imports_of_info"):
        listed = ", ".join(f"{package} {spent:g}" for package, spent in numbers[name].items())
        print(f"  {name.replace('_', ' ')}, milliseconds: {listed}")
    save("start", numbers, goals, small=small)
    return goals


if __name__ == "__main__":
    command(run, __doc__)
