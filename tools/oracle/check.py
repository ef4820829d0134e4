"""Whether LLaMA-Factory takes what `adp export --to sharegpt` writes.

    python -m tools.oracle.check --python .venv-oracle/bin/python

Run by `make oracle-tests`. The records are the examples, generated conversations, the same by way
of ADP v1, and odd records of the property tests. The hand-written `cases` come first: they show
that the oracle can say no.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import adp
from adp.converters.registry import formats
from adp_schema.store import Store
from tools.oracle.cases import CASES

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "benchmarks" / "results" / "oracle-llamafactory.json"
ODD_RECORDS = 100


def ask(python: str, folder: Path) -> dict[str, Any]:
    """What LLaMA-Factory says about the files of a folder."""
    out = folder.with_suffix(".verdicts")
    script = Path(__file__).with_name("llamafactory_sharegpt.py")
    command = [python, str(script), str(folder), "--each", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or not out.exists():
        raise SystemExit(f"the oracle itself failed:\n{done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return answer


def written_words(verdict: dict[str, Any]) -> str:
    """A verdict in the words of `cases`."""
    refused = ", ".join(sorted(verdict["refused_by"]))
    return f"{verdict['what']} but {refused}" if refused else str(verdict["what"])


def check_cases(python: str, folder: Path) -> tuple[list[str], dict[str, Any]]:
    """The hand-written records that got another verdict, and the answer."""
    folder.mkdir()
    for name, (record, _) in CASES.items():
        (folder / f"{name}.json").write_text(json.dumps([record]), encoding="utf-8")
    answer = ask(python, folder)
    results = {file["file"][:-5]: written_words(file["verdicts"][0]) for file in answer["by_file"]}
    wrong = [
        f"{name}: {results[name]}, expected {expected}"
        for name, (_, expected) in CASES.items()
        if results[name] != expected
    ]
    return wrong, answer


def drawn(strategy: Any) -> list[bytes]:
    """Always the same records of a strategy of the property tests."""
    from hypothesis import HealthCheck, Phase, given, seed, settings

    results: list[bytes] = []

    @seed(1)
    @settings(
        max_examples=ODD_RECORDS,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(record: bytes) -> None:
        results.append(record)

    collect()
    return results


def odd_records(folder: Path) -> None:
    """Records of the property tests, one a file, since one can spoil a whole file for Arrow."""
    from tests.converters.strategies import adp_v1_records, openai_records

    for name, strategy in (("chat", openai_records()), ("adp", adp_v1_records())):
        for index, record in enumerate(drawn(strategy)):
            (folder / f"{name}-{index:03d}.jsonl").write_bytes(record + b"\n")


def make_inputs(folder: Path) -> dict[str, Path]:
    """Folders of records to convert, by what they are."""
    from benchmarks.generate import chat_jsonl

    chats, odd = folder / "chats", folder / "odd"
    for item in (chats, odd):
        item.mkdir()
    chat_jsonl(chats / "chats.jsonl", 0.5)
    odd_records(odd)
    adp.export(adp.convert([str(chats)], str(folder / "chat_store")), "adp_v1", str(folder / "v1"))
    return {
        "examples": ROOT / "examples",
        "generated chats": chats,
        "generated chats as adp_v1": folder / "v1",
        "odd records": odd,
    }


def check_exports(python: str, folder: Path) -> tuple[list[str], dict[str, Any]]:
    """What of the exports LLaMA-Factory would not train on, and its answers by set."""
    faults: list[str] = []
    answers: dict[str, Any] = {}
    for name, source in make_inputs(folder).items():
        key = name.replace(" ", "_")
        store = adp.convert([str(source)], str(folder / f"store_{key}"))
        out = folder / f"out_{key}"
        report = adp.export(store, "sharegpt", str(out))
        answer = ask(python, out)
        answers[name] = {"unanswered": unanswered(store), **summary(answer, report.records)}
        if answer["records"] != report.records:
            faults.append(f"{name}: {answer['records']} records read, {report.records} written")
        if name != "odd records":
            faults += [f"{name}: {fault}" for fault in complaints(answer, unanswered(store))]
    return faults, answers


def unanswered(store: Store) -> int:
    """Trajectories that do not end with words or calls of the agent: nothing to learn at the end.

    LLaMA-Factory drops them whatever they look like.
    """
    return sum(
        not trajectory.steps
        or trajectory.steps[-1].source != "agent"
        or bool(trajectory.steps[-1].observations)
        for trajectory in store.trajectories()
    )


def summary(answer: dict[str, Any], exported: int) -> dict[str, Any]:
    """The counts of an answer, with all reasons."""
    reasons: dict[str, int] = {}
    for file in answer["by_file"]:
        for reason, count in file["reasons"].items():
            reasons[reason] = reasons.get(reason, 0) + count
        for template, why in file["refused_by"].items():
            for text, count in why.items():
                line = f"{template} alone stops: {text}"
                reasons[line] = reasons.get(line, 0) + count
        if file["loader"] != "loaded":
            line = f"file not loaded: {file['loader']}"
            reasons[line] = reasons.get(line, 0) + 1
    keys = ("files", "records", "accepted", "dropped", "failed", "not_loaded")
    return {"exported": exported, **{key: answer[key] for key in keys}, "reasons": reasons}


def complaints(answer: dict[str, Any], allowed: int) -> list[str]:
    """Files that do not load and records that would not be trained on, but for the allowed ones."""
    results = []
    for file in answer["by_file"]:
        if file["loader"] != "loaded":
            results.append(f"{file['file']}: {file['loader']}")
    if answer["dropped"] + answer["failed"] > allowed:
        results += [
            f"{file['file']}: {count} {why} (expected of {allowed})"
            for file in answer["by_file"]
            for why, count in file["reasons"].items()
        ]
    return results


def main() -> int:
    """Run both checks, note the result, and say what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--python", required=True, help="Python of the oracle's environment")
    parser.add_argument("--out", type=Path, default=RESULT, help="file for the result")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        faults, cases = check_cases(options.python, folder / "cases")
        print(f"{len(CASES)} hand-written records, {len(faults)} with another verdict")
        answers: dict[str, Any] = {}
        if "sharegpt" in formats:
            more, answers = check_exports(options.python, folder)
            faults += more
        else:
            print("exports: not checked, this version writes no sharegpt")
    for name, answer in answers.items():
        print(f"{name}: {answer['accepted']} of {answer['exported']} accepted")
        for reason, count in sorted(answer["reasons"].items()):
            print(f"    {count:5} {reason}")
    keep = {key: cases[key] for key in ("versions", "templates")}
    verdicts = {name: expected for name, (_, expected) in CASES.items()}
    result = {**keep, "cases": verdicts, "exports": answers}
    options.out.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", "utf-8")
    print(f"noted in {options.out}")
    for fault in faults:
        print(f"WRONG {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
