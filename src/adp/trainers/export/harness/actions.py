"""Actions as harnesses know them: a call under the name that the harnesses agree on."""

from __future__ import annotations

import ast
import hashlib
import json
import keyword
import re
import shlex
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from adp.core.tool_names.mapping import NamedCall, tool_names
from adp.rendering.chat import ChatCall
from adp.trainers.export.exporter import UnwritableChatError

BROWSER_ACTIONS = frozenset(
    {
        *("noop", "scroll", "fill", "select_option", "click", "dblclick", "hover", "press"),
        *("focus", "clear", "drag_and_drop", "upload_file", "goto", "go_back", "go_forward"),
        *("send_msg_to_user", "report_infeasible", "tab_close", "tab_focus", "new_tab"),
    }
)
"""Actions of BrowserGym, which its harnesses write as Python calls."""

_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)
_NO_NAME = re.compile(r"\W", re.ASCII)
_KEY = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_QUOTED = re.compile(r"""(["']).*\1""", re.DOTALL)
_LONGEST_QUOTED = 10_000
_NOT_A_WORD = re.compile(r"[^A-Za-z0-9]+")
_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'"})


@dataclass(frozen=True, slots=True)
class Action:
    """What an agent does in one call.

    Attributes:
        name: name of the tool, that of the Agent Data Protocol where it has one.
        arguments: its arguments.
        text: the arguments as JSON text, those of the source where they are the same.
        call_id: id of the call.
        is_known: whether ``name`` is a name of the Agent Data Protocol.
        language: language of code that no such tool runs.
    """

    name: str
    arguments: Mapping[str, Any]
    text: str
    call_id: str
    is_known: bool = False
    language: str | None = None


def action_of(call: ChatCall, *, quoted: bool = False) -> Action:
    """The action that a call of a chat is.

    Args:
        call: the call.
        quoted: whether strings may be Python literals, quotes included, as in ADP v1: of tools that
            every harness knows they are not.
    """
    action = _action_of(call)
    if not quoted or action.language or (action.is_known and action.name != "finish"):
        return action
    arguments = {key: _unquoted(value) for key, value in action.arguments.items()}
    if arguments == action.arguments:
        return action
    text = json.dumps(arguments, ensure_ascii=False)
    return replace(action, arguments=arguments, text=text)


def _action_of(call: ChatCall) -> Action:
    if not call.valid:
        arguments = {"input": call.text}
        text = json.dumps(arguments, ensure_ascii=False)
        return Action(call.name, arguments, text, call.call_id)
    code = call.arguments.get("code") if call.language and len(call.arguments) == 1 else None
    if isinstance(code, str):
        named = tool_names().rename(NamedCall(call.name, None, code, call.language))
    else:
        named = tool_names().rename(NamedCall(call.name, call.arguments, None, call.language))
    if named is None or named.name is None or named.arguments is None:
        return Action(call.name, call.arguments, call.text, call.call_id, language=call.language)
    changed = named.arguments != call.arguments
    text = json.dumps(named.arguments, ensure_ascii=False) if changed else call.text
    return Action(named.name, named.arguments, text, call.call_id, is_known=True)


def finish(message: str, call_id: str) -> Action:
    """The action that ends a run with a message."""
    arguments = {"message": message, "task_completed": "true"}
    text = json.dumps(arguments, ensure_ascii=False)
    return Action("finish", arguments, text, call_id, is_known=True)


def code_of(action: Action) -> str | None:
    """The code of an action that is code of a language without a tool."""
    code = action.arguments.get("code") if action.language and len(action.arguments) == 1 else None
    return code if isinstance(code, str) else None


def is_callable(name: str) -> bool:
    """Whether Python can call something of this name."""
    return _NAME.fullmatch(name) is not None


def python_call(name: str, arguments: Mapping[str, Any]) -> str:
    """A call as Python writes it; keys that are no names of Python stand in a dict."""
    rest = {key: value for key, value in arguments.items() if not _is_key(key)}
    words = [f"{key}={value!r}" for key, value in arguments.items() if key not in rest]
    if rest:
        words.append(f"**{rest!r}")
    return f"{name}({', '.join(words)})"


def _is_key(key: str) -> bool:
    return _KEY.fullmatch(key) is not None and not keyword.iskeyword(key)


def gym_call(name: str, arguments: Mapping[str, Any]) -> str:
    """A call as BrowserGym's parser reads it: it knows names and literals alone."""
    words = (f"{gym_name(key)}={value!r}" for key, value in arguments.items())
    return f"{gym_name(name)}({', '.join(words)})"


def gym_name(name: str) -> str:
    """A name that BrowserGym's parser reads; other characters become underscores."""
    result = _NO_NAME.sub("_", name)
    return result if result[:1].isalpha() or result[:1] == "_" else f"_{result}"


def _unquoted(value: Any) -> Any:
    """A value; of a text that is a string of Python with its quotes, that string."""
    if not isinstance(value, str) or len(value) > _LONGEST_QUOTED or not _QUOTED.fullmatch(value):
        return value
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that Python does not know
            string = ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value
    return string if isinstance(string, str) else value


def shell_call(name: str, arguments: Mapping[str, Any], *, quoted: bool = True) -> str:
    """A call of a function that is predefined in a shell.

    Args:
        name: name of the function.
        arguments: its arguments.
        quoted: whether values are quoted where a shell would take them apart.
    """
    word = _shell_word if quoted else str
    words = ", ".join(f"{key}={word(value)}" for key, value in arguments.items())
    return f"{name}({words})"


def _shell_word(value: Any) -> str:
    return shlex.quote(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def shell_python(code: str) -> str:
    """A command of a shell that runs Python code, in the ANSI-C quotes of bash."""
    return f"python -c $'{code.translate(_ESCAPES)}'"


def heredoc(interpreter: str, language: str, code: str) -> str:
    """A command of a shell that gives code to an interpreter.

    Args:
        interpreter: the command.
        language: language of the code, for the mark at its end.
        code: the code.
    """
    digest = hashlib.sha1(code.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
    mark = f"ATIF_{_NOT_A_WORD.sub('_', language).upper()}_{digest[:12]}"
    return f"{interpreter} <<'{mark}'\n{code}\n{mark}"


_INTERPRETERS = {
    **dict.fromkeys(("javascript", "js", "node"), "node"),
    **dict.fromkeys(("ruby", "rb"), "ruby"),
    **dict.fromkeys(("perl", "pl"), "perl"),
    **dict.fromkeys(("r", "rscript"), "Rscript -"),
    "php": "php",
    "lua": "lua -",
}


def shell_code(action: Action, harness: str) -> str:
    """A command of a shell that runs code of another language.

    Args:
        action: code of a language without a tool.
        harness: the harness, for the message.

    Raises:
        UnwritableChatError: no command is known that runs it.
    """
    language = (action.language or "").lower()
    interpreter = _INTERPRETERS.get(language)
    if interpreter is None:
        raise UnwritableChatError(f"code in {action.language}, which {harness} has no tool for")
    return heredoc(interpreter, language, code_of(action) or "")
