"""``openhands-v0``: conversations with function calls as text, as OpenHands 0.x writes them.

OpenHands does so for models without function calling (``fn_call_converter`` of its SDK): a call is
``<function=NAME>`` at the end of a message of the assistant, a result is a message of the user that
begins with ``EXECUTION RESULT of [NAME]:``. Tools of a data set that OpenHands does not know are
called in Python, as the Agent Data Protocol's own scripts do, or as functions of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from adp.rendering.chat import Chat, Message
from adp.trainers.export.harness.actions import (
    BROWSER_ACTIONS,
    Action,
    code_of,
    is_callable,
    python_call,
)
from adp.trainers.export.harness.builtin_tools import (
    browser,
    editor,
    finisher,
    notebook,
    shell,
    thinker,
)
from adp.trainers.export.harness.conversation import (
    ChatLine,
)
from adp.trainers.export.harness.offers import other_tools
from adp.trainers.export.harness.options import ShareOptions
from adp.trainers.export.harness.text_rows import TextConversation, TextRows
from adp.trainers.export.harness.texts import (
    escaped,
    function_text,
    functions_prompt,
    joined,
    page_text,
    signatures,
)
from adp.trainers.export.harness.turns import HarnessTurn, shows_pages

_NAMES = {
    "terminal": "execute_bash",
    "python": "execute_ipython_cell",
    "file_editor": "str_replace_editor",
    "browser": "browser",
    "finish": "finish",
    "think": "think",
}
_PLACES = {
    "python": ("execute_ipython_cell", "code"),
    "bash": ("execute_bash", "command"),
    "browser": ("browser", "code"),
}

_TASK = (
    "You are OpenHands agent. You solve the task of the user by calling functions, one at a time, "
    "and you read the result of each call before you make the next one."
)
_END = "Call finish when the task is done, or when you cannot get any further."


class OpenHandsV0Options(ShareOptions):
    """Options of ``openhands-v0``."""

    other_tools: Literal["python", "bash", "browser", "tool"] = "python"
    """How tools are called that OpenHands does not bring: as Python in execute_ipython_cell, as a
    function of the shell in execute_bash, as an action of the browser, or as functions of their
    own."""
    values: Literal["block", "inline"] = "block"
    """Where the value of a parameter stands: always on lines of its own, or, as OpenHands itself
    writes it, beside its tags when it has one line."""


_README = """
Each row is a conversation of plain texts with its system prompt. Calls stand in the text as
OpenHands writes them for models without function calling; results are messages of the user. Of the
messages of the assistant, those with `weight` 1 are trained; the others are context.

```json
{"id": "...", "conversations": [{"role": "user", "content": "..."}], "system": "..."}
```

- A trainer that reads no weights trains every message of the assistant. Export with `--set
  weights=false` to be sure that there is nothing else to say, or with `--set expand=true` for a row
  a step.
- The system prompt is a short one of our own. Take that of your OpenHands with `--system-prompt
  FILE`: a model is best trained with the prompt that it will see.
"""


class _Writer(TextConversation):
    """Writes one chat."""

    def __init__(
        self, chat: Chat, options: OpenHandsV0Options, changed: Counter[str], *, quoted: bool
    ) -> None:
        super().__init__(chat, options, changed, quoted=quoted)
        self._is_web = shows_pages(chat)
        known = {*_NAMES, *(BROWSER_ACTIONS if self._is_web else ())}
        self._tools = other_tools(chat, known, changed)

    def system(self) -> str:
        """The system prompt."""
        if self._options.system_prompt is not None:
            prompt = self._options.system_prompt
        else:
            builtin = [
                shell("execute_bash"),
                notebook("execute_ipython_cell"),
                editor("str_replace_editor"),
                *([browser()] if self._is_web else []),
                thinker(),
                finisher(completed=True),
            ]
            functions = self._tools if self._options.other_tools == "tool" else []
            prompt = functions_prompt(_TASK, [*builtin, *functions], _END)
        return joined(prompt, self.signatures().strip()) if self.docs("system") else prompt

    def signatures(self) -> str:
        """What is said of tools that the harness does not bring."""
        return signatures(self._tools, _PLACES[self._options.other_tools][0])

    def lines(self) -> Iterator[ChatLine]:
        """The messages, in order."""
        last: ChatLine | None = None
        for turn, line in self.lines_of_turns():
            is_page = turn.message.page is not None and line.kind == "user"
            if is_page and last is not None and last.kind == "user":
                last.text = joined(last.text, line.text)
                continue
            if last is not None:
                yield last
            last = line
        if last is not None:
            yield last

    def acts(self, turn: HarnessTurn) -> Iterator[ChatLine]:
        """The messages of a turn of the agent, with their results."""
        words = escaped(joined(turn.message.reasoning, turn.text), self._changed)
        weight = turn.message.weight
        if not turn.actions:
            yield ChatLine("assistant", words, weight)
        if len(turn.actions) > 1:
            self._changed["parallel calls, in a message each"] += len(turn.actions) - 1
        for action, results in zip(turn.actions, turn.results, strict=True):
            name, arguments = self._call(action)
            text = function_text(name, arguments, self._changed, self._options.values)
            yield ChatLine("call", joined(words, text), weight)
            words = ""
            for result in results:
                yield self.result(result, name)

    def result(self, message: Message, name: str | None = None) -> ChatLine:
        """The message of a result."""
        name = name or message.name or "function"
        text = escaped(page_text(message), self._changed)
        return ChatLine("result", f"EXECUTION RESULT of [{name}]:\n{text}")

    def _call(self, action: Action) -> tuple[str, Mapping[str, Any]]:
        """Name and arguments of the function that is called."""
        if action.is_known and action.name in _NAMES:
            return _NAMES[action.name], action.arguments
        code = code_of(action)
        if code is not None:
            return "execute_ipython_cell", {"code": f"{action.language}({code!r})"}
        place = self._options.other_tools
        if self._is_web and action.name in BROWSER_ACTIONS:
            place = "browser"
        if place == "tool" or not is_callable(action.name):
            return action.name, action.arguments
        function, argument = _PLACES[place]
        return function, {argument: python_call(action.name, action.arguments)}


class OpenHandsV0(TextRows):
    """Conversations with function calls as text."""

    name = "openhands-v0"
    title = "OpenHands without function calling: calls as text"
    options = OpenHandsV0Options
    heading = "Conversations for OpenHands"
    readme = _README

    conversation = _Writer


EXPORTER = OpenHandsV0()
