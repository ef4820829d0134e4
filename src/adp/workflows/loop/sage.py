"""SAGE's configurations as loops: what they select, mix, replay and train, and their pipeline.

``AgentSFTConfig`` becomes two stages, curate and train. ``TrainingPipelineConfig`` becomes the
stages of the shipped loop ``sage`` that it switches on. Each setting is mapped, and said.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adp.core.config_mapping import Left, Mapped, MappedConfig
from adp.core.yaml_text import parse_yaml
from adp.trainers.config_file import load_config
from adp.trainers.readers.sage import SELECTION, is_sage, read_sage
from adp.trainers.readers.sage_rl import is_sage_rl, read_sage_rl
from adp.workflows.loop.shipped import loop_path
from adp_schema.errors import UsageError

KIND = """coalesce(json_extract_string(extra, '$.task_type'), CASE
  WHEN (SELECT count(DISTINCT c.name) FROM tool_calls c WHERE c.seq = pool.seq) >= 3
    OR (SELECT count(*) FROM steps s WHERE s.seq = pool.seq AND s.source IN ('user', 'agent')) >= 8
    THEN 'multi_step_planning'
  WHEN EXISTS (SELECT 1 FROM steps s WHERE s.seq = pool.seq AND s.source = 'user'
    AND regexp_matches(lower(s.text), 'search|find|retrieve')) THEN 'tool_retrieval'
  WHEN EXISTS (SELECT 1 FROM steps s WHERE s.seq = pool.seq AND s.source = 'agent'
    AND regexp_matches(lower(s.text), 'if|when|wait|check|condition')) THEN 'timing_decision'
  ELSE 'tool_selection' END)"""
"""SAGE's kinds of tasks, by its rules for dialogs."""

SWITCHES = ("run_warmup", "run_sft", "run_rl", "run_eval")
_ON = {"run_warmup": False, "run_sft": True, "run_rl": True, "run_eval": True}
_NAMES = {"run_warmup": "warm-up", "run_sft": "SFT", "run_rl": "RL", "run_eval": "evaluation"}
_STAGES: Mapping[str, Sequence[str]] = {
    "run_warmup": ("warmup_data", "warmup"),
    "run_sft": ("sft_data", "sft"),
    "run_rl": ("attempts", "pairs", "dpo", "grpo"),
    "run_eval": ("before", "after_sft", "after_rl"),
}
"""Switch -> its stages in the loop ``sage``."""

_SECTIONS = ("sft", "rl", "reward")

LENGTH = 4096
"""Tokens of a row when the file says none, as in SAGE's code."""


@dataclass
class ForeignLoop:
    """A configuration of another system as a loop.

    Attributes:
        plain: the loop, as it stands in a file.
        settings: changes of the call that are left to the loop.
        lines: what was mapped to what, for people.
    """

    plain: dict[str, Any]
    settings: list[str]
    lines: list[str] = field(default_factory=list)


def read_foreign_loop(path: Path, settings: Sequence[str] = ()) -> ForeignLoop | None:
    """Read a file as a configuration of SAGE.

    Args:
        path: the file.
        settings: changes of the call; ``data=STORE`` names what is trained on.

    Returns:
        The loop; None when the file is none of SAGE's.

    Raises:
        UsageError: it cannot be read, asks for what there is not, or ``data`` is missing.
    """
    given = load_config(path)
    if "loop" in given:
        return None
    if any(name in given for name in SWITCHES):
        return _pipeline(given, list(settings))
    if not is_sage(given):
        return None
    data, rest = _data(given, settings)
    sft = _sft(given, measured="eval" in data)
    if sft.replays:
        data, rest = {**data, "buffer": _taken(rest, "buffer")}, _without(rest, "buffer")
    plain = {"loop": 1, "name": path.stem, "about": "SAGE's AgentSFTConfig: select, then train.",
             "model": sft.model, "rounds": {"stages": _sft_stages(sft, data)}}  # fmt: skip
    return ForeignLoop(plain, rest, sft.mapped.lines())


# ---- AgentSFTConfig -----------------------------------------------------------------------------


@dataclass
class _Sft:
    """An ``AgentSFTConfig``: its ops, its training, its model."""

    mapped: MappedConfig
    ops: list[dict[str, Any]]
    model: str

    @property
    def replays(self) -> bool:
        return any("replay" in op for op in self.ops)


def _sft(given: Mapping[str, Any], *, measured: bool = False) -> _Sft:
    if not given.keys() & {"max_length", "max_seq_length"}:
        given = {**given, "max_length": LENGTH}
    mapped = read_sage(given)
    plain = mapped.plain
    model = plain.pop("model", {}).pop("model_name_or_path", "tiny")
    kept = {name: value for name, value in mapped.plain.items() if name != "output_dir"}
    mapped.plain = kept
    data = kept.get("data")
    if isinstance(data, dict):  # max_train_samples counts trajectories, as SAGE does
        data.pop("max_rows", None)
    mapped.mapped = [item for item in mapped.mapped if item.name not in (*SELECTION, "output_dir")]
    mapped.left = [item for item in mapped.left if item.name not in SELECTION]
    if not measured:
        _measure_nothing(mapped)
    if "output_dir" in given:
        mapped.left.append(Left("output_dir", given["output_dir"], "-o says where it goes"))
    return _Sft(mapped, _ops(given, mapped), str(model))


_MEASURED = {"training.eval_strategy", "training.eval_steps", "training.other"}


def _measure_nothing(mapped: MappedConfig) -> None:
    """Without a store to measure on there is no best model, and nothing to measure."""
    why = "nothing is measured while it trains; --set eval_data=STORE names what is"
    gone = [item for item in mapped.mapped if _MEASURED & set(item.to)]
    mapped.mapped = [item for item in mapped.mapped if item not in gone]
    mapped.left += [Left(item.name, item.value, why) for item in gone]
    for path in _MEASURED:
        mapped.plain.get("training", {}).pop(path.partition(".")[2], None)


def _ops(given: Mapping[str, Any], mapped: MappedConfig) -> list[dict[str, Any]]:
    """The ops that select, mix and replay, in SAGE's order; and what they come of."""
    ops: list[dict[str, Any]] = []

    def say(name: str, path: str, value: Any, note: str = "") -> None:
        if name in given:
            to = {f"curate.{path}": value}
            mapped.mapped.append(Mapped(name, given[name], to, note))

    def leave(name: str, why: str) -> None:
        if name in given:
            mapped.left.append(Left(name, given[name], why))

    total, weights = given.get("max_train_samples"), given.get("task_weights")
    if total is None:
        leave("max_train_samples", "all are taken")
        leave("task_weights", "without max_train_samples they change the order alone")
    elif weights:
        mix = {"by": KIND, "method": "weighted", "weights": dict(weights), "total": total}
        ops.append({"mix": {**mix, "compat": "sage"}})
        say("max_train_samples", "mix.total", total)
        say("task_weights", "mix.weights", dict(weights), "by SAGE's rules for kinds of tasks")
    else:
        ops.append({"coreset": {"method": "random", "size": total, "coverage": False},
                    "as": "taken"})  # fmt: skip
        say("max_train_samples", "coreset.size", total, "at random")
    if given.get("use_coreset_selection"):
        method = given.get("coreset_strategy", "loss_topk")
        size = given.get("coreset_target_size")
        ops.append({"coreset": {"method": method, "size": size, "compat": "sage",
                                "coverage": False}})  # fmt: skip
        say("use_coreset_selection", "coreset.compat", "sage")
        say("coreset_strategy", "coreset.method", method)
        say("coreset_target_size", "coreset.size", size, "" if size else "all are kept")
        leave("coreset_metric_key", "losses are SAGE's stand-in from the text; "
                                    "coreset.by names a column of a model's")  # fmt: skip
    else:
        for name in SELECTION[2:6]:
            leave(name, "use_coreset_selection is off")
    if given.get("use_online_continual"):
        size, ratio = given.get("continual_buffer_size", 2048), given.get(
            "continual_replay_ratio", 0.25)  # fmt: skip
        ops.append({"replay": {"size": size, "ratio": ratio, "policy": "coreset",
                               "compat": "sage"}})  # fmt: skip
        note = (
            "--set buffer=STORE names the buffer of the run before: round-1/data/buffer of its -o"
        )
        say("use_online_continual", "replay.compat", "sage", note)
        say("continual_buffer_size", "replay.size", size)
        say("continual_replay_ratio", "replay.ratio", ratio)
    else:
        for name in SELECTION[6:]:
            leave(name, "use_online_continual is off")
    return ops


def _data(given: Mapping[str, Any], settings: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """The stores that a call or the file names."""
    named = _taken(settings, "data")
    if named is None:
        named = given.get("train_data")
        if not isinstance(named, str) or not Path(named).exists():
            raise UsageError("say what is trained on: --set data=STORE; adp convert makes a store "
                             "of SAGE's files")  # fmt: skip
    held = _taken(settings, "eval_data")
    data = {"data": str(Path(str(named)).absolute())}
    if held is not None:
        data["eval"] = str(Path(str(held)).absolute())
    return data, _without(_without(settings, "data"), "eval_data")


def _taken(settings: Sequence[str], name: str) -> Any:
    texts = [text.partition("=")[2] for text in settings if text.partition("=")[0] == name]
    return parse_yaml(texts[-1], f"--set {name}", "loop") if texts else None


def _without(settings: Sequence[str], name: str) -> list[str]:
    return [text for text in settings if text.partition("=")[0] != name]


def _sft_stages(sft: _Sft, data: Mapping[str, Any]) -> list[dict[str, Any]]:
    config = copy.deepcopy(sft.mapped.plain)
    config.pop("method", None)
    if "eval" in data:
        config["data"] = {**config.get("data", {}), "eval_store": data["eval"]}
    if not sft.ops:
        return [{"train": {"method": "sft", "store": data["data"], "config": config}}]
    inputs: dict[str, Any] = {"data": data["data"]}
    if sft.replays:
        buffer = data.get("buffer")
        place = "round-1/no-buffer" if buffer is None else str(Path(str(buffer)).absolute())
        inputs["buffer"] = {"store": place, "reserve": True, "optional": buffer is None}
    return [
        {"curate": {"recipe": {"inputs": inputs, "ops": sft.ops}}, "as": "data"},
        {"train": {"method": "sft", "store": "${data}", "config": config}},
    ]


# ---- TrainingPipelineConfig ---------------------------------------------------------------------


def _pipeline(given: Mapping[str, Any], settings: list[str]) -> ForeignLoop:
    """The stages of the loop ``sage`` that a pipeline switches on, with its settings."""
    plain = load_config(loop_path("sage"))
    sections = {name: _section(given, name) for name in _SECTIONS}
    lines = []
    algorithm = str(sections["rl"].get("algorithm", "dpo"))
    off = {"grpo"} if algorithm == "dpo" else {"attempts", "pairs", "dpo"}
    for switch in SWITCHES:
        on = bool(given.get(switch, _ON[switch]))
        stages = ", ".join(stage for stage in _STAGES[switch] if stage not in off)
        if switch in given:
            left = "" if on else " are left out"
            lines.append(f"{switch} = {str(on).lower()} -> {_NAMES[switch]}: {stages}{left}")
        off |= set() if on else set(_STAGES[switch])
    if sections["sft"]:
        lines += _with_sft(plain, sections["sft"])
    if sections["rl"]:
        lines += _with_rl(plain, {"algorithm": algorithm, **sections["rl"]}, algorithm)
    if sections["reward"]:
        lines.append("reward_config -> nothing: the environment says what is right; adp train "
                     "reward trains a model of rewards")  # fmt: skip
    stages = plain["rounds"][0]["stages"]
    plain["rounds"][0]["stages"] = [stage for stage in stages if stage.get("as") not in off]
    if not any("train" in stage for stage in plain["rounds"][0]["stages"]):
        raise UsageError("run_warmup, run_sft and run_rl are all off; switch one of them on")
    if isinstance(given.get("experiment_name"), str):
        plain["name"] = given["experiment_name"]
        lines.append(f"experiment_name = {given['experiment_name']} -> name")
    known = {*SWITCHES, "experiment_name", *_SECTIONS, *(f"{name}_config" for name in _SECTIONS)}
    lines += [f"{name} -> nothing: it is not known" for name in given if name not in known]
    return ForeignLoop(plain, settings, lines)


def _section(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = given.get(f"{name}_config", given.get(name))
    if value is not None and not isinstance(value, Mapping):
        raise UsageError(f"{name}_config takes settings by name, not {value!r}")
    return dict(value or {})


def _with_sft(plain: dict[str, Any], section: dict[str, Any]) -> list[str]:
    sft = _sft({"base_model": plain["model"], **section})
    plain["model"] = sft.model
    for stage in plain["rounds"][0]["stages"]:
        if stage.get("as") == "sft_data" and sft.ops:
            recipe = stage["curate"]["recipe"]
            recipe["ops"] = [*recipe["ops"], *sft.ops]
            if sft.replays:
                recipe["inputs"]["buffer"] = {"store": "round-1/no-buffer", "reserve": True,
                                              "optional": True}  # fmt: skip
        if stage.get("as") == "sft":
            config = {name: value for name, value in sft.mapped.plain.items() if name != "method"}
            stage["train"]["config"] = _merged(stage["train"]["config"], config)
    return [f"sft_config.{line}" for line in sft.mapped.lines()]


def _with_rl(plain: dict[str, Any], section: dict[str, Any], algorithm: str) -> list[str]:
    if not is_sage_rl(section):
        raise UsageError(f"rl_config.algorithm takes dpo or grpo, not {algorithm}")
    rl = read_sage_rl(section)
    number = section.get("num_samples_per_prompt")
    if number is not None:
        plain["variables"]["samples"] = number
        rl.left = [item for item in rl.left if item.name != "num_samples_per_prompt"]
        rl.mapped.append(Mapped("num_samples_per_prompt", number, {"attempts.n": number}))
    for stage in plain["rounds"][0]["stages"]:
        if stage.get("as") == algorithm:
            config = {name: value for name, value in rl.plain.items()
                      if name not in ("method", "output_dir", "model")}  # fmt: skip
            stage["train"]["config"] = _merged(stage["train"]["config"], config)
    return [f"rl_config.{line}" for line in rl.lines()]


def _merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a configuration over those of another."""
    result = dict(first)
    for name, value in second.items():
        old = result.get(name)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        result[name] = _merged(old, value) if both else value  # type: ignore[arg-type]
    return result
