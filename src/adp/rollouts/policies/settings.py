"""Settings that policies share: what is free to change, how tokens are chosen, model and prompt."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from adp.core.input_files import read_text
from adp.rendering.answers import FormName
from adp.rendering.m3_forms import WireForm
from adp.rollouts.environment import Settings
from adp_schema.errors import InputError, UsageError

FREE: dict[str, Any] = {"resume": "free"}
"""Marks a setting that may differ when a run is gone on with: it does not change what is said."""


def free(default: Any, **limits: Any) -> Any:
    """A setting with the mark `FREE`.

    Args:
        default: its default.
        **limits: of its value, as pydantic calls them: ``ge``, ``gt``, ``le``.
    """
    return Field(default, json_schema_extra=FREE, **limits)


class SamplingSettings(Settings):
    """How tokens are chosen."""

    temperature: float = Field(0.0, ge=0)
    """0 takes the likeliest token."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Share of the probability that is kept."""
    top_k: int = Field(0, ge=0)
    """Tokens that are kept; 0: all."""
    max_tokens: int = Field(1024, ge=1)
    """Tokens that a turn may have."""


class ModelSettings(Settings):
    """Which model, and how it is loaded."""

    model: str
    """A folder, a name on the Hub, or tiny. A folder of a LoRA adapter loads the model that it
    names, and the adapter."""
    adapter: str | None = None
    """A LoRA adapter: a folder, or a name on the Hub."""
    tokenizer: str | None = None
    """Another tokenizer; null: the model's own."""
    revision: str | None = None
    """Revision on the Hub."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Type of the weights; auto: as they are stored."""
    device: str | None = free(None)
    """cpu, cuda, cuda:1, ...; null: cuda when there is one."""
    attn_implementation: str | None = None
    """sdpa, eager, flash_attention_2, ...; null: what transformers chooses."""
    trust_remote_code: bool = False
    """Run code that lies beside the model."""


class WireFormSettings(Settings):
    """In which form the conversation is written."""

    wire_form: WireForm = "template"
    """How tools, calls, results and answers stand: as the template or the server writes them, or
    in a form of M3's students: m3_teacher, m3_mistral, m3_qwen3, m3_granite3."""
    system_file: Path | None = None
    """A file with the system's message of a form of M3, with the slots {system}, {tool_text},
    {tool_call_usage}, {tool_use_constraints} and {final_answer_instructions}."""
    system_text: str | None = None
    """The same as text."""

    def words(self) -> str | None:
        """The system's message that was given; None for ours.

        Raises:
            UsageError: there is no form that takes it.
            InputError: the file cannot be read.
        """
        if self.system_file is None and self.system_text is None:
            return None
        if self.wire_form == "template":
            raise UsageError("a text of the system needs wire_form, such as wire_form=m3_qwen3")
        if self.system_file is None:
            return self.system_text
        try:
            return read_text(self.system_file)
        except OSError as error:
            raise InputError(f"{self.system_file} cannot be read: {error.strerror}") from error


class PromptSettings(WireFormSettings, ModelSettings):
    """How the conversation is written for the model, and how its answers are read."""

    call_form: FormName = "auto"
    """How the model writes calls: auto (as its template does), tags, json, mistral, pythonic,
    library (the parser of transformers), none."""
    chat_template: Path | None = None
    """A file with a chat template in place of the model's own."""
    template_options: dict[str, Any] = Field(default_factory=dict)
    """Given to the template, such as {enable_thinking: false}."""
    tools_in: Literal["template", "text"] = "template"
    """Where tools and calls stand: in the template's own form, or as text in the Hermes manner,
    for templates that know no tools."""
    reasoning: Literal["keep", "strip", "last_turn"] = "keep"
    """Which reasoning of earlier turns the template is given."""
    parallel_calls: Literal["keep", "split"] = "keep"
    """split: for templates that take one call a message."""


class InProcessSettings(PromptSettings, SamplingSettings):
    """What the policies in process have in common."""

    context_length: int | None = Field(None, ge=1)
    """Tokens of prompt and answer; null: what the model was made for."""
    logprobs: bool = False
    """Keep log probabilities of the written tokens."""
    entropies: int = free(0, ge=0)
    """Give the entropy at each written token over so many of the likeliest ones; 0: do not.
    Rollouts that branch ask for it themselves."""
    token_ids: bool = True
    """Keep token ids of prompt and answer."""
