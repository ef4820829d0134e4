"""What bench_render.py runs in processes of their own: ``python render_tasks.py TASK '{...}'``.

Each task prints one line of JSON with the seconds of the work alone, without imports.
"""

from __future__ import annotations

import hashlib
import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
from tasks import load_arrow, work

LONGER = 1 << 20
"""A length that no row has."""


def template(name: str) -> str:
    """One of the chat templates that TRL brings."""
    import trl

    folder = Path(str(trl.__file__)).parent / "chat_templates"
    return (folder / f"{name}.jinja").read_text(encoding="utf-8")


def _digest(rows: dict[str, tuple[list[int], list[int]]]) -> str:
    """Names ids and labels of all rows."""
    text = json.dumps([[name, *map(list, rows[name])] for name in sorted(rows)])
    return hashlib.sha256(text.encode()).hexdigest()


def render(
    store: str, model: str, out: str, name: str, workers: int, options: dict[str, Any]
) -> dict[str, Any]:
    """Ours: a store as Parquet."""
    from adp.rendering.model import load_tokenizer
    from adp.rendering.options import RenderOptions
    from adp.rendering.run import render_store
    from adp_schema.store import Store

    load_arrow()
    load_tokenizer(model)  # Loads the libraries, as TRL's are loaded before its clock starts.
    render_options = RenderOptions(chat_template=template(name), **options)
    opened = Store.open(store)
    answer: dict[str, Any] = {}
    with work(answer):
        report = render_store(opened, model, out, render_options, workers=workers)
    for field in ("rows", "tokens", "trained_tokens", "steps", "trained", "longest"):
        answer[field] = getattr(report, field)
    return answer | {"notes": dict(report.notes), "lost": dict(report.lost)}


def our_digest(out: str) -> dict[str, Any]:
    """Ids and labels of the rows."""
    import pyarrow.parquet as pq

    rows = {}
    for path in sorted(Path(out, "rows").glob("*.parquet")):
        columns = ["trajectory_id", "input_ids", "labels"]
        for row in pq.read_table(path, columns=columns).to_pylist():
            rows[row["trajectory_id"].rpartition("/")[2]] = (row["input_ids"], row["labels"])
    return {"digest": _digest(rows)}


def save_dataset(source: str, out: str) -> dict[str, Any]:
    """The same runs as TRL takes them, on disk."""
    from datasets import Dataset, Features, Json, List, Value, disable_progress_bars

    with Path(source).open(encoding="utf-8") as file:
        runs = [json.loads(line) for line in file]
    features = Features({"id": Value("string"), "messages": List(Json()), "tools": List(Json())})
    disable_progress_bars()
    Dataset.from_list(runs, features=features).save_to_disk(out)
    return {}


def _prepare(dataset: Any, model: str, name: str, **arguments: Any) -> Any:
    """What SFTTrainer does to its dataset, by its own code."""
    from transformers import AutoTokenizer
    from trl import SFTConfig, SFTTrainer

    tokenizer = AutoTokenizer.from_pretrained(model)
    tokenizer.chat_template = template(name)
    options: dict[str, Any] = {"max_length": LONGER, "report_to": "none", **arguments}
    config = SFTConfig(
        output_dir="unused", use_cpu=True, bf16=False, assistant_only_loss=True, **options
    )
    simple_namespace = types.SimpleNamespace(
        chat_template=tokenizer.chat_template, completion_only_loss=False, _tokenizer=tokenizer
    )
    return SFTTrainer._prepare_dataset(
        simple_namespace, dataset, tokenizer, config, config.packing, None, "train"
    )


def trl_prepare(dataset: str, model: str, name: str, digest: bool) -> dict[str, Any]:
    """TRL's own preparation of messages and tools."""
    import trl
    from datasets import disable_progress_bars, load_from_disk

    assert trl.SFTTrainer
    disable_progress_bars()
    opened = load_from_disk(dataset)
    answer: dict[str, Any] = {}
    with work(answer):
        made = _prepare(opened, model, name)
    lengths = [len(ids) for ids in made.with_format("numpy")["input_ids"]]
    answer |= {"rows": len(made), "tokens": int(np.sum(lengths))}
    if digest:
        rows = {row["id"]: (row["input_ids"], row["labels"]) for row in made}
        answer["digest"] = _digest(rows)
    made.cleanup_cache_files()
    return answer


def packing(out: str, length: int) -> dict[str, Any]:
    """Tokens that are no padding, when TRL packs our rows and when batches of four are padded."""
    from datasets import disable_progress_bars, load_dataset
    from trl.data_utils import pack_dataset

    disable_progress_bars()
    files = sorted(map(str, Path(out, "rows").glob("*.parquet")))
    rows = load_dataset("parquet", data_files=files, split="train", cache_dir=out + "-cache")
    rows = rows.select_columns(["input_ids", "labels"])
    lengths = np.array([len(ids) for ids in rows.with_format("numpy")["input_ids"]])
    answer: dict[str, Any] = {}
    with work(answer):
        packed = pack_dataset(rows, length, "bfd")
    bins = np.array([len(ids) for ids in packed.with_format("numpy")["input_ids"]])
    order = np.random.default_rng(1).permutation(len(lengths))
    padded = sum(
        len(part) * lengths[part].max() for part in np.array_split(order, -(-len(order) // 4))
    )
    return answer | {
        "rows": len(lengths),
        "packed_rows": len(bins),
        "tokens": int(lengths.sum()),
        "packed_tokens": int(bins.sum()),
        "packed_share": float(bins.sum() / (len(bins) * length)),
        "padded_share": float(lengths.sum() / padded),
    }


TASKS = {task.__name__: task for task in (render, our_digest, save_dataset, trl_prepare, packing)}


def main() -> None:
    print(json.dumps(TASKS[sys.argv[1]](**json.loads(sys.argv[2]))))


if __name__ == "__main__":
    main()
