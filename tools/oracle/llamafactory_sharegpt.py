"""Ask LLaMA-Factory itself which ShareGPT records it takes.

    python tools/oracle/llamafactory_sharegpt.py FOLDER [--out RESULT.json]

Runs in an environment of its own (see requirements.txt beside it), with LLaMA-Factory's own
loader, converter, templates and supervised encoding, and a tiny tokenizer made here. Each file
of the folder is one data set. A record is

- accepted: the converter gives a prompt and a response, and at least one template encodes it
  with a token to learn from; templates that stop with an error are counted in ``refused_by``;
- dropped: LLaMA-Factory warns and trains without it;
- failed: LLaMA-Factory stops with an error, whatever the template.

``loader`` of a file says whether the whole file can be loaded at all: Arrow has to find one type
for every key.
"""

from __future__ import annotations

import argparse
import importlib.machinery
import json
import logging
import os
import sys
import tempfile
import types
from collections import Counter
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

TEMPLATES = ("default", "chatml", "llama3", "qwen", "qwen3", "glm4", "mistral")
"""Templates with different ways to write calls and tools."""

COLUMNS = ("system", "tools", "images", "videos", "audios")
PACKAGES = ("llamafactory", "torch", "transformers", "datasets")


def prepare() -> None:
    """Work offline and quietly, and without torchaudio, which only sound files need."""
    os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", LLAMAFACTORY_VERBOSITY="WARN")
    os.environ["DISABLE_VERSION_CHECK"] = "1"  # it asks for packages that only training needs
    try:
        import torchaudio  # noqa: F401
    except (ImportError, OSError):
        stand_in = types.ModuleType("torchaudio")
        stand_in.__spec__ = importlib.machinery.ModuleSpec("torchaudio", None)
        sys.modules["torchaudio"] = stand_in
    from datasets.utils import disable_progress_bars

    disable_progress_bars()


@dataclass
class Verdict:
    """What becomes of a record, why, and which templates stop at it."""

    what: str
    why: str = ""
    refused_by: dict[str, str] = field(default_factory=dict)


class Warnings(logging.Handler):
    """Collects what LLaMA-Factory warns about, without the words of the records."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the first words of a message."""
        text = record.getMessage()
        for start in ("Invalid role tag", "Invalid message count", "Dropped invalid example"):
            if text.startswith(start) and start not in self.seen:
                self.seen.append(start)


def tiny_tokenizer() -> Any:
    """A byte-level tokenizer: every byte is a token, so that nothing has to be downloaded."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {symbol: index for index, symbol in enumerate(["<s>", "</s>", *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="</s>"
    )


def arguments(folder: Path, template: str) -> tuple[Any, Any, Any]:
    """The three sets of arguments that the loader asks for."""
    from llamafactory.hparams import DataArguments, ModelArguments

    data = DataArguments(
        template=template,
        dataset_dir=str(folder),
        media_dir=str(folder),
        cutoff_len=1 << 22,
        overwrite_cache=True,
        preprocessing_num_workers=None,
    )
    model = ModelArguments(model_name_or_path="none", cache_dir=str(folder / "cache"))
    training = types.SimpleNamespace(local_process_index=0, dataloader_num_workers=0)
    return data, model, training


def records_of(path: Path) -> list[Any]:
    """The records of a JSON or JSON Lines file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    value = json.loads(text)
    return value if isinstance(value, list) else [value]


def dataset_info(path: Path, records: list[Any]) -> dict[str, Any]:
    """The entry of dataset_info.json: ShareGPT with the columns that the file has."""
    keys = {key for record in records if isinstance(record, dict) for key in record}
    columns = {"messages": "conversations", **{key: key for key in COLUMNS if key in keys}}
    return {"file_name": str(path.absolute()), "formatting": "sharegpt", "columns": columns}


def one_line(error: BaseException) -> str:
    """An error as its kind and first words; none of the words of a record."""
    text = str(error).split("\n", 1)[0].split(": [", 1)[0].split(" in [", 1)[0]
    return f"{type(error).__name__}: {text[:120]}"


class Oracle:
    """LLaMA-Factory's loader, converter and encoders, ready to be asked."""

    def __init__(self, folder: Path) -> None:
        from llamafactory.data.processor import SupervisedDatasetProcessor
        from llamafactory.data.template import get_template_and_fix_tokenizer

        self.folder = folder
        self.warnings = Warnings()
        logging.getLogger("llamafactory").addHandler(self.warnings)
        self.encoders: dict[str, Any] = {}
        for name in TEMPLATES:
            data, _, _ = arguments(folder, name)
            tokenizer = tiny_tokenizer()
            template = get_template_and_fix_tokenizer(tokenizer, data)
            self.encoders[name] = SupervisedDatasetProcessor(template, tokenizer, None, data)

    def load(self, path: Path, records: list[Any]) -> tuple[list[dict[str, Any]] | None, str]:
        """Load a file the way a training run does; what went wrong, when it stopped."""
        from llamafactory.data.loader import _load_single_dataset
        from llamafactory.data.parser import get_dataset_list

        info = {path.stem: dataset_info(path, records)}
        (self.folder / "dataset_info.json").write_text(json.dumps(info), encoding="utf-8")
        data, model, training = arguments(self.folder, TEMPLATES[0])
        try:
            [attr] = get_dataset_list([path.stem], str(self.folder))
            return list(_load_single_dataset(attr, model, data, training)), ""
        except Exception as error:  # the oracle may stop in any way
            return None, one_line(error)

    def convert(self, path: Path, records: list[Any], record: Any) -> dict[str, Any]:
        """Convert one record by itself."""
        from llamafactory.data.converter import get_dataset_converter
        from llamafactory.data.parser import get_dataset_list

        info = {path.stem: dataset_info(path, records)}
        (self.folder / "dataset_info.json").write_text(json.dumps(info), encoding="utf-8")
        [attr] = get_dataset_list([path.stem], str(self.folder))
        data, _, _ = arguments(self.folder, TEMPLATES[0])
        filled = {**dict.fromkeys(info[path.stem]["columns"]), **record}
        return dict(get_dataset_converter("sharegpt", attr, data)(filled))

    def encode(self, aligned: dict[str, Any]) -> dict[str, str]:
        """Encode a converted record with every template; the faults by template."""
        aligned = {key: [value] for key, value in aligned.items()}
        try:
            self.check_media(aligned)
        except Exception as error:  # the oracle may stop in any way
            return dict.fromkeys(TEMPLATES, one_line(error))
        faults: dict[str, str] = {}
        for name, encoder in self.encoders.items():
            try:
                encoded = encoder.preprocess_dataset(aligned)
            except Exception as error:  # the oracle may stop in any way
                faults[name] = one_line(error)
                continue
            if not encoded or not any(label != -100 for label in encoded["labels"][0]):
                faults[name] = "nothing to learn from"
        return faults

    def check_media(self, aligned: dict[str, list[Any]]) -> None:
        """Count placeholders against files as the vision templates do; then take the files out.

        The text templates here refuse any record that has files.
        """
        from llamafactory.data.mm_plugin import MMPluginMixin

        keys = ("_images", "_videos", "_audios")
        media = [aligned[key][0] or [] for key in keys]
        if any(media):
            messages = aligned["_prompt"][0] + aligned["_response"][0]
            MMPluginMixin._validate_messages(None, messages, *media)
            aligned.update({key: [None] for key in keys})

    def verdict(self, path: Path, records: list[Any], index: int) -> Verdict:
        """What becomes of one record, and why."""
        self.warnings.seen.clear()
        try:
            aligned = self.convert(path, records, records[index])
        except Exception as error:  # the oracle may stop in any way
            return Verdict("failed", one_line(error))
        if not aligned["_prompt"] or not aligned["_response"]:
            return Verdict("dropped", "; ".join(self.warnings.seen) or "no prompt or no response")
        faults = self.encode(aligned)
        if len(faults) == len(TEMPLATES):
            return Verdict("failed", next(iter(faults.values())))
        return Verdict("accepted", refused_by=faults)

    def judge(self, path: Path) -> dict[str, Any]:
        """What becomes of the records of a file."""
        records = records_of(path)
        loaded, fault = self.load(path, records)
        verdicts = [self.verdict(path, records, index) for index in range(len(records))]
        if loaded is not None:
            kept = sum(bool(row["_prompt"] and row["_response"]) for row in loaded)
            alone = sum(item.what == "accepted" for item in verdicts)
            if len(loaded) != len(records) or kept < alone:
                fault = f"{kept} records came through the loader, {alone} by themselves"
        counts = Counter(item.what for item in verdicts)
        reasons = Counter(f"{item.what}: {item.why}" for item in verdicts if item.why)
        refused: dict[str, Counter[str]] = {}
        for verdict in verdicts:
            for template, why in verdict.refused_by.items():
                refused.setdefault(template, Counter())[why] += 1
        return {
            "file": path.name,
            "loader": fault or "loaded",
            "records": len(records),
            **{what: counts[what] for what in ("accepted", "dropped", "failed")},
            "reasons": dict(sorted(reasons.items())),
            "refused_by": {name: dict(sorted(refused[name].items())) for name in sorted(refused)},
            "verdicts": [asdict(item) for item in verdicts],
        }


def main() -> int:
    """Judge every file of a folder."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path, help="folder of .json and .jsonl files")
    parser.add_argument("--out", type=Path, help="file for the result")
    parser.add_argument("--each", action="store_true", help="also say the verdict of each record")
    options = parser.parse_args()
    prepare()
    paths = sorted(p for p in options.folder.rglob("*") if p.suffix in (".json", ".jsonl"))
    with tempfile.TemporaryDirectory() as temporary:
        oracle = Oracle(Path(temporary))
        files = [oracle.judge(path) for path in paths]
    for file, path in zip(files, paths, strict=True):
        file["file"] = path.relative_to(options.folder).as_posix()
        if not options.each:
            del file["verdicts"]
    keys = ("records", "accepted", "dropped", "failed")
    result = {
        "versions": {name: version(name) for name in PACKAGES},
        "templates": list(TEMPLATES),
        "files": len(files),
        **{key: sum(file[key] for file in files) for key in keys},
        "not_loaded": sum(file["loader"] != "loaded" for file in files),
        "by_file": files,
    }
    text = json.dumps(result, indent=2, ensure_ascii=False) + "\n"
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
