"""Thoughts of M3's ground truth, by a server whose answers are known."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from adp.converters.run import convert
from adp.rollouts.judging.settings import JudgeSettings, judge_of
from adp.workflows.m3_data.questions import read_answer, read_thoughts
from adp.workflows.m3_data.thoughts import ThoughtsOptions, make_thoughts
from adp.workflows.m3_data.turns import make_turns
from adp_schema.errors import RolloutError
from adp_schema.store import Store
from tests.rollouts.judging.endpoints import answering
from tests.workflows.m3_raw import GOOD, LONG, SHORT, api, lines_of, sample

GOLD = Path(__file__).parents[2].parent / "shared/data/m3/bird-latest"


def judge_at(server, **settings):
    """A model at a server, which may be slow."""
    spec = f"openai:model=m,base_url={server.url},retries=1,first_wait=0"
    return judge_of(JudgeSettings(policy=spec, **settings))


def reply(prompt, messages):
    """Thoughts and an answer that follow from the question."""
    query = re.search(r"Question of the user: (.*)", prompt)[1]
    steps = re.findall(r"^Step (\d+)$", prompt, re.MULTILINE)
    if "<FINAL>" in prompt:
        kept = re.search(r"name any (\d+) of them", prompt)
        return f"<thought>seen {query}</thought>\n<FINAL>{query} {kept and kept[1]}</FINAL>"
    return "\n".join(f"Thought_{n}: {query} {n}" for n in steps)


@pytest.fixture
def turns(tmp_path, monkeypatch):
    monkeypatch.setenv("ADP_CACHE", str(tmp_path / "cache"))
    (tmp_path / "gardens.json").write_text(json.dumps([GOOD, SHORT, LONG]))
    make_turns([str(tmp_path / "gardens.json")], str(tmp_path / "turns"))
    return tmp_path


def records_of(folder, name="out"):
    (path,) = (folder / f"{name}.m3/ground_truth").glob("*.json")
    return json.loads(path.read_text())


def test_thoughts_answers_and_cutoffs(turns):
    with answering(reply) as server:
        judge = judge_at(server, cache=True)
        options = ThoughtsOptions(cutoff=(5, 10))
        report = make_thoughts(str(turns / "turns"), judge, str(turns / "out"), options)
        assert len(server.seen) == 8  # two for each of four turns: the long list is not asked
    good, short = records_of(turns)
    k = good["resp_cutoff_thresh"]
    assert k == random.Random("m3/cutoff/0/7").randint(5, 10)
    assert str(k) in good["resp_cutoff_inst"]
    # The short second turn does not end the cut-off of the third one.
    assert [turn["was_raw_answer_truncated"] for turn in good["turns"]] == [True, False, True]
    expected = [f"Which trees has the mill? {k}", "Who owns it, and how old is it? None",
                f"And all of the wood? {k}"]  # fmt: skip
    assert [turn["answer"] for turn in good["turns"]] == expected
    assert [turn[-1]["answer"] for turn in good["trajectory"]] == expected
    raws = [json.loads(turn["raw_answer"]) for turn in good["turns"]]
    assert raws == [turn["answer"] for turn in GOOD["turns"]]
    plans = [[item["plan"] for item in turn if "plan" in item] for turn in good["trajectory"]]
    second = "Who owns it, and how old is it?"
    assert plans[1] == [f"{second} 1", f"{second} 2", f"seen {second}"]
    assert short["turns"][0]["query"] == "Who owns it?"
    assert report.left_out == {"a list that is too long": 1}
    assert (report.truncated, report.total.total()) == (2, 3)
    earlier = server.seen[4].body["messages"][0]["content"] + "".join(
        seen.body["messages"][0]["content"] for seen in server.seen
    )
    assert "Answer: Ada, and it is old." in earlier


def test_a_killed_run_asks_nothing_twice_and_ends_alike(turns):
    count = 0

    def broken(prompt, messages):
        nonlocal count
        count += 1
        return reply(prompt, messages) if count <= 4 else 500

    options = ThoughtsOptions(max_failures=1, concurrency=1)
    with answering(broken) as server:
        judge = judge_at(server, cache=True)
        with pytest.raises(RolloutError, match="give the same command again"):
            make_thoughts(str(turns / "turns"), judge, str(turns / "out"), options)
        assert not (turns / "out").exists()
        count = -100
        before = len(server.seen)
        judge = judge_at(server, cache=True)
        make_thoughts(str(turns / "turns"), judge, str(turns / "out"), options)
        assert len(server.seen) - before == 4
        judge = judge_at(server, cache=True)
        again = ThoughtsOptions(concurrency=7)
        report = make_thoughts(str(turns / "turns"), judge, str(turns / "again"), again)
        assert len(server.seen) - before == 4
    assert "0 requests (8 from the cache)" in report.costs
    for name in ("ground_truth/gardens.json", "left_out.jsonl", "statistics.json"):
        texts = [(turns / f"{store}.m3" / name).read_bytes() for store in ("out", "again")]
        assert texts[0] == texts[1]


def test_what_cannot_be_read_is_asked_once_more_then_left_out(turns):
    def odd(prompt, messages):
        if "the mill?" in prompt and "<FINAL>" in prompt:
            return "I do not know."
        if "Who owns it?" in prompt and len(messages) == 1:
            return "Thought_1: a\nThought_1: b" if "Thought_1: ..." in prompt else "<thought>x"
        return reply(prompt, messages)

    with answering(odd) as server:
        judge = judge_at(server)
        options = ThoughtsOptions()
        report = make_thoughts(str(turns / "turns"), judge, str(turns / "out"), options)
    assert [record["sample_id"] for record in records_of(turns)] == ["8"]
    assert report.left_out == {"a list that is too long": 1, "an answer that cannot be read": 1}
    lines = lines_of(turns / "out.m3/left_out.jsonl")
    assert (lines[0]["record"], lines[0]["path"]) == (1, "$.trajectory[0]")
    assert lines[0]["text"] == "I do not know.\n[asked again]\nI do not know."
    assert "3 asked again" in report.costs


def test_an_unknown_tool_and_a_store_of_another_kind(turns):
    path = turns / "odd.json"
    path.write_text(json.dumps([
        sample(1, ("?", "a", [api("?", "absent", "r")])), SHORT]))  # fmt: skip
    make_turns([str(path)], str(turns / "odd"))
    with answering(reply) as server:
        make = make_thoughts(
            str(turns / "odd"), judge_at(server), str(turns / "out"), ThoughtsOptions()
        )
    assert make.left_out == {"a call of a tool that is not on offer": 1}


@pytest.mark.skipif(not GOLD.exists(), reason="the reference data are not here")
def test_the_ground_truth_of_m3(tmp_path, monkeypatch):
    monkeypatch.setenv("ADP_CACHE", str(tmp_path / "cache"))
    convert([str(GOLD)], str(tmp_path / "gold"))
    with answering(reply) as server:
        report = make_thoughts(
            str(tmp_path / "gold"), judge_at(server), str(tmp_path / "out"), ThoughtsOptions()
        )
    (source,) = GOLD.rglob("*.json")
    given = json.loads(source.read_text())
    assert report.kept.total() + report.left_out.total() == len(given) == 6
    (path,) = (tmp_path / "out.m3/ground_truth").rglob("*.json")
    written = {record["sample_id"]: record for record in json.loads(path.read_text())}
    for record in (item for item in given if item["sample_id"] in written):
        new = written[record["sample_id"]]
        assert new["tools"] == record["tools"]
        for turn, items in zip(record["trajectory"], new["trajectory"], strict=True):
            assert [item["output"] for item in items if "output" in item] == [
                item["output"] for item in turn if "output" in item
            ]
            assert items[-1]["raw_answer"] == json.dumps(json.loads(turn[-1]["raw_answer"]))
    stored = Store.open(str(tmp_path / "out")).query("SELECT count(*) AS n FROM tasks")
    assert stored.to_pylist() == [{"n": len(written)}]


@pytest.mark.parametrize(
    ("text", "count", "thoughts"),
    [("Thought_1: a\nb\nThought_2: c", 2, ["a\nb", "c"]), ("**Thought_1:** a", 1, ["a"]),
     ("thought 1: see Thought_2: x", 1, ["see Thought_2: x"]), ("Thought_1: a", 2, None),
     ("Thought_1:\nThought_2: b", 2, None), ("Thought_2: b\nThought_1: a", 2, None),
     ("Thought_1: a\nThought_2: b", 1, None), ("", 1, None)],
)  # fmt: skip
def test_numbered_thoughts(text, count, thoughts):
    assert read_thoughts(text, count) == thoughts


@pytest.mark.parametrize(
    ("text", "both"),
    [("<thought>a</thought>\n<FINAL>b</FINAL>", ("a", "b")),
     ("<thought>mine</thought> So: <thought>a</thought><FINAL>b</FINAL>", ("a", "b")),
     ("<thought>a</thought><FINAL></FINAL>", None), ("<FINAL>b</FINAL>", None), ("", None),
     ("<thought>a</thought><FINAL>b</FINAL><thought>a</thought><FINAL>c</FINAL>", None)],
)  # fmt: skip
def test_a_thought_and_an_answer(text, both):
    assert read_answer(text) == both
