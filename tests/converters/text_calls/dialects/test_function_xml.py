"""Calls as elements: several in a turn, values with line breaks and tags, what is no call."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from adp.converters.text_calls.dialects.function_xml import DIALECT
from tests.converters.text_calls.dialects.common import (
    calls,
    check_example,
    check_prose,
    check_work,
    check_write,
    results,
)
from tests.samples import ROOT

SWE_SMITH = ROOT / "adp_v1" / "swe-smith"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Run:\n<function=bash>\n<parameter=command>ls</parameter>\n</function>",
         [("bash", {"command": "ls"})]),
        ("<function=submit>\n</function>", [("submit", {})]),
        ("<function=edit>\n<parameter=text>\n  a\n\nb\n</parameter>\n<parameter=view_range>[1, 2]"
         "</parameter>\n</function>", [("edit", {"text": "  a\n\nb", "view_range": [1, 2]})]),
        ("<function=a><parameter=k>1</parameter></function> then <function=b></function>",
         [("a", {"k": "1"}), ("b", {})]),
        ("<function=w>\n<parameter=t>x = '</parameter>'\n```\n<think></parameter>\n</function>\n"
         "<function=b></function>", [("w", {"t": "x = '</parameter>'\n```\n<think>"}), ("b", {})]),
        ("<function=bash>\n<parameter=command>ls</parameter>", [("bash", {"command": "ls"})]),
        ("<function=bash>\n<parameter=command>ls\n</function>", [("bash", {"command": "ls"})]),
        ("<tool_call>\n<function=f>\n<parameter=k>\nv\n</parameter>\n</function>\n</tool_call>",
         [("f", {"k": "v"})]),
        ('<function_calls>\n<invoke name="f">\n<parameter name="k">v</parameter>\n</invoke>\n'
         '<invoke name="g">\n</invoke>\n</function_calls>', [("f", {"k": "v"}), ("g", {})]),
        ('<minimax:tool_call>\n<invoke name="f">\n<parameter name="k">v</parameter>\n</invoke>\n'
         "</minimax:tool_call>", [("f", {"k": "v"})]),
        ("<function=a>\n<parameter=k>1\n</function>\n<function=b>\n<parameter=k>2</parameter>",
         [("a", {"k": "1"}), ("b", {"k": "2"})]),
        ("<think>\n<function=a></function>\n</think>\n<function=b></function>", [("b", {})]),
    ],
)  # fmt: skip
def test_calls_are_found(text: str, expected: list[object]) -> None:
    assert calls(DIALECT, text) == expected


@pytest.mark.parametrize(
    "text",
    [
        '<function=f>{"a": 1}</function>',
        "<function=bash>\n<parameter=command>ls",
        "<function=bash>\nls\n</function>",
        "<function=bash> is the tag.",
        "<function= ></function>",
        "<function=f><parameter=k>1</parameter><parameter=k>2</parameter></function>",
    ],
)
def test_what_is_no_call_stays_text(text: str) -> None:
    assert calls(DIALECT, text) == []


def test_spans_hold_the_tags_around() -> None:
    text = 'a\n<function_calls>\n<invoke name="f">\n</invoke>\n</function_calls>\nb'
    (call,) = DIALECT.parse(text).calls
    assert text[: call.span[0]] + text[call.span[1] :] == "a\n\nb"


def test_results_lose_their_marks_only() -> None:
    assert results(DIALECT, "OBSERVATION:\n   1\ta\n") == ["   1\ta\n"]
    assert results(DIALECT, "no mark") == ["no mark"]
    text = "EXECUTION RESULT of [bash]:\na\n\nEXECUTION RESULT of [edit]:\nb"
    assert results(DIALECT, text) == ["a\n\n", "b"]
    assert [item.name for item in DIALECT.results_in(text, ())] == ["bash", "edit"]


def test_edited_calls_are_written() -> None:
    check_example(DIALECT)
    values = ["", "\n", "a\n", "\na", " x ", "a\n\nb", "<b>", '"', "[1]", "\r\n"]
    body = "".join(f"<parameter=k{i}>\n{it}\n</parameter>\n" for i, it in enumerate(values))
    check_write(DIALECT, f"<function=f>\n{body}<parameter=insert_line>5</parameter></function>")
    check_write(DIALECT, '<function_calls>\n<invoke name="f">\n<parameter name="k">v</parameter>\n'
                '</invoke>\n<invoke name="g"></invoke>\n</function_calls>')  # fmt: skip


def test_texts_about_tools_have_no_calls() -> None:
    check_prose(DIALECT)


def test_work_is_linear() -> None:
    check_work(
        DIALECT,
        [
            *("<function=f>", "<function=f>\n<parameter=k>", "<parameter=k></parameter>"),
            *("<function=f><parameter=k></parameter>x", "<tool_call> ", "<function_calls>\n"),
            *('<invoke name="f"><parameter name="k">', "EXECUTION RESULT of [a]:\n", "<function="),
            "<function=f><parameter=k></parameter> ",
        ],
    )


def walk(text: str) -> list[tuple[str, dict[str, Any]]]:
    """The calls of a text by a plain regular expression."""
    out = []
    for name, body in re.findall(r"<function=(\w+)>(.*?)</function>", text, re.DOTALL):
        pairs = re.findall(r"<parameter=(\w+)>(.*?)</parameter>", body, re.DOTALL)
        values: dict[str, Any] = {}
        for key, value in pairs:
            value = re.sub(r"\n\Z", "", re.sub(r"\A\n", "", value))
            values[key] = json.loads(value) if key == "view_range" else value
        out.append((name, values))
    return out


def turns(folder: str) -> list[list[str]]:
    """Texts of the agent, a list a run."""
    out = []
    for path in sorted((ROOT / folder).glob("*.json*")):
        text = path.read_text(encoding="utf-8")
        if "std" in path.name:
            continue
        records = json.loads(text) if path.suffix == ".json" else map(json.loads, text.splitlines())
        for record in records:
            messages = record["messages"]
            messages = json.loads(messages) if isinstance(messages, str) else messages
            texts = [it["content"] for it in messages if it["role"] == "assistant"]
            out.append([it if isinstance(it, str) else it[0]["text"] for it in texts])
    return out


@pytest.mark.skipif(not SWE_SMITH.is_dir(), reason="../shared/data is not there")
@pytest.mark.parametrize(
    ("folder", "least"),
    [
        ("adp_v1/swe-smith", 116),
        ("datasets_new/adp_swe_smith_older", 100),
        ("datasets_new/swe_smith_ft_xml", 60),
        ("datasets/swe_smith_trajectories", 30),
    ],
)
def test_real_runs_have_the_calls_of_a_plain_walk(folder: str, least: int) -> None:
    number = 0
    for texts in turns(folder):
        for text in texts:
            expected = walk(text)
            assert calls(DIALECT, text) == expected
            number += len(expected)
    assert number >= least


def stripped(values: dict[str, Any]) -> dict[str, Any]:
    return {key: it.strip() if isinstance(it, str) else it for key, it in values.items()}


@pytest.mark.skipif(not SWE_SMITH.is_dir(), reason="../shared/data is not there")
def test_upstream_has_the_same_calls() -> None:
    """Upstream strips the values, and with that the indentation of code in an edit."""
    runs = json.loads((SWE_SMITH / "sample_std.json").read_text(encoding="utf-8"))
    for texts, run in zip(turns("adp_v1/swe-smith"), runs, strict=True):
        ours = [call for text in texts for call in calls(DIALECT, text)]
        theirs = []
        for item in run["content"]:
            if item["class_"] == "code_action":
                theirs.append((item["language"], {"command": item["content"]}))
            elif item["class_"] == "api_action":
                theirs.append((item["function"], item["kwargs"]))
        assert [(name, stripped(values)) for name, values in ours] == theirs
