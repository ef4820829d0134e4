"""A training that makes its data first, and is tried on test cases at the end (`data.make`).

OUT/data/
  tools.json   the tools, as the environment configured reads them
  made/        the store of the generator, or the converted file
  pairs/       DPO: what the recipe made; its store is pairs/pairs
  tests/       samples that are made for the trial
OUT/
  trial/                     the runs of the trained model
  evaluation_results.json    their figures, in the form of Tiny Tool Use

Each of them is gone on with after a kill, by the same call with ``--resume``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from adp.converters.run import ConvertOptions, convert
from adp.core.progress import Progress, Silent
from adp.curation.recipe_file import read_recipe
from adp.curation.run import run as curate
from adp.eval.evaluate import EvaluateOptions, evaluate
from adp.eval.suite import Suite
from adp.eval.tiny_tool_use_results import write_results
from adp.rollouts.collecting.limits import Limits
from adp.rollouts.generators.make_options import MakeOptions, options_of, prepare_make
from adp.trainers.config import TrainConfig
from adp.trainers.config_make import MakeSection
from adp.trainers.record import RECORD
from adp.trainers.run import DATA
from adp.workflows.made_pairs import make_pairs
from adp_schema.errors import InputError, OutputExistsError, UsageError
from adp_schema.manifest import MANIFEST, write_atomic
from adp_schema.store import Store

RESULTS = "evaluation_results.json"
_MADE, _TESTS, _TRIAL, _TOOLS = "made", "tests", "trial", "tools.json"
_DAMAGED = {"rule": "format_corruption", "corruptions": ["tags_removed"]}
_TURNS = 3
"""Turns of a trial, at most: a call, perhaps another one, and an answer."""


def makes_data(config: TrainConfig) -> bool:
    """Whether the data of a training are made first: there is `data.make`, and no store."""
    return config.data.make is not None and config.data.store is None


def with_made_data(
    config: TrainConfig,
    out: str | os.PathLike[str],
    *,
    resume: bool = False,
    progress: Progress | None = None,
) -> TrainConfig:
    """Make the data of a training, and name them in its configuration.

    Args:
        config: the run; without `data.make`, or with a store, it comes back as it is.
        out: folder of the run; the data go to its folder ``data``.
        resume: go on with what the folder holds.
        progress: told how far it is, in samples or bytes.

    Raises:
        UsageError: the data cannot be made by these settings.
        InputError: the file that is real is not there.
        OutputExistsError: the folder holds something, and nothing is resumed.
        EmptyResultError: nothing could be made.
    """
    section = config.data.make
    if section is None or not makes_data(config):
        return config
    if config.method not in ("sft", "dpo"):
        raise UsageError(f"data.make makes data for sft and dpo, not for {config.method}")
    folder = Path(out) / DATA
    if Path(out).exists() and any(Path(out).iterdir()) and not resume:
        raise OutputExistsError(f"{out} is there already; --resume goes on with it")
    if section.test_cases is not None and not Path(section.test_cases).is_file():
        raise InputError(f"data.make.test_cases: {section.test_cases} is not there")
    if section.tools:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / _TOOLS, json.dumps({"tools": section.tools}, indent=2) + "\n")
    progress = progress or Silent()
    if section.generation_type == "real":
        place = _converted(section, folder, progress)
    else:
        place = _generated(_options(section, folder, config.training.seed), folder / _MADE)
    if _tries_made(section):
        options = _options(section, folder, config.training.seed + 1)
        update = {"count": section.test_count, "without": (str(folder / _MADE),), "split": "test"}
        _generated(options.model_copy(update=update), folder / _TESTS)
    if config.method == "dpo":
        place = _paired(section, folder, config.training.seed)
    data = config.data.model_copy(update={"store": str(place)})
    return config.model_copy(update={"data": data})


def _tries_made(section: MakeSection) -> bool:
    """Whether test cases are made."""
    return section.test_cases is None and section.test_count > 0 and bool(section.tools)


def _options(section: MakeSection, folder: Path, seed: int) -> MakeOptions:
    """The options of the generator.

    Raises:
        UsageError: there are no tools.
    """
    if not section.tools:
        raise UsageError(
            f"data.strategy {section.strategy} makes calls of tools, and the section 'tools' is "
            "empty; name tools, or train on a store: adp train METHOD STORE --config FILE"
        )
    return options_of(
        section.strategy, section.generation_type, section.count, folder / _TOOLS, seed,
        policy=section.policy,
    )  # fmt: skip


def _generated(options: MakeOptions, place: Path) -> Path:
    prepare_make(options, place).run(place)
    return place


def _converted(section: MakeSection, folder: Path, progress: Progress) -> Path:
    """The store of the file that is real.

    Raises:
        UsageError: another strategy than toolbench.
        InputError: the file is not there.
    """
    if section.strategy != "toolbench":
        raise UsageError(f"data.generation_type real is for toolbench, not {section.strategy}")
    if (folder / _MADE / MANIFEST).exists():
        return folder / _MADE
    if not Path(section.file).exists():
        raise InputError(
            f"the data are real, and {section.file} is not there; put ToolBench's file there, name "
            "another one (--set data.make.file=FILE), or a store: adp train sft STORE --config FILE"
        )
    convert([section.file], str(folder / _MADE), options=ConvertOptions(), progress=progress)
    return folder / _MADE


def _paired(section: MakeSection, folder: Path, seed: int) -> Path:
    """The store of the preference pairs."""
    made, pairs = folder / _MADE, folder / "pairs"
    if (pairs / "pairs" / MANIFEST).exists():
        return pairs / "pairs"
    if section.policy is not None and section.strategy == "teacher_mode":
        make_pairs(made, pairs)
    else:
        rule = {**_DAMAGED, "max_pairs": section.pairs}
        recipe = {
            "recipe": 1,
            "name": "damaged-calls",
            "seed": seed,
            "inputs": {"made": str(made)},
            "ops": [{"pairs": rule}],
            "outputs": {"pairs": {"take": "pairs"}},
        }
        curate(read_recipe(recipe), str(pairs))
    return pairs / "pairs"


def is_untried(config: TrainConfig, out: str | os.PathLike[str]) -> bool:
    """Whether the training in a folder is finished, and its trial is not.

    Args:
        config: the run.
        out: folder of the run.
    """
    wanted = config.data.make is not None and _cases(config.data.make, Path(out)) is not None
    return wanted and (Path(out) / RECORD).exists() and not (Path(out) / RESULTS).exists()


def _cases(section: MakeSection, out: Path) -> str | None:
    """The tasks of the trial; None when there is none, as when a store was named."""
    if not (out / DATA / _TOOLS).is_file():
        return None
    if section.test_cases is not None:
        return section.test_cases
    return str(out / DATA / _TESTS) if section.test_count else None


def try_trained(config: TrainConfig, out: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Let the trained model do the test cases, and write OUT/evaluation_results.json.

    Args:
        config: the run, with its data made.
        out: folder of the run.

    Returns:
        What was written, without the cases; None when there are no test cases.

    Raises:
        InputError: there are no tasks, or they cannot be read.
        RolloutError: one episode after the other broke for the same reason.
    """
    section, folder = config.data.make, Path(out)
    tasks = None if section is None else _cases(section, folder)
    if section is None or tasks is None:
        return None
    suite = Suite(
        name="test_cases",
        environment={"name": "configured", "file": str(folder / DATA / _TOOLS)},
        tasks=tasks,
        scorers=("tool_f1",),
        limits=Limits(max_turns=_TURNS),
    )
    policy = {
        "name": "transformers",
        "model": str(folder),
        "max_tokens": section.max_tokens,
        "trust_remote_code": config.model.trust_remote_code,
    }
    runs = folder / _TRIAL
    evaluate(suite, policy, str(runs), EvaluateOptions())
    value = write_results(Store.open(str(runs)), folder / RESULTS)
    return {name: entry for name, entry in value.items() if name != "details"}
