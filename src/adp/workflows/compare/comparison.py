"""What is compared, and the loop that does it.

Nothing here runs: methods, data and seeds become stages of one loop (`adp.workflows.loop`), in
which what has the same recipe and the same data is one stage. So each stage is done once, a call
that was stopped goes on, and methods may be added later.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adp.trainers.config import TINY, TrainConfig
from adp.trainers.config_file import read_config
from adp.workflows.methods import MethodFile
from adp_schema.errors import UsageError, unknown_name
from adp_schema.ids import digest
from adp_schema.store import Store

NO_BUFFER = "round-1/no-buffer"
"""The replay buffer of a first part, which is not there."""

MOST_SEEDS = 100
"""Seeds, at most."""

_PART = "CAST(concat('0x', substr(md5(coalesce(task, trajectory_id)), 1, 8)) AS UBIGINT) % {} = {}"
"""Which part a trajectory comes with: by its task, whatever else there is."""


@dataclass(frozen=True)
class Measurement:
    """How the trained models are measured: by a suite, or by the loss on a store.

    Attributes:
        suite: name or file of a suite, or what stands in one.
        store: a store; the loss on it is measured.
        options: further options of the stage eval: env, tasks, n, limit.
        policy: settings of the policy that acts, besides its model: name, max_tokens, ...
    """

    suite: str | Mapping[str, Any] | None = None
    store: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    policy: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.suite is None) == (self.store is None):
            raise UsageError("measure by a suite, or by the loss on a store: give one of the two")
        if self.store is not None and (self.options or self.policy):
            raise UsageError("environment, tasks and policy belong to a suite; on a store the loss "
                             "is measured")  # fmt: skip


@dataclass(frozen=True)
class MethodComparison:
    """What is compared.

    Attributes:
        methods: the methods.
        data: the store that all of them begin with.
        measured: how the trained models are measured.
        model: a folder, a name on the Hub, or tiny.
        seeds: how many seeds there are, from 0.
        baseline: the method that the others are compared with; None: the first one.
        equal_tokens: train all methods on as many tokens under the loss as the baseline.
        tokens: train all methods on so many.
        changes: changes of every training, each ``PATH=VALUE``.
    """

    methods: tuple[MethodFile, ...]
    data: str
    measured: Measurement
    model: str = TINY
    seeds: int = 1
    baseline: str | None = None
    equal_tokens: bool = False
    tokens: int | None = None
    changes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [method.name for method in self.methods]
        if not names:
            raise UsageError("name methods to compare; adp methods lists some")
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"two methods are called {name}; give one of them another name")
        if self.baseline is not None and self.baseline not in names:
            raise UsageError(unknown_name("method", self.baseline, names))
        if not 1 <= self.seeds <= MOST_SEEDS:
            raise UsageError(f"there can be 1 to {MOST_SEEDS} seeds, not {self.seeds}")
        if self.tokens is not None and self.tokens < 1:
            raise UsageError("the tokens have to be 1 or more")
        for method in self.methods:
            if method.trains != "sft" and (self.equal_tokens or self.tokens is not None):
                raise UsageError(f"{method.name} trains by {method.trains}; only sft counts tokens")

    @property
    def first(self) -> MethodFile:
        """The baseline."""
        wanted = self.baseline or self.methods[0].name
        return next(method for method in self.methods if method.name == wanted)


@dataclass(frozen=True)
class PlannedRun:
    """The stages of one method with one seed, by their keys.

    Attributes:
        method: its name.
        seed: its seed.
        stores: where the data of each part lie, from the folder of the loop.
        trains: train stages, a stage a part.
        measured: the stage eval; None: the loss on a store is measured.
        config: the configuration of the trainings.
        shared: stages that other runs may have, too.
    """

    method: str
    seed: int
    stores: tuple[str, ...]
    trains: tuple[str, ...]
    measured: str | None
    config: TrainConfig
    shared: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """All its stages."""
        last = () if self.measured is None else (self.measured,)
        return (*self.shared, *self.trains, *last)


@dataclass
class LoopBuilder:
    """Makes the loop of a comparison.

    Attributes:
        comparison: what is compared.
        tokens: tokens under the loss of each training, by method; others go by their epochs.
    """

    comparison: MethodComparison
    tokens: Mapping[str, int] = field(default_factory=dict)
    stages: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        place = Path(self.comparison.data).absolute()
        Store.open(str(place))
        self._data = str(place)

    def file(self) -> dict[str, Any]:
        """The file of the loop, with the stages of the runs that were added."""
        model = self.comparison.model
        place = Path(model).expanduser()
        if model != TINY and place.is_dir():
            model = str(place.absolute())
        stages = [{**stage, "as": label} for label, stage in self.stages.items()]
        return {"loop": 1, "name": "comparison", "model": model, "rounds": {"stages": stages}}

    def add(self, method: MethodFile, seed: int) -> PlannedRun:
        """Add the stages of a method with a seed.

        Raises:
            UsageError: something in its training is wrong.
        """
        config, changes = self._config(method, seed)
        kind = "adapter" if config.lora is not None else "model"
        stores: list[str] = []
        trains: list[str] = []
        shared: list[str] = []
        model, buffer = "base", NO_BUFFER
        for part in range(method.parts):
            source = self._part(method.parts, part, shared)
            store, buffer = self._curated(method, seed, source, buffer, shared)
            label = f"{method.name}-s{seed}" + (f"-part{part + 1}" if method.parts > 1 else "")
            train = {"method": config.method, "store": store, "model": model,
                     "config": self._plain(method, seed), "set": list(changes)}  # fmt: skip
            self.stages[label] = {"train": train}
            model = f"${{{label}}}/{kind}"
            stores.append(store)
            trains.append(_key(label))
        measured = self._measured(f"{method.name}-s{seed}-eval", model)
        places = tuple(store.replace("${", "round-1/").replace("}", "") for store in stores)
        return PlannedRun(
            method.name, seed, places, tuple(trains), measured, config, tuple(shared)
        )  # fmt: skip

    def _config(self, method: MethodFile, seed: int) -> tuple[TrainConfig, tuple[str, ...]]:
        changes = list(self.comparison.changes)
        if method.name in self.tokens:
            a_part = -(-self.tokens[method.name] // method.parts)
            changes += [f"data.trained_tokens={a_part}", "training.num_train_epochs=1",
                        "training.max_steps=-1"]  # fmt: skip
        try:
            return read_config(self._plain(method, seed), changes)[0], tuple(changes)
        except UsageError as error:
            raise UsageError(f"{method.name}: {error}") from None

    def _plain(self, method: MethodFile, seed: int) -> dict[str, Any]:
        """The configuration of a method, with what the comparison knows."""
        plain = json.loads(json.dumps(method.training))
        for section in ("model", "data"):
            if section in plain and not isinstance(plain[section], dict):
                raise UsageError(f"{method.name}: leave out {section}; the call names it")
        plain.setdefault("training", {})
        if not isinstance(plain["training"], dict):
            raise UsageError(f"{method.name}: training.training takes settings by name")
        plain["training"].setdefault("seed", seed)
        if self.comparison.measured.store is not None:
            store = str(Path(self.comparison.measured.store).absolute())
            plain["data"] = {**plain.get("data", {}), "eval_store": store}
        return dict(plain)

    def _part(self, parts: int, part: int, shared: list[str]) -> str:
        """The store with a part of the data."""
        if parts == 1:
            return self._data
        label = f"parts-{parts}"
        outputs = {f"part-{n + 1}": {"where": _PART.format(parts, n)} for n in range(parts)}
        recipe = {"inputs": {"data": self._data}, "outputs": outputs, "seed": 0}
        self.stages[label] = {"curate": {"recipe": recipe}}
        shared.append(_key(label))
        return f"${{{label}}}/part-{part + 1}"

    def _curated(
        self, method: MethodFile, seed: int, source: str, buffer: str, shared: list[str]
    ) -> tuple[str, str]:
        """The store that is trained on, and the replay buffer afterwards."""
        if not method.ops and "outputs" not in method.recipe:
            return source, buffer
        inputs: dict[str, Any] = {"data": source}
        if method.replays:
            inputs["buffer"] = {"store": buffer, "reserve": True, "optional": True}
        recipe = {"seed": seed, **method.recipe, "inputs": inputs}
        text = json.dumps(recipe, sort_keys=True, default=str).replace(self._data, "data")
        label = f"data-{digest(text.encode())[:12]}"
        self.stages[label] = {"curate": {"recipe": recipe}}
        shared.append(_key(label))
        outputs = method.recipe.get("outputs") or {"": None}
        name = next(iter(outputs))
        return f"${{{label}}}" + (f"/{name}" if name else ""), f"${{{label}}}/buffer"

    def _measured(self, label: str, model: str) -> str | None:
        measured = self.comparison.measured
        if measured.suite is None:
            return None
        suite = measured.suite
        if isinstance(suite, str) and Path(suite).is_file():
            suite = str(Path(suite).absolute())
        policy = {"name": "transformers", **measured.policy, "model": model}
        self.stages[label] = {"eval": {"suite": suite, "policy": policy, **measured.options}}
        return _key(label)


def _key(label: str) -> str:
    return f"round-1.{label}"
