"""Raw samples of M3 become ground truth: against a plain walk over the raw file."""

from __future__ import annotations

import copy
import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adp.converters.export import export
from adp.workflows.m3_data.raw import LeftOutError, ground_truth_of
from adp.workflows.m3_data.turns import make_turns
from adp_schema.errors import EmptyResultError, InputError, OutputExistsError
from adp_schema.store import Store
from tests.workflows.m3_raw import (
    GOOD,
    LONG,
    NO_CALL,
    NO_TOOLS,
    SAMPLES,
    SEVERAL,
    SHORT,
    WRONG,
    lines_of,
)


def walked(samples):
    """The trajectories of good samples: another, plain way through them."""
    trajectories = {}
    for sample in samples:
        turns = []
        for turn in sample["turns"]:
            items = [{"input": turn["query"]}]
            for hop in turn["gold_sequence"]:
                is_api = hop["question_type"] == "API"
                documents = hop.get("rag_doc")
                arguments = {"collection": f"clapnq-{hop.get('db_id')}", "query": hop["question"]}
                call = {"name": "retrieve_documents", "arguments": arguments}
                items.append({
                    "plan": None, "question": hop["question"],
                    "agent": "api_agent" if is_api else "rag_agent",
                    "output": hop["output"][0] if is_api else call,
                })  # fmt: skip
                text = documents if isinstance(documents, str) else "\n".join(documents or ())
                items.append({"response": hop["OUTPUT_AFTER_EXECUTING_API"] if is_api else text})
            items.append({"plan": None, "answer": turn["answer"]})
            turns.append(items)
        trajectories[str(sample["sample_id"])] = turns
    return trajectories


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("turns")
    (folder / "gardens.json").write_text(json.dumps(SAMPLES))
    return folder, make_turns([str(folder / "gardens.json")], str(folder / "turns"))


def test_turns_are_those_of_a_plain_walk(made):
    folder, _ = made
    expected = walked([GOOD, SHORT, LONG])
    records = json.loads((folder / "turns.m3/ground_truth/gardens.json").read_text())
    assert {record["sample_id"]: record["trajectory"] for record in records} == expected
    good = records[0]
    assert (good["num_turns"], good["num_hops"], good["type"]) == (3, [1, 2, 1], "(API-RAG)")
    assert good["doc_collections"] == ["clapnq-gardens", "clapnq-mills"]
    assert [tool["name"] for tool in good["tools"]] == ["trees", "owner", "retrieve_documents"]
    assert "path" not in good["tools"][0]
    export(Store.open(str(folder / "turns")), "m3", str(folder / "back"))
    (path,) = (folder / "back").rglob("*.json")
    assert json.loads(path.read_text()) == records


def test_what_is_left_out_is_counted_and_named(made):
    folder, report = made
    lines = lines_of(folder / "turns.m3/left_out.jsonl")
    numbers = {SAMPLES.index(sample) + 1 for sample in (NO_TOOLS, NO_CALL, SEVERAL)}
    numbers |= {SAMPLES.index(GOOD) + 6 + n for n in range(len(WRONG))}
    assert {line["record"] for line in lines} == numbers
    assert report.total.total() == len(SAMPLES) == report.kept.total() + len(lines)
    assert report.left_out == Counter(line["reason"] for line in lines)
    by_number = {line["record"]: line for line in lines}
    assert by_number[2]["reason"] == "no tools"
    assert by_number[2]["state"] == by_number[4]["state"] == "dropped"
    assert by_number[4]["path"] == "$.turns[0].gold_sequence[1].output"
    assert by_number[5] == {
        "file": "gardens.json", "record": 5, "sample_id": 12, "state": "error",
        "reason": "several outputs at one hop", "path": "$.turns[0].gold_sequence[0].output",
    }  # fmt: skip
    plain = json.loads((folder / "turns.m3/statistics.json").read_text())
    assert plain["answer_lengths"] == {"1": 2, "11": 1, "12": 1, "1025": 1}
    assert (plain["with_retrieval"], plain["turns_per_sample"]) == (1, {"1": 2, "3": 1})


def test_files_that_are_wrong(tmp_path):
    path = tmp_path / "raw.json"
    for data in (b"", b"{}", b"\xff\xfe", b"[1,", b"[" * 100_000):
        path.write_bytes(data)
        with pytest.raises(InputError, match=r"raw\.json"):
            make_turns([str(path)], str(tmp_path / "turns"))
    path.write_text(json.dumps([NO_TOOLS]))
    with pytest.raises(EmptyResultError, match="left_out"):
        make_turns([str(path)], str(tmp_path / "turns"))
    with pytest.raises(InputError, match="there is no"):
        make_turns([str(tmp_path / "absent.json")], str(tmp_path / "turns"))
    (tmp_path / "other.m3").mkdir()
    (tmp_path / "other.m3/mine.txt").write_text("")
    with pytest.raises(OutputExistsError):
        make_turns([str(path)], str(tmp_path / "other"))


VALUES = st.one_of(st.none(), st.just([]), st.just({}), st.just("x"), st.just(3), st.just([None]))


def places(value, path=()):
    """Every place in a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, child in items:
        yield (*path, key)
        if isinstance(child, dict | list):
            yield from places(child, (*path, key))


@settings(max_examples=150)
@given(st.sampled_from(list(places(GOOD))), VALUES)
def test_no_sample_breaks_it(place, value):
    changed = copy.deepcopy(GOOD)
    parent = changed
    for key in place[:-1]:
        parent = parent[key]
    parent[place[-1]] = value
    try:
        record = ground_truth_of(changed)
    except LeftOutError as error:
        record = None
        reason, path = error.reason, error.path
    if record is None:
        assert reason
        assert path.startswith("$")
    else:
        assert record["num_hops"] == [len(turn) // 2 - 1 for turn in record["trajectory"]]
