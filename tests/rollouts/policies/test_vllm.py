"""The policy of vLLM as far as it goes without a GPU: versions, adapters, and what is refused.

The engine is a stand-in with the calls of vLLM 0.22; whatever it would compute is not tested.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from adp.rollouts.policies import vllm_limits
from adp.rollouts.policies.vllm import VllmPolicy, VllmSettings
from adp.rollouts.policies.vllm_limits import RANKS, check_version, room_for
from adp.rollouts.policy import InfrastructureError, Request
from adp_schema.errors import MissingExtraError, UsageError


def _adapter(folder: Path, **more: Any) -> str:
    plain = {"base_model_name_or_path": "tiny", "r": 8, "bias": "none", **more}
    (folder / "adapter_config.json").write_text(json.dumps(plain))
    return str(folder)


@pytest.mark.parametrize("rank", [1, 2, 8, 9, 16, 64, 65, 257, 320, 512])
def test_there_is_room_for_the_rank_of_the_adapter(tmp_path: Path, rank: int) -> None:
    room = room_for(_adapter(tmp_path, r=rank))
    assert room in RANKS
    assert room == min(known for known in RANKS if known >= rank)
    assert room_for(_adapter(tmp_path, r=1, rank_pattern={"q_proj": rank})) == room


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"r": 513}, "rank 513"),
        ({"use_dora": True}, "with DoRA"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"bias": "all"}, "with biases"),
    ],
)
def test_adapters_that_vllm_does_not_serve_are_refused(
    tmp_path: Path, more: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words) as error:
        room_for(_adapter(tmp_path, **more))
    assert "adp merge-adapter" in str(error.value)


def test_of_an_adapter_on_the_hub_nothing_is_known() -> None:
    assert room_for("someone/adapter") is None


@pytest.mark.parametrize(("text", "good"), [
    ("0.21.9", False), ("0.22.0", True), ("0.31.4.dev3+cu128", True), ("0.32.0", False),
    ("1.0.0", False),
])  # fmt: skip
def test_other_versions_are_refused(text: str, good: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_limits, "version", lambda name: text)
    if good:
        check_version()
        return
    with pytest.raises(UsageError, match=r"knows 0\.22 to 0\.31"):
        check_version()


def test_the_versions_are_those_of_the_extra() -> None:
    extras = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    line = next(line for line in extras.splitlines() if line.startswith("vllm = "))
    bounds = [".".join(map(str, bound)) for bound in (vllm_limits.FIRST, vllm_limits.LAST)]
    assert f">={bounds[0]},<={bounds[1]}" in line


def test_without_the_package_the_extra_is_named() -> None:
    pytest.importorskip("torch")
    if vllm_limits.version.__module__ and _is_installed():
        pytest.skip("vLLM is installed here")
    with pytest.raises(MissingExtraError, match="vllm"):
        check_version()


def _is_installed() -> bool:
    try:
        vllm_limits.version("vllm")
    except Exception:
        return False
    return True


class Engine:
    """Stands for vLLM's engine: it answers, or raises what it was told to."""

    model_config = SimpleNamespace(max_model_len=4096)

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.arguments = arguments
        self.errors: list[Exception | None] = []

    async def generate(self, *_words: Any, **_more: Any) -> AsyncIterator[Any]:
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error
        output = SimpleNamespace(token_ids=[1], logprobs=None, finish_reason="stop")
        yield SimpleNamespace(outputs=[output])

    def shutdown(self) -> None:
        """Nothing is there to end."""


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[Engine]:
    """The engines that were made."""
    made: list[Engine] = []

    def of_arguments(arguments: dict[str, Any]) -> Engine:
        made.append(Engine(arguments))
        return made[-1]

    modules: dict[str, dict[str, Any]] = {
        "vllm": {"SamplingParams": lambda **given: given},
        "vllm.engine": {},
        "vllm.engine.arg_utils": {"AsyncEngineArgs": lambda **given: given},
        "vllm.lora": {},
        "vllm.lora.request": {"LoRARequest": lambda *given: given},
        "vllm.v1": {},
        "vllm.v1.engine": {},
        "vllm.v1.engine.async_llm": {
            "AsyncLLM": SimpleNamespace(from_engine_args=of_arguments),
        },
        "vllm.sampling_params": {"RequestOutputKind": SimpleNamespace(FINAL_ONLY=2)},
    }
    for name, values in modules.items():
        module = ModuleType(name)
        vars(module).update(values)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(vllm_limits, "version", lambda name: "0.22.0")
    return made


def _ask(policy: VllmPolicy) -> Any:
    return asyncio.run(policy.act(Request([{"role": "user", "content": "hi"}], [])))


@pytest.mark.train
def test_the_engine_is_told_the_rank_of_the_adapter(engines: list[Engine], tmp_path: Path) -> None:
    VllmPolicy(VllmSettings.model_validate({"model": _adapter(tmp_path, r=64)}))
    assert engines[0].arguments["max_lora_rank"] == 64
    assert engines[0].arguments["enable_lora"]
    VllmPolicy(VllmSettings.model_validate({"model": "tiny"}))
    assert not {"max_lora_rank", "enable_lora"} & set(engines[1].arguments)


@pytest.mark.train
def test_what_the_engine_refuses_at_once_stops_the_run(engines: list[Engine]) -> None:
    policy = VllmPolicy(VllmSettings.model_validate({"model": "tiny"}))
    engines[0].errors = [ValueError("LoRA rank 64 is greater than max_lora_rank 16.")]
    with pytest.raises(UsageError, match="vLLM refuses to write with tiny: LoRA rank 64"):
        _ask(policy)
    _ask(policy)
    engines[0].errors = [RuntimeError("the engine died")]
    with pytest.raises(InfrastructureError, match="vLLM failed: the engine died"):
        _ask(policy)
