"""What is beside a trajectory: preference pairs and branches are written, or reported."""

import json

import pytest

import adp
from adp.converters.branches import LEFT_OUT, WHOLE
from adp.converters.export import export
from adp.converters.registry import BUILTIN, formats
from adp_schema.builder import Origin, RowBuilder
from adp_schema.errors import ConversionLossError
from adp_schema.losses import Losses
from adp_schema.protocols import RawRecord
from adp_schema.tables import ENUMS
from tests.store_builders import write_store

PAIR = [
    {
        "conversations": [{"from": "human", "value": "q"}],
        "chosen": {"from": "gpt", "value": "Paris"},
        "rejected": {"from": "gpt", "value": "Lyon"},
    }
]
OTHER_FORMATS = sorted(set(BUILTIN) - {"sharegpt"})


@pytest.fixture
def pair(tmp_path):
    source = tmp_path / "pairs.json"
    source.write_text(json.dumps(PAIR))
    return adp.convert(source, tmp_path / "store")


def written(folder):
    return "".join(path.read_text() for path in sorted(folder.rglob("*")) if path.is_file())


def test_a_pair_comes_back_from_atif(pair, tmp_path):
    report = export(pair, "atif", str(tmp_path / "out"), strict=True)
    assert (report.records, report.losses) == (1, {})
    back = adp.convert(str(tmp_path / "out"), tmp_path / "back")
    assert back.manifest.rows("pairs") == pair.manifest.rows("pairs") == 1


@pytest.mark.parametrize("name", sorted(set(OTHER_FORMATS) - {"preference", "atif"}))
def test_a_preference_pair_is_reported(pair, tmp_path, name):
    report = export(pair, name, str(tmp_path / "out"))
    assert any(loss.startswith("$.pairs[*]: ") for loss in report.losses)
    assert report.records == 1
    with pytest.raises(ConversionLossError):
        export(pair, name, str(tmp_path / "strict"), strict=True)


@pytest.mark.parametrize("name", ["adp_v1", "openai_chat", "sts"])
def test_a_rejected_answer_is_no_row_unless_asked(pair, tmp_path, name):
    report = export(pair, name, str(tmp_path / "out"))
    assert report.branches_left_out == 1
    assert any(loss.startswith("$.branches[*]: a branch of kind alt") for loss in report.losses)
    assert "Paris" in written(tmp_path / "out")
    assert "Lyon" not in written(tmp_path / "out")
    report = export(pair, name, str(tmp_path / "rows"), branches=True)
    assert (report.records, report.branches_left_out) == (2, 0)
    assert "Lyon" in written(tmp_path / "rows")


def test_a_preference_row_holds_the_pair_of_another_format(pair, tmp_path):
    report = export(pair, "preference", str(tmp_path / "out"), strict=True)
    assert (report.records, report.losses, report.branches_left_out) == (1, {}, 0)
    row = json.loads(written(tmp_path / "out"))
    assert row["chosen"] == [{"role": "assistant", "content": "Paris"}]
    assert row["rejected"] == [{"role": "assistant", "content": "Lyon"}]


def test_its_own_format_holds_a_pair(pair, tmp_path):
    report = export(pair, "sharegpt", str(tmp_path / "out"), strict=True)
    assert (report.losses, report.branches_left_out) == ({}, 0)
    assert json.loads(written(tmp_path / "out")) == PAIR


def store_of(folder, runs, pairs=()):
    """A store of one-answer runs: name, parent, kind of branch."""
    builder = RowBuilder()
    for number, (name, parent, kind) in enumerate(runs):
        columns = {"source_file": "runs.jsonl", "source_format": "sts"}
        builder.begin(Origin(seq=number << 20, dataset="d", columns=columns))
        branch = {} if parent is None else {"parent_id": f"d/{parent}", "parent_step": 1}
        builder.trajectory({"source_id": name, **branch, "branch_kind": kind})
        if parent is None:
            builder.step({"source": "user", "kind": "message", "text": f"question of {name}"})
        builder.step({"source": "agent", "kind": "llm_turn", "text": f"answer of {name}"})
        builder.finish()
    for number, columns in enumerate(pairs):
        builder.pair({"pair_id": f"p{number}", "level": "trajectory", **columns})
    return write_store(folder, builder)


def test_each_kind_of_branch_has_a_rule(tmp_path):
    assert {*WHOLE, *LEFT_OUT} == ENUMS["trajectories", "branch_kind"]
    kinds = [*WHOLE, *LEFT_OUT, None]
    runs = [("main", None, None), *((f"b-{kind}", "main", kind) for kind in kinds)]
    store = store_of(tmp_path / "s", [*runs, ("under", "b-fork", "subagent")])
    report = export(store, "openai_chat", str(tmp_path / "out"))
    text = written(tmp_path / "out")
    assert all((f"answer of b-{kind}" in text) == (kind in WHOLE) for kind in kinds)
    # What a branch that is left out started is left out with it.
    assert "answer of under" not in text
    assert report.branches_left_out == len(LEFT_OUT) + 2
    assert report.losses["$.branch_kind: what it is of its parent is not said"] == len(WHOLE)
    reported = sum(n for loss, n in report.losses.items() if loss.startswith("$.branches[*]: "))
    assert reported == len(LEFT_OUT) + 2
    assert not export(store, "openai_chat", str(tmp_path / "all"), branches=True).branches_left_out
    assert written(tmp_path / "all").count("answer of") == len(runs) + 1


def test_rejected_runs_are_no_rows_of_another_format(tmp_path):
    runs = [(name, None, None) for name in ("best", "middle", "worst", "other")]
    pairs = [
        {"chosen_id": "d/best", "rejected_id": "d/middle"},
        {"chosen_id": "d/middle", "rejected_id": "d/worst"},
        {"chosen_id": "d/other", "rejected_id": "d/best", "rejected_from": 1, "rejected_to": 1},
    ]
    store = store_of(tmp_path / "s", runs, pairs)
    report = export(store, "openai_chat", str(tmp_path / "out"))
    text = written(tmp_path / "out")
    assert [name for name, *_ in runs if f"answer of {name}" in text] == ["best", "middle", "other"]
    assert report.branches_left_out == 1
    assert sum(n for loss, n in report.losses.items() if loss.startswith("$.pairs[*]: ")) == 3
    # Its own format had it as a record.
    report = export(store, "sts", str(tmp_path / "own"))
    assert "answer of worst" in written(tmp_path / "own")
    assert report.branches_left_out == 0


def test_a_pair_of_no_written_trajectory_is_reported(tmp_path):
    pairs = [{"chosen_id": "d/gone", "rejected_id": "d/gone too"}]
    store = store_of(tmp_path / "s", [("here", None, None)], pairs)
    report = export(store, "sts", str(tmp_path / "out"))
    assert report.losses["$.pairs[*]: none of its trajectories is written"] == 1
    with pytest.raises(ConversionLossError, match="the store: sts cannot hold"):
        export(store, "sts", str(tmp_path / "strict"), strict=True)


def test_what_a_pair_says_beyond_its_sides_is_reported(tmp_path):
    builder = RowBuilder()
    origin = {"source_format": "sharegpt", "source_file": "a.json", "source_records": [1]}
    builder.begin(Origin(seq=0, dataset="d", columns=origin))
    data = json.dumps(PAIR[0]).encode()
    formats.get("sharegpt").read(RawRecord(data, "a.json", 1, 0, len(data)), builder, Losses())
    builder.rows["pairs"][0] |= {"margin": 0.5, "rule": "votes"}
    store = write_store(tmp_path / "s", builder)
    report = export(store, "sharegpt", str(tmp_path / "out"))
    assert [loss.partition(":")[0] for loss in report.losses] == [
        "$.pairs[*].margin",
        "$.pairs[*].rule",
    ]
