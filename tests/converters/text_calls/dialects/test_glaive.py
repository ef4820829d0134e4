"""Glaive: arguments in single quotes that hold apostrophes, and turns of functions."""

from __future__ import annotations

import json
import re

import pytest

from adp.converters.text_calls.dialects.glaive import DIALECT
from tests.converters.text_calls.dialects.common import (
    calls,
    check_example,
    check_prose,
    check_work,
    check_write,
    results,
)
from tests.samples import ROOT

GLAIVE = ROOT / "datasets" / "glaive_raw" / "two_records.jsonl"
FIXTURE = ROOT / "datasets_new" / "fc_sft_fixtures" / "glaive_sample.jsonl"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<functioncall> {\"name\": \"f\", \"arguments\": '{\"a\": 1}'} <|endoftext|>",
         [("f", {"a": 1})]),
        ("Sure. <functioncall> {\"name\": \"f\", \"arguments\": '{\"a\": \"it's }' here\"}'}",
         [("f", {"a": "it's }' here"})]),
        ("<functioncall> {\"name\": \"f\", \"arguments\": '{\"a\": \"it\\'s\"}'}",
         [("f", {"a": "it's"})]),
        ("<functioncall> {\"name\": \"f\", \"arguments\": {\"a\": 1}}", [("f", {"a": 1})]),
        ("<functioncall> {\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\"}", [("f", {"a": 1})]),
        ("<functioncall> {\"name\": \"f\", \"arguments\": '{}'} <|endoftext|>", [("f", {})]),
        ("<functioncall> {\"name\": \"f\", \"arguments\": '{a: 1}'} <|endoftext|>",
         [("f", "{a: 1}")]),
    ],
)  # fmt: skip
def test_calls_are_found(text: str, expected: list[object]) -> None:
    assert calls(DIALECT, text) == expected


@pytest.mark.parametrize(
    "text", ["<functioncall> is the tag.", "<functioncall> {}", '`<functioncall> {"name": "f"}`']
)
def test_what_is_no_call_stays_text(text: str) -> None:
    assert calls(DIALECT, text) == []


def test_results_lose_their_mark() -> None:
    assert results(DIALECT, 'FUNCTION RESPONSE: {"a": 1}') == ['{"a": 1}']


def test_run_in_a_text_is_cut() -> None:
    call = '<functioncall> {"name": "f", "arguments": \'{}\'} <|endoftext|>'
    text = f"{call}\nFUNCTION RESPONSE: 1\nASSISTANT: It is 1. <|endoftext|>"
    assert [(it.source, text[slice(*it.span)]) for it in DIALECT.pieces(text)] == [
        ("agent", f"{call}\n"),
        ("result", "FUNCTION RESPONSE: 1\n"),
        ("agent", "ASSISTANT: It is 1. <|endoftext|>"),
    ]
    assert not DIALECT.pieces(f"{text}\nUSER: And?")


def test_edited_calls_are_written() -> None:
    check_example(DIALECT)
    check_write(DIALECT, 'a\n<functioncall> {"name": "f", "arguments": {"a": 1}} <|endoftext|>')
    check_write(DIALECT, 'a\n<functioncall> {"name": "f", "arguments": "{\\"a\\": 1}"}\nb')


def test_texts_about_tools_have_no_calls() -> None:
    check_prose(DIALECT)


def test_work_is_linear() -> None:
    check_work(
        DIALECT,
        [
            *("<functioncall>", '<functioncall> {"name": "f", "arguments": \'', "'}"),
            *('<functioncall> {"name": "f", "arguments": \'{', "\nFUNCTION RESPONSE: ASSISTANT:"),
        ],
    )


@pytest.mark.skipif(not GLAIVE.is_file(), reason="../shared/data is not there")
@pytest.mark.parametrize(("path", "number"), [(GLAIVE, 1), (FIXTURE, 3)])
def test_real_runs_have_the_calls_of_a_plain_walk(path, number) -> None:
    count = 0
    for line in path.read_text(encoding="utf-8").splitlines():
        chat = json.loads(line)["chat"]
        for turn in re.split(r"(?:USER|ASSISTANT|FUNCTION RESPONSE): ", chat):
            expected = [
                (name, json.loads(arguments))
                for name, arguments in re.findall(r'"name": "(\w+)", "arguments": \'(.*)\'\}', turn)
            ]
            assert calls(DIALECT, turn) == expected
            count += len(expected)
    assert count == number
