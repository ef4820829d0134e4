"""Options of an exporter, from ``NAME=VALUE`` on the command line or from keywords."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from adp.core.option_errors import sentence
from adp.rendering.options import RenderOptions
from adp.trainers.export.exporter import Exporter, ExporterOptions, Form, form_of
from adp_schema.errors import UsageError, unknown_name

_SHARED = frozenset({"train", "reasoning"})
"""Options of exporters that rendering has under the same names."""


@dataclass(frozen=True)
class ExportSettings:
    """What an export is told.

    Attributes:
        options: of the exporter.
        form: what it writes under them.
        render: of rendering, for a form with a model; else None.
    """

    options: ExporterOptions
    form: Form
    render: RenderOptions | None


def read_settings(exporter: Exporter, given: Sequence[str] | Mapping[str, Any]) -> ExportSettings:
    """Read the options of an exporter.

    Args:
        exporter: the exporter.
        given: ``NAME=VALUE`` with the value as YAML, or names with values. A form with a model
            takes those of rendering too, such as ``max_length``.

    Raises:
        UsageError: a name is unknown, or a value does not fit.
    """
    values = dict(given) if isinstance(given, Mapping) else dict(map(_pair, given))
    settings = {
        name: value for name, value in values.items() if name in exporter.options.model_fields
    }
    more = {name: value for name, value in values.items() if name not in settings}
    options = _check(exporter.options, settings, exporter.name)
    form = form_of(exporter, options)
    for name in more:
        if name not in RenderOptions.model_fields:
            known = [
                *exporter.options.model_fields,
                *(RenderOptions.model_fields if form.model else ()),
            ]
            raise UsageError(unknown_name(f"option of {exporter.name}", name, known))
        if not form.model:
            raise UsageError(
                f"{name} is an option of rendering, and {exporter.name} writes no tokens here; "
                "leave it out, or use --to trl-sft --set form=tokens"
            )
    if "branches" in more:
        raise UsageError("branches are asked for by --branches KIND, not by --set branches")
    if not form.model:
        return ExportSettings(options, form, None)
    shared = {name: getattr(options, name) for name in _SHARED}
    where = "text" if options.tools == "text" else "template"
    render = _check(RenderOptions, {**shared, "tools": where, **more}, exporter.name)
    return ExportSettings(options, form, render)


def _pair(setting: str) -> tuple[str, Any]:
    name, equals, text = setting.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"--set takes NAME=VALUE, not {setting!r}")
    try:
        return name.strip(), yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        message = " ".join(str(error).split())
        raise UsageError(f"the value of --set {name} cannot be read: {message}") from None


def _check(kind: type[Any], values: dict[str, Any], name: str) -> Any:
    assert issubclass(kind, BaseModel)
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise UsageError(f"{name}: {sentence(error, kind.model_fields)}") from None
