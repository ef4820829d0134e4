"""Decontamination: documents a CPU second, against sets of n-grams in plain Python.

python benchmarks/bench_decontaminate.py [--documents 200000] [--data DIR]
"""

from __future__ import annotations

import json
import random
import re
import statistics
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from generate import StoreMaker
from measure import Goal, Run, command, print_goals, run_task, save, spread
from tasks import work

ROUNDS = 3
ITEMS = 1000
ITEM_WORDS = 200
PROMPT_WORDS = 25
N = 13
TARGET = 4.0
MEMORY_LIMIT = 2000


class _Texts:
    """Texts of words that are as unequal in frequency as those of a language."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        letters = "abcdefghijklmnopqrstuvwxyz"
        self._words = [
            "".join(self.draw.choices(letters, k=self.draw.randint(3, 9))) for _ in range(20_000)
        ]
        self._sums: list[float] = []
        total = 0.0
        for rank in range(len(self._words)):
            total += 1 / (rank + 10)
            self._sums.append(total)

    def text(self, words: int) -> str:
        return " ".join(self.draw.choices(self._words, cum_weights=self._sums, k=words))


def _generate(data: Path, documents: int) -> tuple[Path, Path, set[int]]:
    """A store, the items, and the numbers of the documents that hold half of an item or more.

    All documents have one prompt; one in a hundred holds from a tenth of an item to all of it.
    """
    store, items = data / f"decontaminate-{documents}", data / "items.jsonl"
    texts = _Texts(5)
    benchmark = [texts.text(ITEM_WORDS) for _ in range(ITEMS)]
    prompt = texts.text(PROMPT_WORDS)
    maker = None if store.exists() else StoreMaker(store)
    truth = set()
    for number in range(documents):
        text = texts.text(texts.draw.randint(80, 390))
        if number % 100 == 0:
            words = benchmark[texts.draw.randrange(ITEMS)].split()
            held = texts.draw.randint(ITEM_WORDS // 10, ITEM_WORDS)
            text = f"{text} 0 {' '.join(words[:held])}"
            if held >= ITEM_WORDS / 2:
                truth.add(number)
        if maker is not None:
            statement = [("user", f"{prompt} {text}"), ("assistant", "Done.")]
            messages = [
                {"role": role, "content": content, "reasoning": None, "tool_calls": None}
                for role, content in statement
            ]
            row = {"id": f"{number:07d}", "dataset": "made", "success": None, "messages": messages}
            maker.add(row)
    if maker is not None:
        maker.finish()
    items.write_text("\n".join(json.dumps({"question": text}) for text in benchmark))
    return store, items, truth


# ---- in processes of their own ------------------------------------------------------------------


def ours(store: str, items: str, workers: int) -> dict[str, Any]:
    """The op on a pool; ``flagged`` are the numbers of the documents."""
    from adp.curation.inputs import open_inputs
    from adp.curation.load import load
    from adp.curation.registry import OPS

    op = OPS.get("decontaminate")
    options = op.options.model_validate({"against": [items]})
    answer: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        pool = load(open_inputs({"made": store})).pool(Path(scratch), workers=workers)
        with work(answer):
            outcome = op.run(pool, options)
    assert outcome.columns is not None
    flagged = outcome.columns["contaminated"].to_list()
    return answer | {
        "documents": len(flagged),
        "flagged": [number for number, result in enumerate(flagged) if result],
    }


def plain(store: str, items: str, documents: int) -> dict[str, Any]:
    """The same rule in plain Python: an index of tuples, sets, and two passes."""
    from adp_schema.store import Store

    word = re.compile(r"\w+")

    def grams(text: str) -> list[tuple[str, ...]]:
        words = word.findall(text.lower())
        return list(zip(*(words[at:] for at in range(N)), strict=False))

    opened = Store.open(store)
    steps = opened.scan("steps").head(2 * documents).select("source", "text").collect()
    texts = [text for source, text in steps.iter_rows() if source == "user"][:documents]
    answer: dict[str, Any] = {}
    with work(answer):
        rows = [json.loads(line) for line in Path(items).read_text().splitlines()]
        item_grams = [set(grams(row["question"])) for row in rows]
        owners: dict[tuple[str, ...], list[int]] = {}
        for number, item_gram in enumerate(item_grams):
            for gram in item_gram:
                owners.setdefault(gram, []).append(number)
        results = [[gram for gram in set(grams(text)) if gram in owners] for text in texts]
        counts = Counter(gram for item in results for gram in item)
        frequent = {gram for gram, count in counts.items() if count > max(0.01 * len(texts), 10)}
        sizes = [len(native - frequent) for native in item_grams]
        flagged = []
        for number, result in enumerate(results):
            held = Counter(
                owner for gram in result if gram not in frequent for owner in owners[gram]
            )
            if any(count >= 0.5 * sizes[owner] for owner, count in held.items()):
                flagged.append(number)
    return answer | {"documents": len(texts), "flagged": flagged}


def _task(name: str, arguments: dict[str, Any], *, sample: bool = False) -> Run:
    return run_task(name, arguments, sample=sample, script=__file__)


# ---- measuring ----------------------------------------------------------------------------------


def run(data: Path, *, small: bool, documents: int = 200_000) -> list[Goal]:
    """Measure, print and save; the generated files go to ``data``."""
    documents = 3000 if small else documents
    sample = 1000 if small else 10_000
    store, items, truth = _generate(data, documents)
    given = {"store": str(store), "items": str(items)}
    speeds: dict[str, list[float]] = {"ours": [], "plain": []}
    for _ in range(ROUNDS):
        for name, more in (("ours", {"workers": 1}), ("plain", {"documents": sample})):
            done = _task(name, given | more)
            speeds[name].append(done.answer["documents"] / done.answer["work"]["cpu"])
            if name == "ours":
                flagged = set(done.answer["flagged"])
    sampled = _task("ours", given | {"workers": 2}, sample=True)
    ratios = [result / other for result, other in zip(speeds["ours"], speeds["plain"], strict=True)]
    right = len(flagged & truth)
    middle = {name: statistics.median(values) for name, values in speeds.items()}
    note = f"{min(ratios):.1f} to {max(ratios):.1f}"
    goals = [
        Goal("documents a CPU second, against plain", statistics.median(ratios), TARGET, "x",
             note=note),
        Goal("  ours", middle["ours"], None, "documents/CPU s"),
        Goal("  sets of n-grams", middle["plain"], None, "documents/CPU s"),
        Goal("precision", right / max(len(flagged), 1), 0.95),
        Goal("recall", right / len(truth), 0.9),
        Goal("peak uss, 2 workers, all together", sampled.peaks["tree_uss"], MEMORY_LIMIT, "MB",
             at_most=True),
    ]  # fmt: skip
    print_goals(f"Decontamination of {documents:,} documents against {ITEMS:,} items", goals)
    numbers = {
        "documents": documents,
        "sample": sample,
        "speeds": {name: spread(values) for name, values in speeds.items()},
        "flagged": len(flagged),
        "truth": len(truth),
        "peaks": {name: round(value, 1) for name, value in sampled.peaks.items()},
    }
    save("decontaminate", numbers, goals, small=small)
    return goals


if __name__ == "__main__":
    command(run, __doc__, {"ours": ours, "plain": plain})
