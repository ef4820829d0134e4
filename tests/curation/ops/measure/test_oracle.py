"""Every number against a plain reading of the same runs, one trajectory at a time."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from adp.curation.apply import apply
from adp.curation.ops.measure import sizes
from adp.curation.ops.measure.faults import FAULTS, INFRA, MODEL
from adp.stores.checks.tool_schema import read_tools
from tests.curation.ops.acted import (
    SPACING,
    agent,
    call,
    calls_of,
    result,
    results_of,
    runs,
    status,
    user,
    write,
)
from tests.effort import examples

WEIGHTS = sizes.BYTE_WEIGHTS


def estimate(text: str) -> float:
    total = 0.0
    for byte in text.encode():
        letter = chr(byte)
        if byte > 127:
            total += WEIGHTS["beyond"]
        elif letter.isalpha():
            total += WEIGHTS["lower" if letter.islower() else "upper"]
        elif letter.isdigit():
            total += WEIGHTS["digit"]
        else:
            total += WEIGHTS[
                {" ": "space", "\n": "line", "\r": "line", "\t": "line"}.get(letter, "other")
            ]
    return total + sizes.TEXT_WEIGHT


def canonical(fields: dict[str, Any]) -> str:
    if fields.get("arguments") is None:
        return (fields.get("arguments_raw") or "").strip()
    return json.dumps(json.loads(fields["arguments"]), sort_keys=True, separators=(",", ":"))


def reads_failed(text: str | None) -> bool:
    return bool(text) and text.startswith("Error: ")


def failed(row: dict[str, Any], guess: bool) -> bool | None:
    known = status(row)
    return reads_failed(row["text"]) if known is None and guess else known


def loops(actions: list[Any], rounds: int) -> tuple[int, set[int]]:
    """Number of loops and indexes of repeated calls, tried at every place."""
    size, count, repeated = len(actions), 0, set()
    for period in (1, 2, 3):
        start = 0
        while start < size:
            end = start
            while end < size and (end < start + period or actions[end] == actions[end - period]):
                end += 1
            block = actions[start : start + period]
            maximal = (
                start == 0
                or start + period > size
                or actions[start - 1] != actions[start - 1 + period]
            )
            simple = period == 1 or any(item != block[0] for item in block)
            if maximal and simple and end - start >= rounds * period:
                count += 1
                repeated |= set(range(start + period, end))
            start += 1
    return count, repeated


def dice(value: str, other: str) -> float:
    bags = [Counter(re.findall(r"\w+", text, re.ASCII)) for text in (value, other)]
    total = sum(map(sum, (bag.values() for bag in bags)))
    return 2 * sum((bags[0] & bags[1]).values()) / total if total else 0.0


def cycles(run: dict[str, Any], guess: bool) -> list[list[bool | None]]:
    """The outcomes of the calls of each error-retry cycle."""
    acts = sorted({number for number, _, _ in calls_of(run)})
    chains: dict[int, list[bool | None]] = {}
    last: dict[str, tuple[int, str, bool | None, int]] = {}
    for place, (number, _, entry) in enumerate(calls_of(run)):
        name = entry["name"]
        if name is None:
            continue
        faileds = [failed(answer, guess) for answer in entry["results"]]
        if not faileds:
            faileds = [
                failed(row, guess)
                for at, index, _, row in results_of(run)
                if "spoken" in row and at == number and calls_at(run, at)[index] is entry
            ]
        outcome = True if True in faileds else False if False in faileds else None
        chain = place
        if name in last:
            at, output, bad, before = last[name]
            near = output == canonical(entry) or dice(output, canonical(entry)) >= 0.6
            if bad and near and acts.index(number) == acts.index(at) + 1:
                chain = before
        chains.setdefault(chain, []).append(outcome)
        last[name] = (number, canonical(entry), outcome, chain)
    return [chain for chain in chains.values() if len(chain) > 1]


def calls_at(run: dict[str, Any], number: int) -> list[Any]:
    return run["steps"][number].get("calls", [])


def malformed(fields: dict[str, Any], tools: Any) -> str | None:
    if fields["kind"] not in ("function", "mcp", "gui"):
        return None
    if fields.get("arguments_kind") == "invalid":
        return "no JSON"
    if tools:
        if fields["name"] not in tools.by_name:
            return "unknown tool"
        if fields["arguments"] is not None:
            value = json.loads(fields["arguments"])
            if value.get("x", "") == "" or set(value) - {"x"} or not isinstance(value["x"], int):
                return "against the schema"
    return None


def unused(run: dict[str, Any]) -> tuple[int, int]:
    """Judged and unused results, word by word."""
    output: list[tuple[tuple[int, int, int], bool, str]] = []
    spoken = {row["spoken"] for *_, row in results_of(run) if "spoken" in row}
    for number, step in enumerate(run["steps"]):
        if number not in spoken:
            for text in (step["text"], step.get("reasoning")):
                output.append(((number, 0, 0), step["source"] == "agent", text or ""))
    for number, _, entry in calls_of(run):
        output.append(
            ((number, 1, 0), True, entry.get("arguments") or entry.get("arguments_raw") or "")
        )
    results = [((at, 2, order), row["text"] or "") for at, _, order, row in results_of(run)]
    output += [(place, False, text) for place, text in results]
    ends = [number for number, step in enumerate(run["steps"]) if step["source"] == "agent"]
    pattern = re.compile(r"[0-9][0-9.,:]*[0-9]|[A-Za-z_][A-Za-z0-9_]{5,}")
    judged = used = 0
    for place, text in results:
        words = set(pattern.findall(text))
        fresh = {
            word
            for word in words
            if not any(word in pattern.findall(other) for at, _, other in output if at < place)
        }
        if not fresh or not ends or place[0] >= ends[-1]:
            continue
        judged += 1
        used += any(
            fresh & set(pattern.findall(other)) for at, ours, other in output if ours and at > place
        )
    return judged, judged - used


def side(texts: list[str | None]) -> str:
    text = " ".join(entry for entry in texts if entry is not None)
    for item in (INFRA, MODEL):
        if any(re.search(f.pattern, text, re.I) for f in FAULTS if f.side == item):
            return item
    return "other"


def expected(run: dict[str, Any], guess: bool, loop_by: str, rounds: int) -> dict[str, Any]:
    steps, every = run["steps"], list(calls_of(run))
    seen = [dict(row) for row in run.get("early", ())]
    rows = [row for *_, row in results_of(run)]
    known = [failed(row, guess) for row in rows if failed(row, guess) is not None]
    tokens = trained = 0.0
    for number, step in enumerate(steps):
        ours = (
            step["source"] == "agent"
            and step.get("loss_weight") != 0
            and not step.get("is_copied_context")
        )
        texts = [step["text"], step.get("reasoning")]
        texts += [
            f"{entry['name'] or ''} {entry.get('arguments') or entry.get('arguments_raw') or ''}"
            for at, _, entry in every if at == number
        ]  # fmt: skip
        own_tokens = sum(estimate(text) for text in texts if text)
        tokens += own_tokens
        trained += own_tokens if ours else 0
    recorded = seen + [row for row in rows if "spoken" not in row]
    tokens += sum(estimate(row["text"]) for row in recorded if row["text"])
    actions = [
        (
            entry["name"],
            canonical(entry),
            first_text(run, number, index) if loop_by == "result" else None,
        )
        for number, index, entry in every
    ]
    count, repeated = loops(actions, rounds)
    bad = [
        malformed(entry, read_tools(run["tools"]) if "tools" in run else None)
        for *_, entry in every
    ]
    retries = cycles(run, guess)
    agents = [step for step in steps if step["source"] == "agent"]
    cut = [
        step.get("stop_reason") in ("length", "max_tokens")
        for step in agents
        if "stop_reason" in step
    ]
    cut_last = None
    if agents and "stop_reason" in agents[-1]:
        cut_last = agents[-1]["stop_reason"] in ("length", "max_tokens")
    limit = run["stop_reason"] == "max_steps" if "stop_reason" in run else None
    empty = None
    if agents:
        empty = not (agents[-1]["text"] or "").strip() and not any(
            at == steps.index(agents[-1]) for at, *_ in every
        )
    no_answer = run["final_answer"] == "" if "final_answer" in run else None
    wrong = [
        row for row in rows if status(row) or (status(row) is None and reads_failed(row["text"]))
    ]
    sides = Counter(side([row.get("error_type"), row["text"]]) for row in wrong)
    judged, left = unused(run)
    longest = max((len(list(group)) for _, group in itertools.groupby(actions)), default=0)
    return {
        "tokens": tokens, "tokens_trained": trained,
        "n_steps": len(steps), "n_agent_steps": len(agents), "n_calls": len(every),
        "n_observations": len(recorded), "known_results": len(known), "n_errors": sum(known),
        "error_rate": sum(known) / len(known) if known else None,
        "likely_errors": sum(status(row) is None and reads_failed(row["text"]) for row in rows),
        "infra_errors": sides[INFRA], "model_errors": sides[MODEL], "other_errors": sides["other"],
        "run_fault": side([run["error_type"]]) if "error_type" in run else None,
        "longest_repeat": longest, "loops": count, "repeated_calls": len(repeated),
        "error_retry_cycles": len(retries), "longest_retry": max(map(len, retries), default=0),
        "recovered_retries": sum(chain[-1] is False for chain in retries),
        "run_truncated": any_known(run.get("truncated"), limit, cut_last),
        "cut_steps": sum(cut), "cut_results": sum(bool(row.get("truncated")) for row in rows),
        "empty_final": any_known(empty, no_answer),
        "malformed_calls": sum(item is not None for item in bad),
        "unknown_tool_calls": bad.count("unknown tool"),
        "judged_results": judged, "unused_results": left,
        "steps": {
            number: step_flags(run, number, guess, every, repeated, bad)
            for number, step in enumerate(steps) if step["source"] == "agent"
        },
    }  # fmt: skip


def any_known(*values: bool | None) -> bool | None:
    return None if all(value is None for value in values) else any(values)


def first_text(run: dict[str, Any], number: int, index: int) -> str | None:
    texts = [row["text"] for at, place, _, row in results_of(run) if (at, place) == (number, index)]
    return texts[0] or None if texts else None


def step_flags(run, number, guess, every, repeated, bad) -> tuple[bool | None, bool, bool]:
    faileds = [failed(row, guess) for at, _, _, row in results_of(run) if at == number]
    places = [place for place, (at, _, _) in enumerate(every) if at == number]
    return (
        any_known(*faileds) if faileds else None,
        any(place in repeated for place in places),
        any(bad[place] is not None for place in places),
    )


def measured(folder: Path, described: list[Any], **options: Any) -> list[dict[str, Any]]:
    shutil.rmtree(folder, ignore_errors=True)
    store = write(folder, described)
    outcome = apply("measure", store, workers=1, **options)
    results = []
    for place in range(len(described)):
        row = outcome.columns.filter(pl.col("seq") == place * SPACING).row(0, named=True)
        frame = outcome.step_columns.filter(pl.col("seq") == place * SPACING)
        names = ("is_error_step", "is_repeated", "is_malformed")
        row["steps"] = {
            step["step"]: tuple(step[name] for name in names) for step in frame.to_dicts()
        }
        results.append(row)
    assert outcome.columns.height == len(described)
    return results


LOOP = {"steps": [agent("a", call("a", '{"x":1}'), call("b", "{}")) for _ in range(4)]}
SAME = {
    "steps": [
        agent(None, *[call("a", "{}")] * 3, call("b", "{}")),
        agent("", *[call("b", "{}")] * 2),
    ]
}
RETRY = {
    "steps": [
        user(),
        agent("x", call("a", '{"x": 2, "y": "long word here"}', result("no", is_error=True))),
        agent("x", call("a", '{"x": 3, "y": "long word here"}', result("no", exit_code=2))),
        agent("x", call("a", '{"x": 4, "y": "long word here"}', result("ok", is_error=False))),
    ]
}  # fmt: skip


# Shrinking takes minutes, and the message names the number that is wrong.
@settings(
    max_examples=examples(32),
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    described=st.lists(runs, min_size=4, max_size=12),
    guess=st.booleans(),
    loop_by=st.sampled_from(["action", "result"]),
    rounds=st.integers(2, 3),
)
@example(described=[LOOP, SAME, RETRY], guess=False, loop_by="action", rounds=3)
@example(described=[LOOP, SAME, RETRY], guess=True, loop_by="result", rounds=2)
def test_all_numbers_are_those_of_a_plain_reading(tmp_path, described, guess, loop_by, rounds):
    entry = measured(
        tmp_path / "s", described, errors="likely" if guess else "recorded", loop_by=loop_by,
        loop_rounds=rounds,
    )  # fmt: skip
    for row, run in zip(entry, described, strict=True):
        wanted = expected(run, guess, loop_by, rounds)
        for name in ("tokens", "tokens_trained"):
            assert abs(row.pop(name) - wanted.pop(name)) <= 0.501, name
        other = {name: (row[name], value) for name, value in wanted.items() if row[name] != value}
        assert not other
