"""A model behind an OpenAI-compatible chat endpoint: vLLM, transformers serve, llama.cpp, OpenAI.

    openai:model=Qwen/Qwen3-8B,base_url=http://localhost:8000/v1
    openai:model=gpt-4.1-mini,temperature=0

The request and the answer are those of ``POST /chat/completions``. What fails, and whose fault it
is, see `adp.rollouts.endpoint.client`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from adp.rendering.m3_forms import stops_of
from adp.rollouts.endpoint.client import Endpoint
from adp.rollouts.endpoint.errors import ContextError, FormatError
from adp.rollouts.endpoint.settings import EndpointSettings
from adp.rollouts.policies.names import model_name
from adp.rollouts.policies.openai_messages import (
    entropies_of,
    message_by_m3,
    message_in_text,
    read_turn,
    wire_messages,
)
from adp.rollouts.policies.settings import WireFormSettings, free
from adp.rollouts.policy import AgentLimitError, PolicyKind, Request
from adp.rollouts.turns import Message, Turn
from adp_schema.errors import UsageError


class OpenAISettings(WireFormSettings, EndpointSettings):
    """Settings of the policy ``openai``."""

    model: str
    """Name of the model, as the server knows it."""
    temperature: float | None = Field(None, ge=0)
    """null: what the server chooses."""
    top_p: float | None = Field(None, gt=0, le=1)
    """null: what the server chooses."""
    max_tokens: int | None = Field(None, ge=1)
    """Tokens of a turn; null: no limit."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """How the server calls it; reasoning models of OpenAI: the second."""
    seed: bool = True
    """Send the seed of each turn."""
    stop: list[str] = Field(default_factory=list)
    """Texts that end a turn. With a wire form of M3 and none given: what begins a result, and what
    ends a turn."""
    tool_choice: Literal["auto", "required", "none"] | None = None
    """null: what the server chooses, mostly auto."""
    tools_in: Literal["api", "text"] = "api"
    """text: tools stand in the system prompt and calls in the text, in the Hermes manner, for
    servers that know no tools."""
    stream: bool = free(False)
    """Let the server stream its answers."""
    send_reasoning: bool = False
    """Send the reasoning of earlier turns back, as reasoning_content."""
    logprobs: bool = False
    """Ask for log probabilities of the written tokens."""
    entropies: int = free(0, ge=0)
    """Give the entropy at each written token over so many of the likeliest ones, which the server
    is asked for as top_logprobs; 0: do not. Rollouts that branch ask for it themselves."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Further members of the request, such as {return_token_ids: true} for vLLM."""


class OpenAIPolicy:
    """A model behind an endpoint.

    Args:
        settings: its settings.

    Attributes:
        name: name of the model.
        vocabulary: how many tokens the model knows; a server does not say.

    Raises:
        UsageError: the URL is none, or the environment does not hold the key.
    """

    def __init__(self, settings: OpenAISettings) -> None:
        self.name = model_name(settings.model)
        self.vocabulary: int | None = None
        self._settings = settings
        self._words = settings.words()
        self._endpoint = Endpoint(settings, settings.extra_body)

    async def act(self, request: Request) -> Turn:
        """The model's turn.

        Raises:
            InfrastructureError: no answer could be had.
            AgentLimitError: the conversation is longer than the model can take.
            UsageError: the key, the URL, the model or an option is wrong.
        """
        try:
            reply = await self._endpoint.chat(self._body(request), request.seed)
        except FormatError as error:
            return Turn(
                malformed=f"the server cannot read what the model wrote ({error})",
                model=self.name,
            )
        except ContextError as error:
            raise AgentLimitError("context_length", str(error)) from error
        settings = self._settings
        turn = read_turn(
            reply.body,
            self.name,
            reply.tries,
            in_text=settings.tools_in == "text",
            wire_form=settings.wire_form,
        )
        if not settings.entropies:
            return turn
        return replace(turn, entropies=entropies_of(reply.body, settings.entropies))

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()

    def _body(self, request: Request) -> dict[str, Any]:
        settings = self._settings
        by_m3 = settings.wire_form != "template"
        in_text = by_m3 or settings.tools_in == "text"
        messages: Sequence[Message] = request.messages
        if by_m3:
            messages = message_by_m3(request, settings.wire_form, self._words)
        elif in_text:
            messages = message_in_text(request)
        tools = [] if in_text else [dict(tool) for tool in request.tools]
        given: dict[str, Any] = {
            "model": settings.model,
            "messages": wire_messages(messages, reasoning=settings.send_reasoning),
            "tools": tools or None,
            "tool_choice": settings.tool_choice if tools else None,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            settings.max_tokens_field: settings.max_tokens,
            "seed": request.seed if settings.seed else None,
            "stop": settings.stop or stops_of(settings.wire_form) or None,
            "logprobs": settings.logprobs or settings.entropies > 0 or None,
            "top_logprobs": settings.entropies or None,
            "stream": settings.stream or None,
            "stream_options": {"include_usage": True} if settings.stream else None,
        }
        body = {key: value for key, value in given.items() if value is not None}
        return {**body, **settings.extra_body}


def _make(settings: OpenAISettings) -> OpenAIPolicy:
    by_m3 = settings.wire_form != "template"
    if settings.tool_choice is not None and (by_m3 or settings.tools_in == "text"):
        raise UsageError(
            "tool_choice is for the server's own tools; leave it out with tools_in=text and "
            "wire_form"
        )
    if by_m3 and settings.tools_in == "text":
        raise UsageError("a wire form of M3 writes tools itself; leave out tools_in=text")
    return OpenAIPolicy(settings)


KIND = PolicyKind(
    name="openai",
    about="A model behind an OpenAI-compatible endpoint: vLLM, transformers serve, llama.cpp, ...",
    settings=OpenAISettings,
    make=_make,
)
