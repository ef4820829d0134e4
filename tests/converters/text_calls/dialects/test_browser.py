"""Browsers, phones and screens: WebArena, BrowserGym, WebVoyager, UI-TARS, mobile actions."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from adp.converters.text_calls.dialects.mobile import DIALECT as MOBILE
from adp.converters.text_calls.dialects.ui_tars import DIALECT as UI_TARS
from adp.converters.text_calls.dialects.webarena import DIALECT as WEBARENA
from adp.converters.text_calls.dialects.webvoyager import DIALECT as WEBVOYAGER
from tests.converters.text_calls.dialects import checks, upstream

LEAD = "I look. In summary, the next action I will perform is "

# ---- WebArena and BrowserGym ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("click [12]", ("click", {"bid": "12"})),
        ("type [89] [a [b] c] [1]",
         ("type", {"bid": "89", "text": "a [b] c", "press_enter_after": 1})),
        ("type [89] [two\nlines]", ("type", {"bid": "89", "text": "two\nlines"})),
        ("type [89] [] [press_enter_after=0]",
         ("type", {"bid": "89", "text": "", "press_enter_after": 0})),
        ("scroll [direction=down]", ("scroll", {"direction": "down"})),
        ("scroll [up]", ("scroll", {"direction": "up"})),
        ("press [Ctrl+v]", ("press", {"key_comb": "Ctrl+v"})),
        ("goto [http://a.b/c?d=[1]]", ("goto", {"url": "http://a.b/c?d=[1]"})),
        ("tab_focus [1]", ("tab_focus", {"index": 1})),
        ("new_tab", ("new_tab", {})),
        ("go_back", ("go_back", {})),
    ],
)  # fmt: skip
def test_webarena(action: str, expected: tuple[str, Any]) -> None:
    for text in (f"{LEAD}```{action}```", f"{LEAD}\n```{action}```.", f"```\n{action}\n```"):
        assert checks.calls(WEBARENA, text) == [expected]
        assert checks.prose(WEBARENA, text) in ("I look.", "")
        assert checks.rewritten(WEBARENA, text)


def test_answers_of_webarena() -> None:
    assert checks.answer(WEBARENA, f"{LEAD}```stop [a [b]]``````") == "a [b]"
    assert (
        checks.prose(WEBARENA, "Done.\n\nIn summary, my next action will be ```stop [N/A]``````")
        == "Done."
    )


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("click('a12')", [("click", {"bid": "a12"})]),
        ("fill('12', 'it\\'s')", [("fill", {"bid": "12", "value": "it's"})]),
        (
            "select_option('48', ['a', 'b'])",
            [("select_option", {"bid": "48", "options": ["a", "b"]})],
        ),
        ("scroll(0, -200.5)", [("scroll", {"delta_x": 0, "delta_y": -200.5})]),
        ("send_msg_to_user('a < b')", [("send_msg_to_user", {"text": "a < b"})]),
        ("click(bid='1', button='right')", [("click", {"bid": "1", "button": "right"})]),
        (
            "fill('1', 'a')\nclick('2')",
            [("fill", {"bid": "1", "value": "a"}), ("click", {"bid": "2"})],
        ),
        ("noop()", [("noop", {})]),
    ],
)
def test_browsergym(action: str, expected: list[tuple[str, Any]]) -> None:
    forms = ("{}", "I do it.\n```\n{}\n```", "I do it.\n```python\n{}\n```\n", "Action: {}",
             "<action>\n{}\n</action>", "I do it.\nAction:\n{}")  # fmt: skip
    for text in (form.replace("{}", action) for form in forms):
        assert checks.calls(WEBARENA, text) == expected
        assert checks.prose(WEBARENA, text) in ("I do it.", "")
        assert checks.rewritten(WEBARENA, text)


@pytest.mark.parametrize(
    "text",
    [
        "Write ```click [12]``` to click. Then wait.",
        "```click it```",
        "```python\nprint(1)\n```",
        "I run click('12').",
        "click(element)",
        "click(start_box='(1,2)')",
        "fill('1', 'a', 'b', 'c')",
        "The action ```stop``` ends it",
        "```",
        "``` ```",
        "[click('12')]",
    ],
)
def test_what_is_no_action_of_a_browser(text: str) -> None:
    assert not checks.checked(WEBARENA, text)


def test_edits_of_webarena() -> None:
    for text in (
        f"{LEAD}```click [12]```",
        "My next action is\n```click [12]```.",
        "```\nclick [12]\n```",
    ):
        (call,) = WEBARENA.parse(text).calls
        written = WEBARENA.write(replace(call, arguments='{"bid": "13"}'))
        assert text[: call.span[0]] + str(written) == text.replace("12", "13")
    text = f"{LEAD}```click [12]```"
    assert checks.edited(WEBARENA, text, arguments='{"bid": "13"}') == [("click", {"bid": "13"})]
    new = checks.edited(WEBARENA, "click('1')", name="fill", arguments='{"bid":"2","value":"x"}')
    assert new == [("fill", {"bid": "2", "value": "x"})]


@pytest.mark.parametrize(
    "path",
    [
        "adp_v1/nnetnav-wa/sample_raw.json",
        "datasets/nnetnav_wa/sample_raw.nnetnav-wa.head2.json",
        "datasets_new/adp_nnetnav_wa_older/sample_raw.json",
    ],
)
def test_real_webarena(path: str) -> None:
    turns = upstream.agent_turns(path)
    assert turns
    for text in turns:
        action = text.rstrip("`. \n").rsplit("```", 1)[1].strip()
        verb, words = action.split(" ")[0], re.findall(r"\[([^\]]*)\]", action)
        turn = checks.checked(WEBARENA, text)
        if verb == "stop":
            assert checks.answer(WEBARENA, text) == words[0]
            continue
        ((name, values),) = checks.values(turn)
        given = [str(value) for value in values.values()]
        assert (name, given) == (verb, [word.removeprefix("direction=") for word in words])
        checks.rewritten(WEBARENA, text)


def test_the_standard_actions_of_nnetnav() -> None:
    turns = upstream.agent_turns("adp_v1/nnetnav-wa/sample_raw.json")
    ours = [call for text in turns for call in checks.calls(WEBARENA, text)]
    theirs = upstream.standard_actions("adp_v1/nnetnav-wa/sample_std.json")
    assert len(ours) >= len(theirs)
    for name, values in theirs:  # the standard says 0 of any press_enter_after
        values.pop("press_enter_after", None)
        same = [it for it in ours if it[0] == name and values.items() <= it[1].items()]
        assert same, (name, values)


# ---- WebVoyager ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("Type [2]; red shoes", ("Type", {"element": "2", "content": "red shoes"})),
        ("Type [2]; [red shoes]", ("Type", {"element": "2", "content": "red shoes"})),
        ("Click [12]", ("Click", {"element": "12"})),
        ("Scroll [WINDOW]; down", ("Scroll", {"element": "WINDOW", "direction": "down"})),
        ("Scroll 3; [up]", ("Scroll", {"element": "3", "direction": "up"})),
        ("GoBack", ("GoBack", {})),
    ],
)
def test_webvoyager(action: str, expected: tuple[str, Any]) -> None:
    text = f"Thought: a\nb\n\nAction: {action}"
    assert checks.calls(WEBVOYAGER, text) == [expected]
    assert checks.thoughts(WEBVOYAGER, text) == ["a\nb"]
    assert checks.prose(WEBVOYAGER, text) == ""
    assert checks.rewritten(WEBVOYAGER, text)


def test_answers_of_webvoyager() -> None:
    assert (
        checks.answer(WEBVOYAGER, "Thought: a\n\nAction: ANSWER; It is 4; or 5.")
        == "It is 4; or 5."
    )
    for text in ("Action: Click it", "I Click [2]", "Action: Wait for me", "Action:"):
        assert not checks.checked(WEBVOYAGER, text)


@pytest.mark.parametrize(
    "name", ["Allrecipes--4", "Amazon--0", "Apple--17", "ArXiv--11", "BBC_News--9"]
)
def test_real_webvoyager(name: str) -> None:
    chat = upstream.sample(f"datasets_new/webvoyager/task{name}.json")
    turns = [turn["content"] for turn in chat if turn["role"] == "assistant"]
    actions = [text.split("Action: ", 1)[1] for text in turns]
    assert actions
    for text, action in zip(turns, actions, strict=True):
        if action.startswith("ANSWER; "):
            assert checks.answer(WEBVOYAGER, text) == action.removeprefix("ANSWER; ").strip()
            continue
        verb, *words = re.split(r"[ ;\[\]]+", action.strip(" ]"), maxsplit=2)
        ((called, values),) = checks.calls(WEBVOYAGER, text)
        assert (called, [*values.values()]) == (verb, [word.strip(" ]") for word in words])
        checks.rewritten(WEBVOYAGER, text)


# ---- screens and phones --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Thought: a\nAction: click(start_box='<|box_start|>(495,30)<|box_end|>')",
         [("click", {"start_box": "<|box_start|>(495,30)<|box_end|>"})]),
        ("Action: type(content='it\\'s\\n')", [("type", {"content": "it's\n"})]),
        ("Action: type(content='it's')", [("type", {"content": "it's"})]),
        ("Action: click(start_box='(1,2)')\n\ntype(content='a')",
         [("click", {"start_box": "(1,2)"}), ("type", {"content": "a"})]),
        ("Action: wait()", [("wait", {})]),
        ("Action: finished(content='done')", [("finished", {"content": "done"})]),
    ],
)  # fmt: skip
def test_ui_tars(text: str, expected: list[tuple[str, Any]]) -> None:
    assert checks.calls(UI_TARS, text) == expected
    assert checks.prose(UI_TARS, text) == ""
    assert {call.kind for call in UI_TARS.parse(text).calls} == {"gui"}
    assert [call[0] for call in checks.calls(UI_TARS, checks.rewritten(UI_TARS, text))]


@pytest.mark.parametrize(
    "text",
    ["Action: click('12')", "click(start_box='(1,2)')", "Action: click the box",
     "Action: fly(a='b')", "Use click(start_box='...').", "```\nAction: wait()\n```"],
)  # fmt: skip
def test_what_is_no_action_of_a_screen(text: str) -> None:
    assert not checks.checked(UI_TARS, text)


def test_real_ui_tars() -> None:
    chat = upstream.sample("datasets_new/ui_tars/training_example.json")
    turns = [turn["content"] for turn in chat if turn["role"] == "assistant"]
    expected = [("click", {"start_box": re.findall(r"'(.*)'", text)[0]}) for text in turns]
    assert [call for text in turns for call in checks.calls(UI_TARS, text)] == expected
    assert expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CLICK <point>[[512,873]]</point>", [("CLICK", {"x": 512, "y": 873})]),
        ("SCROLL [UP]", [("SCROLL", {"direction": "UP"})]),
        ("TYPE [a [b]]", [("TYPE", {"text": "a [b]"})]),
        ("PRESS_BACK\n", [("PRESS_BACK", {})]),
        ("COMPLETE", [("COMPLETE", {})]),
        ("WAIT\nSCROLL [UP]\n\nCOMPLETE",
         [("WAIT", {}), ("SCROLL", {"direction": "UP"}), ("COMPLETE", {})]),
        ("Thoughts:\nI open it.\nActions:\nCLICK <point>[[1,2]]</point>\nTYPE [x]",
         [("CLICK", {"x": 1, "y": 2}), ("TYPE", {"text": "x"})]),
    ],
)  # fmt: skip
def test_mobile(text: str, expected: list[tuple[str, Any]]) -> None:
    assert checks.calls(MOBILE, text) == expected
    assert checks.prose(MOBILE, text) == ""
    assert checks.rewritten(MOBILE, text)


@pytest.mark.parametrize(
    "text",
    [
        "I TYPE [a]",
        "WAIT for it",
        "SCROLL [FAR]",
        "TYPE [a]\nThat is all.",
        "Actions:\nI WAIT",
        "complete",
    ],
)
def test_what_is_no_action_of_a_phone(text: str) -> None:
    assert not checks.checked(MOBILE, text)


def test_thoughts_and_edits_of_phones() -> None:
    text = "Thoughts:\nI open it.\nActions:\nCLICK <point>[[1,2]]</point>"
    assert checks.thoughts(MOBILE, text) == ["I open it."]
    assert checks.edited(MOBILE, text, arguments='{"x": 3, "y": 4}') == [
        ("CLICK", {"x": 3, "y": 4})
    ]
