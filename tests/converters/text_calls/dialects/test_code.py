"""Dialects whose turns are code, commands or notations of calls: for named use, most of them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from adp.converters.text_calls.dialects.cognitive_kernel import DIALECT as KERNEL
from adp.converters.text_calls.dialects.lumos import DIALECT as LUMOS
from adp.converters.text_calls.dialects.pyautogui import DIALECT as PYAUTOGUI
from adp.converters.text_calls.dialects.python_calls import DIALECT as CALLS
from adp.converters.text_calls.dialects.swe_agent import DIALECT as SWE_AGENT
from tests.converters.text_calls.dialects import checks, upstream

NEBIUS = [
    "adp_v1/nebius_SWE-agent-trajectories/sample_raw.json",
    "datasets_new/adp_nebius_older/sample_raw.json",
]


def test_only_one_is_chosen_automatically() -> None:
    assert [it.automatic for it in (KERNEL, LUMOS, PYAUTOGUI, CALLS, SWE_AGENT)] == [True] + 4 * [
        False
    ]


# ---- SWE-agent -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("open src/a.py 20", ("open", {"path": "src/a.py", "line_number": 20})),
        ('open "a b.py"', ("open", {"path": "a b.py"})),
        ("goto 12", ("goto", {"line_number": 12})),
        ("create a.py", ("create", {"filename": "a.py"})),
        ('search_dir "a|b" src', ("search_dir", {"search_term": "a|b", "dir": "src"})),
        ("search_file 'x y'", ("search_file", {"search_term": "x y"})),
        ("find_file a.py .", ("find_file", {"file_name": "a.py", "dir": "."})),
        ("scroll_down", ("scroll_down", {})),
        ("submit", ("submit", {})),
        ("edit 14:15\n  a\n\n  ```b\nend_of_edit",
         ("edit", {"start_line": 14, "end_line": 15, "replacement_text": "  a\n\n  ```b\n"})),
        ("edit 1:2\nend_of_edit",
         ("edit", {"start_line": 1, "end_line": 2, "replacement_text": ""})),
        ("ls -F | wc\npwd", ("bash", "ls -F | wc\npwd")),
        ("open a.py && ls", ("bash", "open a.py && ls")),
        ("open a.py; ls", ("bash", "open a.py; ls")),
        ("open", ("bash", "open")),
        ("goto main", ("bash", "goto main")),
        ("open 'a", ("bash", "open 'a")),
        ("edit 1:1\nx", ("bash", "edit 1:1\nx")),
        ("submit now", ("bash", "submit now")),
    ],
)  # fmt: skip
def test_swe_agent(command: str, expected: tuple[str, Any]) -> None:
    for text in (f"I do it.\n```\n{command}\n```", f"I do it.\n\n```bash\n{command}\n```\n"):
        assert checks.calls(SWE_AGENT, text) == [expected]
        assert checks.prose(SWE_AGENT, text) == "I do it."
        assert checks.rewritten(SWE_AGENT, text)


def test_discussions() -> None:
    text = "DISCUSSION\nI see:\n```python\nx\n```\nSo I open it.\n\nCOMMAND\n```\nopen a.py\n```"
    assert checks.calls(SWE_AGENT, text) == [("open", {"path": "a.py"})]
    assert checks.thoughts(SWE_AGENT, text) == ["I see:\n```python\nx\n```\nSo I open it."]
    assert checks.prose(SWE_AGENT, text) == ""


@pytest.mark.parametrize(
    "text", ["```python\nopen('a')\n```", "open a.py", "```\nls", "```\n\n```"]
)
def test_what_is_no_command(text: str) -> None:
    assert not checks.checked(SWE_AGENT, text)


@pytest.mark.parametrize("path", NEBIUS)
def test_real_swe_agent(path: str) -> None:
    turns = [text for text in upstream.agent_turns(path) if text.count("```") == 2]
    assert len(turns) > 40
    for text in turns:
        command = text.split("```")[1].strip("\n")
        ((name, value),) = checks.calls(SWE_AGENT, text)
        if name == "bash":
            assert value == command
        else:
            assert command.split()[0] == name
            given = json.dumps([str(it).strip() for it in value.values()])
            words = re.findall(r"\w+", command.removesuffix("end_of_edit"))[1:]
            assert re.findall(r"\w+", "\n".join(json.loads(given))) == words
        checks.rewritten(SWE_AGENT, text)


def test_the_standard_actions_of_swe_agent() -> None:
    ours = [
        call for text in upstream.agent_turns(NEBIUS[0]) for call in checks.calls(SWE_AGENT, text)
    ]
    theirs = upstream.standard_actions("adp_v1/nebius_SWE-agent-trajectories/sample_std.json")
    for name, value in ours:
        if name == "edit":  # the standard lost the indentation of the first line
            value["replacement_text"] = value["replacement_text"].lstrip()
    assert ours == theirs


# ---- programs of pyautogui -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("pyautogui.click(1288.5,116.0)", "pyautogui.click(1288.5,116.0)"),
        ("pyautogui.click(x=1)\npyautogui.write('a')  # b\n",
         "pyautogui.click(x=1)\npyautogui.write('a')  # b"),
        ("I end.\n```python\ncomputer.terminate(status='done')\n```",
         "computer.terminate(status='done')"),
        ("Task: a\nOutput Script:\npyautogui.press('a')", "pyautogui.press('a')"),
        ("import pyautogui\nfor i in range(3):\n    pyautogui.press('a')",
         "import pyautogui\nfor i in range(3):\n    pyautogui.press('a')"),
    ],
)  # fmt: skip
def test_pyautogui(text: str, code: str) -> None:
    assert checks.calls(PYAUTOGUI, text) == [("python", code)]
    assert checks.prose(PYAUTOGUI, text) in ("", "I end.", "Task: a")
    assert checks.rewritten(PYAUTOGUI, text)


@pytest.mark.parametrize(
    "text",
    ["Use pyautogui.click(1, 2).", "pyautogui.click(1, 2) clicks", "import pyautogui",
     "time.sleep(1)", "pyautogui.click(1)\nos.system('x')",
     "```python\nprint(1)\n```\npyautogui.click(1)"],
)  # fmt: skip
def test_what_is_no_program(text: str) -> None:
    assert not checks.checked(PYAUTOGUI, text)


def test_the_standard_code_of_omniact() -> None:
    raw = upstream.sample("adp_v1/omniact/sample_raw.json")
    ours = [call for record in raw for call in checks.calls(PYAUTOGUI, record["task"])]
    assert ours == upstream.standard_actions("adp_v1/omniact/sample_std.json")
    rows = upstream.sample("datasets_new/uground_omniact/gpt-4o_seq.rows0+60.jsonl")
    assert all(len(checks.calls(PYAUTOGUI, row["gpt_output"])) == 1 for row in rows)


# ---- Lumos, calls, Cognitive Kernel --------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("R1 = Calculator((x-y) - (x+y))", [("R1", "Calculator", {"formula": "(x-y) - (x+y)"})]),
        ("R2 = Calculator(2*R1); R3 = Count([1; 2])",
         [("R2", "Calculator", {"formula": "2*R1"}), ("R3", "Count", {"list": "[1; 2]"})]),
        ("R5, R6 = SolveEquation(R2=xy, R3=x/y)",
         [("R5, R6", "SolveEquation", {"equation": "R2=xy, R3=x/y"})]),
        ("R1 = KnowledgeQuery(It's (so)); R2 = QA([R1, R0], Question: Is it's name, then, A?)",
         [("R1", "KnowledgeQuery", {"query": "It's (so)"}),
          ("R2", "QA", {"context": "[R1, R0]", "query": "Question: Is it's name, then, A?"})]),
        ("R1 = TYPE(Env, QUERY: Type the size, TEXT: Small)\nR2 = Other(a, (b, c))",
         [("R1", "TYPE", {"env": "Env", "query": "QUERY: Type the size", "text": "TEXT: Small"}),
          ("R2", "Other", {"arg0": "a", "arg1": "(b, c)"})]),
    ],
)  # fmt: skip
def test_lumos(text: str, expected: list[tuple[str, str, Any]]) -> None:
    turn = checks.checked(LUMOS, text)
    pairs = zip(turn.calls, checks.values(turn), strict=True)
    assert [(call.call_id, *value) for call, value in pairs] == expected
    assert checks.rewritten(LUMOS, text) == text.replace("\n", "; ")


@pytest.mark.parametrize(
    "text", ["We set R1 = Calculator(2).", "R1 = 2 + 3", "Subgoal 1: R1 = Count(a)",
             "R1 = f(a) is it", "R1 = f(a); that is all", "x = f(1)"]
)  # fmt: skip
def test_what_is_no_assignment(text: str) -> None:
    assert not checks.checked(LUMOS, text)


def test_real_lumos() -> None:
    turns = upstream.agent_turns(
        "datasets/lumos_reconstructed/maths_ground_iterative.reconstructed.jsonl"
    )
    calls = [call for text in turns for call in checks.calls(LUMOS, text)]
    assert len(calls) == sum(text.count(" = ") for text in turns)
    plans = upstream.agent_turns(
        "datasets/lumos_reconstructed/maths_plan_iterative.reconstructed.jsonl"
    )
    assert not any(checks.calls(LUMOS, text) for text in plans)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f(a=1)\ng.h(b='x')", [("f", {"a": 1}), ("g.h", {"b": "x"})]),
        ("[f(a=1)]", [("f", {"a": 1})]),
        ("[f(1, 'b'), g()]", [("f", {"arg0": 1, "arg1": "b"}), ("g", {})]),
        ("```python\nf(a=[1, {'b': None}])\n```", [("f", {"a": [1, {"b": None}]})]),
    ],
)
def test_python_calls(text: str, expected: list[tuple[str, Any]]) -> None:
    assert checks.calls(CALLS, text) == expected
    assert checks.rewritten(CALLS, text)
    assert checks.calls(CALLS, text, "f", "g", "g_h") == expected
    assert checks.calls(CALLS, text, "other") == []


def test_signs_between_calls_are_no_prose() -> None:
    for text in ("[f(a=1), g()]", "```\nf(a=1)\ng()\n```", "f(a=1); g()"):
        assert checks.prose(CALLS, text) == ""
    (first, second) = CALLS.parse("[f(a=1), g(b=2)]").calls
    assert CALLS.write(replace(first, arguments='{"a": 3}')) == "[f(a=3),"
    assert CALLS.write(replace(second, arguments='{"c": 4}')) == "g(c=4)]"


@pytest.mark.parametrize(
    "text", ["I call f(1).", "f(x)", "f(1)\nDone.", "```\nf(1)\n```\n```\ng(1)\n```", "(1)"]
)
def test_what_is_not_made_of_calls(text: str) -> None:
    assert not checks.checked(CALLS, text)


def test_edits() -> None:
    assert checks.edited(CALLS, "[f(a=1)]", arguments='{"a": 2}') == [("f", {"a": 2})]
    assert checks.edited(CALLS, "f(a=1)\ng()", name="h") == [("h", {"a": 1}), ("g", {})]
    assert checks.edited(LUMOS, "R1 = Count(a)", arguments='{"list": "b"}') == [
        ("Count", {"list": "b"})
    ]
    text = "```\nopen a.py\n```"
    assert checks.edited(SWE_AGENT, text, arguments='{"path": "b c"}') == [
        ("open", {"path": "b c"})
    ]
    assert checks.edited(PYAUTOGUI, "pyautogui.click(1)", raw="pyautogui.click(2)")[0][1][-2] == "2"


def test_cognitive_kernel() -> None:
    text = "Thought: I search.\nThen I end.\nCode:\n```python\nr = search('a')\nprint(r)\n```\n"
    assert checks.calls(KERNEL, text) == [("python", "r = search('a')\nprint(r)")]
    assert checks.thoughts(KERNEL, text) == ["I search.\nThen I end."]
    assert checks.prose(KERNEL, text) == ""
    assert checks.rewritten(KERNEL, text) == text
    for other in (
        "Code:\nprint(1)",
        "Code: ```python```",
        "```\nCode:\n```",
        "Code:\n```sql\nx\n```",
    ):
        assert not checks.checked(KERNEL, other)
