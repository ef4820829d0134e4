"""Which model is asked, and how trajectories become its rows."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from adp.rendering.model import stop_ids
from adp.rendering.options import RenderOptions
from adp.rendering.render import Renderer
from adp.rollouts.policies.loading import load_tokenizer_of, places
from adp.rollouts.policies.model_facts import context_length
from adp.rollouts.policies.settings import ModelSettings
from adp_schema.errors import UsageError


class ScoreSettings(ModelSettings):
    """A model and what it is asked."""

    render: RenderOptions = Field(default_factory=RenderOptions)
    """How trajectories become rows, as in the section render of a training: max_length, window,
    train, reasoning, ... Without max_length a row may have as many tokens as the model was made
    for."""
    ifd: bool = True
    """Ask for the answers alone, too, for the column ifd."""
    batch_tokens: int = Field(8192, ge=1)
    """Tokens that the model reads together, padding included; a longer row goes alone."""

    def fields_of(self, kind: type[ModelSettings]) -> dict[str, Any]:
        """Values of the fields that a class has, too."""
        return {name: getattr(self, name) for name in kind.model_fields}

    @property
    def which(self) -> ModelSettings:
        """The model alone."""
        return ModelSettings(**self.fields_of(ModelSettings))


def renderer_of(settings: ScoreSettings) -> Renderer:
    """The renderer for a model.

    Args:
        settings: the model and the options; without a length, that of the model is taken.

    Raises:
        UsageError: there is no such tokenizer, or branches are asked for.
        MissingExtraError: transformers is not installed.
    """
    options = settings.render
    if options.branches:
        raise UsageError("render.branches: only main lines have a training loss here; leave it out")
    tokenizer = load_tokenizer_of(settings)
    if options.max_length is None:
        length = context_length(settings)
        options = options.model_copy(update={"max_length": length if (length or 0) >= 8 else None})
    base, _ = places(settings)
    return Renderer(tokenizer, options, stop_ids(settings.tokenizer or base))
