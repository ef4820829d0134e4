"""What goes from another format through ATIF comes back: its own keys, and its pairs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adp.converters.export import export
from adp.converters.registry import formats
from adp.converters.run import convert
from adp_schema import jsontext
from adp_schema.losses import Losses
from adp_schema.store import Store
from tests.conservation import nest
from tests.roundtrip import read_one, write_one
from tools.tables.field_table import load_probe

ATIF = formats.get("atif")
RECORDS = Path(__file__).parent.parent / "fidelity" / "records"
ADP = {
    "id": "a-1",
    "content": [
        {"class_": "text_observation", "content": "s", "name": "system", "source": "environment"},
        {"class_": "text_observation", "content": "q", "name": None, "source": "user"},
        {
            "class_": "api_action",
            "function": "f",
            "kwargs": {"x": 1.0},
            "description": "first",
            "note": 7,
        },
        {"class_": "message_action", "content": "done", "description": "why"},
    ],
    "details": {"run": {"id": 3}, "test_result": "passed"},
}
CHAT = {
    "id": "c-1",
    "messages": [
        {"role": "user", "content": "q", "lang": "nl"},
        {"role": "assistant", "content": "a", "rank": 2},
    ],
    "run_id": "r-1",
    "test_result": {"resolved": 3},
    "category": "x",
    "source": "s",
}
SHAREGPT = {
    "conversations": [{"from": "human", "value": "q"}],
    "chosen": {"from": "gpt", "value": "a"},
    "rejected": {"from": "gpt", "value": "b"},
}
TRL = {
    "prompt": [{"role": "user", "content": "q"}],
    "chosen": [{"role": "assistant", "content": "a"}],
    "rejected": [{"role": "assistant", "content": "b"}],
    "score_chosen": 8.5,
    "score_rejected": 3.25,
    "margin": 5.25,
}


def go(folder, record, name):
    """A record as a store; the store after a hop; what was reported; the record that came back."""
    (folder / "in").mkdir()
    (folder / "in" / "a.jsonl").write_text(json.dumps(record) + "\n")
    convert([str(folder / "in")], str(folder / "first"))
    first = Store.open(str(folder / "first"))
    there = export(first, "atif", str(folder / "atif"))
    convert([str(folder / "atif")], str(folder / "second"))
    second = Store.open(str(folder / "second"))
    back = export(second, name, str(folder / "back"))
    paths = (path for path in (folder / "back").rglob("*") if path.is_file())
    (file,) = (path for path in paths if not path.name.startswith("metadata_"))
    whole = json.loads(file.read_text())
    return first, second, (there.losses, back.losses), whole[0] if type(whole) is list else whole


@pytest.mark.parametrize(("name", "record"), [("adp_v1", ADP), ("openai_chat", CHAT)])
def test_the_keys_of_a_format_come_back_to_it(name, record, tmp_path):
    _, _, losses, back = go(tmp_path, record, name)
    assert losses == ({}, {})
    for key, value in record.items():
        if key not in ("content", "messages"):
            assert back[key] == value
    inner = "content" if name == "adp_v1" else "messages"
    for before, after in zip(record[inner], back[inner], strict=True):
        assert {key: after.get(key) for key in before} == before


def rows_of(store, table):
    """Rows of a store without what tells where it is from, and with numbers for the runs' ids."""
    names = store.scan("trajectories").collect()["trajectory_id"].to_list()
    numbers = {name: number for number, name in enumerate(names)}
    rows = store.scan(table).collect().to_dicts()
    return [
        {
            column: numbers.get(value, value) if isinstance(value, str) else value
            for column, value in row.items()
            if column not in FROM_WHERE
        }
        for row in rows
    ]


FROM_WHERE = {
    *("source_file", "source_hash", "source_records", "source_offsets", "source_lengths"),
    *("extra", "converter", "converter_version", "losses", "text", "prose"),
    *("span_start", "span_end"),
}
"""The form of a record: what the same trajectory may have in another one."""


@pytest.mark.parametrize(
    "name",
    ["sharegpt/tools", "sharegpt/pair", "sharegpt/pair_tools", "m3/run"],
)
def test_the_rows_of_a_store_come_back_through_atif(name, tmp_path):
    """A record, in its own format once more after ATIF, makes the same rows again."""
    ours = name.split("/")[0]
    record = json.loads((RECORDS / f"{name}.json").read_text())
    first, _, losses, back = go(tmp_path, record, ours)
    assert losses == ({}, {})
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "a.jsonl").write_text(json.dumps(back) + "\n")
    convert([str(tmp_path / "again")], str(tmp_path / "third"))
    third = Store.open(str(tmp_path / "third"))
    for table in ("trajectories", "steps", "tool_calls", "observations", "pairs"):
        assert rows_of(third, table) == rows_of(first, table)


def test_own_keys_of_a_session_come_back(tmp_path):
    lines = [
        {"type": "session", "harness": "h", "id": "s", "cwd": "/srv", "name": "clock"},
        {"type": "message", "id": "l", "message": {"role": "user", "content": "q", "lang": "nl"}},
        {"type": "message", "message": {"role": "assistant", "content": "a", "stop": "end"}},
    ]
    (main,) = read_one(formats.get("sts"), json.dumps(lines).encode())
    (again,) = read_one(ATIF, write_one(ATIF, main))
    losses = Losses()
    written = json.loads(write_one(formats.get("sts"), again, losses))
    assert losses.items == []
    assert written == lines


def test_a_key_of_another_format_is_not_taken_as_ones_own(tmp_path):
    _, second, _, _ = go(tmp_path, CHAT, "openai_chat")
    report = export(second, "adp_v1", str(tmp_path / "other"))
    assert "$.extra.run_id: the target format has no place for it" in report.losses


@pytest.mark.parametrize("record", [SHAREGPT, TRL])
def test_pairs_come_back_with_scores(record, tmp_path):
    first, second, losses, _ = go(tmp_path, record, "preference")
    assert losses == ({}, {}) or record is TRL
    assert not losses[0]
    before, after = (store.scan("pairs").collect().to_dicts() for store in (first, second))
    names = [
        dict(
            zip(store.scan("trajectories").collect()["trajectory_id"].to_list(), "01", strict=True)
        )
        for store in (first, second)
    ]
    assert len(before) == 1
    for rows, ids in zip((before, after), names, strict=True):
        for row in rows:
            for column in ("pair_id", "context_id", "chosen_id", "rejected_id"):
                row[column] = ids[row[column]]
    assert after == before
    assert record is SHAREGPT or before[0]["chosen_score"] == 8.5


def written(record=SHAREGPT):
    runs = read_one(formats.get("sharegpt"), json.dumps(record).encode())
    (main,) = nest(runs, ATIF)
    return json.loads(write_one(ATIF, main))


PAIR = {"pair_id": 0, "context_id": 0, "context_up_to": 1, "chosen_id": 0, "rejected_id": 1}


@pytest.mark.parametrize(
    "adp",
    [
        {"source_format": "word"},
        {"source_format": ["adp_v1"]},
        {"made": ["source_id"]},
        {"source_format": "m3", "made": []},
        {"source_format": "m3", "made": ["call_id", "source_id"]},
        {"source_format": "m3", "made": ["extra"]},
        {"source_format": "m3", "made": "source_id"},
        {"source_format": "m3", "losses": "x"},
        {"success": True, "source_format": "m3"},
        {"pairs": []},
        {"pairs": {}},
        {"pairs": [1]},
        {"pairs": [{**PAIR, "rejected_id": 2}]},
        {"pairs": [{**PAIR, "rejected_id": -1}]},
        {"pairs": [{**PAIR, "rejected_id": True}]},
        {"pairs": [{**PAIR, "rejected_id": "d/other"}]},
        {"pairs": [{**PAIR, "context_up_to": "1"}]},
        {"pairs": [{**PAIR, "context_up_to": 2**40}]},
        {"pairs": [{**PAIR, "level": "word"}]},
        {"pairs": [{**PAIR, "other": 1}]},
        {"pairs": [{"context_id": 0, "chosen_id": 0, "rejected_id": 1}]},
    ],
)
def test_what_is_not_ours_stays_in_extra(adp):
    record = written()
    record["extra"] = {"adp": adp}
    data = json.dumps(record).encode()
    main, *branches = read_one(ATIF, data)
    assert "adp" in jsontext.decode_object(main.extra.encode())
    main.branches = branches
    losses = Losses()
    assert json.loads(write_one(ATIF, main, losses)) == record
    assert losses.items == []


def test_pairs_of_an_embedded_run_are_foreign():
    record = written()
    record["subagent_trajectories"][0]["extra"]["adp"] = {"pairs": [PAIR]}
    branch = read_one(ATIF, json.dumps(record).encode())[1]
    assert "adp" in jsontext.decode_object(branch.extra.encode())


@pytest.mark.parametrize("name", ["m3", "sharegpt", "preference", "adp_v1", "sts", "openai_chat"])
def test_the_record_of_a_hop_is_written_again_as_it_was(name):
    for record in load_probe(name)["records"]:
        (main,) = nest(read_one(formats.get(name), json.dumps(record).encode()), ATIF)
        data = write_one(ATIF, main)
        (again,) = nest(read_one(ATIF, data), ATIF)
        assert write_one(ATIF, again) == data


EARLY = {
    "sharegpt": {
        "conversations": [
            {"from": "observation", "value": "a screen"},
            {"from": "human", "value": "q"},
            {"from": "gpt", "value": "a"},
        ]
    },
    "adp_v1": {
        "id": "a-1",
        "content": [
            {"class_": "text_observation", "content": "screen", "source": "environment"},
            {"class_": "text_observation", "content": "q", "source": "user"},
            {"class_": "message_action", "content": "done", "description": None},
        ],
        "details": {},
    },
}


@pytest.mark.parametrize("name", EARLY)
def test_observations_before_the_first_step_come_back_as_such(name, tmp_path):
    first, second, losses, back = go(tmp_path, EARLY[name], name)
    assert losses == ({}, {})
    for table in ("steps", "observations"):
        before, after = ([*map(str, rows_of(item, table))] for item in (first, second))
        assert after == before
    inner = next(iter(EARLY[name].keys() & {"conversations", "content"}))
    for before, after in zip(EARLY[name][inner], back[inner], strict=True):
        assert {key: after.get(key) for key in before} == before


@pytest.mark.parametrize(
    "change",
    [{"llm_call_count": 1}, {"step_id": 2}, {"metrics": {}}, {"message": "x"}, {"extra": None}],
)
def test_a_step_that_is_not_marked_as_early_stays_a_step(change):
    (main,) = read_one(formats.get("sharegpt"), json.dumps(EARLY["sharegpt"]).encode())
    record = json.loads(write_one(ATIF, main))
    assert len(read_one(ATIF, json.dumps(record).encode())[0].steps) == 2
    record["steps"][0] |= change
    (again,) = read_one(ATIF, json.dumps(record).encode())
    assert len(again.steps) == 3
    losses = Losses()
    assert json.loads(write_one(ATIF, again, losses)) == record
    assert losses.items == []
