"""Exports of rollouts: the tokens that the engine read and wrote, and nothing else."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pyarrow.parquet as pq
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.turns import Call, Turn
from adp.trainers.export.run import export_rows
from adp_schema.errors import EmptyResultError, UsageError
from adp_schema.store import Store
from tests.trainers.export.rollout_runs import (
    EXPRESSIONS,
    Dictated,
    rollout_store,
    written_by_hand,
)

pytestmark = pytest.mark.train

NAMES = (
    *("verl-rollouts", "slime-rollouts", "tinker-datums", "openrlhf-rollouts"),
    *("prime-rl-rollouts", "verifiers-traces", "nemo-gym-rollouts"),
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return rollout_store(tmp_path_factory.mktemp("rollouts") / "store")


@pytest.fixture(scope="module")
def without_ids(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The same words by a policy that knows no tokens."""
    call = Call("calculator", json.dumps({"expression": EXPRESSIONS["sum"]}))
    script = Scripted([Turn(calls=(call,)), Turn(text="44")])
    return rollout_store(tmp_path_factory.mktemp("scripted") / "store", script, n=1)


def lines(folder: Path) -> list[dict]:
    """The rows of an export."""
    report = json.loads((folder / "export.json").read_text())
    path = folder / next(name for name in report["files"] if name.endswith(("jsonl", "parquet")))
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def rows(store: Store, name: str, folder: Path, **settings) -> list[dict]:
    model = settings.pop("model", None)
    report = export_rows(store, name, str(folder), settings, model=model)
    assert report.in_store == report.in_rows + sum(report.left_out.values())
    return lines(folder)


def sequence(name: str, row: dict) -> tuple[list[int], list[bool], list[float]]:
    """All tokens of a row, its mask and its log probabilities, whatever the shape."""
    if name == "verl-rollouts":
        before = len(row["prompts"])
        ids = row["prompts"] + row["responses"]
        return (
            ids,
            [False] * before + [bool(value) for value in row["response_mask"]],
            [0.0] * before + row["rollout_log_probs"],
        )
    if name == "slime-rollouts":
        before = len(row["tokens"]) - row["response_length"]
        mask = [False] * before + [bool(value) for value in row["loss_mask"]]
        return row["tokens"], mask, [0.0] * before + row["rollout_log_probs"]
    if name == "tinker-datums":
        ids = [row["model_input"][0], *row["target_tokens"]]
        assert row["model_input"] == ids[:-1]
        return ids, [False, *map(bool, row["mask"])], [0.0, *row["logprobs"]]
    if name == "openrlhf-rollouts":
        ids = row["observation_tokens"]
        mask = [any(a <= at < b for a, b in row["action_ranges"]) for at in range(len(ids))]
        return ids, mask, row["rollout_log_probs"]
    if name == "prime-rl-rollouts":
        return row["token_ids"], row["mask"], row["logprobs"]
    if name == "nemo-gym-rollouts":
        return nemo_sequence(row)
    ids, mask, logprobs = [], [], []
    for node in row["nodes"]:
        ids += node["token_ids"]
        mask += node["mask"]
        values = iter(node["logprobs"])
        logprobs += [next(values) if written else 0.0 for written in node["mask"]]
    return ids, mask, logprobs


def nemo_sequence(row: dict) -> tuple[list[int], list[bool], list[float]]:
    ids, mask, logprobs = [], [], []
    for item in row["response"]["output"]:
        if "generation_token_ids" in item:
            between = len(item["prompt_token_ids"]) - len(ids)
            written = item["generation_token_ids"]
            ids = item["prompt_token_ids"] + written
            mask += [False] * between + [True] * len(written)
            logprobs += [0.0] * between + item["generation_log_probs"]
    return ids, mask, logprobs


@pytest.mark.parametrize("name", NAMES)
def test_recorded_ids_are_written_as_they_are(name, store, tmp_path) -> None:
    written = rows(store, name, tmp_path / "out")
    episodes = list(store.trajectories())
    assert len(written) == len(episodes) == 4
    for row, episode in zip(written, episodes, strict=True):
        assert sequence(name, row) == written_by_hand(episode)
        assert sum(sequence(name, row)[1]) == sum(
            len(step.completion_token_ids or []) for step in episode.steps
        )


@pytest.mark.parametrize("name", NAMES)
def test_rewards_and_groups(name, store, tmp_path) -> None:
    written = rows(store, name, tmp_path / "out")
    episodes = list(store.trajectories())
    rewards = [row["rewards"]["reward"]["score"] if "rewards" in row else row["reward"]
               for row in written]  # fmt: skip
    assert rewards == [float(episode.success) for episode in episodes]
    assert sorted(set(rewards)) == [0.0, 1.0]
    keys = {"verl-rollouts": "uid", "slime-rollouts": "group_index"}
    keys["nemo-gym-rollouts"] = "_ng_task_index"
    groups = [
        row["task"]["key"] if name == "verifiers-traces" else row[keys.get(name, "group")]
        for row in written
    ]
    tasks = [episode.task_id for episode in episodes]
    assert len(set(groups)) == 2
    assert len(set(zip(groups, tasks, strict=True))) == 2


@pytest.mark.parametrize("name", NAMES)
def test_the_same_store_gives_the_same_bytes(name, store, tmp_path) -> None:
    for folder in ("one", "two"):
        export_rows(store, name, str(tmp_path / folder))
    files = [json.loads((tmp_path / folder / "export.json").read_text())["files"]
             for folder in ("one", "two")]  # fmt: skip
    assert files[0] == files[1]


def test_rendered_tokens_are_those_that_the_engine_wrote(store, tmp_path) -> None:
    """The dictated words are what the template writes, so rendering must find the same tokens."""
    bare = rollout_store(tmp_path / "bare", Dictated(token_ids=False))
    rendered = rows(bare, "verl-rollouts", tmp_path / "out", model="tiny")
    for row, episode in zip(rendered, store.trajectories(), strict=True):
        ids, mask, _ = written_by_hand(episode)
        assert row["prompts"] + row["responses"] == ids
        assert [False] * len(row["prompts"]) + [bool(v) for v in row["response_mask"]] == mask
        assert row["rollout_log_probs"] is None
        assert row["extra_info"]["recorded"] is False
    report = json.loads((tmp_path / "out" / "export.json").read_text())
    assert sum(n for why, n in report["changed"].items() if "rendered" in why) == 4


def test_without_ids_a_model_has_to_be_named(without_ids, tmp_path) -> None:
    with pytest.raises(UsageError, match=r"--model MODEL.*missing_ids=leave_out"):
        rows(without_ids, "verl-rollouts", tmp_path / "no")
    with pytest.raises(UsageError, match="not every step has recorded token ids"):
        rows(without_ids, "verl-rollouts", tmp_path / "no", missing_ids="refuse", model="tiny")
    with pytest.raises(EmptyResultError, match="not every step has recorded token ids"):
        rows(without_ids, "verl-rollouts", tmp_path / "no", missing_ids="leave_out")
    assert not (tmp_path / "no").exists()
    with pytest.raises(UsageError, match=r"tinker-datums needs log probabilities .*logprobs=true"):
        rows(without_ids, "tinker-datums", tmp_path / "no")
    with pytest.raises(EmptyResultError, match="no log probabilities, which tinker-datums needs"):
        rows(without_ids, "tinker-datums", tmp_path / "no", model="tiny")


def test_a_rewritten_history_gives_a_row_each(tmp_path) -> None:
    forked = rollout_store(tmp_path / "store", Dictated(space="\n"), n=1)
    steps = [
        step for run in forked.trajectories() for step in run.steps if step.completion_token_ids
    ]
    for name in ("verl-rollouts", "tinker-datums", "nemo-gym-rollouts"):
        written = [sequence(name, row) for row in rows(forked, name, tmp_path / name)]
        assert [ids for ids, _, _ in written] == [
            [*step.prompt_token_ids, *step.completion_token_ids] for step in steps
        ]
        assert [sum(mask) for _, mask, _ in written] == [
            len(step.completion_token_ids) for step in steps
        ]
        report = json.loads((tmp_path / name / "export.json").read_text())
        assert [n for why, n in report["changed"].items() if "rewrites history" in why] == [2]
    traces = rows(forked, "verifiers-traces", tmp_path / "traces")
    assert [sum(node["parent"] is None for node in trace["nodes"]) for trace in traces] == [2, 2]


@pytest.mark.parametrize(("choice", "count"), [("leave_out", 0), ("write_null", 4)])
def test_a_rollout_without_the_named_reward(choice, count, store, tmp_path) -> None:
    asked = {"reward": "speed", "missing_reward": choice}
    if not count:
        with pytest.raises(EmptyResultError, match="4 no reward 'speed'"):
            rows(store, "slime-rollouts", tmp_path / "out", **asked)
        return
    written = rows(store, "slime-rollouts", tmp_path / "out", **asked)
    assert [row["reward"] for row in written] == [None] * count


def test_what_has_no_part_in_rollouts_is_refused(store, tmp_path) -> None:
    asked = ["reward=speed", "missing_reward=refuse"]
    with pytest.raises(UsageError, match="missing_reward=leave_out"):
        export_rows(store, "slime-rollouts", str(tmp_path / "no"), asked)
    with pytest.raises(UsageError, match="needs a reward in each row"):
        export_rows(store, "nemo-gym-rollouts", str(tmp_path / "no"), ["missing_reward=write_null"])
    with pytest.raises(UsageError, match="expand has no part in rollouts"):
        export_rows(store, "verl-rollouts", str(tmp_path / "no"), ["expand=true"])
    assert not (tmp_path / "no").exists()


def shipped(folder: Path, name: str) -> ModuleType:
    """The code that lies beside the rows."""
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_slime_gets_whole_groups_in_turn(store, tmp_path, monkeypatch) -> None:
    """With a class that has the fields of slime's, which has no package to install."""

    @dataclass
    class Sample:
        group_index: int
        index: int
        prompt: list
        tokens: list
        response: str
        response_length: int
        label: str
        reward: float
        loss_mask: list
        rollout_log_probs: list
        status: str
        metadata: dict

        @staticmethod
        def from_dict(data: dict) -> Sample:
            return Sample(**data)

    for name in ("slime", "slime.utils", "slime.utils.types"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["slime.utils.types"].Sample = Sample
    written = rows(store, "slime-rollouts", tmp_path / "out")
    monkeypatch.setenv("ADP_ROLLOUTS", str(tmp_path / "out" / "rollouts.jsonl"))
    module = shipped(tmp_path / "out", "adp_slime_rollouts")
    args = SimpleNamespace(n_samples_per_prompt=2, rollout_batch_size=1)
    groups = [module.generate_rollout(args, number, None)[0] for number in range(3)]
    assert [[vars(sample) for sample in group] for group in groups] == [
        [row for row in written if row["metadata"]["task_id"] == task]
        for task in ("sum", "product", "sum")
    ]
    for sample in groups[0]:
        assert len(sample.loss_mask) == len(sample.rollout_log_probs) == sample.response_length
    with pytest.raises(ValueError, match="no group has 3 samples"):
        module.generate_rollout(SimpleNamespace(n_samples_per_prompt=3), 0, None)
    with pytest.raises(ValueError, match="cannot evaluate"):
        module.generate_rollout(args, 0, None, evaluation=True)


@pytest.mark.parametrize("flat", [True, False])
def test_prime_rl_gets_the_fields_that_its_type_has(flat, store, tmp_path) -> None:
    """With classes that have the fields of prime-rl's, which has no package to install."""
    common = ["env_name", "advantage", "reward"]
    split = ["prompt_ids", "prompt_mask", "completion_ids", "completion_mask",
             "completion_logprobs", "completion_temperatures"]  # fmt: skip
    names = ["token_ids", "mask", "logprobs", "temperatures"] if flat else split
    if flat:
        common[1] = "advantages"
    sample = type("TrainingSample", (SimpleNamespace,), {"__struct_fields__": (*names, *common)})
    types = SimpleNamespace(TrainingSample=sample, TrainingAdvantage=lambda *values: values)
    written = rows(store, "prime-rl-rollouts", tmp_path / "out", temperature=0.5)
    module = shipped(tmp_path / "out", "adp_prime_rl_samples")
    samples = module.load_samples(str(tmp_path / "out" / "samples.jsonl"), types)
    for made, row, episode in zip(samples, written, store.trajectories(), strict=True):
        advantage = episode.reward - 0.5  # of two attempts, one is right
        ids, mask, logprobs = written_by_hand(episode)
        if flat:
            assert (made.token_ids, made.mask, made.logprobs) == (ids, mask, logprobs)
            assert made.temperatures == [0.5] * len(ids)
            assert made.advantages == [("rl", [advantage * value for value in mask], mask)]
        else:
            assert made.prompt_ids + made.completion_ids == ids
            assert made.prompt_mask + made.completion_mask == mask
            assert made.completion_logprobs == logprobs[row["prompt_length"] :]
            assert made.advantage == advantage
