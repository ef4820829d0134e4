"""A model in this process, by vLLM, which batches what many episodes ask for.

    vllm:model=Qwen/Qwen3-8B,max_tokens=512,temperature=0.7

Prompts are written, and answers are read, as by the policy ``transformers``; vLLM only writes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from adp.rendering.model import load_tokenizer, stop_ids
from adp.rollouts.policies.entropy import top_entropy
from adp.rollouts.policies.loading import places
from adp.rollouts.policies.names import model_name
from adp.rollouts.policies.prompts import Generated, Prompter
from adp.rollouts.policies.settings import InProcessSettings, free
from adp.rollouts.policies.vllm_limits import check_version, room_for
from adp.rollouts.policy import InfrastructureError, PolicyKind, Request
from adp.rollouts.turns import Turn
from adp_schema.errors import UsageError
from adp_schema.model import Task


class VllmSettings(InProcessSettings):
    """Settings of the policy ``vllm``."""

    gpu_memory_utilization: float = free(0.9, gt=0, le=1)
    """Share of the GPU's memory that vLLM takes."""
    tensor_parallel_size: int = free(1, ge=1)
    """GPUs that share the model."""
    engine: dict[str, Any] = Field(default_factory=dict)
    """Further arguments of vLLM's AsyncEngineArgs, such as {enforce_eager: true}."""


class VllmPolicy:
    """A model in vLLM's engine. It serves one event loop.

    Args:
        settings: its settings.

    Attributes:
        name: name of the model.
        vocabulary: how many tokens the tokenizer knows.

    Raises:
        MissingExtraError: vLLM is not installed.
        UsageError: vLLM cannot load the model, or a setting is not for it.
    """

    def __init__(self, settings: VllmSettings) -> None:
        check_version()
        try:
            from vllm import SamplingParams
            from vllm.engine.arg_utils import AsyncEngineArgs
            from vllm.lora.request import LoRARequest
            from vllm.v1.engine.async_llm import AsyncLLM
        except ImportError as error:
            # It is there, in the right version, and does not load: CUDA, or torch of another kind.
            raise UsageError(
                f"vLLM is installed and cannot be loaded: {error}; install it anew for this "
                "machine, or serve the model and use the policy openai"
            ) from error
        if settings.device is not None or settings.attn_implementation is not None:
            raise UsageError(
                "vLLM chooses device and attention itself; give what it takes as engine"
            )
        self.name = model_name(settings.model)
        self._settings = settings
        self._params = SamplingParams
        base, adapter = places(settings)
        tokenizer = load_tokenizer(
            settings.tokenizer or base,
            trust_remote_code=settings.trust_remote_code,
            revision=settings.revision if settings.tokenizer is None else None,
        )
        self.vocabulary = len(tokenizer)
        self._prompter = Prompter(tokenizer, settings, stop_ids(base))
        try:
            given = _engine_arguments(settings, base, adapter)
            self._engine: Any = AsyncLLM.from_engine_args(AsyncEngineArgs(**given))
        except (TypeError, ValueError, OSError, RuntimeError) as error:
            message = " ".join(str(error).split())[:300]
            raise UsageError(f"vLLM cannot load {base}: {message}") from error
        self._prompter.context = self._engine.model_config.max_model_len
        self._adapter = LoRARequest("adapter", 1, adapter) if adapter is not None else None
        self._numbers = itertools.count()
        self._answered = False

    async def act(self, request: Request) -> Turn:
        """The model's turn.

        Raises:
            UsageError: the model's template cannot write tools, or the engine refuses the very
                first request.
            AgentLimitError: the conversation fills the model's context.
            InfrastructureError: the engine failed.
        """
        from vllm.sampling_params import RequestOutputKind

        settings = self._settings
        prompt = self._prompter.prompt(request)
        sampling = self._params(
            temperature=settings.temperature,
            top_p=settings.top_p,
            top_k=settings.top_k,
            max_tokens=self._prompter.longest(prompt),
            seed=request.seed,
            stop_token_ids=sorted(self._prompter.ends),
            logprobs=settings.entropies or (0 if settings.logprobs else None),
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        last = None
        try:
            async for item in self._engine.generate(
                {"prompt_token_ids": list(prompt.ids)},
                sampling,
                f"turn-{next(self._numbers)}",
                lora_request=self._adapter,
            ):
                last = item
        except Exception as error:
            # The engine lives in another process and raises what it likes.
            message = " ".join(str(error).split())[:300] or repr(error)
            if not self._answered:
                # What it refuses before it ever answered, it refuses every time.
                raise UsageError(
                    f"vLLM refuses to write with {self._settings.model}: {message}"
                ) from error
            raise InfrastructureError("engine", f"vLLM failed: {message}") from error
        if last is None or last.outputs[0].finish_reason not in ("stop", "length"):
            raise InfrastructureError("engine", "vLLM gave no answer")
        self._answered = True
        return self._prompter.turn(request, prompt, _generated(last, settings.entropies))

    def remarks(self, tasks: Sequence[Task]) -> list[str]:
        """What the chat template dropped from prompts; see `Prompter.remarks`."""
        return self._prompter.remarks()

    async def close(self) -> None:
        """Stop the engine."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.shutdown()


def _engine_arguments(settings: VllmSettings, base: str, adapter: str | None) -> dict[str, Any]:
    given: dict[str, Any] = {
        "model": base,
        "tokenizer": settings.tokenizer,
        "revision": settings.revision,
        "dtype": settings.dtype,
        "trust_remote_code": settings.trust_remote_code,
        "max_model_len": settings.context_length,
        "gpu_memory_utilization": settings.gpu_memory_utilization,
        "tensor_parallel_size": settings.tensor_parallel_size,
        "enable_lora": True if adapter is not None else None,
        "max_lora_rank": None if adapter is None else room_for(adapter),
        "disable_log_stats": True,
    }
    return {key: value for key, value in given.items() if value is not None} | settings.engine


def _generated(value: Any, count: int = 0) -> Generated:
    """The final output of a request, with the entropy over some of the likeliest tokens."""
    output = value.outputs[0]
    ids = [int(token) for token in output.token_ids]
    logprobs, entropies = [], []
    if output.logprobs is not None:
        logprobs = [
            float(known[token].logprob) for token, known in zip(ids, output.logprobs, strict=True)
        ]
    if count and output.logprobs is not None:
        # It gives the chosen token besides, where that is not among the likeliest.
        entropies = [
            top_entropy([float(item.logprob) for item in known.values()], count)
            for known in output.logprobs
        ]
    ended = output.finish_reason == "stop"
    return Generated(ids, logprobs, ended, entropies)


KIND = PolicyKind(
    name="vllm",
    about="A model in this process, by vLLM; not tested, for want of a GPU.",
    settings=VllmSettings,
    make=VllmPolicy,
)
