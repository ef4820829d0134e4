"""The commands that write, each with a small job that takes a moment: what the trials run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from adp_schema.ids import digest_file
from tests import kill

RECIPE = """\
recipe: 1
seed: 5
inputs: {{runs: {store}}}
ops:
  - measure: {{only: [sizes, loops]}}
  - dedup_exact: {{of: actions}}
  - coreset: {{method: random, share: 0.7, coverage: false}}
  - split: {{shares: {{train: 0.5, test: 0.5}}}}
"""

TRAIN = """\
method: sft
model: {{model_name_or_path: tiny}}
data: {{store: {store}}}
render: {{max_length: 2048, window: sliding}}
lora: {{r: 4, lora_alpha: 8}}
training:
  max_steps: 6
  save_steps: 2
  learning_rate: 1.0e-3
  per_device_train_batch_size: 1
  gradient_accumulation_steps: 1
"""

PASSING = (".run", "run.json", "collect.json")
"""What a run may leave beside its output: notes of how it went, with times in them."""


@dataclass(frozen=True)
class Job:
    """A command that writes.

    Attributes:
        words: the words of the command, for its output.
        file: the output is a file, not a folder.
        resumes: the same command goes on with what a killed run left.
        again: words that are added when a killed run is gone on with.
        same: the files that are the same in each run; others name the folder of the output.
        marks: marks of its tests.
    """

    words: Callable[[Inputs, Path], list[object]]
    file: bool = False
    resumes: bool = True
    again: tuple[str, ...] = ()
    same: tuple[str, ...] = ("**/*",)
    marks: tuple[pytest.MarkDecorator, ...] = ()


@dataclass(frozen=True)
class Inputs:
    """What the commands read.

    Attributes:
        chats: a file of chats.
        store: the store of it.
        other: another store, for merging.
        recipe: a recipe over the store.
        train: a configuration of a training over the store.
    """

    chats: Path
    store: Path
    other: Path
    recipe: Path
    train: Path


def make_inputs(folder: Path, megabytes: float = 0.6) -> Inputs:
    """Make the inputs of all jobs in a folder."""
    chats = kill.write_chats(folder / "chats.jsonl", megabytes, 3)
    store = folder / "store"
    assert call(["convert", chats, "-o", store]).returncode == 0
    more = kill.write_chats(folder / "more.jsonl", megabytes / 4, 4)
    assert call(["convert", more, "-o", folder / "other"]).returncode == 0
    made = Inputs(chats, store, folder / "other", folder / "recipe.yaml", folder / "train.yaml")
    made.recipe.write_text(RECIPE.format(store=store))
    lines = [
        {"messages": [{"role": "user", "content": f"{n}?"}, {"role": "assistant", "content": "no"}]}
        for n in range(24)
    ]
    short = folder / "short.jsonl"
    short.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert call(["convert", short, "-o", folder / "short"]).returncode == 0
    made.train.write_text(TRAIN.format(store=folder / "short"))
    return made


JOBS: Mapping[str, Job] = {
    "convert": Job(lambda a, out: ["convert", a.chats, "-o", out]),
    "merge": Job(lambda a, out: ["merge", a.store, a.other, "-o", out]),
    "drop": Job(lambda a, out: ["drop", a.store, "--where", "source_id LIKE '%7%'", "-o", out]),
    "redact": Job(lambda a, out: ["redact", a.store, "-o", out]),
    "curate": Job(lambda a, out: ["curate", a.recipe, "-o", out]),
    "export": Job(lambda a, out: ["export", a.store, "--to", "sharegpt", "-o", out], resumes=False),
    "export of rows": Job(
        lambda a, out: ["export", a.store, "--to", "chatml", "-o", out], resumes=False
    ),
    "publish --dry-run": Job(
        lambda a, out: [
            *("publish", a.store, "me/set", "--license", "cc-by-4.0"),
            *("--dry-run", "--out", out),
        ],
        resumes=False,
    ),
    "report data": Job(
        lambda a, out: ["report", "data", a.store, "-o", out], file=True, resumes=False
    ),
    "query -o": Job(
        lambda a, out: [
            *("query", a.store, "-c", "SELECT * FROM steps ORDER BY ALL", "-o", out),
            *("--format", "jsonl"),
        ],
        file=True,
        resumes=False,
    ),
    "collect": Job(
        lambda a, out: [
            *("collect", "--env", "toolworld", "--policy", "expert", "--tasks", "test:60"),
            *("--no-times", "-o", out),
        ]
    ),
    "train": Job(
        lambda a, out: ["train", "sft", "--config", a.train, "-o", out],
        again=("--resume",),
        same=("adapter/*.safetensors", "metrics.jsonl", "loss.svg"),
        marks=(pytest.mark.train,),
    ),
}


QUICK = ("export",)
"""The jobs of every run of the tests; the others are tried by ``make test-slow``."""


def names() -> list[object]:
    """The names of the jobs, as parameters of a test."""
    return [
        pytest.param(name, marks=[*job.marks, *(() if name in QUICK else (pytest.mark.slow,))])
        for name, job in JOBS.items()
    ]


def output(name: str, folder: Path) -> Path:
    """The output of a job in a folder."""
    return folder / ("out.html" if JOBS[name].file else "out")


def call(
    words: list[object], *, before: str = "", code: Callable[[], None] | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end.

    Args:
        words: the command, without ``adp``.
        before: lines of Python that run in the process before the command.
        code: called in the new process before it begins.
        more: environment variables.
    """
    start = [sys.executable, "-m", "adp.cli.main"]
    if before:
        program = f"{before}\nimport sys\nfrom adp.cli.main import main\nsys.exit(main())"
        start = [sys.executable, "-c", program]
    return subprocess.run(
        [*start, *map(str, words)],
        env={**os.environ, "PYTHONPATH": f"{kill.ROOT / 'src'}:{kill.ROOT}", **more},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        preexec_fn=code,
        check=False,
    )


def contents(name: str, out: Path) -> dict[str, str]:
    """Hash of each file of a job's output by its name, without notes of how the run went."""
    if out.is_file():
        return {out.name: digest_file(str(out))}
    paths = {path for pattern in JOBS[name].same for path in out.glob(pattern)}
    return {
        path.relative_to(out).as_posix(): digest_file(str(path))
        for path in sorted(paths)
        if path.is_file() and not path.relative_to(out).as_posix().startswith(PASSING)
    }


def check_sentence(ran: subprocess.CompletedProcess[str], code: int) -> str:
    """The command ended with this code and one sentence; returns it."""
    assert ran.returncode == code, (ran.returncode, ran.stderr[-2000:])
    assert "Traceback" not in ran.stderr
    errors = [line for line in ran.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, ran.stderr[-2000:]
    assert "None" not in errors[0]
    return errors[0]


def is_finished(out: Path) -> bool:
    """Whether an output says that it is whole: a file, or a store with its manifest."""
    if out.is_file():
        return True
    manifest = out / "adp.json"
    return manifest.is_file() and bool(json.loads(manifest.read_text()))
