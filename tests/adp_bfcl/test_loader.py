"""Questions are found and read; what is none is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from adp.eval.scorer import Score, Scored
from adp_bfcl.categories import SUPPORTED, group_of, language_of, of_id, select
from adp_bfcl.environment import KIND
from adp_bfcl.installed_bfcl import BfclMissingError
from adp_bfcl.loader import by_id, load, questions_folder
from adp_bfcl.offers import tool_of
from adp_bfcl.scorer import BfclScorer
from adp_bfcl.tasks import entry_from, task_of
from adp_schema.errors import InputError, UsageError
from tests.adp_bfcl.official import installed
from tests.adp_bfcl.samples import ANSWER, FUNCTION, row, write

SAMPLES = Path(__file__).parents[2].parent / "shared" / "data" / "datasets" / "bfcl"


def test_names_of_all_versions():
    assert select("simple,java") == ("simple_python", "simple_java")
    assert select("all") == SUPPORTED
    assert of_id("live_simple_0-0-0") == "live_simple"
    assert of_id("simple_17") == "simple_python"
    assert [group_of(name) for name in ("multiple", "live_simple", "memory_kv")] == [
        "non_live",
        "live",
        "agentic",
    ]
    with pytest.raises(UsageError, match="did you mean"):
        select("simple_jav")
    with pytest.raises(UsageError, match="not evaluated here"):
        select("memory_kv")


def test_rows_that_are_none_are_named(tmp_path):
    bad = [
        row(),
        "{broken",
        "[1]",
        {"id": "simple_python_2"},
        row("simple_python_3", function=[{"name": "f"}]),
        {**row("simple_python_4"), "question": [[{"role": "user", "content": None}]]},
        row(),
        row("simple_python_5"),
        "",
        "null",
    ]
    write(tmp_path, "BFCL_v4_simple_python", bad, answers={"simple_python_0": ANSWER})
    result = load(["simple_python", "multiple"], tmp_path)
    assert [entry.entry_id for entry in result.entries] == ["simple_python_0"]
    assert [item.line for item in result.rejected] == [2, 3, 4, 5, 6, 7, 8, 10]
    assert result.missing == ["multiple"]
    reasons = " ".join(str(item) for item in result.rejected)
    for part in ("no JSON", "no object", "no list of turns", "another row", "no possible answer"):
        assert part in reasons


def test_older_versions_and_other_layouts(tmp_path):
    write(tmp_path, "BFCL_v3_simple", [row("simple_0")], answers={"simple_0": ANSWER})
    (entry,) = load(["simple_python"], tmp_path).entries
    assert (entry.entry_id, entry.category, entry.answers) == ("simple_0", "simple_python", ANSWER)
    with pytest.raises(UsageError, match="has no questions"):
        load(["parallel"], tmp_path)
    with pytest.raises(InputError, match="no folder"):
        questions_folder(tmp_path / "no")


def test_the_package_is_asked_for(monkeypatch):
    monkeypatch.setattr("adp_bfcl.loader.installed_folder", lambda: None)
    with pytest.raises(BfclMissingError, match="pip install --no-deps bfcl-eval, or name a folder"):
        load()


@pytest.mark.skipif(not SAMPLES.exists(), reason="the samples are not here")
def test_samples():
    result = load(SUPPORTED, SAMPLES)
    counts = {entry.category for entry in result.entries}
    assert {"simple_python", "parallel", "irrelevance", "live_relevance"} <= counts
    assert all(entry.answers for entry in result.entries if "relevance" not in entry.category)


@installed
def test_all_entries_of_the_package_become_tasks_and_come_back():
    result = load()
    assert (len(result.entries), result.rejected, result.missing) == (4441, [], [])
    for entry in result.entries:
        assert entry_from(task_of(entry)) == entry
    for entry in result.entries[::40]:
        for function in entry.functions:
            tool = tool_of(function, language_of(entry.category))["function"]
            Draft202012Validator.check_schema(tool["parameters"])
            assert "." not in tool["name"]


@installed
def test_reading_and_running_create_no_folders():
    before = {path.name for path in questions_folder().parents[1].iterdir()}
    code = (
        "from adp_bfcl.loader import by_id\n"
        "from adp_bfcl.multi_turn import services_of\n"
        "from adp_bfcl.prompting import system_prompt\n"
        "import sys\n"
        "entry = by_id()['multi_turn_base_0']\n"
        "services_of(entry, 'model', marked=True)\n"
        "assert 'bfcl_eval.constants.eval_config' not in sys.modules\n"
        "assert 'model_config' not in ' '.join(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert {path.name for path in questions_folder().parents[1].iterdir()} == before


def test_a_tool_has_types_of_json_schema():
    tool = tool_of(FUNCTION)
    parameters = tool["function"]["parameters"]
    assert tool["function"]["name"] == "maths_add"
    assert parameters["type"] == "object"
    assert parameters["properties"]["a"] == {
        "type": "number",
        "format": "float",
        "description": "One. This is a float type value.",
    }
    assert FUNCTION["parameters"]["properties"]["a"]["type"] == "float"


@installed
def test_tools_are_those_of_the_official_conversion():
    """Names and types of our tools are those that BFCL sends to an endpoint."""
    for entry_id in ("simple_java_1", "simple_javascript_0", "live_simple_0-0-0", "parallel_4"):
        entry = by_id()[entry_id]
        for function in entry.functions:
            tool = tool_of(function, language_of(entry.category))["function"]
            kinds = {value["type"] for value in tool["parameters"]["properties"].values()}
            assert kinds <= {"string", "number", "integer", "boolean", "array", "object"}
            if "java" in entry_id:
                assert kinds == {"string"}


def test_the_first_tasks_of_several_categories_are_of_all(tmp_path):
    for name, count in (("simple_python", 3), ("multiple", 1), ("irrelevance", 2)):
        rows = [row(f"{name}_{number}") for number in range(count)]
        answers = {item["id"]: ANSWER for item in rows}
        write(tmp_path, f"BFCL_v4_{name}", rows, answers=answers)
    settings = KIND.settings(data=tmp_path, category=("simple_python", "multiple", "irrelevance"))
    tasks = [task.task_id for task in KIND.tasks(settings, "test", None, 0)]
    assert sorted(tasks[:3]) == ["irrelevance_0", "multiple_0", "simple_python_0"]
    assert sorted(tasks[3:5]) == ["irrelevance_1", "simple_python_1"]
    assert tasks[5:] == ["simple_python_2"]
    assert [task.task_id for task in KIND.tasks(settings, "test", 4, 0)] == tasks[:4]


def test_what_was_not_run_is_said_once():
    rows = [
        Scored("a", "t", 0, Score(metric, 1.0, None, {"category": "simple_python"}))
        for metric in ("bfcl", "bfcl_fixed")
    ]
    names = [figure.name for figure in BfclScorer().figures(rows) if figure.value is None]
    assert names
    assert not [name for name in names if name.startswith("bfcl_fixed")]
