"""The generator ``synthetic``: calls drawn from the schemas of tools, and instructions from calls.

In the manner of ToolBench: the calls come first, so that each instruction has a right answer. Every
value of a call stands in its instruction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from adp.rollouts.generators.drafts import (
    Candidate,
    CandidateResult,
    Draft,
    NoValueError,
    PlannedCall,
    Runner,
    Stream,
    spoken,
)
from adp.rollouts.generators.values import ArgumentValues
from adp.rollouts.judging.answers import seed_of
from adp.rollouts.turns import Tool

PER_TOOL = 20
"""Samples of each tool, unless told otherwise: as many as Tiny Tool Use makes."""

WITH_ARGUMENTS = (
    "Use {tool} with {arguments}.",
    "Call {tool} for {arguments}.",
    "{about}: {arguments}.",
    "Please run {tool} with {arguments} and tell me the result.",
    "With {arguments}, what does {tool} say?",
    "I need the result of {tool} for {arguments}.",
    "{about}. Take {arguments}.",
    "Could you use {tool}? The values are {arguments}.",
)
WITHOUT = ("Use {tool}.", "Please call {tool} and tell me the result.", "{about}.")
"""Forms of an instruction."""


def synthetic_streams(
    tools: Sequence[Tool], values: ArgumentValues, seed: int, per_tool: int | None
) -> list[Stream]:
    """A stream for each tool.

    Args:
        tools: the tools, in the OpenAI shape.
        values: draws arguments.
        seed: fixes what is drawn.
        per_tool: samples of each tool, at most; None: as many as are asked for.
    """
    return [_stream(tool, values, seed, per_tool) for tool in tools]


def _stream(tool: Tool, values: ArgumentValues, seed: int, most: int | None) -> Stream:
    name = tool_name(tool)

    def candidates() -> Iterator[Candidate]:
        number = 0
        while True:
            rng = Random(seed_of("synthetic", seed, name, number))
            try:
                arguments = values.draw(tool, rng)
            except NoValueError as error:
                yield refused("no arguments", str(error))
            else:
                form, text = instruction(tool, arguments, rng)
                yield Draft(text, (PlannedCall(name, arguments),), {"template": form})
            number += 1

    return Stream(name, candidates, most)


def refused(reason: str, message: str) -> Candidate:
    """A candidate that cannot be carried out.

    Args:
        reason: why, in a few words.
        message: why, in a sentence.
    """

    async def made(runner: Runner, name: str) -> CandidateResult:
        return CandidateResult(reason=reason, detail={"said": message})

    return made


def instruction(tool: Tool, arguments: Mapping[str, Any], rng: Random) -> tuple[str, str]:
    """The name of a form and an instruction in it, in which all arguments stand."""
    forms = WITH_ARGUMENTS if arguments else WITHOUT
    index = rng.randrange(len(forms))
    text = forms[index]
    for key, value in (
        ("{tool}", tool_name(tool)),
        ("{about}", about(tool)),
        ("{arguments}", listed(arguments)),  # the last one: it holds what was drawn
    ):
        text = text.replace(key, value)
    kind = "arguments" if arguments else "none"
    return f"{kind}-{index}", text


def tool_name(tool: Tool) -> str:
    """The name of a tool."""
    return str(tool["function"]["name"])


def about(tool: Tool) -> str:
    """What a tool does: the first sentence of its description, or its name in words."""
    text = " ".join(str(tool["function"].get("description") or "").split())
    first = text.partition(". ")[0].rstrip(".")
    return first or tool_name(tool).replace("_", " ").capitalize()


def listed(arguments: Mapping[str, Any]) -> str:
    """Arguments as words: ``location Paris, day 2026-01-15 and unit celsius``."""
    parts = [f"{name.replace('_', ' ')} {spoken(value)}" for name, value in arguments.items()]
    return (
        parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""
    )
