"""Options that the exporters for agent harnesses share."""

from __future__ import annotations

from typing import Literal

from adp.trainers.export.exporter import ExporterOptions, Form, Mask

Keys = Literal["role", "from"]


class HarnessOptions(ExporterOptions):
    """Options of exporters for agent harnesses."""

    system_prompt: str | None = None
    """Text of the harness's system prompt; ``--system-prompt FILE`` reads it from a file. Without
    it a short prompt of our own names the tools and says how to call them. An empty text writes
    none."""
    source_system: Literal["drop", "append"] = "drop"
    """System messages of the source: left out, since the harness gives its own, and counted; or
    appended to the system prompt."""


class WeightedOptions(HarnessOptions):
    """Options of those that write whole chats."""

    weights: bool = True
    """Write a weight, 0 or 1, for each message of the assistant. false writes rows as the Agent
    Data Protocol's own scripts do, and refuses chats of which some steps are not trained."""


class ShareOptions(WeightedOptions):
    """Options of exporters that write conversations of plain texts."""

    keys: Keys = "role"
    """Keys of a message: role and content, as Hugging Face chat templates read them; or from and
    value with human, gpt, function_call and observation, as ShareGPT files have them."""
    tool_docs: Literal["system", "first_user"] = "system"
    """Where the tools that the harness does not know are described: in the system prompt, or before
    the first message of the user."""


def weighted_form(options: WeightedOptions, file: str) -> Form:
    """The form of an exporter that writes weights when they are asked for.

    Args:
        options: as given.
        file: name of the data file.
    """
    mask: Mask = "binary" if options.weights else "all"
    return Form("chats", mask, file, instead="leave out --set weights=false")
