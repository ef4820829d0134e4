"""Runs of M3: what A7 and A8 of its description say, counted in SQL and in the files themselves."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.converters.export import export
from adp.converters.m3 import CONVERTER
from adp.converters.m3.labels import error_of, labels_of, reward_of
from adp.converters.run import convert
from adp_schema import jsontext
from adp_schema.losses import Losses
from adp_schema.protocols import Match
from adp_schema.store import Store
from tests.roundtrip import read_one, write_one
from tools.tables.field_table import load_probe

TREES = Path(__file__).parent / "examples" / "trees.json"
SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "m3"
RUNS = SHARED / "bird-dev-old"
shared = pytest.mark.skipif(not RUNS.exists(), reason="the reference data are not here")
META: dict[str, Any] = {
    "sample_id": 85, "truncated": False, "terminated": True, "success": True,
    "total_time_steps": 5,
    "expert_assistance": {"mode": "informed", "tracker": [0, 0, 1, 1, 1]},
}  # fmt: skip


def trees() -> dict[str, Any]:
    return json.loads(TREES.read_text())


def sql(store: Store, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in store.query(query).to_pylist()]


def round_trip(record: dict[str, Any], losses: Losses | None = None) -> dict[str, Any]:
    data = json.dumps(record).encode()
    main, *branches = read_one(CONVERTER, data, losses)
    main.branches = branches
    return json.loads(write_one(CONVERTER, main, losses))


# ---- the shared runs -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("m3")
    convert([str(RUNS)], str(folder / "store"))
    return Store.open(str(folder / "store"))


def counted() -> Counter[tuple[Any, ...]]:
    """What the files say, without the converter."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for path in RUNS.rglob("trajectory_*.json"):
        for turn in json.loads(path.read_text())["interactions"].values():
            counts["step", turn["actor"], turn["reward"]] += 1
            counts["observation", turn["metadata"]["observation"].startswith("Tool")] += 1
            for other in turn["alternate_trace"]:
                counts["alternate", turn["actor"], other["actor"], other["reward"]] += 1
    return counts


@shared
def test_steps_actors_and_labels(runs):
    truth = Counter({k[1:]: n for k, n in counted().items() if k[0] == "step"})
    rows = sql(
        runs,
        "SELECT actor, array_to_string(list_transform(labels, lambda x: '{' || x || '}'), '+'), "
        "count(*) FROM steps JOIN trajectories t USING (seq) WHERE actor IS NOT NULL GROUP BY ALL",
    )
    assert {row[:2]: row[2] for row in rows} == dict(truth)
    assert sum(n for (actor, _), n in truth.items() if actor == "expert") == 49
    stuck = sum(n for (_, reward), n in truth.items() if "{REWARD_AGENT_STUCK}" in reward)
    query = "SELECT count(*) FROM steps JOIN trajectories USING (seq) WHERE labels && {}"
    assert sql(runs, query.format("['REWARD_AGENT_STUCK']")) == [(stuck,)]


@shared
def test_alternates(runs):
    truth = Counter({k[1:]: n for k, n in counted().items() if k[0] == "alternate"})
    rows = sql(
        runs,
        """
        SELECT s.actor AS executed, a.actor AS other,
            array_to_string(list_transform(a.labels, lambda x: '{' || x || '}'), '+'), count(*)
        FROM all_trajectories b
        JOIN all_trajectories p ON p.trajectory_id = b.parent_id
        JOIN steps s ON s.seq = p.seq AND s.step = b.parent_step
        JOIN steps a ON a.seq = b.seq AND a.step = b.parent_step
        WHERE b.branch_kind = 'alternate' GROUP BY ALL
        """,
    )
    assert {row[:3]: row[3] for row in rows} == dict(truth)
    assert sum(truth.values()) == 37


@shared
def test_outcomes_and_errors(runs):
    paths = [json.loads(path.read_text()) for path in RUNS.rglob("metadata_*.json")]
    rows = sql(
        runs,
        "SELECT task_id::INT, success, terminated, truncated, "
        "json_extract(extra, '$.run_metadata.expert_assistance.tracker')::INT[] AS tracker "
        "FROM trajectories",
    )
    keys = ("sample_id", "success", "terminated", "truncated")
    truth = [
        (*(path[key] for key in keys), tuple(path["expert_assistance"]["tracker"]))
        for path in paths
    ]
    assert Counter((*row[:4], tuple(row[4])) for row in rows) == Counter(truth)
    errors = "SELECT o.error_type, count(*) AS n FROM observations o "
    errors += "JOIN trajectories USING (seq) {} GROUP BY ALL ORDER BY ALL"
    wrong = sql(runs, errors.format("WHERE is_error"))
    assert wrong == [("ToolCallError", 4), ("ToolDoesNotFoundError", 4)]


@shared
def test_the_files_come_back_byte_for_byte(tmp_path, runs):
    report = export(runs, "m3", str(tmp_path / "out"))
    assert report.losses == {}
    paths = sorted(path for path in RUNS.rglob("*.json"))
    assert len(paths) == 36
    for path in paths:
        back = tmp_path / "out" / path.relative_to(RUNS)
        assert back.read_bytes() == path.read_bytes(), path


@shared
def test_inputs_are_stored_once(runs):
    (stored,) = sql(runs, "SELECT sum(strlen(text)) FROM steps JOIN trajectories USING (seq)")
    count = 0
    for path in RUNS.rglob("trajectory_*.json"):
        for turn in json.loads(path.read_text())["interactions"].values():
            count += sum(len(message["content"].encode()) for message in turn["input"])
    assert stored[0] * 2 < count
    assert sql(runs, "SELECT count(*) FROM steps WHERE (extra->'$.input') IS NOT NULL") == [(0,)]


@shared
def test_reference_data_are_tasks(tmp_path):
    (path,) = (SHARED / "bird-latest").rglob("*.json")
    convert([str(path)], str(tmp_path / "s"))
    store = Store.open(str(tmp_path / "s"))
    truth = json.loads(path.read_text())
    rows = store.scan("tasks").collect().to_dicts()
    assert [row["task_id"] for row in rows] == [item["sample_id"] for item in truth]
    for row, result in zip(rows, truth, strict=True):
        assert json.loads(row["gold_trajectory"]) == result["trajectory"]
        messages = [{key: turn[key] for key in ("query", "raw_answer")} for turn in result["turns"]]
        turns = json.loads(row["turns"])
        assert [{key: turn[key] for key in ("query", "raw_answer")} for turn in turns] == messages
        calls = [
            item["output"] for turn in result["trajectory"] for item in turn if "output" in item
        ]
        assert json.loads(row["expected_calls"]) == calls
        assert row["instruction"] == result["turns"][0]["query"]
    assert export(store, "m3", str(tmp_path / "out")).losses == {}
    assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes()


# ---- folders -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run", "meta"),
    [
        ("2026-01-01/trajectories/trajectory_3.json", "2026-01-01/metadata_3.json"),
        ("agent/both-api/trajectory_3.json", "agent/both-api/metadata/metadata_3.json"),
        ("flat/trajectory_3.json", "flat/metadata_3.json"),
        ("trajectory_3.json", "metadata_3.json"),
        ("x/trajectories/trajectory_3.json", "x/metadata/metadata_3.json"),
    ],
)
def test_the_outcome_is_joined(tmp_path, run, meta):
    folder = tmp_path / "in"
    for name, text in ((run, TREES.read_text()), (meta, json.dumps(META, indent=1))):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    stray = "metadata_4.json"
    (folder / stray).write_text(json.dumps({**META, "sample_id": 4}))
    convert([str(folder)], str(tmp_path / "s"))
    store = Store.open(str(tmp_path / "s"))
    main, *branches = store.trajectories()
    assert (main.task_id, main.success, main.terminated) == ("85", True, True)
    assert main.truncated is False
    assert {branch.task_id for branch in branches} == {"85"}
    (reject,) = store.scan("rejects").collect().to_dicts()
    assert reject["source_file"] == stray
    assert export(store, "m3", str(tmp_path / "out")).losses == {}
    for name in (run, meta):
        assert (tmp_path / "out" / name).read_bytes() == (folder / name).read_bytes()


def test_an_edited_outcome_is_written(tmp_path):
    (tmp_path / "in").mkdir()
    shutil.copy(TREES, tmp_path / "in" / "trajectory_0.json")
    (tmp_path / "in" / "metadata_0.json").write_text(json.dumps(META))
    convert([str(tmp_path / "in")], str(tmp_path / "s"))
    main = next(iter(Store.open(str(tmp_path / "s")).trajectories()))
    main.success, main.task_id = False, "86"
    written = json.loads(CONVERTER.write_side_files(main)["metadata_0.json"])
    assert written == {**META, "success": False, "sample_id": 86}
    losses = Losses()
    CONVERTER.write(main, losses)
    assert not [item for item in losses.items if item["path"] in ("$.success", "$.task_id")]


@pytest.mark.parametrize("text", ["no JSON", "[1]", "", '{"sample_id": "\\ud83d"}', '{"a": NaN}'])
def test_an_outcome_that_is_wrong_is_kept(tmp_path, text):
    (tmp_path / "in").mkdir()
    shutil.copy(TREES, tmp_path / "in" / "trajectory_0.json")
    (tmp_path / "in" / "metadata_0.json").write_text(text)
    convert([str(tmp_path / "in")], str(tmp_path / "s"))
    store = Store.open(str(tmp_path / "s"))
    assert next(iter(store.trajectories())).terminated is None
    export(store, "m3", str(tmp_path / "out"))
    assert (tmp_path / "out" / "metadata_0.json").read_text() == text


# ---- what the rows say ---------------------------------------------------------------------


def test_a_finished_turn_is_a_context_edit():
    main, *branches = read_one(CONVERTER, TREES.read_bytes())
    kinds = [(step.source, step.kind, step.actor, step.turn) for step in main.steps]
    assert kinds[4:8] == [
        ("agent", "llm_turn", "expert", 0),
        ("environment", "context_edit", None, 0),
        ("user", "message", None, 1),
        ("agent", "llm_turn", "expert", 1),
    ]
    edit = main.steps[5]
    assert (edit.edit_boundary, edit.edit_from, edit.edit_to) == ("replace", 0, 2)
    assert edit.edit_summary == "<FINAL>12 trees</FINAL>"
    assert main.final_answer == "Three trees."
    assert main.success is False
    assert [(branch.parent_step, branch.steps[0].turn) for branch in branches] == [(3, 0), (7, 1)]
    assert [branch.steps[0].actor for branch in branches] == ["expert", "agent"]


def test_the_next_query_is_a_step_of_the_user_also_without_an_edit():
    record = trees()
    turns = record["interactions"]
    asked = {"role": "user", "content": turns["2"]["metadata"]["observation"]}
    turns["3"]["input"] = [*turns["2"]["input"], turns["2"]["output"], asked]
    del turns["4"]
    assert round_trip(record) == record
    main, *_ = read_one(CONVERTER, json.dumps(record).encode())
    assert [step.source for step in main.steps[4:]] == ["agent", "user", "agent"]
    assert main.steps[4].observations == []


def test_calls_reasoning_and_prose():
    main, other, _ = read_one(CONVERTER, TREES.read_bytes())
    step = main.steps[2]
    (call,) = step.calls
    assert step.text == trees()["interactions"]["0"]["output"]["content"]
    assert (step.reasoning, step.prose) == ("I have to count them.", "")
    assert step.text[call.span_start : call.span_end] == json.dumps(
        {"name": call.name, "arguments": {"garden": "mill"}}
    )
    (row,) = step.observations
    assert (row.call_step, row.call, row.is_error) == (2, 0, False)
    assert other.steps[0].prose == other.final_answer == "Twelve trees."


def test_a_deep_history_is_read_in_any_form():
    """Three finished turns: each collapses, and what was collapsed before stays so."""
    record = trees()
    turns = record["interactions"]
    turns["4"]["metadata"]["observation"] = "And here?"
    history = [
        *turns["3"]["input"], {"role": "assistant", "content": "<FINAL>3</FINAL>"},
        {"role": "user", "content": "And here?"},
    ]  # fmt: skip
    turns["5"] = {**turns["4"], "input": history}
    assert round_trip(record) == record
    main, *_ = read_one(CONVERTER, json.dumps(record).encode())
    edits = [step for step in main.steps if step.kind == "context_edit"]
    assert [(item.edit_from, item.edit_to) for item in edits] == [(0, 2), (0, 7)]
    assert not any("input" in (step.extra or "") for step in main.steps)


def test_a_parser_error_is_shown_to_the_model_as_the_user():
    record = trees()
    turns = {key: record["interactions"][key] for key in "01"}
    turns["0"]["metadata"] |= {"action": None, "action_arguments": None}
    turns["0"]["metadata"]["observation"] = "ParsingError: no action"
    turns["0"]["output"] = {"role": "assistant", "content": "<think>a</think> I do not know"}
    turns["0"]["reward"] = "{REWARD_PARSING_ERROR}"
    turns["1"]["input"] = [
        *turns["0"]["input"], turns["0"]["output"],
        {"role": "user", "content": "ParsingError: no action"},
    ]  # fmt: skip
    record["interactions"] = turns
    assert round_trip(record) == record
    main, *_ = read_one(CONVERTER, json.dumps(record).encode())
    (row,) = main.steps[2].observations
    assert (row.is_error, row.error_type, row.call) == (True, "ParsingError", None)
    assert [step.source for step in main.steps] == ["system", "user", "agent", "agent"]


_message = st.builds(
    lambda role, content: {"role": role, "content": content},
    st.sampled_from(["user", "assistant", "function", "observation", "system"]),
    st.sampled_from(["a", "b", "", "<FINAL>c</FINAL>"]),
)
_odd = st.sampled_from(
    [None, 1, {}, {"role": "user"}, {"content": "a", "role": "user"}, [],
     {"role": "user", "content": "a", "name": "n"}, {"role": "user", "content": ["a"]}]
)  # fmt: skip


@given(st.lists(st.lists(_message | _odd, max_size=5), min_size=1, max_size=4), st.data())
def test_any_inputs_come_back(inputs, data):
    """Whatever the inputs are, they are rebuilt from the steps."""
    record = trees()
    template = record["interactions"]["0"]
    record["interactions"] = {}
    for number, given_input in enumerate(inputs):
        turn = json.loads(json.dumps(template))
        seen = st.sampled_from(["a", "b", "c", None])
        turn["metadata"]["observation"] = data.draw(seen)
        before = record["interactions"].get(str(number - 1))
        if before is not None and data.draw(st.booleans()):
            shown = {"role": "observation", "content": before["metadata"]["observation"]}
            given_input = [*before["input"], before["output"], shown, *given_input]
        turn["input"] = given_input
        record["interactions"][str(number)] = turn
    assert round_trip(record) == record


@pytest.mark.parametrize(
    "change",
    [
        lambda turn: turn.update(actor=None),
        lambda turn: turn.update(reward=1),
        lambda turn: turn.update(reward="{A}+{A}"),
        lambda turn: turn.update(reward="A"),
        lambda turn: turn.update(reward=""),
        lambda turn: turn.pop("alternate_trace"),
        lambda turn: turn.update(alternate_trace=None),
        lambda turn: turn.pop("metadata"),
        lambda turn: turn.update(metadata={}),
        lambda turn: turn.pop("output"),
        lambda turn: turn.pop("input"),
        lambda turn: turn.update(input="text"),
        lambda turn: turn["output"].update(role=None),
        lambda turn: turn["output"].update(content=None),
        lambda turn: turn["output"].update(content="no thought"),
        lambda turn: turn["output"].update(content="<think>other</think>{}"),
        lambda turn: turn["output"].update(content='<think>a</think>{"name": "b"}'),
        lambda turn: turn["metadata"].update(thought=None),
        lambda turn: turn["metadata"].update(thought="another"),
        lambda turn: turn["metadata"].update(action=7),
        lambda turn: turn["metadata"].update(action_arguments=None),
        lambda turn: turn["metadata"].update(action_arguments="text"),
        lambda turn: turn["metadata"].update(action_arguments={"name": "x", "arguments": "{}"}),
        lambda turn: turn["metadata"].update(action_arguments={"name": "x", "other": 1}),
        lambda turn: turn["metadata"].update(observation=["list"]),
        lambda turn: turn["metadata"].pop("observation"),
        lambda turn: turn.update({"new": {"a": 1}}),
    ],
)
@pytest.mark.parametrize("number", ["0", "2", "4"])
def test_odd_turns_come_back(change, number):
    record = trees()
    change(record["interactions"][number])
    assert round_trip(record) == record


def test_arguments_keep_their_characters():
    record = trees()
    turn = record["interactions"]["0"]
    turn["metadata"]["action_arguments"]["arguments"] = {"garden": "caf\xe9", "n": 1}
    written = turn["metadata"]["action_arguments"]
    for ascii_in_text in (True, False):
        text = json.dumps(written, ensure_ascii=ascii_in_text)
        turn["output"]["content"] = f"<think>I have to count them.</think>{text}"
        for ascii_in_file in (True, False):
            data = json.dumps(record, ensure_ascii=ascii_in_file).encode()
            main, *main_branches = read_one(CONVERTER, data)
            main.branches = main_branches
            back = jsontext.relayout(write_one(CONVERTER, main), 0)
            if ascii_in_file:
                back = jsontext.escape_non_ascii(back.decode()).encode()
            assert json.loads(back) == record
            if ascii_in_file or ascii_in_text:
                first = data.index(b'"action_arguments"')
                end = data.index(b'"observation"', first)
                assert data[first:end] in back
            assert main.steps[2].calls[0].origin == "parsed_from_text"


# ---- edits ---------------------------------------------------------------------------------


def test_a_new_thought_is_in_the_text_too():
    main, *_ = read_one(CONVERTER, TREES.read_bytes())
    main.steps[2].reasoning = "Another thought."
    turn = json.loads(write_one(CONVERTER, main))["interactions"]
    assert turn["0"]["metadata"]["thought"] == "Another thought."
    assert turn["0"]["output"]["content"].startswith("<think>Another thought.</think>{")
    assert turn["1"]["input"][1]["content"] == turn["0"]["output"]["content"]


def test_a_step_that_goes_leaves_the_inputs_too():
    main, *_ = read_one(CONVERTER, TREES.read_bytes())
    del main.steps[3]
    turns = json.loads(write_one(CONVERTER, main))["interactions"]
    assert list(turns) == ["0", "1", "2", "3"]
    assert turns["1"]["input"] == trees()["interactions"]["1"]["input"]


def test_an_edited_verdict_is_reported():
    main, *_ = read_one(CONVERTER, TREES.read_bytes())
    main.success, main.final_answer = True, "Four."
    losses = Losses()
    write_one(CONVERTER, main, losses)
    assert {item["path"] for item in losses.items} == {"$.success", "$.final_answer"}


def test_a_branch_of_several_steps_is_reported():
    main, other, _ = read_one(CONVERTER, TREES.read_bytes())
    other.steps.append(other.steps[0].model_copy(update={"step": 4}))
    main.branches = [other]
    losses = Losses()
    written = json.loads(write_one(CONVERTER, main, losses))
    assert len(written["interactions"]["1"]["alternate_trace"]) == 1
    assert [item["path"] for item in losses.items] == ["$.branches[0]"]


# ---- reference data ------------------------------------------------------------------------


def gold() -> dict[str, Any]:
    return load_probe("m3")["records"][1]


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.update(sample_id=5),
        lambda record: record.update(trajectory=[]),
        lambda record: record["trajectory"][0].insert(0, {"response": "first"}),
        lambda record: record["trajectory"][0].append({"input": "again"}),
        lambda record: record["trajectory"][0].append("text"),
        lambda record: record["trajectory"].append([]),
        lambda record: record["trajectory"].append([{"plan": None, "answer": "a"}]),
        lambda record: record["trajectory"][0].__setitem__(2, {"response": {"a": [1]}}),
        lambda record: record["trajectory"][0].__setitem__(2, {"response": None}),
        lambda record: record["trajectory"][0][1].update(output=None),
        lambda record: record["trajectory"][0][1]["output"].update(arguments="{}"),
        lambda record: record["trajectory"][0][3].update(agent="rag_agent"),
        lambda record: record.update(tools=None),
        lambda record: record.update(tools=[{"name": "x", "more": 1}]),
        lambda record: record.pop("turns"),
        lambda record: record.update(turns=[None]),
    ],
)
def test_odd_reference_data_come_back(change):
    record = gold()
    change(record)
    losses = Losses()
    assert round_trip(record, losses) == record
    assert losses.items == []


def test_forms_of_reference_data():
    (many,) = read_one(CONVERTER, json.dumps(gold()).encode())
    assert many.task is not None
    assert json.loads(many.task.turns) == [
        {
            "query": "query of the turn",
            "gold_answer": "answer of the turn",
            "raw_answer": "raw answer of the turn",
            "was_truncated": False,
        }
    ]
    parameters = json.loads(many.tools)[0]["function"]["parameters"]
    assert (parameters["type"], parameters["required"]) == ("object", ["first"])
    assert [step.actor for step in many.steps] == [None, "api_agent", None]
    (old,) = read_one(CONVERTER, json.dumps(load_probe("m3")["records"][2]).encode())
    assert old.task is not None
    assert (old.task_id, old.task.instruction) == ("7", "query of the old form")
    parsed = {key: value for key, value in gold().items() if key != "turns"}
    (bare,) = read_one(CONVERTER, json.dumps(parsed).encode())
    assert bare.task is not None
    assert json.loads(bare.task.turns)[0] == {
        "query": "question of the task",
        "gold_answer": "answer of the run",
        "raw_answer": "raw answer of the run",
        "was_truncated": None,
    }


WHOLE = {"type": "object", "required": ["q"], "properties": {"q": {"type": "string"}}}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (WHOLE, WHOLE),
        # Properties of these names are no schema, and neither is one in another order.
        ({key: {"type": "string"} for key in WHOLE}, None),
        (dict(reversed(WHOLE.items())), None),
        (WHOLE | {"type": "string"}, None),
        (WHOLE | {"required": {"type": "array"}}, None),
        ({}, None),
    ],
)
def test_parameters_that_are_a_schema_already_are_not_put_into_another(given, kept):
    record = gold()
    record["tools"].append({"name": "retrieve", "description": "It.", "parameters": given})
    (run,) = read_one(CONVERTER, json.dumps(record).encode())
    parameters = json.loads(run.tools)[-1]["function"]["parameters"]
    wrapped = {"type": "object", "properties": given, "required": list(given)}
    assert parameters == (kept or wrapped)
    losses = Losses()
    assert json.dumps(round_trip(record, losses)) == json.dumps(record)
    assert losses.items == []


@pytest.mark.parametrize(
    "question",
    [
        r"na\u00efve",
        r"\ud83d\ude00",
        r"half \ud83d",
        r"a\/b",
        r"\u0041",
        "na\u00efve",
        r"tab\t \u0009",
    ],
)
def test_reference_data_with_escapes_lose_nothing(question):
    """Python's json writes escapes by default; the task holds the same values as characters."""
    record = (
        '{"sample_id":"1","tools":[],"doc_collections":[],"num_turns":1,"num_hops":1,"type":"t",'
        f'"trajectory":[[{{"input":"{question}"}},{{"plan":null,"answer":"a"}}]]}}'
    )
    (run,) = read_one(CONVERTER, record.encode())
    losses = Losses()
    written = CONVERTER.write(run, losses)
    assert json.loads(jsontext.encode(written)) == json.loads(record)
    assert losses.items == []


@pytest.mark.parametrize(
    ("column", "value"),
    [("gold_trajectory", '[[{"input":"\\u00e8"}]]'), ("turns", "[]"), ("instruction", "other")],
)
def test_a_task_that_says_something_else_is_a_loss(column, value):
    record = gold()
    (run,) = read_one(CONVERTER, json.dumps(record).encode())
    setattr(run.task, column, value)
    losses = Losses()
    CONVERTER.write(run, losses)
    assert [item["path"] for item in losses.items] == [f"$.task.{column}"]


def test_an_edit_of_reference_data_shows_or_is_reported():
    (run,) = read_one(CONVERTER, json.dumps(gold()).encode())
    assert run.task is not None
    run.steps[1].calls[0].name = "another"
    losses = Losses()
    written = json.loads(write_one(CONVERTER, run, losses))
    assert written["trajectory"][0][1]["output"]["name"] == "another"
    assert {item["path"] for item in losses.items} == {
        "$.task.expected_calls",
        "$.task.gold_trajectory",
    }


# ---- the small parts -----------------------------------------------------------------------


def test_what_is_recognised():
    def sniffed(record: Any) -> Match:
        return CONVERTER.sniff(jsontext.decode_object(json.dumps(record).encode()))

    assert sniffed(trees()) == sniffed(gold()) == Match.SHAPE
    assert sniffed(load_probe("m3")["records"][2]) == Match.SHAPE
    for odd in (
        {"interactions": {}}, {"interactions": []}, {"interactions": {"0": {"output": 1}}},
        {"sample_id": 1, "trajectory": []}, {"trajectory": [], "turns": []}, META,
    ):  # fmt: skip
        assert sniffed(odd) == Match.NO


_names = st.lists(st.sampled_from(["REWARD_A", "REWARD_B", "C"]), min_size=1, unique=True)


@given(_names)
def test_labels_of_sums(names):
    text = "+".join(f"{{{name}}}" for name in names)
    assert labels_of(text) == (names, True)
    assert reward_of(names, single=False) == text


@given(st.text(alphabet="{}+A", max_size=8))
def test_labels_of_anything(text):
    labels, regular = labels_of(text)
    assert reward_of(labels, single=not regular) == text
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize(
    ("text", "labels", "wanted"),
    [
        ("ToolCallSuccessful: error", [], (False, None)),
        ("ToolCallError: x", [], (True, "ToolCallError")),
        ("an error: x", [], (None, None)),
        ("odd", ["REWARD_BAD_TOOL_CALL", "REWARD_AGENT_STUCK"], (True, None)),
        ("odd", ["REWARD_AGENT_STUCK"], (None, None)),
        ("Done!", None, (None, None)),
    ],
)
def test_errors(text, labels, wanted):
    assert error_of(text, labels) == wanted
