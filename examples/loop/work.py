"""Calling `adp`, and doing each thing once, so that a stopped run goes on where it was."""

import contextlib
import io
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
DONE = "done.json"


@dataclass
class Work:
    """A folder in which the stages of a run leave their results.

    Attributes:
        root: the folder.
        threads: threads of torch.
        inline: whether `adp` runs in this process, which saves loading torch again and again.
    """

    root: Path
    threads: int = 1
    inline: bool = False
    costs: dict = field(default_factory=dict)

    def path(self, *parts) -> Path:
        """A path in the folder."""
        return self.root.joinpath(*parts)

    def once(self, name, stage):
        """Do a stage, or read its result when it was done before.

        Args:
            name: name of the stage.
            stage: called without arguments; returns JSON.
        """
        mark = self.path("stages", f"{name}.json")
        if mark.is_file():
            value = json.loads(mark.read_text())
            self.costs[name] = value["cost"]
            print(f"-- {name}: done before", flush=True)
            return value["result"]
        print(f"-- {name}", flush=True)
        began, cpu = time.monotonic(), _cpu()
        result = stage()
        cost = {"wall_s": round(time.monotonic() - began, 1), "cpu_s": round(_cpu() - cpu, 1)}
        self.costs[name] = cost
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.write_text(json.dumps({"result": result, "cost": cost}, indent=2) + "\n")
        print(f"   {cost['wall_s']} s, {cost['cpu_s']} s of CPU; {json.dumps(result)}", flush=True)
        return result

    def adp(self, *words, show=None):
        """Call the command line, in the folder.

        Args:
            *words: the call.
            show: words; only lines with one of them are printed; None: all.
        """
        print("   $ adp " + " ".join(map(str, words)), flush=True)
        code, text = (self._here if self.inline else self._apart)(list(map(str, words)))
        if code:
            raise SystemExit(f"adp {' '.join(map(str, words))}\n{text}")
        for line in text.splitlines():
            if show is None or any(word in line for word in show):
                print(f"     {line}", flush=True)

    def _apart(self, words):
        env = os.environ | {
            "OMP_NUM_THREADS": str(self.threads),
            "TOKENIZERS_PARALLELISM": "false",
            "HF_HUB_OFFLINE": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        done = subprocess.run(
            [sys.executable, "-m", "adp.cli.main", *words],
            cwd=self.root,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def _here(self, words):
        from adp.cli.main import main

        string_io = io.StringIO()
        with (
            contextlib.chdir(self.root),
            contextlib.redirect_stdout(string_io),
            contextlib.redirect_stderr(string_io),
        ):
            code = main(words)
        return code, string_io.getvalue()

    def fresh(self, *parts) -> Path:
        """A path whose folder, left by a stage that was stopped, is removed."""
        path = self.path(*parts)
        if path.exists():
            shutil.rmtree(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def give(self, name):
        """Copy a file of this example into the folder."""
        shutil.copy(HERE / name, self.path(name))
        return name


def _cpu():
    getrusage = resource.getrusage(resource.RUSAGE_SELF)
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    return getrusage.ru_utime + getrusage.ru_stime + others.ru_utime + others.ru_stime
