"""Reading the files of loops, putting references in, and checking everything before it runs."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from adp.workflows.loop import make_plan, read_loop
from adp.workflows.loop.references import LoopNames
from adp.workflows.loop.schema import json_schema
from adp.workflows.loop.shipped import copy_loop, read_shipped, shipped_loops
from adp_schema.errors import AdpError, InputError, OutputExistsError, UsageError

COLLECT = {"env": "toolworld", "policy": "expert", "tasks": "train:2"}


def loop(*stages, **more):
    """A loop of these stages."""
    rounds = more.pop("rounds", {"stages": list(stages)})
    return {"loop": 1, "rounds": rounds, **more}


def plan(plain, **more):
    """The plan of a loop."""
    return make_plan(read_loop(plain), **more)


def names(**values):
    """Names with some values, and the stage runs."""
    return LoopNames(values, {"runs": "round-1/runs", "round-1.runs": "round-1/runs"}, "base", None)


# ---- references ----------------------------------------------------------------------------------


def test_a_reference_alone_keeps_its_type_and_inside_a_text_becomes_one():
    known = names(n=8, kinds=["a", "b"], share=0.5)
    assert known.put_in({"n": "${n}", "kinds": "${ kinds }"}) == {"n": 8, "kinds": ["a", "b"]}
    assert known.put_in("train:${n}:${share}") == "train:8:0.5"
    assert known.put_in(["$${n}", "${n}$"]) == ["${n}", "8$"]


def test_the_model_last_is_a_folder_and_its_stage_an_input():
    known = LoopNames({}, {}, "round-1/sft/adapter", "round-1.sft")
    assert known.put_in({"model": "last"}) == {"model": "round-1/sft/adapter"}
    assert list(known.used) == ["round-1.sft"]
    assert known.put_in({"other": "last"}) == {"other": "last"}


def test_a_stage_is_a_folder_and_is_noted():
    known = names()
    assert known.put_in("${runs}/data") == "round-1/runs/data"
    assert list(known.used) == ["round-1.runs"]


def test_variables_may_stand_in_variables_but_not_in_themselves():
    assert names(a="${b}!", b="${c}", c=1).put_in("${a}") == "1!"
    with pytest.raises(UsageError, match="stands for itself"):
        names(a="${b}", b="${a}").put_in("${a}")


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean runs"):
        names().put_in("${run}")
    with pytest.raises(UsageError, match="no single value"):
        names(kinds=[1]).put_in("x ${kinds}")


@given(st.text())
def test_nothing_in_a_text_is_evaluated(text):
    try:
        value = names(n=8).put_in(text)
    except UsageError:
        return
    assert value == text or "${" in text


# ---- the file ------------------------------------------------------------------------------------


GRPO = {"method": "grpo", "env": "calculator", "tasks": "train:2"}


def grpo(**section):
    training = {"per_device_train_batch_size": 8, "gradient_accumulation_steps": 1}
    return {**GRPO, "config": {"training": training, "grpo": section}}


@pytest.mark.parametrize(
    ("plain", "words"),
    [
        ({"rounds": []}, "write loop: 1"),
        (loop(), "rounds"),
        (loop({"collct": COLLECT}), "unknown kind of stage 'collct'; did you mean collect"),
        (loop({"collect": {**COLLECT, "atempts": 2}}), "atempts is not known"),
        (loop({"collect": {**COLLECT, "n": 0}}), "round-1.collect: collect: n"),
        (loop({"collect": {**COLLECT, "policy": "exprt"}}), "did you mean expert"),
        (loop({"collect": {**COLLECT, "env": "toolworld:hops=2"}}), "hops"),
        (loop({"collect": {**COLLECT, "expert_mode": "informd"}}), "informd"),
        (loop({"collect": {**COLLECT, "tasks": "${tasks}"}}), "unknown name 'tasks'"),
        (loop({"collect": COLLECT, "score": {}}), "not collect and score"),
        (loop({"collect": COLLECT}, {"collect": COLLECT}), "two stages are called collect"),
        (loop({"collect": COLLECT, "as": "round"}), "cannot be called round"),
        (loop({"collect": COLLECT, "as": "../x"}), "has to be letters"),
        (loop({"score": {"store": "x", "with": ["outcom"]}}), "did you mean outcome"),
        (loop({"eval": {"suite": "toolwrld", "policy": "expert"}}), "did you mean toolworld"),
        (
            loop({"eval": {"suite": "toolworld", "policy": "expert", "min": {"success": 2}}}),
            "success",
        ),
        (
            loop({"curate": {"recipe": {"inputs": {"a": "x"}, "ops": [{"filtr": {}}]}}}),
            "did you mean filter",
        ),
        (loop({"train": {"method": "sft", "config": {"lora": {"rank": 4}}}}), "rank is not known"),
        (loop({"train": {"method": "ppo"}}), "method"),
        (loop({"collect": {**COLLECT, "tasks": "trian:4"}}), "longer_paths, not 'trian'"),
        (loop({"collect": {**COLLECT, "tasks": "no.jsonl"}}), "no file or store 'no.jsonl'"),
        (
            loop({"eval": {"suite": "toolworld", "policy": "expert", "tasks": "tset:2"}}),
            "longer_paths, not 'tset'",
        ),
        (loop({"train": {**GRPO, "env": "calculatr"}}), "did you mean calculator"),
        (loop({"train": {**GRPO, "tasks": "trian:2"}}), "there is no split 'trian'"),
        (loop({"train": grpo(rewards=["enviroment"])}), "did you mean environment"),
        (loop({"train": grpo(num_generations=3)}), "does not divide the 8 answers"),
        (loop({"collect": COLLECT}, model="./no_model"), "there is no folder ./no_model"),
        (loop({"export": {"store": "x", "to": "trl-sfft"}}), "trl-sft"),
        (loop({"collect": COLLECT}, variables={"seed": 1}), "cannot be called seed"),
        (loop({"collect": COLLECT}, scales={"small": {"n": 1}}), "unknown variable 'n'"),
        (loop({"collect": COLLECT}, scale="small"), "unknown scale 'small'"),
        (
            loop(rounds={"repeat": 2, "values": {"s": [1]}, "stages": [{"collect": COLLECT}]}),
            "1 values for 2 rounds",
        ),
        (loop({"collect": {**COLLECT, "unsafe_python": True}}), "needs --allow-python"),
        (loop({"collect": {**COLLECT, "env": "mine.py:Shop"}}), "add --allow-python"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(plain, words, tmp_path):
    with pytest.raises(AdpError) as error:
        plan(plain, here=tmp_path)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_stage_sees_earlier_stages_of_its_round_and_of_others():
    runs = {"collect": COLLECT, "as": "runs"}
    scores = {"score": {"store": "${runs}", "with": ["outcome"]}}
    made = plan(loop(rounds={"repeat": 2, "stages": [runs, scores]}))
    assert [stage.key for stage in made.stages] == [
        *("round-1.runs", "round-1.score", "round-2.runs", "round-2.score")
    ]
    assert made.stages[3].options.store == "round-2/runs"
    for store in ("${previous.runs}", "${round-1.runs}"):
        again = {"score": {"store": store, "with": ["outcome"]}}
        made = plan(loop(rounds=[{"stages": [runs]}, {"stages": [again]}]))
        assert made.stages[1].options.store == "round-1/runs"
        assert made.stages[1].inputs == ("round-1.runs",)
    with pytest.raises(UsageError, match="unknown name 'runs'"):
        plan(loop(scores, runs))  # a later one is not there yet


def test_the_models_of_a_loop_follow_each_other():
    config = {"render": {"max_length": 512}}
    sft = {"train": {"method": "sft", "store": "x", "config": config}, "as": "sft"}
    dpo = {"train": {"method": "dpo", "store": "x", "config": config}, "as": "dpo"}
    full = {"train": {"method": "sft", "store": "x", "config": {**config, "lora": None}}}
    agent = {"name": "transformers", "model": "last"}
    measured = {"eval": {"suite": "toolworld", "policy": agent}}
    made = plan(loop(measured, sft, {**measured, "as": "e2"}, dpo, {**measured, "as": "e3"}))
    models = [stage.options.policy["model"] for stage in made.stages if stage.kind.name == "eval"]
    # DPO goes on with the adapter that SFT has made.
    assert models == ["base", "round-1/sft/adapter", "round-1/dpo/adapter"]
    assert made.stages[3].inputs == ("round-1.sft",)
    made = plan(loop(full, {**measured, "as": "e2"}))
    assert made.stages[1].options.policy["model"] == "round-1/train/model"


def test_a_training_without_a_named_model_takes_the_last_as_its_input():
    config = {"render": {"max_length": 512}}
    train = {"method": "sft", "store": "x", "config": config}
    stages = [{"train": train, "as": name} for name in ("a", "b")]
    base = {"train": {**train, "model": "base"}, "as": "c"}
    made = plan(loop(*stages, base))
    assert [stage.inputs for stage in made.stages] == [(), ("round-1.a",), ()]


def test_set_changes_variables_and_wins_over_a_scale():
    plain = loop(
        {"collect": {**COLLECT, "n": "${n}"}}, variables={"n": 8}, scales={"small": {"n": 2}}
    )
    of = lambda *settings: make_plan(read_loop(plain, settings)).stages[0].options.n  # noqa: E731
    assert (of(), of("scale=small"), of("scale=small", "n=3"), of("variables.n=4")) == (8, 2, 3, 4)
    with pytest.raises(UsageError, match="unknown variable 'm'"):
        of("m=1")
    with pytest.raises(UsageError, match="takes name=value"):
        of("n")


def test_where_the_file_lies_is_no_part_of_what_is_done(tmp_path):
    hashes = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tasks.jsonl").write_text('{"task": "x"}\n')
        stage = {"collect": {**COLLECT, "tasks": "${here}/tasks.jsonl"}}
        hashes.append(plan(loop(stage), here=tmp_path / name).stages[0].hash)
    assert hashes[0] == hashes[1]


def test_a_file_that_is_not_there_or_no_loop(tmp_path):
    with pytest.raises(InputError, match="cannot read the loop"):
        read_loop(tmp_path / "none.yaml")
    (tmp_path / "list.yaml").write_text("- a\n")
    with pytest.raises(UsageError, match="is no loop"):
        read_loop(tmp_path / "list.yaml")
    (tmp_path / "twice.yaml").write_text("loop: 1\nloop: 1\n")
    with pytest.raises(UsageError, match="given twice"):
        read_loop(tmp_path / "twice.yaml")


# ---- shipped loops and the schema ----------------------------------------------------------------


@pytest.mark.train
@pytest.mark.parametrize("name", sorted(shipped_loops()))
def test_shipped_loops_can_be_planned_in_every_scale(name):
    pytest.importorskip("trl")
    file = read_shipped(name)
    for scale in (None, *file.scales):
        made = make_plan(file.model_copy(update={"scale": scale}))
        assert made.stages
        assert made.stages[-1].kind.name == "eval"


def test_the_schema_takes_the_shipped_loops_and_refuses_slips():
    validator = jsonschema.Draft202012Validator(json_schema())
    for path in shipped_loops().values():
        plain = yaml.safe_load(path.read_text())
        assert not list(validator.iter_errors(plain)), path
    wrong = loop({"collect": {**COLLECT, "atempts": 2}})
    assert list(validator.iter_errors(wrong))
    json.dumps(json_schema())


def test_a_shipped_loop_is_copied_once(tmp_path: Path):
    file = copy_loop("m3", tmp_path / "mine.yaml")
    assert read_loop(file).name == "m3"
    with pytest.raises(OutputExistsError, match="is there already"):
        copy_loop("m3", file)
    with pytest.raises(UsageError, match="unknown loop 'm4'; known: et_agent, m3"):
        copy_loop("m4", tmp_path / "other.yaml")
