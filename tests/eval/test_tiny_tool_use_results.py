"""``evaluation_results.json``, against a plain walk over the texts of the runs."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from adp.cli.main import main
from adp.eval.tiny_tool_use_results import predicted_tool, results
from adp.rollouts.collecting.collect import alone, collect
from adp.rollouts.environments.configured import Configured, ConfiguredSettings
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.policy import InfrastructureError
from adp.rollouts.turns import Call, Turn
from adp_schema.errors import EmptyResultError
from adp_schema.model import Task
from adp_schema.store import Store

TOOLS = {
    "tools": [
        {"name": "calculator", "description": "Sums.", "type": "function", "parameters": {
            "type": "object", "properties": {"expression": {"type": "string"}}}},
        {"name": "weather", "description": "Weather.", "type": "function", "parameters": {
            "type": "object", "properties": {"location": {"type": "string"}}}},
    ],
    "training": {"method": "sft"},
}  # fmt: skip
CASES = [  # expected tool, and the first turn
    (
        "calculator",
        Turn(text="I help.", calls=(Call("calculator", '{"expression": "25 * 4"}'),)),
    ),
    ("calculator", Turn(calls=(Call("calculator", '{"expression": "1 / 0"}'),))),
    ("weather", Turn(calls=(Call("calculator", '{"expression": "1"}'), Call("weather", "{}")))),
    ("weather", Turn(text="The Weather? I would ask the weather tool.")),
    ("weather", Turn(text='[TOOL_CALL]{"name": "weather"}[/TOOL_CALL]')),
    ("weather", Turn(text="[TOOL_CALL]{no JSON, but calculator}[/TOOL_CALL]")),
    ("calculator", Turn(calls=(Call("search", '{"query": "x"}'),))),
    ("calculator", Turn(calls=(Call("calculator", "{broken"),))),
    ("weather", Turn(text="")),
]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(TOOLS))
    rows = [{"prompt": f"Human: {n}?", "expected_tool": tool, "expected_params": {"x": "1"}}
            for n, (tool, _) in enumerate(CASES)]  # fmt: skip
    (tmp_path / "cases.json").write_text(json.dumps(rows))
    return tmp_path


def turn_of(request):
    number = int(re.search(r"\d+", request.messages[0]["content"])[0])
    return CASES[number][1] if request.turn == 0 else Turn(text="done")


def walked(details):
    """The four numbers of Tiny Tool Use by its own rules, over the texts alone."""
    right = good = ran = 0
    failed = ("1 / 0", "{broken", '"weather"}', "{no JSON")
    for case in details:
        text = case["response"]
        blocks = re.findall(r"\[TOOL_CALL\](.*?)\[/TOOL_CALL\]", text, re.DOTALL)
        try:
            call = json.loads(blocks[0])
            name = call.get("name", "")
            correct = "name" in call and "parameters" in call and name in ("calculator", "weather")
        except (IndexError, json.JSONDecodeError):
            lower = text.lower()
            name = next((tool for tool in ("calculator", "weather") if tool in lower), "")
            correct = False
        right += name == case["expected_tool"]
        good += correct
        ran += correct and not any(words in text for words in failed)
    n = len(details)
    return right / n, good / n, ran / n, (right / n + good / n) / 2


def test_the_four_numbers_are_those_of_a_walk_over_the_texts(files):
    tasks = [
        Task(task_id=f"t{n}", instruction=f"Human: {n}?",
             expected_calls=json.dumps([{"name": tool, "arguments": {}}]))
        for n, (tool, _) in enumerate(CASES)
    ]  # fmt: skip
    settings = ConfiguredSettings(file=files / "config.json")
    policy = alone(Scripted(turn_of))
    asyncio.run(collect(files / "runs", lambda: Configured(settings), policy, tasks))
    value = results(Store.open(str(files / "runs")))
    names = ("tool_accuracy", "format_accuracy", "execution_accuracy", "response_quality")
    assert tuple(value[name] for name in names) == walked(value["details"])
    assert value["total_cases"] == len(CASES)
    assert value["format_correctness"] == value["format_accuracy"]
    by_prompt = {case["prompt"]: case for case in value["details"]}
    flags = [
        (case["predicted_tool"], case["format_correct"], case["execution_success"])
        for case in (by_prompt[f"Human: {n}?"] for n in range(len(CASES)))
    ]
    assert flags == [
        ("calculator", True, True), ("calculator", True, False), ("calculator", True, True),
        ("weather", False, False), ("weather", False, False), ("calculator", False, False),
        ("search", False, False), ("calculator", False, False), ("", False, False),
    ]  # fmt: skip
    assert list(value["details"][0]) == [
        "prompt", "response", "expected_tool", "predicted_tool", "tool_correct", "format_correct",
        "execution_success",
    ]  # fmt: skip


def test_broken_runs_are_left_out_and_none_at_all_is_an_error(tmp_path):
    def fails(request):
        raise InfrastructureError("connection", "gone")

    task = Task(task_id="t", instruction="x", expected_calls='[{"name": "calculator"}]')
    make = lambda: Configured(ConfiguredSettings(file=tmp_path / "c.json"))  # noqa: E731
    (tmp_path / "c.json").write_text(json.dumps(TOOLS))
    asyncio.run(collect(tmp_path / "s", make, alone(Scripted(fails)), [task]))
    with pytest.raises(EmptyResultError, match="no run whose task expects a tool"):
        results(Store.open(str(tmp_path / "s")))


NO_CALLS = [
    "[TOOL_CALL][1][/TOOL_CALL]", "[TOOL_CALL]", "[/TOOL_CALL] x [TOOL_CALL]",
    '[TOOL_CALL]{"name": 3}[/TOOL_CALL]', "[TOOL_CALL]" + "[" * 9999,
]  # fmt: skip


@pytest.mark.parametrize("text", NO_CALLS)
def test_texts_that_are_no_calls(text):
    assert predicted_tool(text, ["calculator"]) == ""


def test_one_line_does_what_evaluate_py_does(files, capsys):
    (files / "suite.yaml").write_text(
        f"name: tiny_tool_use\nenvironment: {{name: configured, file: {files / 'config.json'}}}\n"
        f'tasks: {files / "cases.json"}\nscorers: ["format:style=playground"]\n'
    )
    script = [{"turns": [{"calls": [{"name": "calculator", "arguments": {"expression": "2*2"}}]},
                         {"text": "4"}]}]  # fmt: skip
    (files / "script.jsonl").write_text(json.dumps(script[0]))
    place = files / "evaluation_results.json"
    policy = f"scripted:file={files / 'script.jsonl'}"
    words = ["eval", "--suite", files / "suite.yaml", "--policy", policy, "-o", files / "s"]
    words += ["--results", place]
    assert main(list(map(str, words))) == 0
    value = json.loads(place.read_text())
    calculators = sum(tool == "calculator" for tool, _ in CASES)
    assert value["tool_accuracy"] == calculators / len(CASES)
    assert value["execution_accuracy"] == 1.0
    assert f"tool_accuracy: {value['tool_accuracy']:.3f}" in capsys.readouterr().out
    again = files / "again.json"
    assert main(["score", str(files / "s"), "--results", str(again)]) == 0
    assert again.read_bytes() == place.read_bytes()
