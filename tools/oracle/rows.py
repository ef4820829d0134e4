"""What the scripts share that run in the environments of trainers."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

IGNORED = -100

Job = dict[str, Any]


def pieces(tokenizer: Any, ids: Iterable[int], labels: Iterable[int]) -> list[str]:
    """The texts of the runs of trained tokens."""
    results: list[list[int]] = []
    before = IGNORED
    for token, label in zip(ids, labels, strict=True):
        if label != IGNORED:
            assert label == token
            if before == IGNORED:
                results.append([])
            results[-1].append(token)
        before = label
    return [tokenizer.decode(run, skip_special_tokens=False) for run in results]


def row_of(tokenizer: Any, encode: Callable[[Any], Mapping[str, Any]], row: Any) -> Job:
    """What a trainer makes of one row; what it refuses is trained by nobody."""
    try:
        data = encode(row)
    except Exception as error:  # the oracle may refuse in any way
        return {"trained": [f"refused: {type(error).__name__}: {str(error)[:200]}"], "text": ""}
    ids = [int(token) for token in data["input_ids"]]
    return {
        "trained": pieces(tokenizer, ids, [int(label) for label in data["labels"]]),
        "text": tokenizer.decode(ids, skip_special_tokens=False),
    }


def answer(
    work: Mapping[str, Callable[[Job], list[Job]]], packages: Iterable[str], about: str
) -> int:
    """Do every job of the file that the call names, and write the answers.

    Args:
        work: what is to be done -> who does it.
        packages: those whose versions are told.
        about: what the script does.
    """
    parser = argparse.ArgumentParser(description=about.split("\n", 1)[0])
    parser.add_argument("jobs", type=Path, help="JSON: name -> job")
    parser.add_argument("--out", type=Path, required=True, help="file for the answers")
    options = parser.parse_args()
    jobs = json.loads(options.jobs.read_text(encoding="utf-8"))
    answers: dict[str, Any] = {}
    for name, job in jobs.items():
        Path(job["work"]).mkdir(parents=True, exist_ok=True)
        try:
            answers[name] = {"rows": work[job["what"]](job)}
        except Exception as error:  # the oracle may stop in any way
            answers[name] = {"error": f"{type(error).__name__}: {str(error)[:500]}"}
    versions = {name: version(name) for name in packages}
    text = json.dumps({"versions": versions, "answers": answers}, ensure_ascii=False)
    options.out.write_text(text, encoding="utf-8")
    return 0
