"""Tools that prompts describe by signatures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import adp
from adp.converters.datasets.tool_signatures import signatures
from adp.converters.datasets.tools import normal_tool
from tests.converters.text_calls.work import MOST, growth
from tests.samples import ROOT

PYTHON = """
[1] find(query: str, limit: List[int] = None) -> str
Finds things (fish(a) too).
A second line.
find(1)
[2] stop()
"""


def test_python_signatures_with_numbers() -> None:
    first, second = map(normal_tool, signatures(PYTHON))
    assert first["function"] == {
        "name": "find",
        "description": "Finds things (fish(a) too).\nA second line.\nfind(1)",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "limit": {"type": "array", "items": {"type": "integer"}},
            },
            "required": ["query"],
        },
    }
    assert second["function"]["name"] == "stop"
    assert second["function"]["parameters"]["properties"] == {}


def test_signatures_between_semicolons() -> None:
    text = (
        " 'Add' and 'SELECT'.\nAdd(number/term): Add one; SELECT(Env, Query): Select (f(x)) it.\n"
    )
    assert signatures(text) == [
        {"name": "Add", "description": "Add one", "parameters": {"number": ""}},
        {"name": "SELECT", "description": "Select (f(x)) it.",
         "parameters": {"env": "", "query": ""}},
    ]  # fmt: skip


def test_calls_as_signatures() -> None:
    text = "\nclick(start_box='(x1,y1)')\ntype(content='', at=\"b\") # First click.\nWords of it.\n"
    assert signatures(text) == [
        {"name": "click", "parameters": {"start_box": ""}},
        {"name": "type", "description": "First click.", "parameters": {"content": "", "at": ""}},
    ]


@pytest.mark.parametrize(
    "piece", ["a(", "a(b", ";a('", "\na(b,", "[1] a(x: [", "\na(b)\n", "a" * 99]
)
def test_work_is_linear(piece: str) -> None:
    assert growth(signatures, piece) < MOST


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("adp_v1/codeactinstruct/sample_raw.json", {"wikipedia_search"}),
        ("datasets/lumos_reconstructed/maths_ground_iterative.reconstructed.jsonl",
         {"Calculator", "SetEquation", "SolveEquation", "Count", "SolveInequality", "Code",
          "Define"}),
        ("datasets_new/ui_tars/training_example.json", {"click", "select", "type"}),
        ("datasets_new/webvoyager/taskAmazon--0.json",
         {"Click", "Type", "Scroll", "Wait", "GoBack", "Google"}),
    ],
)  # fmt: skip
def test_tools_of_samples(place: str, expected: set[str], tmp_path: Path) -> None:
    if not (ROOT / place).is_file():
        pytest.skip(f"no sample {place}")
    adp.convert([ROOT / place], tmp_path / "store")
    offered = [json.loads(it.tools) for it in adp.open(tmp_path / "store") if it.tools is not None]
    assert {tool["function"]["name"] for tools in offered for tool in tools} == expected
