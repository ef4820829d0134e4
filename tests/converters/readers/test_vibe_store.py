"""Mistral Vibe since 2.20: the folder of a session, and what the program prints."""

from __future__ import annotations

import json

import pytest

from tests.converters.readers.real_files import Rows
from tests.converters.readers.stores import EXAMPLES

FOLDER = EXAMPLES / "vibe_store"
PRINTED = EXAMPLES / "vibe_entries" / "printed.jsonl"


@pytest.fixture
def rows(tmp_path):
    return Rows([FOLDER], tmp_path / "store")


def test_messages_of_the_newest_snapshot(rows):
    chunks = [
        json.loads((FOLDER / f"session/chunks/{it}.json").read_bytes()) for it in ("m1", "m2")
    ]
    messages = [it["message"] for chunk in chunks for it in chunk]
    roles = [message["role"] for message in messages]
    parts = [part["type"] for message in messages for part in message["content"]]
    assert rows.count("observations") == roles.count("tool")
    assert rows.count("tool_calls") == parts.count("tool_call")
    assert rows.count("steps", "reasoning is not null") == parts.count("reasoning")
    sources = rows.all("select source s, kind k from steps order by step")
    assert [it["s"] for it in sources if it["k"] != "event"] == ["system", "user", "agent", "agent"]
    assert [it["k"] for it in sources].count("event") == 1  # an entry without a message


def test_tokens_times_and_failures(rows):
    turns = rows.all("select tokens_in i, stop_reason s, timestamp t from steps where "
                     "source = 'agent' order by step")  # fmt: skip
    assert [(it["i"], it["s"]) for it in turns] == [(90, "tool_call"), (None, None)]
    assert all(it["t"] for it in turns)
    assert rows.count("observations", "is_error") == 1
    (run,) = rows.all("select * from trajectories")
    assert (run["total_tokens_in"], run["agent_version"]) == (190, "3.0.2")
    assert (run["agent_model"], run["total_cost_usd"]) == ("mill-3", 0.25)
    assert "input_schema" in run["tools"]


def test_every_file_is_read_or_reported(rows):
    counts = rows.manifest.counts
    assert counts.used == counts.records == sum(it.is_file() for it in FOLDER.rglob("*"))
    lost = json.loads(rows.value("select losses from trajectories"))
    assert [it["path"] for it in lost] == [
        "$side.session/journal/0000000000000001.jsonl",
        "$side.session/generations/0000000000000001/manifest.json",
        "$side.session/scheduled-loops.json",
    ]


def test_entries_that_are_printed(tmp_path):
    rows = Rows([PRINTED], tmp_path / "store")
    assert rows.value("select source_format from trajectories") == "vibe_entries"
    entries = [json.loads(line)["type"] for line in PRINTED.read_text().splitlines()]
    assert rows.count("tool_calls") == rows.count("observations") == entries.count("effect")
    sources = rows.all("select source s, reasoning r from steps order by step")
    assert [it["s"] for it in sources] == ["user", "agent", "agent", "user"]
    assert sources[1]["r"] == "The stone first."
    assert rows.count("observations", "is_error") == 1
