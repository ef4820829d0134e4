"""What ms-swift's own code trains of the rows that adp wrote for it.

    python tools/oracle/swift_rows.py JOBS.json --out RESULT.json

Runs where ms-swift can be imported (see loaders.txt beside it). A job is a folder as `adp export`
wrote it, with a tokenizer and the names that ms-swift has for its model and template. The rows go
through ms-swift's own loader of data sets and its own templates, with the loss scale of the call
in the folder's README.md.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

from rows import Job, answer, row_of

PACKAGES = ("ms_swift", "torch", "transformers", "datasets")


def call_of(job: Job) -> dict[str, str]:
    """The options of the call in the folder's README.md."""
    text = (Path(job["folder"]) / "README.md").read_text(encoding="utf-8")
    match = re.search(r"^swift sft .*$", text, re.MULTILINE)
    assert match is not None
    words = shlex.split(match[0])[2:]
    return {
        name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)
    }


def rows_of(job: Job) -> list[Job]:
    """The rows under ms-swift's own template of a model."""
    os.environ["MODELSCOPE_CACHE"] = os.environ["HF_DATASETS_CACHE"] = job["work"]
    from swift.dataset import load_dataset
    from swift.model import get_processor
    from swift.template import get_template

    call = call_of(job)
    tokenizer = get_processor(job["tokenizer"], model_type=job["model"])
    template = get_template(
        tokenizer,
        template_type=job["template"],
        loss_scale=call["loss_scale"],
        max_length=1 << 20,
    )
    template.set_mode("train")
    path = str(Path(job["folder"]) / call["dataset"])
    data, _ = load_dataset([path], num_proc=1, load_from_cache_file=False)
    return [row_of(tokenizer, template.encode, row) for row in data]


if __name__ == "__main__":
    sys.exit(answer({"rows": rows_of}, PACKAGES, __doc__))
