"""What the trainers' own packages hold of rollouts that adp wrote for them.

    python tools/oracle/rollout_rows.py JOBS.json --out RESULT.json

Runs where the packages can be imported (`make rl-tests`). A job is a folder as `adp export` wrote
it. Its rows are loaded as the folder's README.md says, and the answer has, for each, all ids, the
mask and the log probabilities, as the package's own objects give them back.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from rows import Job, answer


def _row(ids: Any, mask: Any, logprobs: Any, **more: Any) -> Job:
    def plain(values: Any) -> list[Any]:
        return values.tolist() if hasattr(values, "tolist") else list(values)

    mask = [bool(value) for value in plain(mask)]
    return {"ids": plain(ids), "mask": mask, "logprobs": plain(logprobs), **more}


def verl(job: Job) -> list[Job]:
    """A ``DataProto``, its positions, and GRPO's advantages of verl's own function."""
    import torch
    from adp_verl_rollouts import load_rollouts
    from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage
    from verl.utils.model import compute_position_id_with_mask

    batch = load_rollouts(str(Path(job["folder"]) / "rollouts.parquet"), pad_token_id=0)
    data, other = batch.batch, batch.non_tensor_batch
    expected = compute_position_id_with_mask(data["attention_mask"])
    assert torch.equal(data["position_ids"], expected)
    advantages, _ = compute_grpo_outcome_advantage(
        data["rm_scores"], data["response_mask"], other["uid"]
    )
    rows = []
    width = data["prompts"].shape[1]
    for number in range(len(batch)):
        there = data["attention_mask"][number].bool()
        padded = torch.zeros(len(there))
        padded[width:] = data["rollout_log_probs"][number]
        mask = torch.zeros(len(there), dtype=torch.bool)
        mask[width:] = data["response_mask"][number].bool()
        last = int(there[width:].sum()) - 1
        rows.append(
            _row(
                data["input_ids"][number][there],
                mask[there],
                padded[there],
                reward=float(data["rm_scores"][number, last]),
                total=float(data["rm_scores"][number].sum()),
                group=str(other["uid"][number]),
                advantage=float(advantages[number][data["response_mask"][number].bool()][0]),
                turns=int(other["__num_turns__"][number]),
            )
        )
    batch.union(batch[[*range(len(batch))]])  # verl's own operations take it
    return rows


def openrlhf(job: Job) -> list[Job]:
    """An ``Experience`` each, joined and split by OpenRLHF's own code."""
    from adp_openrlhf_rollouts import load_experiences
    from openrlhf.trainer.ppo_utils.experience import Experience, split_experience_batch

    made = load_experiences(str(Path(job["folder"]) / "rollouts.jsonl"))
    groups = [item.index[0] for item in made]
    items = split_experience_batch(Experience.concat_experiences(made, pad_token_id=0))
    rows = []
    for item, group in zip(items, groups, strict=True):
        there = item.attention_mask.reshape(-1).bool()
        ids = item.sequences.reshape(-1)[there]
        count = len(ids) - 1
        rows.append(
            _row(
                ids,
                [False, *item.action_mask.reshape(-1)[:count].tolist()],
                [0.0, *item.rollout_log_probs.reshape(-1)[:count].tolist()],
                reward=float(item.rewards.reshape(-1)[0]),
                group=str(group),
            )
        )
    return rows


def verifiers(job: Job) -> list[Job]:
    """Branches of traces."""
    from verifiers.v1 import WireTrace

    path = Path(job["folder"]) / "traces.jsonl"
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        trace = WireTrace.model_validate_json(line)
        text = trace.model_dump_json(context={"float_decimals": None})
        again = WireTrace.model_validate_json(text)
        for branch in again.branches:
            rows.append(
                _row(
                    branch.token_ids,
                    branch.sampled_mask,
                    branch.logprobs,
                    reward=trace.reward,
                    group=trace.task.key,
                    turns=sum(node.sampled for node in branch.nodes),
                    messages=[message.role for message in branch.messages],
                    calls=[
                        [call.name, call.arguments]
                        for message in trace.assistant_messages
                        for call in message.tool_calls or []
                    ],
                )
            )
    return rows


def tinker(job: Job) -> list[Job]:
    """Datums of tinker; and the cookbook's own, made of the same turns."""
    from adp_tinker_datums import load_datums

    path = str(Path(job["folder"]) / "datums.jsonl")
    rows = []
    for datum, reference in zip(
        load_datums(path, advantages="group", mask=True), cookbook(job), strict=True
    ):
        inputs = datum.loss_fn_inputs
        for name in ("target_tokens", "logprobs", "advantages", "mask"):
            left, right = inputs[name].data, reference.loss_fn_inputs[name].data
            assert len(left) == len(right)
            assert all(abs(a - b) < 1e-6 for a, b in zip(left, right, strict=True)), name
        assert datum.model_input.to_ints() == reference.model_input.to_ints()
        ids = [datum.model_input.to_ints()[0], *inputs["target_tokens"].data]
        mask = [False, *inputs["mask"].data]
        pairs = zip(inputs["advantages"].data, mask[1:], strict=True)
        advantage = next(value for value, written in pairs if written)
        rows.append(_row(ids, mask, [0.0, *inputs["logprobs"].data], advantage=advantage))
    return rows


def cookbook(job: Job) -> list[Any]:
    """The datums that the tinker cookbook makes of the turns of the rollouts."""
    import tinker as package
    from tinker_cookbook.completers import TokensWithLogprobs
    from tinker_cookbook.rl.data_processing import assemble_training_data, compute_advantages
    from tinker_cookbook.rl.types import Trajectory, TrajectoryGroup, Transition

    groups: dict[str, list[tuple[int, Any, float]]] = {}
    for number, episode in enumerate(job["episodes"]):
        transitions = [
            Transition(
                ob=package.ModelInput.from_ints(turn["prompt"]),
                ac=TokensWithLogprobs(turn["written"], turn["logprobs"]),
                reward=0.0,
                episode_done=turn is episode["turns"][-1],
            )
            for turn in episode["turns"]
        ]
        trajectory = Trajectory(transitions, package.ModelInput.from_ints([]))
        groups.setdefault(episode["group"], []).append((number, trajectory, episode["reward"]))
    made: dict[int, list[Any]] = {}
    for members in groups.values():
        group = TrajectoryGroup(
            [item[1] for item in members], [item[2] for item in members], [{}] * len(members)
        )
        data, about = assemble_training_data([group], compute_advantages([group]))
        for datum, place in zip(data, about, strict=True):
            made.setdefault(members[place["traj_idx"]][0], []).append(datum)
    return [datum for number in sorted(made) for datum in made[number]]


def nemo_gym(job: Job) -> list[Job]:
    """Rows of NeMo Gym's own type."""
    from nemo_gym.base_resources_server import BaseVerifyResponse

    path = Path(job["folder"]) / "rollouts.jsonl"
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = BaseVerifyResponse.model_validate_json(line)
        ids: list[int] = []
        mask: list[bool] = []
        logprobs: list[float] = []
        for item in row.response.output:
            if getattr(item, "generation_token_ids", None) is None:
                continue
            assert item.prompt_token_ids[: len(ids)] == ids
            between = len(item.prompt_token_ids) - len(ids)
            mask += [False] * between + [True] * len(item.generation_token_ids)
            logprobs += [0.0] * between + item.generation_log_probs
            ids = item.prompt_token_ids + item.generation_token_ids
        kinds = [item.type for item in row.response.output]
        rows.append(_row(ids, mask, logprobs, reward=row.reward, kinds=kinds))
    return rows


WORK = {
    "verl": verl,
    "openrlhf": openrlhf,
    "verifiers": verifiers,
    "tinker": tinker,
    "nemo_gym": nemo_gym,
}


def _prepared(work: Any) -> Any:
    def with_folder(job: Job) -> list[Job]:
        sys.path.insert(0, job["folder"])
        return work(job)

    return with_folder


def installed() -> list[str]:
    """Those of the packages that are there."""
    names = []
    for name in ("verl", "openrlhf", "verifiers", "tinker", "tinker-cookbook", "nemo-gym"):
        try:
            version(name)
        except PackageNotFoundError:
            continue
        names.append(name)
    return names


if __name__ == "__main__":
    prepared = {name: _prepared(work) for name, work in WORK.items()}
    sys.exit(answer(prepared, installed(), __doc__))
