"""Training by SAGE's configuration: select, replay and train as one loop."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from adp.rendering.render import Renderer
from adp.rollouts.policies.loading import load_for_generation
from adp.rollouts.policies.settings import ModelSettings
from adp.workflows.loop import LoopOptions, make_plan, read_loop, run_loop
from adp.workflows.loop.sage import read_foreign_loop
from adp.workflows.sage.data import store_of_reference
from adp_schema.errors import EmptyResultError, OutputExistsError, UsageError
from adp_schema.store import Store


@dataclass
class AgentSFTConfig:
    """A supervised training, with the fields and defaults of SAGE's documentation.

    Attributes:
        further: settings of SAGE's code that have no field here, such as ``task_weights``.
    """

    base_model: str
    train_data: str
    eval_data: str | None = None
    output_dir: str | PathLike[str] = ".sage/finetune/"
    num_epochs: int = 3
    batch_size: int = 8
    learning_rate: float = 2e-5
    gradient_accumulation_steps: int = 4
    max_seq_length: int = 2048
    use_lora: bool = True
    lora_r: int = 16
    lora_alpha: int = 32
    use_dora: bool = False
    use_lora_plus: bool = False
    lora_plus_lr_ratio: float = 16.0
    use_coreset_selection: bool = False
    coreset_strategy: str = "hybrid"
    coreset_target_size: int | None = None
    use_online_continual: bool = False
    continual_buffer_size: int = 2048
    continual_replay_ratio: float = 0.25
    further: Mapping[str, Any] = field(default_factory=dict)

    def settings(self) -> dict[str, Any]:
        """The configuration as it stands in a file of SAGE's."""
        plain = {item.name: getattr(self, item.name) for item in fields(self)}
        further = plain.pop("further")
        plain["output_dir"] = fspath(plain["output_dir"])
        return {name: value for name, value in {**plain, **further}.items() if value is not None}


@dataclass
class RLTrainingConfig:
    """A training by preferences or rewards; `adp train dpo|grpo --config` reads its file.

    PPO, the documentation's default, is refused there: TRL has no trainer for it any more.
    """

    algorithm: str = "ppo"
    reward_model: str | None = None
    kl_coef: float = 0.1
    gamma: float = 0.99

    def settings(self) -> dict[str, Any]:
        """The configuration as it stands in a file of SAGE's."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class TrainingResult:
    """What a training came to.

    Attributes:
        final_loss: the last training loss, a token.
        output_dir: folder of the model.
        record: the record of the run.
    """

    final_loss: float
    output_dir: str
    record: Mapping[str, Any]


@dataclass(frozen=True)
class EvalResult:
    """What a model knows of data that it was not trained on.

    Attributes:
        accuracy: share of the trained tokens that the model finds likeliest at their place.
        loss: mean loss of these tokens, in nats.
        num_tokens: their number.
    """

    accuracy: float
    loss: float
    num_tokens: int


class AgentSFTTrainer:
    """Trains, measures, saves and loads.

    Args:
        config: the training.
    """

    def __init__(self, config: AgentSFTConfig) -> None:
        self.config = config
        self.model = config.base_model

    def train(self) -> TrainingResult:
        """Train; the same call goes on with a training that was stopped.

        Raises:
            UsageError: a setting is wrong.
            InputError: the data cannot be read.
            TrainingError: the training stopped on an error.
        """
        out = Path(self.config.output_dir)
        work = out / "inputs"
        work.mkdir(parents=True, exist_ok=True)
        given = [f"data={store_of_reference(self.config.train_data, work)}"]
        if self.config.eval_data is not None:
            given.append(f"eval_data={store_of_reference(self.config.eval_data, work)}")
        plain = {**self.config.settings(), "train_data": None, "eval_data": None}
        file = work / "sage.json"
        file.write_text(json.dumps({k: v for k, v in plain.items() if v is not None}))
        loop = read_foreign_loop(file, given)
        if loop is None:
            raise UsageError("this is no configuration of SAGE; it needs base_model")
        plan = make_plan(read_loop(loop.plain, loop.settings), Path.cwd())
        run_loop(plan, out / "run", LoopOptions())
        folder = out / "run" / "round-1" / plan.stages[-1].context.name
        record = json.loads((folder / "run.json").read_text())
        self.model = str(folder)
        return TrainingResult(record["result"]["last_loss"], str(folder), record)

    def evaluate(self, data: Any) -> EvalResult:
        """Measure the model on data, on the tokens that a training would learn.

        Args:
            data: a store, files, or a reference such as ``agent_sft:test``.

        Raises:
            EmptyResultError: nothing of it would be trained.
        """
        import torch

        work = Path(self.config.output_dir) / "inputs"
        work.mkdir(parents=True, exist_ok=True)
        store = Store.open(store_of_reference(data, work))
        settings = ModelSettings(model=self.model)
        model, _ = load_for_generation(settings)
        renderer = Renderer.load(self.model, max_length=self.config.max_seq_length)
        right = count = 0
        loss = 0.0
        for trajectory in store:
            for row in renderer.trajectory(trajectory).rows:
                ids = torch.tensor(row.input_ids[None].astype("int64"), device=model.device)
                labels = torch.tensor(row.labels.astype("int64"), device=model.device)[1:]
                with torch.inference_mode():
                    logits = model(input_ids=ids).logits[0, :-1].float()
                trained = labels != -100
                likely = logits[trained].log_softmax(-1)
                wanted = labels[trained]
                loss -= likely.gather(1, wanted[:, None]).sum().item()
                right += int((likely.argmax(-1) == wanted).sum())
                count += int(trained.sum())
        if not count:
            raise EmptyResultError(f"nothing of {data} would be trained, so nothing is measured")
        return EvalResult(right / count, loss / count, count)

    def save_model(self, path: str | PathLike[str]) -> None:
        """Copy the model to a folder that is not there yet.

        Raises:
            UsageError: nothing was trained or loaded.
            OutputExistsError: the folder is there.
        """
        if not Path(self.model).is_dir():
            raise UsageError("there is nothing to save; call train or load_model first")
        if Path(path).exists():
            raise OutputExistsError(f"{fspath(path)} is there already; name another folder")
        shutil.copytree(self.model, path)

    def load_model(self, path: str | PathLike[str]) -> None:
        """Take a model, or an adapter, from a folder.

        Raises:
            UsageError: it is no folder.
        """
        if not Path(path).is_dir():
            raise UsageError(f"{fspath(path)} is no folder of a model")
        self.model = fspath(path)
