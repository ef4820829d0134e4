"""What Axolotl's own code trains of the rows that adp wrote for it.

    python tools/oracle/axolotl_rows.py JOBS.json --out RESULT.json

Runs where Axolotl can be imported (see loaders.txt beside it). A job is a folder as `adp export`
wrote it, with a tokenizer. The settings are those of the folder's README.md; the rows go through
Axolotl's own strategy for chat templates, from the message to the labels.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import yaml
from rows import Job, answer, row_of

PACKAGES = ("axolotl", "torch", "transformers", "datasets")
_YAML = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


def settings_of(job: Job) -> dict[str, Any]:
    """The settings of the folder's README.md: the data set, and tokens that end turns."""
    text = (Path(job["folder"]) / "README.md").read_text(encoding="utf-8")
    settings: dict[str, Any] = {}
    for block in _YAML.findall(text):
        settings |= yaml.safe_load(block)
    return settings


def rows_of(job: Job, *, eot_tokens: bool = False) -> list[Job]:
    """The rows, with the data set's settings alone, or with ``eot_tokens`` beside them."""
    from axolotl.prompt_strategies.chat_template import load
    from axolotl.utils.dict import DictDefault
    from transformers import AutoTokenizer

    settings = settings_of(job)
    [data] = settings["datasets"]
    tokenizer = AutoTokenizer.from_pretrained(job["tokenizer"])
    config = {
        "sequence_len": 1 << 20,
        "train_on_inputs": False,
        "chat_template": "tokenizer_default",
        "eot_tokens": settings["eot_tokens"] if eot_tokens else None,
    }
    strategy = load(tokenizer, DictDefault(config), data)
    lines = (Path(job["folder"]) / data["path"]).read_text(encoding="utf-8").splitlines()
    return [row_of(tokenizer, strategy.tokenize_prompt, json.loads(line)) for line in lines]


def rows_with_ends(job: Job) -> list[Job]:
    """The rows, with the tokens that end turns named."""
    return rows_of(job, eot_tokens=True)


if __name__ == "__main__":
    sys.exit(answer({"rows": rows_of, "rows-eot": rows_with_ends}, PACKAGES, __doc__))
