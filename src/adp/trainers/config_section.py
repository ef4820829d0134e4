"""What all sections of a training configuration are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pydantic import BaseModel, ConfigDict

from adp.core.options import OptionsModel


class ConfigSection(OptionsModel):
    """A section of the configuration: unknown names are errors, and nothing changes later."""

    model_config = ConfigDict(protected_namespaces=())


Made = TypeVar("Made", bound=BaseModel)


def made(kind: type[Made]) -> Callable[[], Made]:
    """What makes a section with all its defaults."""
    return lambda: kind.model_validate({})
