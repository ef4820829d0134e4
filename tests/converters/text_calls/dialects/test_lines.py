"""What holds for all dialects of lines and of function notation."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adp.converters.text_calls.registry import dialect
from tests.converters.text_calls.dialects import checks, common
from tests.effort import examples

NAMES = (
    "agentinstruct_db", "agentinstruct_kg", "agentinstruct_os", "alfworld", "cognitive_kernel",
    "lumos", "mind2web", "mobile", "pyautogui", "python_calls", "react", "swe_agent", "ui_tars",
    "webarena", "webshop", "webvoyager",
)  # fmt: skip

TALK = (
    "ReAct prompts have three lines: Thought: for reasoning, Action: for the tool, and Action "
    "Input: for its input. After that comes Observation: with the result.",
    "A turn looks so:\n\n```text\nThought: I search.\nAction: search\nAction Input: {}\n```\n"
    "The harness reads the last action.",
    "```\nTHOUGHT: I look.\nACTION: go to desk 1\n```\nis what ALFWorld wants.",
    "**Action items**\n\n- Thought leadership: write a post\n- Action: Send it to Ann.\n",
    "Action: Reboot the router and wait for a minute.",
    "Recommended action: restart the service.",
    "- Observation: the door is open\n- Action: close it",
    "In WebShop an agent may use search[keywords] and click[value], one a turn.",
    "Call `click('12')` to click and `fill('12', 'text')` to type.",
    "WebArena has ```click [id]``` and ```stop [answer]``` as actions. Both end a turn.",
    "The program is\n\n```python\nimport pyautogui\nprint(pyautogui.size())\n```\n\nas you see.",
    "Use pyautogui.click(10, 20) to click there.",
    "```sql\nSELECT 1;\n```\nThe database answers with 1.",
    "> go home, she said\n> and open the window\n\nThat was the quotation.",
    "> Open the file and look for the word.\n\nI agree.",
    "Set x = 2 and R1 = 3; then y = f(x).",
    "def f(a=1):\n    return g(a)\n",
    "print('hello')\nprint('world') prints two lines.",
    "The answer: C. It follows from the text.",
    "Answer: C. It follows.\n",
    "Question: what is 2 + 2?\nAnswer: 4",
    "Scroll down [here], then TYPE [your name] and press ENTER.",
    "WAIT a moment",
    "Act: as a pirate. Think: about gold.",
    "Code: 1234\nThought: none",
    "My thoughts:\nAction speaks louder than words.",
    "Run this:\n\n```bash\npip install adp\n```\n\nand\n\n```bash\nadp --help\n```\n\nThat is all.",
    "get_relations(x) and count(y) are the tools of the knowledge graph.",
    "Response: thanks for your mail.",
    "See [button] Search -> it opens a form.",
    "Action: Operation\nis the heading, and Action: Answer the other one.",
)
"""Texts that talk about actions; none of them acts."""


@pytest.mark.parametrize("name", NAMES)
def test_the_example(name: str) -> None:
    grammar = dialect(name)
    common.check_example(grammar)
    assert checks.prose(grammar, grammar.example) in ("", "I look for it.", "I count the rows.")
    assert grammar.title
    assert any(mark in grammar.example for mark in grammar.marks)


@pytest.mark.parametrize("name", NAMES)
def test_texts_that_talk_about_actions(name: str) -> None:
    grammar = dialect(name)
    common.check_prose(grammar)
    for text in TALK:
        assert checks.calls(grammar, text) == [], text
        assert list(grammar.pieces(text)) == [], text


@pytest.mark.parametrize("name", NAMES)
def test_a_turn_of_another_dialect_is_left_alone_by_the_strict_ones(name: str) -> None:
    strict = [dialect(it) for it in NAMES if it not in ("react", "swe_agent", "python_calls")]
    acting = [it.name for it in strict if it.parse(dialect(name).example).calls]
    assert acting in ([name], [])


SNIPPETS = (
    "Thought: a\nAction: search[b]\nObservation: c\n", "Action: f('x', a=1)", "Answer: A. no",
    "[b] c -> TYPE: d", "stop [x]", "```", "Final Answer: #1", "> think: a\nOK\n", "finish[é😀]",
    " with Action Input: {}", "; R2 = QA(a, b)", "Act: answer(1)", "wait()", "TYPE [a]", "\r\n",
    "edit 1:2\nx\nend_of_edit", "{'a': [", "\\", "\n", "\x00",
)  # fmt: skip


SIGNS = "[](){}'\"`:;,= \n#>Aa1é"


@settings(max_examples=examples(400), deadline=None)
@given(st.sampled_from(NAMES), st.sampled_from(NAMES), st.data())
def test_any_text_has_spans_in_order_and_calls_that_can_be_written(
    name: str, other: str, data: st.DataObject
) -> None:
    grammar, text = dialect(name), dialect(other).example
    for _ in range(3):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 6)))
        text = (
            text[:start]
            + data.draw(st.sampled_from(SNIPPETS) | st.text(SIGNS, max_size=3))
            + text[end:]
        )
    turn = checks.checked(grammar, text)
    for piece in grammar.pieces(text):
        checks.checked(grammar, text[slice(*piece.span)])
    if len(turn.calls) == 1:
        start, end = turn.calls[0].span
        written = grammar.write(turn.calls[0])
        new = None if written is None else text[:start] + written + text[end:]
        assert new is None or checks.values(grammar.parse(new)) == checks.values(turn)


HOSTILE = {
    "agentinstruct_db": ("Action: Operation\n```\n", "Action: Answer\nFinal Answer: "),
    "agentinstruct_kg": ("Action: count(", "Thought: \nAction: count(#1)\n"),
    "agentinstruct_os": ("Act: bash\n```\n", "Act: answer("),
    "alfworld": ("ACTION: take a from ", "> go to 1\n"),
    "cognitive_kernel": ("Code:\n```\n", "Thought: Code:\n"),
    "lumos": ("R1 = f(", "R1 = f(a); "),
    "mind2web": ("[a] ", "[a] b -> CLICK: \n", "Answer: C.\nAction: TYPE\n"),
    "mobile": ("TYPE [", "WAIT\n", "<point>[["),
    "pyautogui": ("pyautogui.click(", "pyautogui.click(1)\n```\n"),
    "python_calls": ("f(a=[", "f('", "f()\n"),
    "react": ("Action: f\nAction Input: {", "Action: f[", "```\nAction: f\n", "Action: f('",
              "Observation: x\nAction: go to a\n"),
    "swe_agent": ("```\n", "```\nedit 1:1\nend_of_edit\n"),
    "ui_tars": ("```\nAction: f\n", "Action: click(a='", "Action: wait()\n"),
    "webarena": ("```click [", "``` ```", "click('", "wait()\n", "<action>"),
    "webshop": ("search[", "Action: click[x]\n"),
    "webvoyager": ("Action: Type [1]; [", "Action: Wait\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_hostile_texts_take_linear_time(name: str) -> None:
    for piece in HOSTILE[name]:
        checks.is_linear(dialect(name), piece)


@pytest.mark.parametrize("name", ["react", "webarena", "webshop", "ui_tars", "webvoyager"])
def test_long_actions_take_linear_time(name: str) -> None:
    for before in ("Thought: a\nAction: ", "Action: f["):
        checks.is_linear(dialect(name), "take a from ", before)
