"""From what a model wrote to text, reasoning and calls, in the form of its own chat template."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from adp.rendering.call_form import CallForm, WrittenCall, call_form
from adp.rendering.harmony import read_harmony
from adp.rendering.m3_answers import read_action
from adp.rendering.pythonic import PythonicForm, writes_python
from adp.rendering.render import Renderer
from adp_schema.errors import MissingExtraError, UsageError

FormName = Literal["auto", "tags", "json", "mistral", "pythonic", "library", "none"]
"""How calls are written, see `AnswerReader`."""

Parser = Callable[[str, str, Any], "Mapping[str, Any] | None"]
"""From an answer, its prompt and the tools on offer to a message; None when it is malformed."""

_OPEN, _CLOSE = "<think>", "</think>"
_BETWEEN = " \t\r\n,;[]"
_MARKS = ("<tool_call>", "<function=", "[TOOL_CALLS]", "<|tool_call")
_SEEN = 40
"""Characters of a bare object in which its name stands, if it is a call."""


class _Form(Protocol):
    def read(self, text: str) -> list[WrittenCall] | None:
        """The calls in a text; None when one is malformed."""
        ...


TAGS = CallForm("<tool_call>", None, "name", "arguments", "</tool_call>")
"""The Hermes manner: JSON between tags."""

_NAMED: dict[str, _Form] = {
    "tags": TAGS,
    "json": CallForm("", None, "name", "parameters"),
    "mistral": CallForm("[TOOL_CALLS]", None, "name", "arguments"),
    "pythonic": PythonicForm(),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model wrote, read.

    Attributes:
        text: without reasoning, calls and special tokens; as it was, when it is malformed.
        reasoning: what stands in the thought; None without one.
        calls: the calls in order.
        malformed: why the calls cannot be read; None when they can.
    """

    text: str
    reasoning: str | None = None
    calls: tuple[WrittenCall, ...] = ()
    malformed: str | None = None


class AnswerReader:
    """Reads what one model writes.

    Args:
        renderer: with the model's tokenizer and template.
        form: how calls are written. ``auto``: as the template writes them; ``tags``: JSON between
            ``<tool_call>`` tags; ``json``: bare JSON with ``name`` and ``parameters`` (Llama);
            ``mistral``: JSON after ``[TOOL_CALLS]``; ``pythonic``: a list of Python calls;
            ``library``: what the parser of transformers makes of it; ``none``: there are none.

    Attributes:
        knows_calls: whether it can read calls at all.

    Raises:
        UsageError: ``library``, and transformers has no parser for the model.
        MissingExtraError: a package is missing.
    """

    def __init__(self, renderer: Renderer, form: FormName = "auto") -> None:
        self._special = renderer.template.special
        self._wire_form = renderer.options.wire_form
        self._form = _NAMED.get(form)
        self._parser: Parser | None = None
        if self._wire_form != "template":
            self._harmony, self.knows_calls = False, True
            return
        # What gpt-oss writes is not what its template makes of it.
        self._harmony = form == "auto" and "<|channel|>analysis" in renderer.template.texts[-1]
        if form == "auto" and not self._harmony:
            self._form = _template_form(renderer)
        if form == "library" or (form == "auto" and self._form is None and not self._harmony):
            self._parser = library_parser(renderer)
        if form == "library" and self._parser is None:
            raise UsageError(
                "transformers has no parser for the answers of this model; choose another "
                "call_form: tags, json, mistral, pythonic or none"
            )
        known = self._form is not None or self._parser is not None
        self.knows_calls = known or self._harmony

    def read(self, text: str, prompt: str = "", tools: Sequence[Any] = ()) -> Answer:
        """Read an answer.

        Args:
            text: what the model wrote, special tokens included, without the one that ends it.
            prompt: the end of the prompt; it may open the thought.
            tools: tools on offer.
        """
        if self._wire_form != "template":
            words, thought, action, why = read_action(text, self._wire_form)
            return Answer(words if why else self._special.sub("", words), thought, action, why)
        if self._harmony:
            return self._in_harmony(text)
        if self._form is None and self._parser is not None:
            return self._parsed(text, self._parser(text, prompt, list(tools) or None))
        reasoning, answer = split_thought(text, opened=prompt.rstrip().endswith(_OPEN))
        calls = self._form.read(answer) if self._form is not None else []
        if calls is None and _is_bare(self._form) and '"name"' not in answer.lstrip()[:_SEEN]:
            calls = []  # JSON that the user asked for
        if calls is None:
            return Answer(text=text, malformed=_expected(self._form))
        for call in reversed(calls):
            answer = answer[: call.start] + answer[call.end :]
        answer = self._special.sub("", answer)
        return Answer(answer.strip(_BETWEEN if calls else None), reasoning, tuple(calls))

    def _in_harmony(self, text: str) -> Answer:
        harmony = read_harmony(text)
        if harmony.broken:
            return Answer(text=text, malformed=_expected(None))
        answer = self._special.sub("", "\n\n".join(part.strip() for part in harmony.texts))
        thought = "\n\n".join(part.strip() for part in harmony.thoughts)
        return Answer(answer.strip(), thought or None, tuple(harmony.calls))

    def _parsed(self, text: str, value: Mapping[str, Any] | None) -> Answer:
        """What the parser of transformers found; it takes a broken call for text."""
        try:
            calls = None if value is None else calls_of(value)
        except (TypeError, KeyError, AttributeError, ValueError):
            calls = None
        answer = "" if value is None else str(value.get("content") or "")
        if calls is None or any(mark in answer for mark in _MARKS):
            return Answer(text=text, malformed=_expected(None))
        assert value is not None
        reasoning = value.get("reasoning_content") or value.get("thinking")
        return Answer(
            self._special.sub("", answer).strip(),
            str(reasoning) if reasoning else None,
            tuple(calls),
        )


def split_thought(text: str, *, opened: bool = False) -> tuple[str | None, str]:
    """Split the thought from what is said.

    Args:
        text: what a model wrote.
        opened: whether the prompt opened the thought.

    Returns:
        The thought, None without one, and the rest. A thought that does not end is all there is.
    """
    bare = text.lstrip()
    if bare.startswith(_OPEN):
        bare, opened = bare[len(_OPEN) :], True
    elif not opened and _CLOSE not in text:
        return None, text
    thought, _, rest = bare.partition(_CLOSE)
    return thought.strip() or None, rest


def library_parser(renderer: Renderer) -> Parser | None:
    """The parser of transformers, for models that bring its form and templates that TRL knows.

    Args:
        renderer: with the tokenizer and the template.

    Raises:
        MissingExtraError: trl is missing.
    """
    tokenizer = copy.copy(renderer.tokenizer)
    # The template with tools, which the options may have replaced.
    tokenizer.chat_template = renderer.template.texts[-1]
    if getattr(tokenizer, "response_template", None) is None:
        try:
            from trl.chat_template_utils import add_response_schema
        except ImportError as error:
            raise MissingExtraError("trl", "train") from error
        try:
            add_response_schema(tokenizer)
        except ValueError:
            return None

    def parse(text: str, prompt: str, tools: Any) -> Mapping[str, Any] | None:
        try:
            response: Mapping[str, Any] = tokenizer.parse_response(
                text, prefix=prompt, tools=tools or None
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            return None
        return response

    return parse


def calls_of(message: Mapping[str, Any]) -> list[WrittenCall]:
    """The calls of a message that the parser of transformers made.

    Raises:
        TypeError, KeyError, AttributeError, ValueError: one is malformed.
    """
    calls = []
    for call in message.get("tool_calls") or []:
        child = call.get("function", call)
        arguments = dict(child.get("arguments") or {})
        text = json.dumps(arguments, ensure_ascii=False)
        calls.append(WrittenCall(str(child["name"]), arguments, text))
    return calls


def _template_form(renderer: Renderer) -> _Form | None:
    form: _Form | None = call_form(renderer)
    if form is None and writes_python(renderer):
        form = PythonicForm()
    return form


def _is_bare(form: _Form | None) -> bool:
    return isinstance(form, CallForm) and form.middle is None and not form.opening


def _expected(form: _Form | None) -> str:
    text = "a call in this turn cannot be read"
    if isinstance(form, PythonicForm):
        return f"{text}; write calls as [name(key=value)]"
    if not isinstance(form, CallForm):
        return text
    if form.middle is not None:
        example = f"{form.opening}NAME{form.middle}{{...}}{form.closing}"
    else:
        child = f'{{"{form.name_key}": "...", "{form.arguments_key}": {{...}}}}'
        example = f"{form.opening}{child}{form.closing}"
    return f"{text}; write each one as {' '.join(example.split())}"
