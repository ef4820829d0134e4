"""``swe-agent``: conversations with function calls in XML, as SWE-agent's XML parser reads them.

A call is ``<function=NAME>`` at the end of a message of the assistant, a result is a message of the
user that begins with ``OBSERVATION:``. SWE-agent brings bash, str_replace_editor and submit; Python
becomes a command, and tools of a data set become functions of the shell, or functions of their own.
Commands of SWE-agent's editor and search (``open``, ``edit``, ``find_file``) are written as such.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from adp.rendering.chat import Chat, Message
from adp.trainers.export.harness.actions import (
    Action,
    code_of,
    is_callable,
    shell_call,
    shell_code,
    shell_python,
)
from adp.trainers.export.harness.builtin_tools import editor, shell, submitter
from adp.trainers.export.harness.conversation import (
    ChatLine,
)
from adp.trainers.export.harness.offers import other_tools
from adp.trainers.export.harness.options import ShareOptions
from adp.trainers.export.harness.swe_agent_commands import command, is_command, usages
from adp.trainers.export.harness.text_rows import TextConversation, TextRows
from adp.trainers.export.harness.texts import (
    escaped,
    function_text,
    functions_prompt,
    joined,
    page_text,
    signatures,
)
from adp.trainers.export.harness.turns import HarnessTurn

_KNOWN = ("terminal", "python", "file_editor", "finish", "think")

_TASK = (
    "You are an assistant that works with a computer to solve the task of the user. Call "
    "functions, one at a time, and read the result of each call before you make the next one."
)
_END = "Call submit when the task is done, or when you cannot get any further."


class SweAgentOptions(ShareOptions):
    """Options of ``swe-agent``."""

    other_tools: Literal["bash", "tool"] = "bash"
    """How tools are called that SWE-agent does not bring: as functions of the shell, or as
    functions of their own."""
    quotes: Literal["shell", "none"] = "shell"
    """Values of functions of the shell: quoted where a shell would take them apart, or as they are,
    as the Agent Data Protocol's own scripts write them. With ``shell``, SWE-agent's own commands
    are written as its shell takes them, and with ``none`` as functions."""
    thoughts: Literal["think", "plain"] = "think"
    """The words before a call: in a think tag, as the Agent Data Protocol's own scripts write
    them, or as they are."""


_README = """
Each row is a conversation of plain texts with its system prompt. Calls stand in the text as
SWE-agent's XML parser reads them (`parse_function: {type: xml_function_calling}`); results are
messages of the user. Of the messages of the assistant, those with `weight` 1 are trained; the
others are context.

```json
{"id": "...", "conversations": [{"role": "user", "content": "..."}], "system": "..."}
```

- A trainer that reads no weights trains every message of the assistant. Export with `--set
  weights=false` to be sure that there is nothing else to say, or with `--set expand=true` for a row
  a step.
- The system prompt is a short one of our own. Take that of your SWE-agent with `--system-prompt
  FILE`: a model is best trained with the prompt that it will see.
"""


class _Writer(TextConversation):
    """Writes one chat."""

    def __init__(
        self, chat: Chat, options: SweAgentOptions, changed: Counter[str], *, quoted: bool
    ) -> None:
        super().__init__(chat, options, changed, quoted=quoted)
        self._tools = other_tools(chat, _KNOWN, changed)

    def system(self) -> str:
        """The system prompt."""
        functions = self._tools if self._options.other_tools == "tool" else []
        tools = [shell("bash"), submitter(), editor("str_replace_editor"), *functions]
        prompt = self._options.system_prompt
        prompt = functions_prompt(_TASK, tools, _END) if prompt is None else prompt
        return joined(prompt, self.signatures().strip()) if self.docs("system") else prompt

    def signatures(self) -> str:
        """What is said of tools that the harness does not bring."""
        if self._options.quotes == "none":
            return signatures(self._tools, "bash")
        functions = [tool for tool in self._tools if not is_command(tool)]
        commands = [tool for tool in self._tools if is_command(tool)]
        return signatures(functions, "bash") + usages(commands)

    def acts(self, turn: HarnessTurn) -> Iterator[ChatLine]:
        """The messages of a turn of the agent, with their results."""
        words = escaped(joined(turn.message.reasoning, turn.text), self._changed)
        weight = turn.message.weight
        if not turn.actions:
            yield ChatLine("assistant", words, weight)
        if len(turn.actions) > 1:
            self._changed["parallel calls, in a message each"] += len(turn.actions) - 1
        for action, results in zip(turn.actions, turn.results, strict=True):
            yield self._call(action, words, weight)
            words = ""
            for result in results:
                yield self.result(result)

    def _call(self, action: Action, words: str, weight: float) -> ChatLine:
        thought = f"<think>\n{words}\n</think>" if words and self._thinks else words
        if action.is_known and action.name == "think":
            more = escaped(str(action.arguments.get("thought", "")), self._changed)
            self._changed["calls of think, as words: SWE-agent has no such tool"] += 1
            inside = f"<think>\n{more}\n</think>" if self._thinks else more
            return ChatLine("assistant", joined(thought, inside), weight)
        if action.is_known and action.name == "finish":
            message = escaped(str(action.arguments.get("message", "")), self._changed)
            text = function_text("submit", {}, self._changed)
            return ChatLine("call", joined(thought, message, text), weight)
        name, arguments = self._function(action)
        text = function_text(name, arguments, self._changed)
        return ChatLine("call", joined(thought, text), weight)

    @property
    def _thinks(self) -> bool:
        return bool(self._options.thoughts == "think")

    def _function(self, action: Action) -> tuple[str, Mapping[str, Any]]:
        """Name and arguments of the function that is called."""
        if action.is_known:
            if action.name == "terminal":
                return "bash", action.arguments
            if action.name == "file_editor":
                return "str_replace_editor", action.arguments
            if action.name == "python":
                return "bash", {"command": shell_python(str(action.arguments["code"]))}
        if code_of(action) is not None:
            return "bash", {"command": shell_code(action, "SWE-agent")}
        if self._options.other_tools == "tool" or not is_callable(action.name):
            return action.name, action.arguments
        quoted = self._options.quotes == "shell"
        line = command(action) if quoted else None
        if line is None:
            line = shell_call(action.name, action.arguments, quoted=quoted)
        return "bash", {"command": line}

    def result(self, message: Message, name: str | None = None) -> ChatLine:
        """The message of a result."""
        return ChatLine("result", f"OBSERVATION:\n{escaped(page_text(message), self._changed)}")


class SweAgent(TextRows):
    """Conversations with function calls in XML."""

    name = "swe-agent"
    title = "SWE-agent with its XML parser: calls as text"
    options = SweAgentOptions
    heading = "Conversations for SWE-agent"
    readme = _README

    conversation = _Writer


EXPORTER = SweAgent()
