"""From what a model answered to calls, the way BFCL's own decoders do it.

Two forms of answers are known. In function-calling mode (``fc``) an answer is a list of
``{name: arguments as JSON}``, or a text when nothing was called. In prompt mode it is a text that
should be a list of calls in the syntax of the category's language.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from adp_bfcl.categories import Language
from adp_bfcl.java_calls import decode_java
from adp_bfcl.javascript_calls import decode_javascript
from adp_bfcl.python_calls import DecodeError, decode_python

Mode = Literal["fc", "prompt"]

_JSON_CALL = re.compile(r"""["'](?:name|function)["']\s*:\s*(["'{])""")
_TAG = re.compile(r"<(?:tool_call|toolcall|function=|function_calls?|invoke)", re.IGNORECASE)


def decode(answer: Any, mode: Mode, language: Language = Language.PYTHON) -> list[dict[str, Any]]:
    """Read the calls of an answer.

    Args:
        answer: what the model answered.
        mode: form of the answer.
        language: syntax of calls in prompt mode.

    Returns:
        The calls, each ``{name: {parameter: value}}``. In function-calling mode the arguments may
        be another JSON value than an object; see `is_list_of_calls`.

    Raises:
        DecodeError: the answer is no list of calls.
        MissingExtraError: the text is in Java or JavaScript, and tree-sitter is not installed.
    """
    if mode == "fc":
        return _decode_fc(answer)
    if not isinstance(answer, str):
        raise DecodeError("the answer is no text")
    text = bracketed(answer)
    if language is Language.PYTHON:
        return decode_python(text)
    calls: list[dict[str, Any]]
    calls = (decode_java if language is Language.JAVA else decode_javascript)(text[1:-1])
    return calls


def bracketed(text: str) -> str:
    """A text without backticks, spaces and line ends around it, between square brackets."""
    text = text.strip("`\n ")
    return ("" if text.startswith("[") else "[") + text + ("" if text.endswith("]") else "]")


def _decode_fc(answer: Any) -> list[dict[str, Any]]:
    if not isinstance(answer, list | tuple | str | Mapping):
        raise DecodeError("the answer is no list of calls")
    calls = []
    for call in answer:
        if not isinstance(call, Mapping) or not call:
            raise DecodeError("the answer is no list of calls")
        name = next(iter(call))
        calls.append({name: _json(call[name])})
    return calls


def _json(text: Any) -> Any:
    if not isinstance(text, str | bytes):
        raise DecodeError("the arguments are no JSON text")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"the arguments are no JSON: {error}") from error


def is_list_of_calls(calls: Any) -> bool:
    """Whether it is a list of ``{name: {parameter: value}}``; an empty list is one."""
    return type(calls) is list and all(
        type(call) is dict and len(call) == 1 and type(next(iter(call.values()))) is dict
        for call in calls
    )


def sources(answer: Any, mode: Mode) -> list[str]:
    """The calls of one step of a multi-turn answer as source text, such as ``ls(a=True)``.

    Raises:
        DecodeError: the answer is no list of calls.
    """
    if mode == "fc":
        return _fc_sources(answer)
    if not isinstance(answer, str):
        raise DecodeError("the answer is no text")
    calls = decode_python(bracketed(answer))
    try:
        return [
            f"{name}({_arguments(arguments)})" for call in calls for name, arguments in call.items()
        ]
    except (IndexError, AttributeError, RecursionError, ValueError) as error:
        raise DecodeError(f"the calls cannot be written: {error}") from error


def _fc_sources(answer: Any) -> list[str]:
    if type(answer) is dict:
        answer = [answer]
    if not isinstance(answer, list | tuple | str):
        raise DecodeError("the answer is no list of calls")
    fc_sources = []
    for call in answer:
        if not isinstance(call, Mapping):
            raise DecodeError("the answer is no list of calls")
        for name, arguments in call.items():
            if type(arguments) is str:
                arguments = _json(arguments)
            if not isinstance(arguments, Mapping):
                raise DecodeError("the arguments are no JSON object")
            fc_sources.append(
                f"{name}({','.join(f'{key}={_repr(arguments[key])}' for key in arguments)})"
            )
    return fc_sources


def _repr(value: Any) -> str:
    try:
        return repr(value)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"a value cannot be written: {error}") from error


def _arguments(arguments: Mapping[Any, Any]) -> str:
    return ", ".join(f"{key}={_nested(value)}" for key, value in arguments.items())


def _nested(value: Any) -> str:
    """A value as source text; a dictionary of dictionaries is a call, as the decoder makes them."""
    if not isinstance(value, dict):
        return repr(value)
    if all(isinstance(child, dict) for child in value.values()):
        name = next(iter(value), None)
        if name is None:
            raise DecodeError("an empty dictionary is no value")
        return f"{name}({_arguments(value[name])})"
    return "{" + ", ".join(f"'{key}': {_nested(child)}" for key, child in value.items()) + "}"


def attempts_call(answer: Any, names: Sequence[str]) -> bool:
    """Whether an answer that could not be read was meant as a call.

    It was when it is no plain text, or when it writes the name of an offered function before a
    parenthesis, or holds JSON with a name of a function or one of the usual tags of calls. The
    official checker knows no such state: there, what cannot be read is no call.

    Args:
        answer: what the model answered.
        names: names of the functions on offer.
    """
    if not isinstance(answer, str):
        return bool(answer)
    if _TAG.search(answer) or _JSON_CALL.search(answer):
        return True
    spellings = {name.replace(".", "_") for name in names} | set(names)
    return any(f"{name}(" in answer for name in spellings if name)
