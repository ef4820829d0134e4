"""Where the tests find BFCL: recorded verdicts of the official checker, and the package itself."""

from __future__ import annotations

import gzip
import importlib
import json
import sys
import types
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from adp_bfcl.installed_bfcl import installed_folder
from adp_bfcl.loader import rows

RECORDED = Path(__file__).parents[2].parent / "shared" / "data" / "eval" / "bfcl"

recorded = pytest.mark.skipif(not RECORDED.exists(), reason="the recorded verdicts are not here")
installed = pytest.mark.skipif(
    installed_folder() is None,
    reason="bfcl-eval is not installed; `make venv` does it (pip install --no-deps bfcl-eval)",
)


def read(name: str) -> list[dict]:
    """The rows of a file of recorded verdicts."""
    with gzip.open(RECORDED / name, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def questions(category: str) -> Iterator[dict]:
    """The rows of a file of questions of the installed package."""
    folder = installed_folder()
    for _, row, _ in rows(folder / f"BFCL_v4_{category}.json"):
        yield row


def answers(category: str) -> dict[str, list]:
    """Possible answers of a category by id."""
    file = installed_folder() / "possible_answer" / f"BFCL_v4_{category}.json"
    return {row["id"]: row["ground_truth"] for _, row, _ in rows(file)}


def official(underscored: bool = False):
    """The official AST checker, of the installed package.

    A stub stands for its table of models, whose import needs 150 packages.
    """
    stub = types.ModuleType("bfcl_eval.constants.model_config")
    stub.MODEL_CONFIG_MAPPING = defaultdict(
        lambda: types.SimpleNamespace(underscore_to_dot=underscored)
    )
    sys.modules["bfcl_eval.constants.model_config"] = stub
    checker = importlib.import_module("bfcl_eval.eval_checker.ast_eval.ast_checker")
    checker.MODEL_CONFIG_MAPPING = stub.MODEL_CONFIG_MAPPING
    language = importlib.import_module("bfcl_eval.constants.enums").Language

    def check(functions, calls, truth, category, name):
        result = checker.ast_checker(functions, calls, truth, language(name), category, "m")
        return result["valid"], None if result["valid"] else result["error_type"]

    return check
