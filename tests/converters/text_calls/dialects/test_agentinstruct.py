"""AgentInstruct: operating system, database and knowledge graph."""

from __future__ import annotations

import re
from typing import Any

import pytest

from adp.converters.text_calls.dialects.agentinstruct_db import DIALECT as DB
from adp.converters.text_calls.dialects.agentinstruct_kg import DIALECT as KG
from adp.converters.text_calls.dialects.agentinstruct_os import DIALECT as OS
from tests.converters.text_calls.dialects import checks, upstream

# ---- operating system ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Think: a.\n\nAct: bash\n\n```bash\nls | wc\n```", [("bash", "ls | wc")]),
        ("Think: a\n\nAct: bash\n```\ncat <<E\na: b\n\nE\n```\n", [("bash", "cat <<E\na: b\n\nE")]),
        ("Act: bash\n\n```bash\nls", [("bash", "ls")]),
        ("Think: done\n\nAct: finish", [("finish", {})]),
        ("Think: a\n\nAct: bash\n\n```bash\necho Act: finish\n```", [("bash", "echo Act: finish")]),
    ],
)
def test_operating_system(text: str, expected: list[tuple[str, Any]]) -> None:
    assert checks.calls(OS, text) == expected
    assert checks.rewritten(OS, text)


@pytest.mark.parametrize(
    "text",
    [
        "Act: bash",
        "Act: bash\nI run ```ls```",
        "Act: bash or answer",
        "Then I say Act: finish",
        "```\nAct: finish\n```",
        "Act: as a person",
        "Think: I wait.",
    ],
)
def test_what_is_no_act(text: str) -> None:
    assert not checks.checked(OS, text)


def test_answers_of_the_operating_system() -> None:
    text = "Think: it is (so).\n\nAct: answer(a (b)\nc)"
    assert checks.answer(OS, text) == "a (b)\nc"
    assert checks.thoughts(OS, text) == ["it is (so)."]
    assert checks.prose(OS, text) == ""
    run = "Think: a\n\nAct: bash\n\n```bash\nls\n```"
    assert checks.results(OS, "The output of the OS:\n\nx\n", run) == ["\nx\n"]
    assert checks.results(OS, "Now, I will start a new problem in a new OS.", run) == []


def test_real_acts() -> None:
    for path in ("adp_v1/agenttuning_os/sample_raw.json",
                 "datasets/agentinstruct_os/sample_raw.agenttuning_os.head2.json"):  # fmt: skip
        turns = upstream.agent_turns(path)
        expected = [
            code.strip("\n")
            for text in turns
            for code in re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
        ]
        assert [raw for text in turns for _, raw in checks.calls(OS, text)] == expected
        answers = [match[1] for text in turns if (match := re.search(r"Act: answer\((.*)\)", text))]
        assert [it for text in turns if (it := checks.answer(OS, text)) is not None] == answers
        for text in turns:
            checks.rewritten(OS, text)


def test_the_standard_code() -> None:
    turns = upstream.agent_turns("adp_v1/agenttuning_os/sample_raw.json")
    ours = [call for text in turns for call in checks.calls(OS, text)]
    assert ours == upstream.standard_actions("adp_v1/agenttuning_os/sample_std.json")


# ---- database ------------------------------------------------------------------------------


def test_database() -> None:
    text = "I count.\nAction: Operation\n```sql\nSELECT COUNT(*) FROM a;\n```"
    assert checks.calls(DB, text) == [("mysql", "SELECT COUNT(*) FROM a;")]
    assert checks.prose(DB, text) == "I count."
    assert checks.rewritten(DB, text) == text
    text = 'It is 4.\nAction: Answer\nFinal Answer: ["4"]'
    assert checks.answer(DB, text) == '["4"]'
    assert checks.prose(DB, text) == "It is 4."
    assert checks.results(DB, "[(4,)]", text) == ["[(4,)]"]


@pytest.mark.parametrize(
    "text",
    [
        "Action: Operation",
        "Action: Operation is what you write.",
        "Action: Answer",
        "Write Action: Operation and\n```sql\nSELECT 1\n```",
        "```\nAction: Answer\nFinal Answer: 1\n```",
        "Final Answer: 4",
        "```sql\nSELECT 1;\n```",
    ],
)
def test_what_is_no_operation(text: str) -> None:
    assert not checks.checked(DB, text)


def test_real_answers() -> None:
    turns = upstream.agent_turns("adp_v1/agenttuning_db/sample_raw.json")
    expected = [it for text in turns for it in re.findall(r"Final Answer: (.*)", text)]
    assert [it for text in turns if (it := checks.answer(DB, text)) is not None] == expected
    ours = [call for text in turns for call in checks.calls(DB, text)]
    assert ours == upstream.standard_actions("adp_v1/agenttuning_db/sample_std.json")


# ---- knowledge graph -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (
            "get_relations(Aston Martin V8 (1969))",
            ("get_relations", {"variable": "Aston Martin V8 (1969)"}),
        ),
        (
            "get_neighbors(Ed, Jr., a.b.c)",
            ("get_neighbors", {"variable": "Ed, Jr.", "relation": "a.b.c"}),
        ),
        ("intersection(#0,#1)", ("intersection", {"variable1": "#0", "variable2": "#1"})),
        ("argmax('#2', 'age')", ("argmax", {"variable": "#2", "attribute": "age"})),
        ("count(#3)", ("count", {"variable": "#3"})),
    ],
)
def test_knowledge_graph(action: str, expected: tuple[str, Any]) -> None:
    text = f"Thought: a\nAction: {action}\n"
    assert checks.calls(KG, text) == [expected]
    assert checks.thoughts(KG, text) == ["a"]
    assert checks.rewritten(KG, text)


@pytest.mark.parametrize(
    "text",
    [
        "I call get_relations(x).",
        "Action: get_neighbors(x)",
        "Action: fly(x)",
        "Action: count(x) or more",
        "```\nAction: count(x)\n```",
    ],
)
def test_what_is_no_tool(text: str) -> None:
    assert not checks.checked(KG, text)


def test_answers_of_the_knowledge_graph() -> None:
    text = "Thought: a\nFinal Answer: #2"
    assert checks.answer(KG, text) == "#2"
    assert checks.results(KG, "Observation: [a, b]", "Action: count(#1)") == ["[a, b]"]
    assert KG.write(KG.parse("Action: count(#1)").calls[0]) == "Action: count(#1)"


def test_real_actions() -> None:
    tasks = upstream.sample("datasets_new/agentbench_kg_rl/kg_rl_all.rows0+60.json")
    for task in tasks:
        for action in task["actions"]:
            ((name, values),) = checks.calls(KG, f"Thought: a\nAction: {action}")
            assert re.sub(r"\s", "", action) == f"{name}({','.join(values.values())})".replace(
                " ", ""
            )
