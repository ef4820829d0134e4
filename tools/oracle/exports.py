"""Whether LLaMA-Factory, verl, Axolotl and ms-swift train what adp says, by their own code.

    python -m tools.oracle.exports --llamafactory PYTHON --verl PYTHON --loaders FOLDER

Run by `make oracle-tests`. The same chats go two ways: our renderer says which pieces of the text
of a tokenizer's own chat template are trained; and an export goes through the trainer's own code,
which says which pieces it trains. They are compared row by row. Where they differ, the kind of
the difference is counted by case. A difference of a kind that is not known fails the run, and so
does a row that the trainer drops. LLaMA-Factory trains two steps with each kind of train.yaml.

The runs are made up (see `runs`); with ``--data FOLDER`` those of real samples are compared, too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import adp
from adp.trainers.export.run import export_rows
from adp_schema.store import Store
from tools.oracle import verl_check
from tools.oracle.differences import OTHER, kind_of
from tools.oracle.families import FAMILIES, write_model
from tools.oracle.runs import made_pairs, made_runs
from tools.oracle.ways import AXOLOTL, SWIFT, TRAINED, WAYS, Expected, Way, expected

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "oracles"

Result = dict[str, Any]


@dataclass(frozen=True)
class Program:
    """A Python that can import a trainer's code.

    Attributes:
        python: path of the interpreter.
        packages: folder of further packages.
    """

    python: str
    packages: str | None = None

    @classmethod
    def of(cls, python: str | None) -> Program | None:
        """The one at a path, if there is a path."""
        return None if python is None else cls(python)


def ask(program: Program, script: str, jobs: dict[str, Any], folder: Path) -> Result:
    """What a trainer's side answers to all jobs."""
    paths = [folder / f"{script}.jobs.json", folder / f"{script}.answers.json"]
    paths[0].write_text(json.dumps(jobs), encoding="utf-8")
    text = str(Path(__file__).with_name(script))
    command = [program.python, text, str(paths[0]), "--out", str(paths[1])]
    places = {"PYTHONPATH": program.packages} if program.packages else {}
    env = {**os.environ, "HF_HUB_OFFLINE": "1", **places}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    if done.returncode or not paths[1].exists():
        raise SystemExit(f"the oracle itself failed:\n{done.stderr[-2000:]}")
    answer: Result = json.loads(paths[1].read_text(encoding="utf-8"))
    return answer


def case_of(trajectory_id: str, made: bool) -> str:
    """What is special about a run, by its id; of real samples, the data set."""
    dataset, _, name = trajectory_id.partition("/")
    return name.rstrip("0123456789# ") if made else dataset


def compare(way: Way, wanted: list[Expected], answer: Result, *, made: bool) -> Result:
    """What differs, by case and kind; ``faults`` says what must not be."""
    if "error" in answer:
        return {"faults": [answer["error"]]}
    rows = answer["rows"]
    if len(rows) != len(wanted):
        return {"faults": [f"{len(wanted)} rows written, {len(rows)} read"]}
    by_case: dict[str, Counter[str]] = {}
    kinds: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    context = 0
    faults = []
    for result, row in zip(wanted, rows, strict=True):
        if result.refused is not None:
            refused[result.refused] += 1
            continue
        kind = kind_of(result.trained, row["trained"])
        if made:
            by_case.setdefault(case_of(result.trajectory_id, made), Counter())[kind] += 1
        kinds[kind] += 1
        context += result.text.rstrip() == row["text"].rstrip()
        if (made and kind not in way.known) or kind == OTHER:
            faults.append(f"{result.trajectory_id}: {kind}")
    return {
        "rows": len(rows),
        "trained_pieces": sum(len(row["trained"]) for row in rows),
        "differences": dict(sorted(kinds.items())),
        "not_compared": dict(sorted(refused.items())),
        "whole_text_equal": context,
        **(
            {"by_case": {case: dict(match) for case, match in sorted(by_case.items())}}
            if made
            else {}
        ),
        "faults": faults[:20],
    }


@dataclass(frozen=True)
class Side:
    """The code of a trainer that is asked.

    Attributes:
        script: runs with its Python.
        ways: the exports that are compared.
        real: those that are compared with real samples, too.
        trained: training runs: name -> way, what to do.
    """

    script: str
    ways: dict[str, Way]
    real: tuple[str, ...] = ()
    trained: dict[str, tuple[str, str]] = field(default_factory=dict)

    def compare(self, program: Program, folder: Path, data: Store | None) -> Result:
        """Every way, then the training runs."""
        stores = {"runs": made_runs(folder / "runs"), "pairs": made_pairs(folder / "pairs")}
        ways = {name: (way, stores[way.store], True) for name, way in self.ways.items()}
        for name in self.real if data is not None else ():
            ways[f"real samples: {name}"] = (self.ways[name], data, False)
        jobs: dict[str, Any] = {}
        wanted: dict[str, list[Expected]] = {}
        faults = []
        for name, (way, store, _) in ways.items():
            out = folder / self.script / "exports" / name
            report = export_rows(store, way.exporter, str(out), way.settings)
            wanted[name] = list(expected(store, way, folder / way.family))
            lines = (out / "train.jsonl").read_text(encoding="utf-8").splitlines()
            if [json.loads(line) for line in lines] != [item.row for item in wanted[name]]:
                faults.append(f"{name}: the file has other rows than the exporter gives")
            jobs[name] = self._job(folder, name, str(out), way.family, way.what) | way.more
            if report.in_rows + sum(report.left_out.values()) != report.in_store:
                faults.append(f"{name}: steps are neither in a row nor counted")
        for name, (of, what) in self.trained.items():
            jobs[name] = self._job(folder, name, jobs[of]["folder"], self.ways[of].family, what)
        answer = ask(program, self.script, jobs, folder)
        result: Result = {}
        for name, (way, _, made) in ways.items():
            result[name] = compare(way, wanted[name], answer["answers"][name], made=made)
            faults += [f"{name}: {fault}" for fault in result[name].pop("faults")]
        for name in self.trained:
            match = answer["answers"][name]
            result[name] = match.get("rows", match)
            if "error" in match:
                faults.append(f"{name}: {match['error']}")
        return {"versions": answer["versions"], "ways": result, "faults": faults}

    def _job(self, folder: Path, name: str, export: str, family: str, what: str) -> dict[str, str]:
        """What the trainer's side is told."""
        work = str(folder / self.script / "work" / name)
        return {"what": what, "folder": export, "tokenizer": str(folder / family), "work": work}


LLAMAFACTORY = Side(
    "llamafactory_rows.py",
    WAYS,
    ("sft expanded, qwen", "sft expanded, qwen3_nothink", "v1, qwen3_nothink"),
    TRAINED,
)


def verl(program: Program, folder: Path, data: Store | None) -> Result:
    """verl's side."""
    runs = made_runs(folder / "verl_runs")
    jobs, wanted = verl_check.prepare(folder, runs, data)
    answer = ask(program, "verl_rows.py", jobs, folder)
    result, faults = verl_check.compare(jobs, wanted, answer["answers"])
    return {"versions": answer["versions"], "ways": result, "faults": faults}


def main() -> int:
    """Run all, note the results, and say what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--llamafactory", help="Python of LLaMA-Factory's environment")
    parser.add_argument("--verl", help="Python of verl's environment")
    parser.add_argument("--loaders", help="folder with Axolotl and ms-swift")
    parser.add_argument("--data", type=Path, help="folder of real samples")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    extra_keys = Program(sys.executable, options.loaders) if options.loaders else None
    sides = {
        "llamafactory": (LLAMAFACTORY.compare, Program.of(options.llamafactory)),
        "verl": (verl, Program.of(options.verl)),
        "axolotl": (Side("axolotl_rows.py", AXOLOTL, ("qwen2.5",)).compare, extra_keys),
        "swift": (Side("swift_rows.py", SWIFT, ("qwen2.5",)).compare, extra_keys),
    }
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for family in FAMILIES:
            write_model(folder / family, family)
        data = adp.convert([str(options.data)], str(folder / "data")) if options.data else None
        for name, (compared, program) in sides.items():
            if program is None:
                print(f"{name}: not asked")
                continue
            result = compared(program, folder, data)
            faults += [f"{name}: {fault}" for fault in result.pop("faults")]
            say(name, result)
            path = options.out / f"{name}-rows.json"
            path.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", "utf-8")
            print(f"noted in {path}")
    for fault in faults:
        print(f"WRONG {fault}", file=sys.stderr)
    return 1 if faults else 0


def say(name: str, result: Result) -> None:
    """One line a way."""
    print(name, *(f"{package} {version}" for package, version in result["versions"].items()))
    for way, match in result["ways"].items():
        short = match.get("differences", match) if isinstance(match, dict) else match
        print(f"  {way}: {json.dumps(short)}")


if __name__ == "__main__":
    sys.exit(main())
