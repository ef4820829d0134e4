"""The generator ``templates``: sentences written by hand, with values and with other words.

Of each tool there are ten canonical sentences, unless told otherwise, and of each of them up to
three paraphrases: some words are replaced by others, each with a probability of one half. That is
how Tiny Tool Use makes its data; its replacements are the first ones of the list.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from pydantic import Field, ValidationError, field_validator

from adp.core.input_files import read_text
from adp.core.yaml_text import parse_yaml
from adp.rollouts.environment import Settings
from adp.rollouts.generators.drafts import (
    Candidate,
    Draft,
    NoValueError,
    PlannedCall,
    Stream,
    key_of,
    spoken,
)
from adp.rollouts.generators.synthetic import about, listed, refused, tool_name
from adp.rollouts.generators.values import ArgumentValues, properties_of
from adp.rollouts.judging.answers import seed_of
from adp.rollouts.tools import plain
from adp.rollouts.turns import Tool
from adp_schema.errors import InputError, UsageError

CANONICAL = 10
"""Canonical sentences of a tool."""
PARAPHRASES = 3
"""Paraphrases of a sentence, at most."""
_REPLACED = 0.5
_DRAWS = 50
"""Sentences in a row that were there already end a tool."""

REPLACEMENTS = (
    ("Calculate", "Compute"),
    ("What is", "What's"),
    ("Can you", "Could you"),
    ("Find", "Get"),
    ("Search for", "Look up"),
    ("weather", "forecast"),
    ("information", "info"),
    ("Please", "Kindly"),
    ("Tell me", "Let me know"),
    ("I need", "I want"),
    ("Use", "Take"),
)
"""Words and what stands in their place."""

_PLACE = re.compile(r"\{(\w+)\}")


class Template(Settings):
    """A sentence of a tool."""

    text: str = Field(min_length=1)
    """The sentence, with ``{parameter}`` where values stand."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Arguments with values of their own; the sentence need not name them."""
    answer: str | None = None
    """Text of the answer, with ``{result}`` and names of members of the result."""


class TemplateFile(Settings):
    """Templates of your templates: a YAML file."""

    templates: dict[str, list[Template]] = Field(default_factory=dict)
    """Tool -> sentences; they take the place of the ones that come with the package."""
    values: dict[str, dict[str, list[Any]]] = Field(default_factory=dict)
    """Tool, or ``*`` for all -> parameter -> values."""
    paraphrases: list[tuple[str, str]] = Field(default_factory=list)
    """Further words and what stands in their place."""

    @field_validator("templates", mode="before")
    @classmethod
    def _texts(cls, given: Any) -> Any:
        """A sentence alone is a template."""
        if not isinstance(given, Mapping):
            return given
        return {
            tool: [{"text": item} if isinstance(item, str) else item for item in items]
            if isinstance(items, list)
            else items
            for tool, items in given.items()
        }


def read_templates(path: Path) -> TemplateFile:
    """Read templates of the user's.

    Raises:
        UsageError: the file is no such YAML; the message names the place.
        InputError: it cannot be read.
    """
    try:
        text = read_text(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    given = parse_yaml(text, str(path), "file of templates")
    try:
        return TemplateFile.model_validate(plain(given) if given is not None else {})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise UsageError(f"{path}: {place}: {first['msg']}") from None


BUILTIN: Mapping[str, tuple[str, ...]] = {
    "expression": (
        "Calculate {expression}.",
        "What is {expression}?",
        "Can you calculate {expression}?",
        "Find the value of {expression}.",
        "I need the result of {expression}.",
    ),
    "location": (
        "What is the weather in {location}?",
        "Can you tell me the weather in {location}?",
        "Find the weather for {location}.",
        "I need information about the weather in {location}.",
        "How is the weather in {location} today?",
    ),
    "query": (
        "Search for {query}.",
        "Find information about {query}.",
        "Can you search for {query}?",
        "I need information on {query}.",
        "What is known about {query}?",
    ),
}
"""Sentences for tools of one required parameter of this name, as those of Tiny Tool Use have."""

_WORDS_OF = {"location": "weather"}
"""Parameters whose sentences are for tools with this word in their name alone."""

_GENERAL = (
    "{about}: {arguments}.",
    "Use {tool} with {arguments}.",
    "Can you use {tool} for {arguments}?",
    "I need the result of {tool} with {arguments}.",
    "Please run {tool} with {arguments}.",
)


def templates_for(tool: Tool, file: TemplateFile) -> list[Template]:
    """The sentences for a tool: the user's, those for its parameter, or general ones.

    Raises:
        UsageError: a sentence of the user's names a parameter that the tool does not have.
    """
    name, known = tool_name(tool), properties_of(tool)
    templates = file.templates.get(name, [])
    for template in templates:
        names = {*_PLACE.findall(template.text), *template.arguments}
        unknown = sorted(names - set(known))
        if unknown:
            raise UsageError(
                f"a template of the tool '{name}' names {', '.join(unknown)}; its parameters: "
                f"{', '.join(known) or 'none'}"
            )
    if templates:
        return templates
    required = tool["function"].get("parameters", {}).get("required") or list(known)
    only = required[0] if len(required) == 1 else ""
    if only in BUILTIN and _WORDS_OF.get(only, "") in name.lower():
        return [Template(text=text) for text in BUILTIN[only]]
    return [Template(text=text) for text in _GENERAL]


def template_streams(
    tools: Sequence[Tool],
    file: TemplateFile,
    values: ArgumentValues,
    seed: int,
    canonical: int | None,
) -> list[Stream]:
    """A stream for each tool.

    Args:
        tools: the tools, in the OpenAI shape.
        file: templates, values and words of the user's.
        values: draws arguments.
        seed: fixes what is drawn.
        canonical: canonical sentences of each tool; None: as many as are asked for.

    Raises:
        UsageError: a template does not fit its tool.
    """
    words = (*REPLACEMENTS, *file.paraphrases)
    return [
        _stream(tool, templates_for(tool, file), words, values, seed, canonical) for tool in tools
    ]


def _stream(
    tool: Tool,
    templates: Sequence[Template],
    words: Sequence[tuple[str, str]],
    values: ArgumentValues,
    seed: int,
    canonical: int | None,
) -> Stream:
    name = tool_name(tool)

    def candidates() -> Iterator[Candidate]:
        seen: set[str] = set()
        number = missed = draw = 0
        while (canonical is None or number < canonical) and missed < _DRAWS:
            index = number % len(templates)
            rng = Random(seed_of("templates", seed, name, draw))
            draw += 1
            try:
                draft = _canonical(tool, templates[index], values, rng)
            except NoValueError as error:
                missed += 1
                yield refused("no arguments", str(error))
                continue
            if not _is_new(draft, seen):
                missed += 1
                continue
            missed = 0
            origin = {"template": index, "canonical": number}
            yield _with(draft, {**origin, "paraphrase": 0})
            for other in range(1, PARAPHRASES + 1):
                changed = _reworded(draft, templates[index].text, words, rng)
                if changed is not None and _is_new(changed, seen):
                    yield _with(changed, {**origin, "paraphrase": other})
            number += 1

    return Stream(name, candidates)


def _canonical(tool: Tool, template: Template, values: ArgumentValues, rng: Random) -> Draft:
    general = "{arguments}" in template.text and "arguments" not in properties_of(tool)
    arguments = values.draw(tool, rng, template.arguments)
    if not general:  # what the sentence does not say is not in the call
        named = {*_PLACE.findall(template.text), *template.arguments}
        arguments = {key: value for key, value in arguments.items() if key in named}
        missing = named - set(arguments)
        more = values.draw(tool, rng, arguments) if missing else {}
        for _ in range(_DRAWS):
            if missing <= set(more):
                break
            more = values.draw(tool, rng, arguments)
        arguments |= {key: value for key, value in more.items() if key in named}
    return Draft(
        _filled(template.text, tool, arguments),
        (PlannedCall(tool_name(tool), arguments),),
        answer=template.answer,
    )


def _filled(text: str, tool: Tool, arguments: Mapping[str, Any]) -> str:
    names = {key: spoken(value) for key, value in arguments.items()}
    general = {"tool": tool_name(tool), "about": about(tool), "arguments": listed(arguments)}
    return _PLACE.sub(lambda match: {**general, **names}.get(match[1], match[0]), text)


def _reworded(
    draft: Draft, text: str, words: Sequence[tuple[str, str]], rng: Random
) -> Draft | None:
    """The same with some words replaced; None when none were. Values stay as they are."""
    call = draft.calls[0]
    assert not isinstance(call.arguments, str)
    kept = sorted({spoken(value) for value in call.arguments.values()}, key=len, reverse=True)
    held = "|".join(re.escape(value) for value in kept if value)
    result = draft.instruction
    for old, new in words:
        if rng.random() >= _REPLACED:
            continue
        pattern = rf"(?P<held>{held})|\b{re.escape(old)}\b" if held else rf"\b{re.escape(old)}\b"
        result = re.sub(pattern, functools.partial(_swap, new), result, flags=re.I)
    if result == draft.instruction:
        return None
    return Draft(result, draft.calls, answer=draft.answer)


def _swap(new: str, match: re.Match[str]) -> str:
    """The new word, with a small letter where the old one has it; a value as it is."""
    if match.groupdict().get("held") is not None:
        return match[0]
    return new[0].lower() + new[1:] if match[0][0].islower() else new[0].upper() + new[1:]


def _with(draft: Draft, origin: Mapping[str, Any]) -> Draft:
    return Draft(draft.instruction, draft.calls, origin, draft.answer)


def _is_new(draft: Draft, seen: set[str]) -> bool:
    key = key_of(draft.instruction, [(call.tool, call.arguments) for call in draft.calls])
    if key in seen:
        return False
    seen.add(key)
    return True
