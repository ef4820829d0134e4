"""Real rows of data sets: what a plain walk over the raw files counts is in the store."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import adp
from tests.samples import ROOT

GLAIVE = (ROOT / "datasets" / "glaive_raw" / "two_records.jsonl",
          ROOT / "datasets_new" / "fc_sft_fixtures" / "glaive_sample.jsonl")  # fmt: skip
XLAM = ROOT / "datasets" / "xlam60k" / "row0.jsonl"
TOOLACE = ROOT / "datasets_new" / "fc_sft_fixtures" / "toolace_sample.jsonl"
NNETNAV = ROOT / "adp_v1" / "nnetnav-wa" / "sample_raw.json"
OLDER_NNETNAV = ROOT / "datasets_new" / "adp_nnetnav_wa_older" / "sample_raw.json"
INTERCODE = ROOT / "datasets_new" / "intercode"
API_BANK = ROOT / "datasets_new" / "api_bank"
WEBSHOP = (ROOT / "datasets" / "webshop_user_session_logs",
           ROOT / "datasets_new" / "webshop_sessions_more")  # fmt: skip
ET_AGENT = ROOT / "etagent"
BFCL = (*(ROOT / "datasets" / "bfcl").glob("BFCL*.jsonl"),
        *(ROOT / "datasets_new" / "bfcl_more").glob("BFCL*.jsonl"))  # fmt: skip


def converted(tmp_path: Path, *sources: Path, **options: Any) -> adp.Store:
    missing = [str(it) for it in sources if not it.exists()]
    if missing:
        pytest.skip(f"no sample at {missing[0]}")
    return adp.convert([str(it) for it in sources], str(tmp_path / "store"), **options)


def records(path: Path) -> list[Any]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        value = json.loads(text)
        return value if isinstance(value, list) else [value]
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def rows(store: adp.Store, table: str) -> list[dict[str, Any]]:
    return store.scan(table).collect().to_dicts()


def test_glaive(tmp_path):
    store = converted(tmp_path, *GLAIVE)
    chats = [row["chat"] for path in GLAIVE for row in records(path)]
    systems = [row["system"] for path in GLAIVE for row in records(path)]
    counts = Counter(step["source"] for step in rows(store, "steps"))
    assert counts["user"] == sum(len(re.findall(r"(?<!\S)USER:", chat)) for chat in chats)
    assert counts["agent"] == sum(len(re.findall(r"(?<!\S)ASSISTANT:", chat)) for chat in chats)
    assert len(rows(store, "observations")) == sum(
        chat.count("FUNCTION RESPONSE:") for chat in chats
    )
    offered = [
        {tool["function"]["name"] for tool in json.loads(run["tools"] or "[]")}
        for run in rows(store, "trajectories")
    ]
    expected = [set(re.findall(r'^\s*\{?\s*"name": "(\w+)"', it, re.MULTILINE)) for it in systems]
    expected = [
        names or set(re.findall(r'\{ ?"name": "(\w+)", "description"', it))
        for names, it in zip(expected, systems, strict=True)
    ]
    assert offered == expected


def test_xlam(tmp_path):
    store = converted(tmp_path, XLAM)
    answers = [call for row in records(XLAM) for call in json.loads(row["answers"])]
    calls = rows(store, "tool_calls")
    assert [(it["name"], json.loads(it["arguments"])) for it in calls] == [
        (it["name"], it["arguments"]) for it in answers
    ]
    (run,) = rows(store, "trajectories")
    (tool,) = json.loads(run["tools"])
    schema = tool["function"]["parameters"]
    assert schema["properties"]["type"]["type"] == "string"  # a parameter that is called type
    assert run["source_format"] == "xlam"
    assert run["license"] == "cc-by-4.0"


def test_toolace(tmp_path):
    store = converted(tmp_path, TOOLACE)
    raw = records(TOOLACE)
    runs = rows(store, "trajectories")
    assert len(runs) == len(raw)
    for run, row in zip(runs, raw, strict=True):
        names = re.findall(r'"name": "([^"]+)", "description"', row["system"])
        tools = json.loads(run["tools"] or "[]")
        assert [it["function"]["name"] for it in tools] == names
        assert all(it["function"]["parameters"]["type"] == "object" for it in tools)


def test_nnetnav(tmp_path):
    """A row a step: the rows of a task are one run, and each gives one turn of the agent."""
    store = converted(tmp_path, NNETNAV)
    raw = records(NNETNAV)
    runs = rows(store, "trajectories")
    by_task = Counter(row["task_name"] for row in raw)
    assert {run["source_id"] for run in runs} == set(by_task)
    steps = rows(store, "steps")
    agent = Counter(it["trajectory_id"] for it in steps if it["source"] == "agent")
    names = {run["trajectory_id"]: run["source_id"] for run in runs}
    assert {names[key]: count for key, count in agent.items()} == dict(by_task)
    system = [it for it in steps if it["source"] == "system"]
    assert len(system) == len(runs)  # said once a run, and not in each step
    texts = {it["text"] for it in steps} | {it["text"] for it in rows(store, "observations")}
    for row in raw:
        assert row["messages"][-1]["content"] in texts


def test_steps_that_are_not_there_are_noted_and_not_made_up(tmp_path):
    store = converted(tmp_path, OLDER_NNETNAV)
    raw = records(OLDER_NNETNAV)
    runs = rows(store, "trajectories")
    assert len(runs) == len({row["task_name"] for row in raw})
    agent = [it for it in rows(store, "steps") if it["source"] == "agent"]
    assert len(agent) == len(raw)


def test_intercode(tmp_path):
    files = sorted(INTERCODE.glob("*.json"))
    store = converted(tmp_path, *(files or [INTERCODE]))
    actions = rewards = 0
    for path in files:
        for run in json.loads(path.read_text(encoding="utf-8")).values():
            history = run.get("turn_history", {})
            actions += len(history.get("actions", run.get("trajectory", ())))
            rewards += len(history.get("rewards", ()))
    assert len(rows(store, "tool_calls")) == actions
    assert sum(it["reward"] is not None for it in rows(store, "steps")) == rewards
    answered = [it for it in rows(store, "observations") if it["call_step"] is not None]
    assert len(answered) == actions
    assert all("do-not-train" in run["tags"] for run in rows(store, "trajectories"))


def test_api_bank(tmp_path):
    store = converted(tmp_path, API_BANK)
    raw = [row for path in sorted(API_BANK.glob("*.jsonl")) for row in records(path)]
    made = [row for row in raw if row["role"] == "API"]
    calls = rows(store, "tool_calls")
    assert Counter(it["name"] for it in calls) == Counter(it["api_name"] for it in made)
    assert sorted(json.dumps(json.loads(it["arguments"])) for it in calls) == sorted(
        json.dumps(it["param_dict"]) for it in made
    )
    failed = sum(bool(it["result"]["exception"]) for it in made)
    results = rows(store, "observations")
    assert sum(bool(it["is_error"]) for it in results) == failed
    assert all(it["call_step"] is not None for it in results)


def test_webshop_sessions(tmp_path):
    store = converted(tmp_path, *WEBSHOP)
    sessions = [records(path) for it in WEBSHOP for path in sorted(it.glob("*.jsonl"))]
    assert len(rows(store, "trajectories")) == len(sessions)
    assert len(rows(store, "tool_calls")) == sum(len(it) - 1 for it in sessions)
    bought = [it for it in rows(store, "tool_calls") if "buy now" in (it["arguments"] or "")]
    assert len(bought) == sum(page["page"] == "done" for it in sessions for page in it)
    rewards = sorted(it[-1]["reward"] for it in sessions if "reward" in it[-1])
    kept = [it["reward"] for it in rows(store, "trajectories")]
    assert sorted(it for it in kept if it is not None) == rewards


def test_questions_become_tasks(tmp_path):
    store = converted(tmp_path, ET_AGENT)
    files = sorted((ET_AGENT / "test").glob("*.jsonl"))
    raw = [row for path in files for row in records(path)]
    parquet = pq.read_table(ET_AGENT / "rl_datasets" / "valid.parquet").to_pylist()
    tasks = rows(store, "tasks")
    assert len(tasks) == len(raw) + len(parquet)
    asked = {row.get("question", row.get("problem")) for row in raw}
    asked |= {row["extra_info"]["question"] for row in parquet}
    assert {it["instruction"] for it in tasks} == asked
    assert store.manifest.counts.used == store.manifest.counts.records == len(tasks)
    assert not rows(store, "trajectories")


def test_bfcl(tmp_path):
    store = converted(tmp_path, *(BFCL or [ROOT / "datasets" / "bfcl"]))
    raw = [row for path in BFCL for row in records(path)]
    tasks = rows(store, "tasks")
    assert {it["task_id"] for it in tasks} == {row["id"] for row in raw}
    offered = {row["id"]: len(row.get("function", ())) for row in raw}
    for task in tasks:
        config = json.loads(task["environment_config"] or "{}")
        assert len(config.get("tools", ())) == offered[task["task_id"]]


AGENTINSTRUCT = ROOT / "datasets"
_ACTIONS = {
    "os": r"^Act: bash\s+```bash\n",
    "alfworld": r"^\s*ACTION: ",
    "webshop": r"^Action:\s*\n(?:search|click)\[",
}
"""What a turn with an action has, by its environment."""


@pytest.mark.parametrize("environment", sorted(_ACTIONS))
def test_agentinstruct(environment, tmp_path):
    """The dialect is chosen by the id of each run, and every action is a call with its result."""
    folder = AGENTINSTRUCT / f"agentinstruct_{environment}"
    store = converted(tmp_path, folder)
    raw = [row for path in sorted(folder.glob("*.json")) for row in records(path)]
    counts: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    for row in raw:
        turns = row["conversations"]
        for number, turn in enumerate(turns):
            words = turn.get("content", turn.get("value"))
            role = turn.get("role", turn.get("from"))
            if role in ("assistant", "gpt") and re.search(_ACTIONS[environment], words, re.M):
                counts[row["id"]] += 1
                answered[row["id"]] += number + 1 < len(turns)
    runs = {run["trajectory_id"]: run["source_id"] for run in rows(store, "trajectories")}
    calls = Counter(runs[it["trajectory_id"]] for it in rows(store, "tool_calls"))
    results = Counter(
        runs[it["trajectory_id"]]
        for it in rows(store, "observations")
        if it["call_step"] is not None
    )
    assert calls == counts
    assert results == +answered


def test_calls_in_texts(tmp_path):
    """Of Glaive and ToolACE: as many calls as the texts have, each with its result."""
    store = converted(tmp_path, *GLAIVE, TOOLACE)
    expected = sum(row["chat"].count("<functioncall>") for path in GLAIVE for row in records(path))
    for row in records(TOOLACE):
        for turn in row["conversations"]:
            if turn["from"] == "assistant" and turn["value"].startswith("["):
                expected += len(re.findall(r"[^\[,(]+\([^()]*=", turn["value"]))
    calls = rows(store, "tool_calls")
    assert len(calls) == expected
    assert all(json.loads(it["arguments"]) is not None for it in calls)
