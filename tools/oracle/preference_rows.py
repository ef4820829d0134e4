"""What Axolotl's and ms-swift's own code makes of the pairs and labels that adp wrote for them.

    python tools/oracle/preference_rows.py JOBS.json --out RESULT.json

Runs where both can be imported (see loaders.txt beside it). A job is a folder as `adp export` wrote
it, with a tokenizer. The settings are those of the folder's README.md.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import yaml
from rows import Job, answer, pieces

PACKAGES = ("axolotl", "ms_swift", "torch", "transformers", "datasets")
_YAML = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


def _axolotl(job: Job, load: Any) -> list[Job]:
    """The rows as Axolotl's strategy for preference data transforms them."""
    from axolotl.utils.dict import DictDefault
    from transformers import AutoTokenizer

    folder = Path(job["folder"])
    config = DictDefault(yaml.safe_load(_YAML.findall((folder / "README.md").read_text())[0]))
    config["chat_template"] = "tokenizer_default"
    [data] = config["datasets"]
    kind = data["type"]
    name = "user_defined.default" if isinstance(kind, DictDefault) else kind
    transform = load(name, config, dataset_idx=0)
    more: dict[str, Any] = {}
    if isinstance(transform, tuple):
        transform = transform[0]
        more = {"tokenizer": AutoTokenizer.from_pretrained(job["tokenizer"])}
    lines = (folder / data["path"]).read_text(encoding="utf-8").splitlines()
    return [dict(transform(json.loads(line), **more)) for line in lines]


def axolotl_dpo(job: Job) -> list[Job]:
    """Prompt, chosen and rejected as text."""
    from axolotl.prompt_strategies.dpo import load

    return _axolotl(job, load)


def axolotl_kto(job: Job) -> list[Job]:
    """Prompt, completion and label."""
    from axolotl.prompt_strategies.kto import load

    return _axolotl(job, load)


def _swift(job: Job, mode: str) -> tuple[Any, Any, Any]:
    """ms-swift's template and its rows."""
    os.environ["MODELSCOPE_CACHE"] = os.environ["HF_DATASETS_CACHE"] = job["work"]
    from swift.dataset import load_dataset
    from swift.model import get_processor
    from swift.template import get_template

    tokenizer = get_processor(job["tokenizer"], model_type=job["model"])
    template = get_template(
        tokenizer, template_type=job["template"], loss_scale="default", max_length=1 << 20
    )
    template.set_mode(mode)
    path = str(Path(job["folder"]) / "train.jsonl")
    data, _ = load_dataset([path], num_proc=1, load_from_cache_file=False)
    return tokenizer, template, data


def swift_dpo(job: Job) -> list[Job]:
    """What is trained of each side."""
    tokenizer, template, data = _swift(job, "rlhf")
    rows = []
    for row in data:
        encoded = template.encode(row)
        rows.append(
            {
                side: pieces(tokenizer, encoded[f"{side}_input_ids"], encoded[f"{side}_labels"])
                for side in ("chosen", "rejected")
            }
        )
    return rows


def swift_kto(job: Job) -> list[Job]:
    """What is trained of each answer, behind ms-swift's own preparation of its KL term."""
    tokenizer, template, data = _swift(job, "kto")
    from swift.pipelines.train.kto import KTOPreprocessor

    rows = []
    for row in KTOPreprocessor()(data, batch_size=2, num_proc=1):
        encoded = template.encode(row)
        trained = pieces(tokenizer, encoded["chosen_input_ids"], encoded["chosen_labels"])
        rows.append({"trained": trained, "label": encoded["label"]})
    return rows


WORK = {
    "axolotl-dpo": axolotl_dpo,
    "axolotl-kto": axolotl_kto,
    "swift-dpo": swift_dpo,
    "swift-kto": swift_kto,
}

if __name__ == "__main__":
    sys.exit(answer(WORK, PACKAGES, __doc__))
