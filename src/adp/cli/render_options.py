"""Options of rendering that several commands take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adp.core.input_files import read_text
from adp_schema.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from adp.rendering.options import RenderOptions

Model = Annotated[
    str,
    typer.Option(
        "--model", "-m", metavar="M", help="Model whose tokenizer is used: folder, Hub name, tiny."
    ),
]
MaxLength = Annotated[
    int | None, typer.Option("--max-length", metavar="N", help="Tokens that a row may have.")
]
Window = Annotated[
    str | None,
    typer.Option(help="What becomes of longer rows: drop, keep_start, keep_ends, sliding."),
]
Template = Annotated[
    str | None,
    typer.Option("--chat-template", metavar="FILE", help="A chat template in place of its own."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Another option of rendering, such as reasoning=strip; repeatable.",
    ),
]


def render_options(
    max_length: int | None = None,
    window: str | None = None,
    chat_template: str | None = None,
    settings: Sequence[str] | None = None,
) -> RenderOptions:
    """Put the options of rendering together.

    Raises:
        UsageError: one is unknown or has a value that it does not take.
    """
    import yaml
    from pydantic import ValidationError

    from adp.rendering.options import RenderOptions

    values: dict[str, Any] = {"max_length": max_length, "window": window}
    if chat_template is not None:
        values["chat_template"] = _read(chat_template, "chat template")
    for setting in settings or []:
        name, sign, text = setting.partition("=")
        if not sign:
            raise UsageError(f"--set takes NAME=VALUE, such as reasoning=strip, not '{setting}'")
        # As in the configuration of a training.
        name, _, child = name.removeprefix("render.").partition(".")
        if name == "system_file" and not child:
            values["system_text"] = _read(text, "text of the system")
            continue
        if name not in RenderOptions.model_fields:
            raise UsageError(unknown_name("option of rendering", name, RenderOptions.model_fields))
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise UsageError(f"the value of --set {setting} is no YAML") from error
        if child and name != "template_options":
            raise UsageError(f"{name} holds no further options; write --set {name}=VALUE")
        if child:
            values.setdefault(name, {})[child] = value
        else:
            values[name] = value
    try:
        return RenderOptions(**{name: value for name, value in values.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        words = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"{name}: {words}" if name else words) from error


def _read(file: str, what: str) -> str:
    try:
        return read_text(file)
    except OSError as error:
        raise UsageError(f"the {what} {file} cannot be read: {error.strerror}") from error
