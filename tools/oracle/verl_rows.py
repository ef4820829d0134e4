"""What verl's own code reads of the rows that adp wrote for it.

    python tools/oracle/verl_rows.py JOBS.json --out RESULT.json

Runs in an environment of its own (see verl_requirements.txt beside it). A job is a folder as `adp
export` wrote it. verl composes its configuration from the call in the folder's README.md; its own
data sets read the rows, or the class that lies beside them, loaded the way its trainer does it.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

from rows import answer

PACKAGES = ("verl", "torch", "transformers", "datasets", "tensordict", "pandas")


def config_of(folder: Path, name: str) -> Any:
    """verl's configuration under the call in the README."""
    import verl
    from hydra import compose, initialize_config_dir

    text = (folder / "README.md").read_text(encoding="utf-8")
    call = text.split("```sh\n", 1)[1].split("```", 1)[0].replace("\\\n", " ")
    words = shlex.split(call.replace("$PWD", str(folder.absolute())))
    module = words.index("-m")
    with initialize_config_dir(str(Path(verl.__file__).parent / "trainer" / "config")):
        return compose(name, overrides=words[module + 2 :])


def tokenizer_of(job: dict[str, Any]) -> Any:
    """The tokenizer, as verl loads it."""
    from verl.utils import hf_tokenizer

    return hf_tokenizer(job["tokenizer"])


def pieces(tokenizer: Any, ids: list[int], mask: list[float]) -> list[str]:
    """The texts of the runs of trained tokens."""
    runs: list[list[int]] = []
    before = 0.0
    for token, weight in zip(ids, mask, strict=True):
        if weight and not before:
            runs.append([])
        if weight:
            runs[-1].append(token)
        before = weight
    return [tokenizer.decode(run, skip_special_tokens=False) for run in runs]


def rows_of_rl(job: dict[str, Any]) -> list[dict[str, Any]]:
    """What its data set for reinforcement learning gives, and the reward of the right answer."""
    from omegaconf import open_dict
    from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn
    from verl.utils.import_utils import load_extern_object

    config = config_of(Path(job["folder"]), "ppo_trainer")
    with open_dict(config):
        config.data.filter_overlong_prompts_workers = 1
        config.data.cache_dir = job["work"]
    dataset = RLHFDataset(
        data_files=config.data.train_files, tokenizer=tokenizer_of(job), config=config.data
    )
    custom_reward_function = config.reward.custom_reward_function
    score = load_extern_object(custom_reward_function.path, custom_reward_function.name)
    rows = []
    for index in range(len(dataset)):
        row = dataset[index]
        collate_fn([row])
        truth = row["reward_model"]["ground_truth"]
        rows.append(
            {
                "prompt": row["raw_prompt"],
                "data_source": row["data_source"],
                "ground_truth": truth,
                "index": row["index"],
                "right": score(row["data_source"], f"It is {truth}", truth, row["extra_info"]),
                "wrong": score(row["data_source"], "I do not know", truth, row["extra_info"]),
            }
        )
    return rows


def rows_of_sft(job: dict[str, Any]) -> list[dict[str, Any]]:
    """What the trained tokens are under the class beside the rows."""
    import torch
    from omegaconf import open_dict
    from verl.utils.dataset.dataset_utils import DatasetPadMode, SFTTensorCollator
    from verl.utils.import_utils import load_extern_object

    config = config_of(Path(job["folder"]), "sft_trainer_engine").data
    with open_dict(config):
        config.max_length = 1 << 20  # real samples are longer than the call in the README takes
    kind = load_extern_object(config.custom_cls.path, config.custom_cls.name)
    tokenizer = tokenizer_of(job)
    dataset = kind(
        parquet_files=config.train_files,
        tokenizer=tokenizer,
        config=config,
        processor=None,
        max_samples=-1,
    )
    SFTTensorCollator(DatasetPadMode.NO_PADDING)([dataset[0], dataset[len(dataset) - 1]])
    rows = []
    for index in range(len(dataset)):
        row = dataset[index]
        assert torch.equal(row["position_ids"], torch.arange(len(row["input_ids"])))
        ids, mask = row["input_ids"].tolist(), row["loss_mask"].tolist()
        rows.append(
            {
                "trained": pieces(tokenizer, ids, mask),
                "ids": ids,
                "mask": mask,
            }
        )
    return rows


def rows_of_own(job: dict[str, Any]) -> list[dict[str, Any]]:
    """What verl's own data set for supervised training makes of messages; errors by row."""
    import pandas
    from omegaconf import OmegaConf
    from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset

    tokenizer = tokenizer_of(job)
    path = Path(job["work"]) / "own.parquet"
    rows: list[dict[str, Any]] = []
    config = OmegaConf.create({"pad_mode": "no_padding", "max_length": 1 << 20})
    for row in json.loads(Path(job["messages"]).read_text(encoding="utf-8")):
        try:
            pandas.DataFrame([row]).to_parquet(path)
            result = MultiTurnSFTDataset([str(path)], tokenizer, config)[0]
        except Exception as error:  # the oracle may stop in any way
            rows.append({"error": f"{type(error).__name__}: {str(error).strip()[:80]}"})
            continue
        mask, ids = result["loss_mask"].tolist(), result["input_ids"].tolist()
        rows.append({"trained": pieces(tokenizer, ids, mask)})
    return rows


def fractions(job: dict[str, Any]) -> list[dict[str, Any]]:
    """verl's sum over the mask, with weights that are no whole numbers."""
    import torch
    from verl.utils.torch_functional import masked_sum

    values, mask = torch.tensor([1.0, 2.0, 4.0, 8.0]), torch.tensor([0.0, 1.0, 0.5, 0.25])
    return [{"sum": float(masked_sum(values, mask))}]


def rewards_of(job: dict[str, Any]) -> list[dict[str, Any]]:
    """What the reward manager beside the rows gives for responses, run as verl runs it."""
    import asyncio

    from omegaconf import open_dict
    from verl.trainer.ppo.reward import load_reward_manager

    config = config_of(Path(job["folder"]), "ppo_trainer")
    with open_dict(config):
        config.actor_rollout_ref.rollout.n = job["rollouts"]
    tokenizer = tokenizer_of(job)
    given = [_response(tokenizer, response) for response in job["responses"]]

    async def work() -> list[dict[str, Any]]:
        manager = load_reward_manager(config, tokenizer)
        return list(await asyncio.gather(*(manager.run_single(data) for data in given)))

    lengths = [int(data.batch["attention_mask"].sum()) - 1 for data in given]
    return [
        {"reward": result["reward_score"], "tokens": length}
        for result, length in zip(asyncio.run(work()), lengths, strict=True)
    ]


def formulas(job: dict[str, Any]) -> list[dict[str, Any]]:
    """Which formulas verl's copy of MATH's own code takes for the same."""
    from verl.utils.reward_score.math_reward import is_equiv

    return [{"same": is_equiv(first, second)} for first, second in job["pairs"]]


def _response(tokenizer: Any, response: dict[str, Any]) -> Any:
    """A response as verl's agent loop hands it to a reward manager."""
    import numpy as np
    import torch
    from tensordict import TensorDict
    from verl import DataProto

    ids = torch.tensor([tokenizer.encode(response["text"], add_special_tokens=False)])
    mask = torch.ones(1, 1 + ids.shape[1], dtype=torch.int64)
    rows = {"prompts": torch.tensor([[1]]), "responses": ids, "attention_mask": mask}
    columns = {
        "uid": response["group"],
        "data_source": response["source"],
        "reward_model": {"style": "rule", "ground_truth": response["truth"]},
        "extra_info": {"split": "train", "index": 1},
        "tool_extra_fields": {"min_global_steps": response["step"]},
    }
    others = {name: np.array([value], dtype=object) for name, value in columns.items()}
    return DataProto(batch=TensorDict(rows, batch_size=1), non_tensor_batch=others)


WORK = {
    "rl": rows_of_rl,
    "sft": rows_of_sft,
    "own": rows_of_own,
    "fractions": fractions,
    "rewards": rewards_of,
    "formulas": formulas,
}


if __name__ == "__main__":
    os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1")
    sys.exit(answer(WORK, PACKAGES, __doc__))
