from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

import adp
from adp.rendering.chat import ChatCall, Message, WebPage, chats_of
from adp.trainers.export.agentlab import EXPORTER as AGENTLAB
from adp.trainers.export.agentlab import AgentLabOptions
from adp.trainers.export.openhands_sdk import EXPORTER as SDK
from adp.trainers.export.openhands_sdk import OpenHandsSdkOptions
from adp.trainers.export.openhands_v0 import EXPORTER as V0
from adp.trainers.export.openhands_v0 import OpenHandsV0Options
from adp.trainers.export.swe_agent import EXPORTER as SWE
from adp.trainers.export.swe_agent import SweAgentOptions
from adp_schema.errors import UsageError
from adp_schema.model import Observation, Step, ToolCall, Trajectory
from tests import samples
from tests.trainers.export.chats import agent, chat_of, chats, export, result, user

ATIF = samples.ROOT / "adp_atif" / "enterpriselab"
FUNCTION = re.compile(r"<function=([^>]+)>\n(.*?)</function>", re.DOTALL)
PARAMETER = re.compile(r"<parameter=([^>]+)>\n(.*?)\n</parameter>", re.DOTALL)


def code(language: str, text: str) -> ChatCall:
    """A call that is code."""
    value = {"code": text}
    return ChatCall(language, value, json.dumps(value), "c", language=language)


def tool(name: str, **arguments: Any) -> ChatCall:
    """A call of a tool."""
    return ChatCall(name, arguments, json.dumps(arguments), f"c-{name}")


def texts(row: dict[str, Any], role: str) -> list[str]:
    """The texts of one role."""
    return [item["content"] for item in row["conversations"] if item["role"] == role]


def test_openhands_v0_calls_its_tools_by_its_names() -> None:
    chat = chat_of(
        user("fix it"),
        agent("I look.", tool("shell", cmd=["bash", "-lc", "ls -l"]), reasoning="Hm."),
        result("c-shell", "a.py"),
        agent("", code("python", "print(1)")),
        agent(
            "", tool("str_replace_based_edit_tool", command="view", path="/a", view_range=[1, 9])
        ),
        agent("", tool("think", thought="so")),
        agent("", tool("find", what="x y", n=2)),
        agent("Good.\n\n<finish> done </finish>"),
    )
    [row], _ = export(V0, chat)
    assert texts(row, "assistant") == [
        "Hm.\n\nI look.\n\n<function=execute_bash>\n<parameter=command>\nls -l\n</parameter>\n"
        "</function>",
        "<function=execute_ipython_cell>\n<parameter=code>\nprint(1)\n</parameter>\n</function>",
        "<function=str_replace_editor>\n<parameter=command>\nview\n</parameter>\n<parameter=path>\n"
        "/a\n</parameter>\n<parameter=view_range>\n[1, 9]\n</parameter>\n</function>",
        "<function=think>\n<parameter=thought>\nso\n</parameter>\n</function>",
        "<function=execute_ipython_cell>\n<parameter=code>\nfind(what='x y', n=2)\n</parameter>\n"
        "</function>",
        "Good.\n\n<function=finish>\n<parameter=message>\ndone\n</parameter>\n"
        "<parameter=task_completed>\ntrue\n</parameter>\n</function>",
    ]
    assert texts(row, "user") == ["fix it", "EXECUTION RESULT of [execute_bash]:\na.py"]
    assert "find(what, n)" in row["system"]


def test_values_and_other_tools_of_openhands_v0_can_be_written_as_the_harness_itself_does() -> None:
    chat = chat_of(user("a"), agent("", tool("find.it", what="x", text="two\nlines")))
    [row], _ = export(V0, chat, OpenHandsV0Options(values="inline", other_tools="tool"))
    assert texts(row, "assistant") == [
        "<function=find.it>\n<parameter=what>x</parameter>\n<parameter=text>\ntwo\nlines\n"
        "</parameter>\n</function>"
    ]
    assert "---- BEGIN FUNCTION #6: look ----" in row["system"]
    assert "---- BEGIN FUNCTION #7: find.it ----" in row["system"]


def test_swe_agent_has_a_shell_an_editor_and_submit() -> None:
    chat = chat_of(
        Message("system", "be nice", 0),
        user("fix it"),
        agent("I look.", code("bash", "ls")),
        result("c", "a.py"),
        agent("", code("python", "print('a\\n')")),
        agent("", tool("find", what="x y", where="/a")),
        agent("", tool("think", thought="so")),
        agent("", tool("submit")),
    )
    [row], tally = export(SWE, chat)
    call = "<function=bash>\n<parameter=command>\n{}\n</parameter>\n</function>"
    assert texts(row, "assistant") == [
        "<think>\nI look.\n</think>\n\n" + call.format("ls"),
        call.format("python -c $'print(\\'a\\\\n\\')'"),
        call.format("find(what='x y', where=/a)"),
        "<think>\nso\n</think>",
        "<function=submit>\n</function>",
    ]
    assert texts(row, "user") == ["fix it", "OBSERVATION:\na.py"]
    assert tally.changed["system messages of the source, left out"] == 1
    [kept], _ = export(SWE, chat, SweAgentOptions(source_system="append", system_prompt="P"))
    assert kept["system"].startswith("P\n\nThe following pre-defined functions")
    assert kept["system"].endswith("\n\nbe nice")


@pytest.mark.parametrize("exporter", [SWE, SDK])
def test_code_that_no_shell_runs_leaves_the_chat_out_and_is_counted(exporter: Any) -> None:
    chat = chat_of(user("a"), agent("", code("sql", "select 1")), agent("b"))
    rows, tally = export(exporter, chat)
    assert rows == []
    [(reason, count)] = tally.left_out.items()
    assert reason.startswith("code in sql, which ")
    assert count == 2
    [row], _ = export(exporter, chat_of(user("a"), agent("", code("js", "let a"))))
    assert "node <<'ATIF_JS_" in json.dumps(row)


def test_the_sdk_gets_messages_with_its_tools_and_one_result_a_call() -> None:
    parallel = (tool("bash", command="ls"), tool("find", what="x"))
    chat = chat_of(
        user("fix it"),
        agent("Both.", *parallel, reasoning="Hm."),
        result("c-find", "found"),
        agent("", code("python", "print(1)"), weight=0.0),
        agent("<finish>ok</finish>"),
    )
    [row], tally = export(SDK, chat, OpenHandsSdkOptions(security_risk=True))
    system, asked, both, listed, answered, python, empty, end, last = row["messages"]
    assert (system["role"], asked["content"]) == ("system", "fix it")
    assert both["reasoning_content"] == "Hm."
    assert both["content"] == "Both."
    assert [call["function"] for call in both["tool_calls"]] == [
        {"name": "terminal", "arguments": '{"command": "ls"}'},
        {"name": "find", "arguments": '{"what": "x"}'},
    ]
    assert (listed["tool_call_id"], listed["content"]) == ("c-bash", "")
    assert (answered["tool_call_id"], answered["content"], answered["name"]) == (
        "c-find",
        "found",
        "find",
    )
    command = json.loads(python["tool_calls"][0]["function"]["arguments"])["command"]
    assert re.fullmatch(r"python <<'(ATIF_PYTHON_[0-9a-f]{12})'\nprint\(1\)\n\1", command)
    assert (both["weight"], python["weight"], end["weight"]) == (1, 0, 1)
    assert empty["content"] == ""
    assert last["content"] == "ok"
    assert tally.changed["an empty result for a call that has none"] == 2
    names = [item["function"]["name"] for item in row["tools"]]
    assert names == ["terminal", "look", "find", "finish", "think"]
    for item in row["tools"]:
        assert list(item["function"]["parameters"]["properties"])[:2] == [
            "security_risk",
            "summary",
        ]


def test_agentlab_has_a_row_a_step_with_the_page_and_what_was_done_before() -> None:
    page = Message(
        "tool", "root 'Shop'", 0, call_id="c-goto", page=WebPage("http://a", "root", True)
    )
    chat = chat_of(
        user("buy it"),
        agent("I go there.", tool("goto", url="http://a")),
        page,
        agent("", tool("click", bid="12"), weight=0.0),
        user("also a pen"),
        agent('It says "ok".'),
    )
    rows, _ = export(AGENTLAB, chat)
    assert [row["id"] for row in rows] == ["d/run-0", "d/run-1"]
    first, second = (row["conversations"] for row in rows)
    assert json.loads(first[1]["content"]) == {
        "thought": "I go there.",
        "action": "goto(url='http://a')",
    }
    assert (
        json.loads(second[1]["content"])["action"] == 'send_msg_to_user(text="It says \\"ok\\".")'
    )
    assert "# Current page Accessibility Tree\nroot\n" in second[0]["content"]
    assert "also a pen" in second[0]["content"]
    past = [first[1]["content"], json.dumps({"thought": "", "action": "click(bid='12')"})]
    assert "# History of past actions\n" + "\n".join(past) + "\n\n# Next" in second[0]["content"]
    assert "Accessibility" not in first[0]["content"]


def test_browsergym_is_asked_for_by_name_when_it_is_not_installed() -> None:
    with pytest.raises(UsageError, match="pip install browsergym-core"):
        export(AGENTLAB, chat_of(user("a"), agent("b")), AgentLabOptions(action_space="browsergym"))


def test_what_looks_like_a_call_is_escaped_and_what_would_end_one_is_refused() -> None:
    [row], tally = export(V0, chat_of(user("write <function=a>"), agent("<function=b>")))
    assert texts(row, "user") == ["write &lt;function=a>"]
    assert texts(row, "assistant") == ["&lt;function=b>"]
    assert tally.changed["texts in which marks of a call are escaped"] == 2
    rows, tally = export(V0, chat_of(user("a"), agent("", tool("bash", command="</parameter>"))))
    assert rows == []
    assert tally.left_out["an argument that holds the marks of a call"] == 1


def test_what_the_user_says_right_after_calls_is_their_result() -> None:
    chat = chat_of(user("a"), agent("", tool("find", what="x")), user("nothing"), user("and now?"))
    [row], _ = export(V0, chat)
    assert texts(row, "user") == [
        "a",
        "EXECUTION RESULT of [execute_ipython_cell]:\nnothing",
        "and now?",
    ]


def run() -> Trajectory:
    """A run whose first turns are copies, or made without a model."""
    calls = [ToolCall(step=3, call=0, call_id="c", kind="function", name="bash",
                      arguments='{"command": "ls"}')]  # fmt: skip
    steps = [
        Step(step=0, source="user", kind="message", text="go"),
        Step(step=1, source="agent", kind="llm_turn", text="a copy", is_copied_context=True),
        Step(step=2, source="agent", kind="llm_turn", text="no model", llm_call_count=0),
        Step(step=3, source="agent", kind="llm_turn", text="mine", calls=calls),
        Step(step=4, source="agent", kind="llm_turn", text="end", loss_weight=0.0),
    ]
    steps[3].observations = [Observation(step=3, order=0, call_step=3, call=0, text="out")]
    return Trajectory(trajectory_id="d/run", seq=0, source_id="run", steps=steps)


@pytest.mark.parametrize("exporter", [V0, SWE, SDK])
def test_only_what_the_model_wrote_in_this_run_is_trained(exporter: Any) -> None:
    [chat] = chats_of(run()).chats
    [row], _ = export(exporter, chat, run=run())
    messages = row.get("conversations") or row["messages"]
    assert [item["weight"] for item in messages if item["role"] == "assistant"] == [0, 0, 1, 0]
    assert all("weight" not in item for item in messages if item["role"] != "assistant")
    assert row["id"] == "run"


def test_agentlab_trains_no_other_step_either() -> None:
    [chat] = chats_of(run()).chats
    [row], _ = export(AGENTLAB, chat, run=run())
    assert json.loads(row["conversations"][1]["content"])["thought"] == "mine"


@pytest.mark.parametrize("exporter", [V0, SWE, SDK, AGENTLAB])
@given(chat=chats())
def test_every_trained_step_is_in_a_row_or_counted(exporter: Any, chat: Any) -> None:
    rows, tally = export(exporter, chat)
    steps = len({chat.messages[index].step for index in chat.trained()})
    lost = sum(tally.left_out.values())
    assert lost in (0, steps)
    if exporter is AGENTLAB:
        assert len(rows) == steps
    else:
        assert len(rows) == 1 or (not rows and lost == steps)
    for row in rows:
        json.dumps(row, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("exporter", "options"),
    [(V0, OpenHandsV0Options(other_tools="tool")), (SWE, SweAgentOptions(other_tools="tool"))],
    ids=["openhands", "swe-agent"],
)
@given(chat=chats())
def test_calls_as_text_are_read_back_by_the_patterns_of_the_harness(
    exporter: Any, options: Any, chat: Any
) -> None:
    rows, _ = export(exporter, chat, options)
    for row in rows:
        written = [item["content"] for item in row["conversations"] if item["role"] == "assistant"]
        matches = [match for text in written for match in FUNCTION.finditer(text)]
        calls = [call for message in chat.messages for call in message.calls]
        assert [match.group(1) for match in matches] == [call.name for call in calls]
        for match, call in zip(matches, calls, strict=True):
            values = call.arguments if call.valid else {"input": call.text}
            assert dict(PARAMETER.findall(match.group(2))) == values


def test_from_and_value_are_for_sharegpt() -> None:
    chat = chat_of(user("a"), agent("", tool("bash", command="ls")), result("c-bash", "x"))
    [row], _ = export(V0, chat, OpenHandsV0Options(keys="from", weights=False))
    assert [item["from"] for item in row["conversations"]] == [
        "human",
        "function_call",
        "observation",
    ]
    assert all(set(item) == {"from", "value"} for item in row["conversations"])


def test_names_that_python_does_not_take_are_written_another_way() -> None:
    chat = chat_of(user("a"), agent("", ChatCall("get-it", {"from": 1}, '{"from": 1}', "c")))
    [row], _ = export(V0, chat)
    assert texts(row, "assistant") == [
        "<function=get-it>\n<parameter=from>\n1\n</parameter>\n</function>"
    ]
    [row], _ = export(AGENTLAB, chat)
    assert json.loads(row["conversations"][1]["content"])["action"] == "get_it(from=1)"
    chat = chat_of(user("a"), agent("", ChatCall("get", {"from": 1, "to": 2}, "{}", "c")))
    [row], _ = export(V0, chat)
    [call] = PARAMETER.findall(texts(row, "assistant")[0])
    assert call == ("code", "get(to=2, **{'from': 1})")


def test_strings_of_adp_v1_lose_their_second_quotes() -> None:
    chat = chat_of(user("a"), agent("", tool("click", element='"Buy Now"', no=r'"\d" "')))
    v1 = Trajectory(trajectory_id="d/run", source_format="adp_v1")
    [row], _ = export(V0, chat, run=v1)
    assert "click(element='Buy Now', no='\"\\\\d\" \"')" in texts(row, "assistant")[0]
    [row], _ = export(V0, chat)
    assert "click(element='\"Buy Now\"', " in texts(row, "assistant")[0]


def exported(tmp_path: Path, to: str, **settings: Any) -> list[dict[str, Any]]:
    """What is written of the samples of enterpriselab."""
    source = ATIF / "sample_std.json"
    if not source.exists():
        pytest.skip("the samples of ../shared/data are not there")
    adp.convert(source, tmp_path / "store")
    adp.export(tmp_path / "store", to, tmp_path / "rows", settings=settings)
    lines = (tmp_path / "rows" / "train.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_rows_for_swe_agent_are_those_of_the_data_protocol(tmp_path: Path) -> None:
    rows = exported(tmp_path, "swe-agent", weights=False, quotes="none")
    known = json.loads((ATIF / "sample_sft" / "sweagent.json").read_text(encoding="utf-8"))
    assert len(known) == 5
    for row, sample in zip(rows, known, strict=True):
        assert (row["id"], row["conversations"]) == (sample["id"], sample["conversations"])


def test_rows_for_the_sdk_are_those_of_the_data_protocol(tmp_path: Path) -> None:
    row = exported(tmp_path, "openhands-sdk", weights=False)[0]
    file = ATIF / "sample_sft" / "openhands_sdk.excerpt.json"
    [sample] = json.loads(file.read_text(encoding="utf-8"))
    assert row["messages"][1:] == sample["messages"][1:]  # the prompt is one of our own
    names = [item["function"]["name"] for item in row["tools"]]
    assert names == [item["function"]["name"] for item in sample["tools"]]


def test_an_empty_system_prompt_writes_none() -> None:
    chat = replace(chat_of(user("a"), agent("b")), tools=())
    [row], _ = export(SWE, chat, SweAgentOptions(system_prompt=""))
    assert row["system"] == ""
    [row], _ = export(SDK, chat, OpenHandsSdkOptions(system_prompt=""))
    assert [item["role"] for item in row["messages"]] == ["user", "assistant"]


V1 = samples.ROOT / "adp_v1"
STD = sorted(V1.glob("*/sample_std.json"))


@pytest.mark.parametrize("source", STD, ids=lambda path: path.parent.name)
def test_every_action_of_adp_v1_is_a_call_in_the_rows_for_openhands(
    source: Path, tmp_path: Path
) -> None:
    runs = json.loads(source.read_text(encoding="utf-8"))
    items = [item for record in runs for item in record["content"]]
    actions = sum(item["class_"] in ("api_action", "code_action") for item in items)
    ends = sum(
        item["class_"] == "message_action"
        and "</finish>" in item["content"].partition("<finish>")[2]
        for item in items
    )
    adp.convert(source, tmp_path / "store")
    adp.export(tmp_path / "store", "openhands-v0", tmp_path / "rows")
    lines = (tmp_path / "rows" / "train.jsonl").read_text(encoding="utf-8").splitlines()
    messages = [item for line in lines for item in json.loads(line)["conversations"]]
    assert len(lines) == len(runs)
    spoken = [item["content"] for item in messages if item["role"] == "assistant"]
    assert sum(len(FUNCTION.findall(text)) for text in spoken) == actions + ends
    assert not any("<function=" in item["content"] for item in messages if item["role"] == "user")
