"""What the recipes of the Agent Data Protocol's data sets make of their examples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import adp

EXAMPLES = Path(__file__).parent / "examples"

CALLS = {
    "agentinstruct": ["bash", "go", "get_relations", "mysql", "search", "click", "CLICK"],
    "android_control": ["long_press"],
    "android_in_the_wild": ["touch_and_lift", "type", "end"],
    "code_feedback": ["python", "ruby", "javascript"],
    "codeactinstruct": ["python"],
    "coderforge_preview": ["think", "finish"],
    "codescout": ["terminal", "localization_finish"],
    "cognitivekernel_pro": ["python"],
    "davinci_dev": ["bash", "submit"],
    "dolci_tool_use": ["weather.forecast", "clock.now"],
    "enterpriselab": ["find_ticket"],
    "finch": [],
    "go_browse_wa": ["click", "fill", "send_msg_to_user"],
    "hybrid_gym": ["execute_bash", "finish"],
    "jupyter_agent": ["add_and_execute_jupyter_code_cell", "final_answer"],
    "kwai_klear_mini_swe": ["bash", "bash"],
    "litecoder_terminal": ["terminal", "terminal", "finish"],
    "llava_plus": ["sam"],
    "mind2web": ["CLICK", "TYPE"],
    "mini_coder": ["bash", "bash"],
    "mini_swe_zero": ["bash", "bash"],
    "miroverse": ["google"],
    "nebius_swe_agent": ["find_file", "edit", "submit", "bash"],
    "nemotron_terminal": ["terminal"],
    "omniact": ["python"],
    "openhands_feedback": ["run", "finish"],
    "openmanus_rl": ["go", "perform_action"],
    "openresearcher": ["browser.search"],
    "openthoughts_agent": ["terminal"],
    "orca_agentinstruct": ["c"],
    "scale_swe": ["execute_bash", "finish"],
    "screenagent": ["PlanAction", "MouseAction"],
    "sera": ["bash", "submit"],
    "swe_chat": ["Bash"],
    "swe_chat_turns": ["Bash"],
    "swe_gym_openhands": ["execute_bash", "finish"],
    "swe_play": ["execute_bash", "finish"],
    "swe_rebench_openhands": ["execute_bash", "finish"],
    "swe_smith": ["bash", "submit", "bash"],
    "swe_star": ["bash", "submit"],
    "swe_zero_openhands": ["think", "finish"],
    "synatra": ["click"],
    "toolmind": ["get_time", "get_time"],
    "toucan": ["maps-find_place"],
    "turkingbench": ["click", "type", "select", "modify_range"],
    "webarena_successful": ["click", "stop"],
    "weblinx": ["load", "click"],
    "wonderbread": ["mouseup", "keystroke"],
}
"""Data set -> the tools that its example calls, in order."""


def runs_of(name, tmp_path):
    (rows,) = (EXAMPLES / name).glob("rows.*")
    return list(adp.convert([str(rows)], str(tmp_path / "store")))


@pytest.mark.parametrize("name", CALLS)
def test_the_calls_of_each_example(name, tmp_path):
    runs = runs_of(name, tmp_path)
    steps = [step for run in runs for step in run.steps]
    assert [call.name for step in steps for call in step.calls] == CALLS[name]


@pytest.mark.parametrize("name", CALLS)
def test_results_answer_calls_and_only_first_sights_do_not(name, tmp_path):
    for run in runs_of(name, tmp_path):
        called = False
        for step in run.steps:
            called = called or bool(step.calls)
            for observation in step.observations:
                assert (observation.call_step is not None) == called


def test_arguments_that_arrow_fills_with_nulls_come_back(tmp_path):
    (run,) = runs_of("jupyter_agent", tmp_path)
    code, answer = [call for step in run.steps for call in step.calls]
    assert json.loads(code.arguments) == {"code": "len(df)"}
    assert json.loads(answer.arguments) == {"answer": "318"}
    assert run.final_answer == "318"
    assert json.loads(run.task.answers) == "319"
    report = adp.export(str(tmp_path / "store"), "openai_chat", str(tmp_path / "out"))
    assert not report.losses
    (written,) = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert written.read_bytes() == (EXAMPLES / "jupyter_agent" / "rows.jsonl").read_bytes()


def test_pages_of_browsers_have_columns_of_their_own(tmp_path):
    (first, *_) = runs_of("nnetnav", tmp_path)
    page = next(it for step in first.steps for it in step.observations)
    assert page.url == "http://shop.test/1"
    assert page.axtree in page.text
    calls = [call for step in first.steps for call in step.calls]
    assert [json.loads(call.arguments) for call in calls] == [{"bid": "7"}]


def test_thoughts_of_harmony_are_reasoning(tmp_path):
    (run,) = runs_of("openresearcher", tmp_path)
    agent = [step for step in run.steps if step.source == "agent"]
    assert [step.reasoning for step in agent] == ["I have to search.", "Found."]
    assert agent[-1].text == "A. Mason did."
    (tool,) = json.loads(run.tools)
    assert tool["function"]["name"] == "browser.search"
    assert tool["function"]["parameters"]["properties"] == {"query": {"type": "string"}}


def test_a_mask_says_what_is_trained(tmp_path):
    first, second = runs_of("nebius_swe_agent", tmp_path)
    weights = {step.source: step.loss_weight for step in first.steps}
    assert weights == {"system": 0.0, "user": 0.0, "agent": 1.0}
    assert (first.success, first.terminated) == (True, True)
    assert (second.success, second.truncated) == (False, True)


def test_runs_of_one_id_are_told_apart_by_what_they_ask_for(tmp_path):
    def row(page, task, past, answer):
        prompt = f"OBSERVATION:\n{page}\nURL: http://a.test\nOBJECTIVE: {task}\nPREVIOUS ACTIONS:"
        turns = {"system": "You browse.", "user": f"{prompt}\n{past}", "assistant": answer}
        messages = [{"role": role, "content": text} for role, text in turns.items()]
        return {"dataset": "demo", "id": "example_0", "messages": messages}

    say = "In summary, the next action I will perform is ```{}```"
    rows = [
        row("[1] A", "Find a lamp", "1: None", say.format("click [1]")),
        row("[2] B", "Find a vase", "1: None", say.format("click [2]")),
        row("[3] C", "Find a lamp", "1: None\n2: click [1]", say.format("stop [5]")),
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    lamp, vase = adp.convert([str(path)], str(tmp_path / "store"))
    assert (lamp.final_answer, vase.final_answer) == ("5", None)
    seen = [it for step in lamp.steps for it in step.observations]
    assert [it.axtree for it in seen] == ["[1] A", "[3] C"]
    assert [it.call_step is not None for it in seen] == [False, True]
    assert lamp.task.instruction == "Find a lamp"
