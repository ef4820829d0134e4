"""Turns by TRL's vLLM, in the process of the training or as a server.

It was written after TRL's own source (1.16, ``VLLMGeneration``), and never run: there was no GPU.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from adp.rollouts.policies.generation import GenerationJob
from adp.rollouts.policies.prompts import Generated
from adp.rollouts.policy import InfrastructureError


class VllmTurns:
    """Writes turns with the vLLM that a trainer of TRL has.

    Args:
        engine: TRL's ``VLLMGeneration``.
        ends: ids of the tokens that end a turn.
        context: tokens of prompt and answer; None: what vLLM takes.
        fault: why its weights could not be brought up to date; None: they are.
    """

    def __init__(
        self,
        engine: Any,
        ends: Collection[int],
        context: int | None = None,
        fault: Exception | None = None,
    ) -> None:
        self._engine, self._ends, self._fault = engine, frozenset(ends), fault
        self.context = context
        given = dict(getattr(engine, "generation_kwargs", None) or {})
        engine.generation_kwargs = {**given, "stop_token_ids": sorted(self._ends)}

    def generate(self, jobs: Sequence[GenerationJob]) -> list[Generated]:
        """Write answers. What is drawn follows vLLM's own random numbers, not the seeds of jobs.

        Raises:
            InfrastructureError: vLLM failed, or is not reached.
        """
        if self._fault is not None:
            raise _failed("its weights could not be brought up to date", self._fault)
        try:
            _, ids, logprobs, _ = self._engine.generate(
                prompts=[list(job.ids) for job in jobs], images=None, num_generations=1
            )
        except Exception as error:  # of a server, an engine, or a network
            raise _failed("it gave no answer", error) from error
        if len(ids) != len(jobs):
            raise InfrastructureError("vllm", f"vLLM gave {len(ids)} answers for {len(jobs)}")
        known = logprobs if logprobs is not None else [None] * len(jobs)
        return [
            self._generated(job, list(written), chances)
            for job, written, chances in zip(jobs, ids, known, strict=True)
        ]

    def _generated(self, job: GenerationJob, written: list[int], chances: Any) -> Generated:
        written = written[: job.longest]
        drawn = [] if chances is None else [value[0] for value in chances[: len(written)]]
        # Where one is no number, none of the turn is known.
        complete = len(drawn) == len(written) and None not in drawn
        ended = bool(written) and written[-1] in self._ends
        return Generated(written, drawn if complete else [], ended)


def _failed(what: str, error: Exception) -> InfrastructureError:
    text = " ".join(str(error).split())[:300] or type(error).__name__
    return InfrastructureError("vllm", f"vLLM failed, {what}: {text}")
