"""What rendering can be told."""

from __future__ import annotations

import json
from datetime import date
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from adp.core.options import OptionsModel
from adp.rendering.m3_forms import WireForm, frame_of

Window = Literal["drop", "keep_start", "keep_ends", "sliding"]
RESERVED = frozenset({"messages", "tools", "documents", "add_generation_prompt", "strftime_now"})
"""What templates are given in any case."""

Reasoning = Literal["keep", "strip", "last_turn"]
Words = Literal["keep", "before", "drop", "refuse"]


class RenderOptions(OptionsModel):
    """How trajectories become tokens."""

    train: Literal["all", "last_step", "last_turn"] = "all"
    """Which of the steps that have a weight are trained: all, the last one (M3's mask_history),
    or those after the last message of the user."""
    reasoning: Reasoning = "keep"
    """Reasoning that the template is given: of all steps, of none, or of those after the last
    message of the user. The template decides how to write it."""
    tools: Literal["template", "text"] = "template"
    """Where tools and calls stand: in the template's own form, or as text in the Hermes manner,
    for templates that know no tools."""
    wire_form: WireForm = "template"
    """How the conversation is written: by the chat template, or in a form of M3's students, for
    adapters that M3 trained: m3_teacher, m3_mistral, m3_qwen3, m3_granite3. These put tools and
    protocol behind the words of the system, and bring their own separators, but for m3_teacher,
    which uses the model's chat template."""
    system_text: str | None = None
    """The system's message of a form of M3, as text with the slots {system}, {tool_text},
    {tool_call_usage}, {tool_use_constraints} and {final_answer_instructions}; null: our words."""
    parallel_calls: Literal["keep", "split"] = "keep"
    """split: a step with several calls becomes one message for each call with its result, for
    templates that take one call a message."""
    words: Words = "keep"
    """What becomes of words beside calls in a template that drops these. keep: such a step is
    not trained, and is context without its words, as the template writes it; before: the words
    are a message of their own before that of the calls, and both are trained; drop: the calls
    are trained without the words; refuse: the whole chat is refused. All are counted."""
    max_length: int | None = Field(default=None, ge=8)
    """Tokens of a row. null: no limit; training takes that of the model tiny alone."""
    window: Window = "drop"
    """What becomes of a row that is too long: drop it; keep_start: keep its first steps;
    keep_ends: keep system, task and the last steps; sliding: several rows, each with system and
    task, that train every step once."""
    overlap: float = Field(default=0.25, ge=0, lt=1)
    """sliding: share of a window that earlier steps may fill."""
    branches: tuple[str, ...] = ()
    """Kinds of branches that are rendered besides the main lines; 'all' for all. Steps of the
    parent are context."""
    template_options: dict[str, Any] = Field(default_factory=dict)
    """Given to the chat template by name, such as enable_thinking: false."""
    date: str = Field(default="2024-07-26", pattern=r"^\d{4}-\d{2}-\d{2}$")
    """The date that templates write which ask for today's; fixed, so that the same input gives
    the same rows."""
    chat_template: str | None = None
    """A chat template in place of the tokenizer's own, as text."""
    history: Literal["exact", "one_row"] = "exact"
    """Where the template rewrites history. exact: several rows, in each of which the trained
    steps see what they will see at inference; one_row: one row, as the template writes the whole
    chat."""
    end_of_turn: Literal["require", "allow"] = "require"
    """require: refuse to train on steps that end with no token at which generation stops; allow:
    train on them, and count them."""
    trust_remote_code: bool = False
    """Run the tokenizer's code that the model brings with it."""
    check: Literal["sampled", "all"] = "sampled"
    """At how many steps it is checked that the row begins with what the model would see there:
    at those that may differ by their form, or at all."""

    @field_validator("branches", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        """One kind may stand alone."""
        return (value,) if isinstance(value, str) else value

    @field_validator("date", mode="before")
    @classmethod
    def _day(cls, value: Any) -> Any:
        """YAML reads a date as one."""
        return value.isoformat() if isinstance(value, date) else value

    @field_validator("date")
    @classmethod
    def _real_day(cls, value: str) -> str:
        date.fromisoformat(value)
        return value

    @field_validator("template_options")
    @classmethod
    def _plain(cls, value: dict[str, Any]) -> dict[str, Any]:
        taken = sorted(RESERVED & value.keys())
        if taken:
            raise ValueError(f"{', '.join(taken)}: these names are given to the template anyway")
        try:
            same = json.loads(json.dumps(value, allow_nan=False)) == value
        except (TypeError, ValueError):
            same = False
        if not same:
            raise ValueError("values are plain JSON: texts, numbers, true, false, null, lists")
        return value

    @model_validator(mode="after")
    def _fit(self) -> RenderOptions:
        if self.wire_form == "template":
            if self.system_text is not None:
                raise ValueError("system_text needs wire_form, such as wire_form: m3_qwen3")
        elif self.tools == "text":
            raise ValueError("a wire form of M3 writes tools itself; leave out tools: text")
        elif self.chat_template is not None and frame_of(self.wire_form) is not None:
            raise ValueError(f"{self.wire_form} is a chat template; leave out chat_template")
        if self.max_length is None and self.window != "drop":
            raise ValueError(f"window: {self.window} needs max_length")
        return self
