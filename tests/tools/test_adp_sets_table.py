"""The comparison with the Agent Data Protocol's standardized samples, and that no text is lost."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import adp
from adp.converters.datasets import catalogue
from adp_schema import extra_column
from adp_schema.model import Trajectory
from tests import samples
from tools.adp_sets_table import (
    BEGIN,
    END,
    OTHER_RECORDS,
    PAGE,
    SetResult,
    compare_all,
    compare_run,
    lines,
)

DATA = samples.ROOT / "adp_v1"
RAW = [
    *sorted(DATA.glob("*/sample_raw*.json")),
    *sorted((samples.ROOT / "adp_atif").glob("*/sample_raw*.json")),
    *sorted((samples.ROOT / "datasets_new").glob("adp_*/*.json")),
]
NO_CALLS = {
    "agenttuning_db": "its five samples only answer",
    "orca_agentinstruct": "its samples are answers without code",
    "adp_orca_agentinstruct_older": "its samples are answers without code",
}
needs_samples = pytest.mark.skipif(not RAW, reason="../shared/data is not there")


def named(path: Path) -> str:
    return f"{path.parent.parent.name}-{path.parent.name}"


@pytest.fixture(scope="module")
def results():
    return compare_all(DATA)


@needs_samples
def test_every_action_of_the_protocol_is_a_call(results):
    assert [it.missing for it in results if it.missing] == []
    for it in results:
        assert it.equal + it.reasons.total() >= it.expected or it.name in OTHER_RECORDS
        assert it.calls >= it.expected or it.name in OTHER_RECORDS


@needs_samples
def test_every_observation_answers_a_call_or_came_before_any(results):
    # One says that an answer was wrong, which is no call.
    expected = {"codeactinstruct": 1}
    assert {it.name: it.observations - it.linked - it.first for it in results} == {
        it.name: expected.get(it.name, 0) for it in results
    }


@needs_samples
def test_the_page_shows_the_table(results):
    shown = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert shown.strip().splitlines() == lines(results)


@needs_samples
def test_old_events_of_openhands_are_counted(tmp_path):
    path = DATA / "openhands" / "sample_raw.older.json"
    rows = json.loads(path.read_bytes())
    events = [event for row in rows for event in row["trajectory"]]
    acts = Counter(
        it["action"] for it in events if it["action"] in ("run", "run_ipython", "finish")
    )
    runs = list(adp.convert([str(path)], str(tmp_path / "store")))
    calls = Counter(call.name for run in runs for step in run.steps for call in step.calls)
    assert len(runs) == len(rows)
    assert calls == acts
    results = Counter(it["observation"] for it in events if it["observation"] in acts)
    seen = [it for run in runs for step in run.steps for it in step.observations]
    assert Counter(it.name for it in seen) == results
    assert all(it.call_step is not None for it in seen)


@needs_samples
@pytest.mark.parametrize("path", RAW, ids=named)
def test_raw_files_are_read_without_options_and_no_text_is_lost(path, tmp_path):
    store = adp.convert([str(path)], str(tmp_path / "store"))
    counts = store.manifest.counts
    assert counts.used == counts.records > 0
    assert catalogue.signatures()
    runs = list(store)
    calls = sum(len(step.calls) for run in runs for step in run.steps)
    assert bool(calls) != (path.parent.name in NO_CALLS)
    texts = {text for run in runs for text in _kept(run)}
    everything = "\n".join(sorted(texts))
    lost = [
        text
        for text in _words(json.loads(path.read_bytes()))
        if text not in texts and text not in everything
    ]
    assert lost == []


def _words(value: Any) -> Iterator[str]:
    """Every string of more than three characters; of one that is JSON, those in it."""
    if isinstance(value, dict):
        value = value.values()
    if isinstance(value, str):
        inner = None
        if value[:1] in "[{":
            try:
                inner = json.loads(value)
            except ValueError:
                inner = None
        if inner is not None:
            yield from _words(inner)
        elif len(value) > 3 and value not in _ROLES:
            yield value
    elif not isinstance(value, int | float | None):
        for item in value:
            yield from _words(item)


_ROLES = {"user", "human", "assistant", "system", "developer", "tool", "function", "environment",
          "text"}  # fmt: skip
"""Words that decide what a row is, instead of standing in it."""


def _kept(run: Trajectory) -> Iterator[str]:
    """The texts of a trajectory: columns, keys of ``extra``, arguments, media, and what was cut."""
    rows: list[Any] = [run, *run.early_observations]
    for step in run.steps:
        rows += [step, *step.calls, *step.observations]
    whole: list[str] = []
    for row in rows:
        extra = extra_column.unpack(row.extra)
        for value in row.model_dump(exclude={"media"}).values():
            if isinstance(value, str):
                yield value
                yield from _inside(value)
        before, after = _around(extra)
        text = before + (getattr(row, "text", None) or "") + after
        yield text
        if "cut" in extra.fields:
            whole.append(text)
    yield "".join(whole)
    for blob in run.media.values():
        yield blob.uri or ""
    if run.task is not None:
        yield from (it for it in run.task.model_dump().values() if isinstance(it, str))


def _around(extra: extra_column.Extra) -> tuple[str, str]:
    """The characters that stood around a text, and were cut off."""
    if "cut" in extra.fields:
        before, after = json.loads(bytes(extra.fields["cut"]))
        return before, after
    return extra.parsed.get("before", ""), extra.parsed.get("after", "")


def _inside(text: str) -> Iterator[str]:
    if text[:1] in "[{":
        try:
            yield from _words(json.loads(text))
        except ValueError:
            return


def test_differences_are_told_apart():
    result = SetResult("demo")
    actions = [
        ("click", {"bid": "12"}),
        ("back", {}),
        ("open", {"path": "a.py", "line_number": "3"}),
        ("bash", "ls -l"),
        ("type", {"bid": "1", "text": "x", "press_enter_after": "0"}),
        ("edit", {"text": "if a:"}),
        ("bash", "rm a"),
    ]
    calls = [
        ("click", {"bid": "12"}),
        ("navigate_back", {}),
        ("open", {"path": "a.py", "line_number": 3}),
        ("bash", {"command": "ls -l"}),
        ("hover", {"bid": "9"}),
        ("type", {"bid": "1", "text": "x", "press_enter_after": 1}),
        ("edit", {"text": "  if a:"}),
        ("bash", "rm b"),
    ]
    compare_run(actions, calls, result)
    assert result.equal == 1
    assert result.reasons == Counter(["name", "number", "tool", "enter", "spaces"])
    assert result.missing == ['["bash", "rm a"]']


def test_the_recipes_that_the_page_names_are_there():
    text = (
        PAGE.read_text(encoding="utf-8").partition("## Where each set is")[2].partition("\n## ")[0]
    )
    rows = re.findall(r"^\| (.*) \| (.*) \| (.*) \| (.*) \|$", text, re.MULTILINE)[1:]
    pairs = [pair for row in rows for pair in (row[:2], row[2:])]
    named_recipes = {name for _, recipes in pairs for name in recipes.split(", ")}
    assert named_recipes <= set(catalogue.names())
    sets = [name for names, _ in pairs for name in names.split(", ")]
    assert len(sets) == len(set(sets)) == 56
