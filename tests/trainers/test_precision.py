"""The number format of a training: chosen by what the machine can do, said, and kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adp.trainers import precision
from adp.trainers.config import TrainConfig
from adp.trainers.incompatible import faults
from adp.trainers.machine import Machine
from adp.trainers.metrics import Metrics
from adp.trainers.precision import Precision, bf16_is_native, choose
from adp.trainers.run import TrainOptions, train
from adp_schema.errors import TrainingError
from adp_schema.store import Store
from tests.trainers.small_runs import config_of, losses_of, write_runs

pytestmark = [
    pytest.mark.train,
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning:(torch|transformers|peft|trl|accelerate)"
    ),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return write_runs(tmp_path_factory.mktemp("runs") / "store", 4)


def _machine(monkeypatch: pytest.MonkeyPatch, native: bool) -> None:
    monkeypatch.setattr(precision, "bf16_is_native", lambda device: native)


def _config(**training: Any) -> TrainConfig:
    return TrainConfig.model_validate({"data": "s", "training": {"use_cpu": True, **training}})


@pytest.mark.parametrize(
    ("training", "native", "compute", "weights", "message"),
    [
        ({}, True, "bfloat16", None, "training in bfloat16"),
        ({}, False, "float32", "float32",
         "bf16 is emulated on this processor: training in float32"),
        ({"bf16": None}, False, "float32", "float32",
         "bf16 is emulated on this processor: training in float32"),
        ({"bf16": "auto"}, True, "bfloat16", None, "training in bfloat16"),
        ({"bf16": False}, True, "float32", None, "training in float32"),
        ({"bf16": False}, False, "float32", "float32", "training in float32"),
        ({"bf16": True}, True, "bfloat16", None, "training in bfloat16"),
        ({"bf16": True}, False, "bfloat16", None,
         "warning: bf16 is emulated on this processor, which takes two to seven times as long"),
        ({"fp16": True}, False, "float16", None, "training in float16"),
    ],
)  # fmt: skip
def test_the_choice(
    monkeypatch: pytest.MonkeyPatch,
    training: dict[str, Any],
    native: bool,
    compute: str,
    weights: str | None,
    message: str,
) -> None:
    _machine(monkeypatch, native)
    result = choose(_config(**training))
    assert (result.compute, result.weights) == (compute, weights)
    assert result.sentence().startswith(message)
    assert "\n" not in result.sentence()
    assert Precision.from_plain(json.loads(json.dumps(result.plain()))) == result
    # What was chosen once is chosen again, also where the machine is another one.
    exact = result.applied(_config(**training))
    _machine(monkeypatch, not native)
    assert choose(exact).compute == compute


def test_weights_of_16_bits_are_emulated_too(monkeypatch: pytest.MonkeyPatch) -> None:
    _machine(monkeypatch, False)
    asked = _config().model_copy(update={"model": _config().model.model_copy(
        update={"dtype": "bfloat16"})})  # fmt: skip
    result = choose(asked)
    assert result.applied(asked).model.dtype == "bfloat16"
    assert result.sentence().startswith("warning: bf16 is emulated on this processor")
    assert choose(_config()).applied(_config()).model.dtype == "float32"


@pytest.mark.parametrize(
    ("machine", "answers", "native"),
    [
        ("x86_64", {"_is_avx512_bf16_supported": True}, True),
        ("x86_64", {"_is_amx_tile_supported": True}, True),
        # oneDNN says yes on all of AVX-512, and emulates it: more than twice the time of float32.
        ("x86_64", {"_is_mkldnn_bf16_supported": True}, False),
        ("AMD64", {}, False),
        ("aarch64", {"_is_mkldnn_bf16_supported": True}, True),
        ("arm64", {}, False),
    ],
)
def test_what_a_processor_can(
    monkeypatch: pytest.MonkeyPatch, machine: str, answers: dict[str, bool], native: bool
) -> None:
    import platform

    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(precision, "_probe", lambda owner, name: answers.get(name, False))
    assert bf16_is_native("cpu") is native


def test_a_build_of_torch_without_the_question_has_no_bf16() -> None:
    assert precision._probe(object(), "_is_avx512_bf16_supported") is False


def test_this_processor_is_what_it_says() -> None:
    cpuinfo = Path("/proc/cpuinfo")
    if not cpuinfo.exists():
        pytest.skip("there is no /proc/cpuinfo")
    flags = next(
        (line for line in cpuinfo.read_text().splitlines() if line.startswith("flags")), None
    )
    if flags is None:
        pytest.skip("/proc/cpuinfo has no flags, as on ARM")
    words = set(flags.split())
    assert bf16_is_native("cpu") is bool({"avx512_bf16", "amx_tile"} & words)


def test_tf32_is_for_gpus_that_have_it() -> None:
    given = {"data": "s", "render": {"max_length": 512}, "training": {"tf32": True}}
    config = TrainConfig.model_validate(given)
    for machine in (Machine(), Machine(gpus=1)):
        (output,) = faults(config, machine)
        assert "TF32" in output
    assert list(faults(config, Machine(gpus=1, tf32=True))) == []


@pytest.mark.parametrize("native", [True, False])
def test_the_training_computes_in_it_and_the_record_says_so(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, native: bool
) -> None:
    seen = _formats(monkeypatch)
    exact = train(config_of(store, training__max_steps=1), tmp_path / "float32")
    assert set(seen) == {"torch.float32"}
    assert exact.record is not None
    assert exact.record["precision"]["compute"] == "float32"
    seen.clear()
    _machine(monkeypatch, native)
    done = train(config_of(store, training__max_steps=1, training__bf16="auto"), tmp_path / "auto")
    assert done.record is not None
    assert done.record["precision"]["compute"] == ("bfloat16" if native else "float32")
    assert done.record["precision"]["bf16_native"] is native
    assert set(seen) == {"torch.bfloat16" if native else "torch.float32"}
    same = losses_of(tmp_path / "auto") == losses_of(tmp_path / "float32")
    assert same is not native


def _formats(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The number formats of the products of a training, as they are computed."""
    import torch

    seen: list[str] = []
    linear = torch.nn.functional.linear

    def noted(*given: Any, **named: Any) -> Any:
        result = linear(*given, **named)
        seen.append(str(result.dtype))
        return result

    monkeypatch.setattr(torch.nn.functional, "linear", noted)
    return seen


@pytest.mark.slow
def test_a_resumed_run_keeps_its_format_on_another_machine(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of(
        store,
        training__bf16="auto",
        training__max_steps=3,
        training__save_strategy="steps",
        training__save_steps=1,
    )

    def stop(self: Any, args: Any, state: Any, control: Any, **more: Any) -> None:
        if state.global_step == 2:
            raise RuntimeError("stopped")

    _machine(monkeypatch, True)
    with monkeypatch.context() as patch:
        patch.setattr(Metrics, "on_step_end", stop)
        with pytest.raises(TrainingError, match="stopped"):
            train(config, tmp_path / "out")
    _machine(monkeypatch, False)
    done = train(config, tmp_path / "out", TrainOptions(resume=True))
    assert done.record is not None
    assert done.record["precision"]["compute"] == "bfloat16"
