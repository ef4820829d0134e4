"""ToolACE: names with spaces and brackets, lists of calls, lists of results."""

from __future__ import annotations

import json

import pytest

from adp.converters.text_calls.dialects.toolace import DIALECT
from tests.converters.text_calls.dialects.common import (
    PROSE,
    calls,
    check_example,
    check_prose,
    check_work,
    check_write,
    results,
)
from tests.samples import ROOT

FIXTURE = ROOT / "datasets_new" / "fc_sft_fixtures" / "toolace_sample.jsonl"
TOOLS = ("User Feed (Video Posts) V2", "User Feed", "a/b.c")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[f(a="x", b=2)]', [("f", {"a": "x", "b": 2})]),
        ('[Market Trends API(t="M", c="us"), g()]',
         [("Market Trends API", {"t": "M", "c": "us"}), ("g", {})]),
        ('[User Feed (Video Posts) V2(user_id="1")]',
         [("User Feed (Video Posts) V2", {"user_id": "1"})]),
        ("[a/b.c(x=[1, {'k': true}], y=null)]", [("a/b.c", {"x": [1, {"k": True}], "y": None})]),
        ("<think>[g()]</think>[f(a='it is [so](1)')]", [("f", {"a": "it is [so](1)"})]),
        ("I look.\n[f(a=1)]\nThen I tell.", [("f", {"a": 1})]),
        ("[f(a=1),\n g(b=2) ]", [("f", {"a": 1}), ("g", {"b": 2})]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("tools", [(), TOOLS])
def test_calls_are_found(text: str, expected: list[object], tools: tuple[str, ...]) -> None:
    assert calls(DIALECT, text, tools) == expected


@pytest.mark.parametrize(
    "text",
    [
        "[f(a=1)] is a list of calls.",
        "[f(a=b)]",
        "[f(1)]",
        "[1]\n[the docs](x)",
        "[see (above)]",
        "[f(a=1)",
        "[f(a=1); g(b=2)]",
        "- [x] done (really)",
    ],
)
def test_other_brackets_are_no_calls(text: str) -> None:
    assert calls(DIALECT, text, TOOLS) == []


def test_values_without_names_need_a_tool_on_offer() -> None:
    assert calls(DIALECT, "[User Feed(5)]", TOOLS) == [("User Feed", {"arg0": 5})]


def test_results_are_taken_apart() -> None:
    text = '[{"name": "f", "results": {"a": 1}}, {"name": "g", "results": "x"}]'
    assert results(DIALECT, text) == ['{"a": 1}', '"x"']
    assert [item.name for item in DIALECT.results_in(text, ())] == ["f", "g"]
    assert results(DIALECT, "[not json") == ["[not json"]


def test_edited_calls_are_written() -> None:
    check_example(DIALECT)
    check_write(DIALECT, "So:\n[f(a=1), Some Tool(b='x'), g()]\nDone.")


def test_texts_about_tools_have_no_calls() -> None:
    check_prose(DIALECT, [*PROSE, "Options:\n[yes] (y)\n[no] (n)", "[Figure 1 (left)]"])


def test_work_is_linear() -> None:
    check_work(DIALECT, ["[", "\n[f(a=1), ", "\n[f(", "[[a](b", "\n[a (b (c (d ", '\n[f(a="'])


@pytest.mark.skipif(not FIXTURE.is_file(), reason="../shared/data is not there")
def test_real_runs_have_the_calls_of_a_plain_walk() -> None:
    count = 0
    for line in FIXTURE.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        start = record["system"].index("[{")
        tools = [it["name"] for it in json.JSONDecoder().raw_decode(record["system"], start)[0]]
        for turn in record["conversations"]:
            if turn["from"] != "assistant" or not turn["value"].startswith("["):
                continue
            ours = calls(DIALECT, turn["value"], sorted(tools, key=len, reverse=True))
            name = next(it for it in tools if turn["value"].startswith(f"[{it}("))
            values = dict(
                (pair.split("=")[0].strip(), json.loads(pair.split("=")[1]))
                for pair in turn["value"][len(name) + 2 : -2].split(",")
            )
            assert ours == [(name, values)]
            assert calls(DIALECT, turn["value"]) == ours
            count += 1
    assert count == 2


def test_results_written_as_python_name_their_calls() -> None:
    text = "[{'name': 'g', 'results': {'a': None}}, {'name': 'f', 'results': 1}]"
    assert [it.name for it in DIALECT.results_in(text, ())] == ["g", "f"]
    assert results(DIALECT, text) == ["{'a': None}", "1"]
