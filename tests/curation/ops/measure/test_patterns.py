"""The tables of patterns: each finds its example, and leaves alone what looks alike."""

from __future__ import annotations

import polars as pl
import pytest

from adp.curation.ops.measure import cheats, ends, faults

WHERE = {fault.name: fault for fault in faults.FAULTS}


def sides(*texts):
    return (
        pl.DataFrame({"t": texts}, schema={"t": pl.String})
        .select(faults.side(pl.col("t")).alias("t"))["t"]
        .to_list()
    )


def looks(*texts):
    frame = pl.DataFrame({"t": texts}, schema={"t": pl.String})
    return frame.select(faults.looks_failed(pl.col("t"), frame.height))["t"].to_list()


@pytest.mark.parametrize("name", WHERE)
def test_fault(name):
    fault = WHERE[name]
    frame = pl.DataFrame({"t": [fault.example, fault.example.upper(), fault.other]})
    result = frame.select(pl.col("t").str.contains(faults.compiled(fault.pattern)))["t"].to_list()
    assert result == [True, True, False]
    assert sides(fault.example) == [fault.side]
    assert sides(fault.other) == ["other"]


def test_infrastructure_comes_before_the_model():
    both = "Traceback (most recent call last):\nConnectionError: connection refused"
    assert sides(both, "TypeError: x", None) == ["infra", "model", "other"]


def test_only_the_ends_of_a_long_text_are_looked_at():
    middle = "y" * 900 + " connection refused " + "y" * 900
    assert sides(middle, middle + " connection refused", "connection refused" + middle) == [
        "other", "infra", "infra",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "Error: API rate limit exceeded",
        "ERROR while calling tool",
        "[ERROR] no such tool",
        "ToolCallError: 500 Server Error",
        "Traceback (most recent call last):\n  File",
        "2 rows\nTraceback (most recent call last):\n  File",
        "/bin/sh: 1: foo: not found",
        "bash: foo: command not found",
        '{"error": "no such user"}',
        '{"status": "error", "x": 1}',
        '{"success": false}',
        "[Command finished with exit code 2]",
        "<tool_use_error>File has not been read</tool_use_error>",
        "a = 1\nSyntaxError: invalid syntax",
        "Your proposed edit has introduced new syntax error(s).",
    ],
)
def test_a_text_that_reads_like_a_failure(text):
    assert looks(text) == [True]


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "ok",
        '{"error": "", "response": "x"}',
        '{"error": null, "x": 1}',
        "[File: a.py]\n18:from a.exceptions import NotFoundError",
        "exit code 0",
        "File created successfully at: /x/reproduce_error.py",
        "Test completed successfully, no errors.",
        "errors.py\nmain.py",
        "2 succeeded, 0 failed",
    ],
)
def test_a_text_that_does_not(text):
    assert looks(text) == [False]


@pytest.mark.parametrize("sign", cheats.SIGNS, ids=lambda sign: sign.column)
def test_sign(sign):
    for text in sign.examples:
        result = dict(cheats.CheatSigns(None).signs("bash", text, {}))
        assert set(result) == {sign.column}, text
        assert any(word in text.lower() for word in sign.words), text
    for text in sign.others:
        assert not dict(cheats.CheatSigns(None).signs("bash", text, {})), text


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("[1234 characters truncated]", True),
        ("<response clipped><NOTE>", True),
        ("Output truncated because it is too long", True),
        ("... 20 lines omitted", True),
        ("The output was truncated.", True),
        ("the tree is truncated and round", False),
        ("omitted variables bias", False),
    ],
)
def test_marks_of_a_cut(text, cut):
    frame = pl.DataFrame({"t": [text]})
    assert frame.select(ends.is_cut(pl.col("t")))["t"].to_list() == [cut]


@pytest.mark.parametrize(
    ("reason", "cut", "limit"),
    [
        ("length", True, True),
        ("max_tokens", True, True),
        ("MAX_TOKENS", True, True),
        ("max_steps", False, True),
        ("exit_cost", False, True),
        ("stop", False, False),
        ("end_turn", False, False),
        ("submitted", False, False),
    ],
)
def test_reasons_to_stop(reason, cut, limit):
    frame = pl.DataFrame({"t": [reason.lower()]})
    result = frame.select(
        a=pl.col("t").str.contains(ends.LENGTH), b=pl.col("t").str.contains(ends.LIMIT)
    )
    assert result.row(0) == (cut, limit)
