"""Calling `adp`, and doing each thing once, so that a stopped run goes on where it was."""

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
    """

    root: Path
    threads: int = 1
    costs: dict = field(default_factory=dict)

    def path(self, *parts) -> Path:
        """A path in the folder."""
        return self.root.joinpath(*parts)

    def once(self, name, stage):
        """Do a stage, or tell what it said when it was done before.

        Args:
            name: name of the stage.
            stage: called without arguments; returns JSON.
        """
        mark = self.path("stages", f"{name}.json")
        if mark.is_file():
            found = json.loads(mark.read_text())
            self.costs[name] = found["cost"]
            print(f"-- {name}: done before", flush=True)
            return found["said"]
        print(f"-- {name}", flush=True)
        began, cpu = time.monotonic(), _cpu()
        said = stage()
        cost = {"wall_s": round(time.monotonic() - began, 1), "cpu_s": round(_cpu() - cpu, 1)}
        self.costs[name] = cost
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.write_text(json.dumps({"said": said, "cost": cost}, indent=2) + "\n")
        print(f"   {cost['wall_s']} s, {cost['cpu_s']} s of CPU; {json.dumps(said)}", flush=True)
        return said

    def adp(self, *words, show=None):
        """Call the command line, in the folder; its last line on failure."""
        command = [sys.executable, "-m", "adp.cli.main", *map(str, words)]
        print("   $ adp " + " ".join(map(str, words)), flush=True)
        env = os.environ | {
            "OMP_NUM_THREADS": str(self.threads),
            "TOKENIZERS_PARALLELISM": "false",
            "HF_HUB_OFFLINE": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        done = subprocess.run(
            command, cwd=self.root, env=env, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        for line in done.stdout.splitlines() + done.stderr.splitlines():
            if show is None or any(word in line for word in show):
                print(f"     {line}", flush=True)
        return done.stdout

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
    own = resource.getrusage(resource.RUSAGE_SELF)
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime
