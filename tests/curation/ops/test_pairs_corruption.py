"""Pairs of a step with the same step damaged: what is said to be done is done, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adp.converters.text_calls import find_tagged
from adp.curation.apply import apply
from adp.curation.ops.pairs.corruption import StepCall, damage
from tests.curation.ops.pair_checks import events_of, reasons_of, rows_of, same, store_of

KINDS = ("tags_removed", "json_broken", "argument_dropped", "tool_renamed")
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=4,
)
_arguments = st.dictionaries(st.text(min_size=1, max_size=3), _values, max_size=3)
_names = st.sampled_from(["search", "search_tool", "a.b"])
OFFERED = frozenset({"search", "search_tool", "a.b"})


def tagged(name: str, arguments: dict[str, Any]) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def steps(name: str, arguments: dict[str, Any], words: str) -> list[tuple[str | None, StepCall]]:
    """The same step with its call apart, and in its text."""
    written = tagged(name, arguments)
    text = f"{words}\n{written}" if words else written
    span = (len(text) - len(written), len(text))
    output = json.dumps(arguments)
    return [(words or None, StepCall(name, output)), (text, StepCall(name, output, *span))]


@example("search", {"0": ":"}, "", 1)  # without its colon it is a Python set
@given(_names, _arguments, st.sampled_from(["", "I look."]), st.integers(0, 9))
def test_each_kind_does_what_it_says(name, arguments, words, seed):
    for text, call in steps(name, arguments, words):
        for kind in KINDS:
            out = damage(kind, text, call, OFFERED, np.random.default_rng(seed))
            again = damage(kind, text, call, OFFERED, np.random.default_rng(seed))
            assert out == again
            if out is None:
                odd = kind == "argument_dropped" and not arguments
                assert odd or (call.start is not None and kind in KINDS[2:])
                continue
            if words:
                assert out.text is not None
                assert out.text.startswith(words)
            if kind in ("tags_removed", "json_broken"):
                assert out.call is None
                assert find_tagged(out.text or "") == []
            if kind == "tags_removed":
                body = (out.text or "").removeprefix(words).strip()
                assert json.loads(body) == {"name": name, "arguments": arguments}
            if kind == "argument_dropped":
                assert out.call is not None
                left = json.loads(out.call.arguments)
                (gone,) = arguments.keys() - left.keys()
                assert left == {key: arguments[key] for key in arguments if key != gone}
                assert out.call.name == name
            if kind == "tool_renamed":
                assert out.call is not None
                assert out.call.name not in OFFERED
                assert out.call.arguments == call.arguments
            if out.call is not None and call.start is not None:
                (group,) = find_tagged(out.text or "")
                (result,) = group.calls
                assert result.values.name == out.call.name
                assert json.loads(result.values.arguments or "") == json.loads(out.call.arguments)


def test_json_is_broken_within_the_tags():
    for seed in range(30):
        text = tagged("search", {"q": "x", "n": [1, {"a": "}"}]})
        call = StepCall("search", "", 0, len(text))
        out = damage("json_broken", text, call, OFFERED, np.random.default_rng(seed))
        assert out is not None
        assert out.text is not None
        assert len(out.text) == len(text) - 1
        inside = out.text.removeprefix("<tool_call>\n").removesuffix("\n</tool_call>")
        assert inside != out.text
        with pytest.raises(json.JSONDecodeError):
            json.loads(inside)


def test_json_alone_has_no_tags_to_remove():
    text = '{"name": "search", "arguments": {"q": 1}}'
    call = StepCall("search", '{"q": 1}', 0, len(text))
    assert damage("tags_removed", text, call, OFFERED, np.random.default_rng(0)) is None
    out = damage("argument_dropped", text, call, OFFERED, np.random.default_rng(0))
    assert out is not None
    assert out.text == '{"name": "search", "arguments": {}}'


TOOLS = json.dumps([{"type": "function", "function": {"name": "look"}}])


def run(calls: int, **more: Any) -> dict[str, Any]:
    rows: list[dict[str, Any]] = [{"source": "user", "kind": "message", "text": "why?"}]
    for n in range(calls):
        call = {"name": "look", "arguments": json.dumps({"n": n, "x": "y"})}
        rows.append({"text": "so", "actor": "expert", "reasoning": "hm", "calls": [call]})
    return {"task_id": "t", "tools": TOOLS, "steps": rows, **more}


def test_the_rejected_side_is_a_made_up_branch(tmp_path):
    store = store_of(tmp_path / "s", run(3), run(0), run(1))
    outcome = apply("pairs", store, rule="format_corruption", per_trajectory=2)
    pairs = rows_of(outcome)
    assert len(pairs) == len(outcome.made) == 3
    by_id = {made.trajectory_id: made for made in outcome.made}
    for pair in pairs:
        branch = by_id[pair["rejected_id"]]
        (step,) = branch.steps
        assert (branch.parent_id, branch.parent_step) == (pair["context_id"], pair["context_up_to"])
        assert branch.branch_kind == "revision"
        assert step.step == pair["chosen_from"] == pair["rejected_from"]
        assert step.synthetic
        assert step.made_from_trajectory == pair["chosen_id"]
        assert step.made_from_step == pair["chosen_from"]
        assert step.made_by == "pairs: format_corruption"
        assert (step.actor, step.reasoning) == ("expert", "hm")
        kind = json.loads(pair["scores"])["corruption"]
        assert len(step.calls) == (kind in ("argument_dropped", "tool_renamed"))
    assert len({made.trajectory_id for made in outcome.made}) == 3
    reasons = reasons_of(outcome)
    assert reasons == {1000: "no step of it makes one call with a name and arguments"}
    assert {row["seq"] for row in events_of(outcome)} == {0, 1000, 2000}


def test_draws_follow_from_the_seed(tmp_path):
    store = store_of(tmp_path / "s", *[run(4) for _ in range(12)])
    options: dict[str, Any] = {"rule": "format_corruption", "max_pairs": 7}
    first = apply("pairs", store, seed=1, **options)
    same(first, apply("pairs", store, seed=1, workers=2, **options))
    other = apply("pairs", store, seed=2, **options)
    assert rows_of(first) != rows_of(other)
    assert len(rows_of(first)) == len(rows_of(other)) == 7
    assert list(reasons_of(first).values()) == ["other steps were drawn"] * 5
    for kind in KINDS:
        result = apply("pairs", store, corruptions=[kind], rule="format_corruption")
        assert {json.loads(row["scores"])["corruption"] for row in rows_of(result)} == {kind}


def test_odd_calls_are_explained(tmp_path):
    steps: list[list[dict[str, Any]]] = [
        [{"calls": [{"name": None, "arguments": "{}"}]}],
        [{"calls": [{"name": "f", "arguments": None, "arguments_raw": "x"}]}],
        [{"calls": [{"name": "f", "arguments": "{}"}, {"name": "f", "arguments": "{}"}]}],
        [{"calls": [{"name": "f", "arguments": "[1]"}]}],
        [{"calls": [{"name": "f", "arguments": "{}"}]}],
        [],
    ]
    store = store_of(tmp_path / "s", *[{"steps": step} for step in steps])
    outcome = apply("pairs", store, rule="format_corruption", corruptions=["argument_dropped"])
    assert rows_of(outcome) == []
    no_call = "no step of it makes one call with a name and arguments"
    sound = "none of the corruptions can be done to its call"
    wanted = [no_call, no_call, no_call, sound, sound, no_call]
    assert list(reasons_of(outcome).values()) == wanted
