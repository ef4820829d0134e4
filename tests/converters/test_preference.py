"""Preference rows: every dialect there and back, its pairs, labels and prompts."""

from __future__ import annotations

import json

import pytest

from adp.converters.export import export
from adp.converters.registry import formats
from adp.converters.run import convert
from adp.trainers.export.run import export_rows
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.model import Pair
from adp_schema.protocols import Match
from adp_schema.store import Store
from tests.conservation import nest
from tests.roundtrip import read_one, write_one

PREFERENCE = formats.get("preference")


def user(text):
    return {"role": "user", "content": text}


def agent(text):
    return {"role": "assistant", "content": text}


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":  1E5}'}}
PAIRS = {
    "conversational": {"prompt": [user("q")], "chosen": [agent("a")], "rejected": [agent("b")]},
    "standard": {"prompt": "q", "chosen": "a", "rejected": "b"},
    "implicit": {"chosen": [user("q"), agent("a")], "rejected": [user("q"), agent("b")]},
    "repeated": {
        "prompt": [user("q")],
        "chosen": [user("q"), agent("a")],
        "rejected": [user("q"), agent("b")],
    },
    "ultrafeedback": {
        "prompt": "q",
        "prompt_id": "h",
        "chosen": [user("q"), agent("a")],
        "rejected": [user("q"), agent("b")],
        "messages": [user("q"), agent("a")],
        "score_chosen": 8.5,
        "score_rejected": 3,
    },
    "first_of_two_questions": {
        "prompt": "q",
        "chosen": [user("q"), agent("z"), user("q2"), agent("a")],
        "rejected": [user("q"), agent("z"), user("q2"), agent("b")],
    },
    "hh": {
        "chosen": "\n\nHuman: q\n\nAssistant: a",
        "rejected": "\n\nHuman: q\n\nAssistant:",
    },
    "openai": {
        "input": {"messages": [user("q")], "tools": [], "parallel_tool_calls": True, "x": 1.0},
        "preferred_output": [{"role": "assistant", "content": None, "tool_calls": [CALL]}],
        "non_preferred_output": [agent("b")],
    },
    "messages_as_prompt": {"messages": [user("q")], "chosen": agent("a"), "rejected": agent("b")},
    "results_first": {
        "prompt": [user("q"), {"role": "assistant", "content": "", "tool_calls": [CALL]}],
        "chosen": [{"role": "tool", "tool_call_id": "c", "content": "r"}, agent("a")],
        "rejected": [{"role": "tool", "tool_call_id": "c", "content": "s"}, agent("b")],
        "tools": None,
        "pair_id": "p/1",
    },
    "lines": {
        "prompt": [json.dumps(user("q"))],
        "chosen": [json.dumps(agent("a"), separators=(",", ":"))],
        "rejected": [json.dumps(agent("b"))],
        "tools": "[]",
    },
    "orca": {"system": "s", "question": "q", "chosen": "a", "rejected": "b"},
    "alpaca": {"instruction": "do", "input": "this", "chosen": "a", "rejected": "b", "margin": 2},
    "no_prompt": {"chosen": "The sky is blue.", "rejected": "The sky is red."},
    "other_order": {"rejected": "b", "y": None, "chosen": "a", "prompt": "q", "id": 7},
}
LABELLED = {
    "conversational": {"prompt": [user("q")], "completion": [agent("a")], "label": True},
    "standard": {"prompt": "q", "completion": "a", "label": False},
    "messages": {"messages": [user("q"), agent("a")], "label": False},
    "kto_tag": {"messages": [user("q"), agent("a")], "kto_tag": True},
}
OTHERS = {
    "no_rejected": {"prompt": [user("q")], "chosen": [agent("a")], "rejected": None},
    "empty_rejected": {"prompt": [user("q")], "chosen": [agent("a")], "rejected": []},
    "empty_chosen": {"prompt": [user("q")], "chosen": [], "rejected": [agent("b")]},
    "lone_surrogate": {"prompt": "q\ud800", "chosen": "a\udc00", "rejected": "b"},
}


def read(row, losses=None):
    return read_one(PREFERENCE, json.dumps(row).encode(), losses)


def there_and_back(row):
    losses = Losses()
    runs = nest(read(row), PREFERENCE)
    written = [json.loads(write_one(PREFERENCE, run, losses)) for run in runs]
    assert losses.items == []
    assert len(written) == 1
    return written[0]


@pytest.mark.parametrize(
    "row",
    [*PAIRS.values(), *LABELLED.values(), *OTHERS.values()],
    ids=[*PAIRS, *(f"kto_{name}" for name in LABELLED), *OTHERS],
)
def test_a_row_comes_back(row):
    assert json.dumps(there_and_back(row)) == json.dumps(row)


@pytest.mark.parametrize("name", PAIRS)
def test_the_better_side_is_the_run_and_the_worse_one_a_branch(name):
    main, branch = read(PAIRS[name])
    assert branch.branch_kind == "alternate"
    assert branch.parent_id == main.trajectory_id
    assert main.steps[-1].text == {"openai": None, "no_prompt": "The sky is blue."}.get(name, "a")
    expected = {"hh": "", "no_prompt": "The sky is red."}.get(name, "b")
    assert branch.steps[-1].text == expected
    context = [step for step in main.steps if step.step < branch.parent_step]
    assert len(context) == {"no_prompt": 0, "orca": 2, "alpaca": 2}.get(name, len(context))
    assert name == "no_prompt" or context
    assert main.steps[branch.parent_step].source == "agent"


def table(rows, tmp_path, name="pairs"):
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = convert([str(file)], str(tmp_path / "store"))
    assert report.counts.rejected == 0
    return Store.open(str(tmp_path / "store")).scan(name).collect().to_dicts()


@pytest.mark.parametrize("name", PAIRS)
def test_a_row_of_two_answers_is_a_pair(name, tmp_path):
    (pair,) = table([PAIRS[name]], tmp_path)
    assert pair["context_id"] == pair["chosen_id"] != pair["rejected_id"]
    assert pair["chosen_from"] == pair["rejected_from"] == pair["context_up_to"]
    assert pair["chosen_to"] == pair["chosen_from"] + 1
    assert pair["level"] == "step"


def test_scores_and_margin_are_those_of_the_pair(tmp_path):
    other = {**PAIRS["alpaca"], "chosen-rating": 4, "rejected-rating": 1.5}
    first, second = table([PAIRS["ultrafeedback"], other], tmp_path)
    assert (first["chosen_score"], first["rejected_score"], first["margin"]) == (8.5, 3.0, None)
    assert (second["chosen_score"], second["rejected_score"], second["margin"]) == (4.0, 1.5, 2.0)


def test_a_pair_id_is_kept_and_a_repeated_one_is_numbered(tmp_path):
    broken = {**PAIRS["results_first"], "rejected": [3]}
    file = tmp_path / "rows.jsonl"
    rows = [PAIRS["results_first"], broken, PAIRS["results_first"], PAIRS["standard"]]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = convert([str(file)], str(tmp_path / "store"))
    assert report.counts.rejected == 1
    pairs = Store.open(str(tmp_path / "store")).scan("pairs").collect()
    assert pairs["pair_id"].to_list()[:2] == ["p/1", "p/1#2"]


@pytest.mark.parametrize("name", LABELLED)
def test_a_label_is_the_success_of_the_run(name):
    row = LABELLED[name]
    (run,) = read(row)
    assert run.success is row.get("label", row.get("kto_tag"))


def test_answers_in_a_prompt_are_context():
    prompt = [user("q"), agent("z"), user("q2")]
    for row in (
        {"prompt": prompt, "chosen": [agent("a")], "rejected": [agent("b")]},
        {"prompt": prompt, "completion": [agent("a")], "label": True},
        {"messages": [*prompt, agent("a")], "label": True},
        {**PAIRS["openai"], "input": {"messages": prompt}},
    ):
        run = read(row)[0]
        assert [step.is_copied_context for step in run.steps] == [None, True, None, None]
    # Here they are no less a part of the run than the last one.
    row = {"chosen": [*prompt, agent("a")], "rejected": [*prompt, agent("b")]}
    assert not any(step.is_copied_context for step in read(row)[0].steps)


@pytest.mark.parametrize("rows", [PAIRS, LABELLED])
def test_rows_are_recognised(rows):
    for name, row in rows.items():
        fields = jsontext.decode_object(json.dumps(row).encode())
        assert PREFERENCE.sniff(fields) == Match.STAMP, name


@pytest.mark.parametrize(
    "row",
    [
        {"messages": [user("q"), agent("a")]},
        {"messages": [user("q"), agent("a")], "label": "spam"},
        {"prompt": "q", "completion": "a"},
        {"chosen": 3, "rejected": 4},
        {"chosen": {"text": "a"}, "rejected": {"text": "b"}},
        {"conversations": [], "chosen": "a", "rejected": "b"},
        {"prompt": "q", "answer1": "a", "answer2": "b"},
    ],
)
def test_other_rows_are_not(row):
    assert PREFERENCE.sniff(jsontext.decode_object(json.dumps(row).encode())) == Match.NO


@pytest.mark.parametrize(
    ("row", "path"),
    [
        ({"prompt": "q", "chosen": 3, "rejected": "b"}, "$.chosen"),
        ({"prompt": [user("q"), 3], "chosen": "a", "rejected": "b"}, "$.prompt[1]"),
        ({"chosen": [{"text": "a"}], "rejected": "b"}, "$.chosen[0].role"),
        ({"prompt": ["no message"], "chosen": "a", "rejected": "b"}, "$.prompt[0]"),
        ({"rejected": "b"}, "$"),
        ({"input": {"messages": 3}, "preferred_output": []}, "$.input.messages"),
    ],
)
def test_bad_rows_are_rejected_by_their_place(row, path):
    with pytest.raises(RecordError) as error:
        read(row)
    assert error.value.path == path


def test_an_edit_shows_in_every_copy():
    runs = nest(read(PAIRS["ultrafeedback"]), PREFERENCE)
    runs[0].steps[0].text, runs[0].steps[1].text = "edited", "better"
    row = json.loads(write_one(PREFERENCE, runs[0]))
    assert row["prompt"] == "edited"
    assert row["messages"] == row["chosen"] == [user("edited"), agent("better")]
    assert row["rejected"] == [user("edited"), agent("b")]


def rows_of(folder):
    return [json.loads(line) for line in (folder / "train.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("to", ["trl-dpo", "openai-ft-dpo"])
def test_rows_of_our_exporters_come_back(to, tmp_path):
    names = ("conversational", "standard", "ultrafeedback", "orca", "openai", "lines")
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(PAIRS[name]) + "\n" for name in names))
    written = []
    for number in range(2):
        store = str(tmp_path / f"store{number}")
        convert([str(file)], store)
        out = tmp_path / f"out{number}"
        export_rows(Store.open(store), to, str(out))
        written.append(sorted(json.dumps(row) for row in rows_of(out)))
        file = out / "train.jsonl"
    assert len(written[0]) == len(names)
    assert written[0] == written[1]


def test_labelled_rows_of_our_exporter_come_back(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in LABELLED.values()))
    written = []
    for number in range(2):
        store = str(tmp_path / f"store{number}")
        convert([str(file)], store)
        out = tmp_path / f"out{number}"
        export_rows(Store.open(store), "trl-kto", str(out))
        rows = rows_of(out)
        for row in rows:
            assert row.pop("trajectory_id")
        written.append(sorted(json.dumps(row) for row in rows))
        file = out / "train.jsonl"
    assert len(written[0]) == len(LABELLED)
    assert written[0] == written[1]


def test_a_file_comes_back_byte_for_byte(tmp_path):
    file = tmp_path / "in" / "rows.jsonl"
    file.parent.mkdir()
    rows = [*PAIRS.values(), *LABELLED.values()]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    convert([str(file.parent)], str(tmp_path / "store"))
    store = Store.open(str(tmp_path / "store"))
    report = export(store, "preference", str(tmp_path / "out"), strict=True)
    assert report.losses == {}
    assert (tmp_path / "out" / "rows.jsonl").read_bytes() == file.read_bytes()


def test_a_pair_of_another_format_becomes_a_row_of_two_answers():
    sharegpt = formats.get("sharegpt")
    row = {
        "conversations": [{"from": "human", "value": "q"}],
        "chosen": {"from": "gpt", "value": "a"},
        "rejected": {"from": "gpt", "value": "b"},
    }
    main, branch = read_one(sharegpt, json.dumps(row).encode())
    main.branches = [branch]
    name, other = main.trajectory_id, branch.trajectory_id
    places = {"context_up_to": 1, "chosen_from": 1, "chosen_to": 2}
    places |= {"rejected_from": 1, "rejected_to": 2}
    pair = Pair(context_id=name, chosen_id=name, rejected_id=other, level="step", **places)
    main.pairs = [pair]
    losses = Losses()
    written = json.loads(write_one(PREFERENCE, main, losses))
    assert written.pop("id")
    assert written == PAIRS["conversational"]
    assert losses.items == []
    assert {"chosen_id", "rejected_id", "level"} <= PREFERENCE.pair_columns(main, pair)
    # Without the pair nothing says that the branch is the worse answer.
    main.pairs = []
    written = json.loads(write_one(PREFERENCE, main, losses))
    assert "rejected" not in written
    assert losses.items[0]["path"] == "$.branches[0]"
