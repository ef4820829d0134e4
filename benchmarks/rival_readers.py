"""Read files with teich and atif-make; run in an environment of their own by `benchmarks.rivals`.

python rival_readers.py OUT FILE...

Writes a JSON object: versions, and for each file what each of the two made of it.
"""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any


def calls_of(trajectory: Any) -> int:
    """The tool calls of an ATIF trajectory and of the subagents in it."""
    steps = trajectory.get("steps") or []
    inner = trajectory.get("subagent_trajectories") or []
    return sum(len(step.get("tool_calls") or []) for step in steps) + sum(map(calls_of, inner))


def by_teich(path: Path) -> dict[str, Any]:
    """The calls in the messages that teich makes of a file."""
    from teich import convert_trace_to_training_example

    messages = convert_trace_to_training_example(path).messages
    return {"calls": sum(len(message.get("tool_calls") or []) for message in messages)}


def by_atif_make(path: Path) -> dict[str, Any]:
    """The calls in the trajectory that atif-make makes of a file."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        command = [
            str(Path(sys.executable).with_name("atif-make")),
            "convert",
            "-q",
            "-o",
            str(out),
        ]
        done = subprocess.run(
            [*command, str(path)], capture_output=True, text=True, timeout=120, check=False
        )
        if done.returncode or not out.exists():
            lines = (done.stderr or done.stdout).strip().splitlines() or ["nothing was written"]
            crashed = "Traceback" in done.stderr
            return {"error": lines[-1][:200], "crash": crashed}
        return {"calls": calls_of(json.loads(out.read_text(encoding="utf-8")))}


def attempt(read: Any, path: Path) -> dict[str, Any]:
    """What a reader says of a file: its calls, or its error."""
    quiet = io.StringIO()
    try:
        with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            return dict(read(path))
    except Exception as error:
        # Both refuse what they do not know with an exception of this kind.
        return {"error": str(error)[:200], "crash": not isinstance(error, ValueError)}


def main() -> int:
    """Read each file with both."""
    out, *names = sys.argv[1:]
    files = {
        name: {
            "teich": attempt(by_teich, Path(name)),
            "atif-make": attempt(by_atif_make, Path(name)),
        }
        for name in names
    }
    versions = {name: version(name) for name in ("teich", "atif-make")}
    Path(out).write_text(json.dumps({"versions": versions, "files": files}), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
