"""``openhands-sdk``: OpenAI messages with the tools of the OpenHands Software Agent SDK.

Shell commands and Python go to ``terminal``, edits of files to ``file_editor``; ``finish`` and
``think`` are always on offer, and tools of a data set keep their names. The SDK asks for a summary
in each call (and for a risk, where it analyses the security of actions), so the schemas say so.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from adp.rendering.chat import Chat, Message
from adp.trainers.export.exporter import ExportItem, Form, RowExporter
from adp.trainers.export.harness.actions import Action, code_of, heredoc, shell_code
from adp.trainers.export.harness.builtin_tools import editor, finisher, shell, thinker
from adp.trainers.export.harness.conversation import row_id
from adp.trainers.export.harness.offers import other_tools
from adp.trainers.export.harness.options import WeightedOptions, weighted_form
from adp.trainers.export.harness.texts import joined, page_text
from adp.trainers.export.harness.turns import HarnessTurn, turns
from adp.trainers.export.readme import page
from adp.trainers.export.shapes import plain

_KNOWN = ("terminal", "python", "file_editor", "finish", "think")

_PROMPT = (
    "You are OpenHands agent. You solve the task of the user with the tools that you are given, "
    "and you read the result of each call before you go on. Say in your own words why you make a "
    "call. Call finish when the task is done, or when you cannot get any further."
)

_SUMMARY = {"type": "string", "description": "About ten words on what this action does."}
_RISK = {
    "type": "string",
    "description": "How dangerous this action is.",
    "enum": ["UNKNOWN", "LOW", "MEDIUM", "HIGH"],
}


class OpenHandsSdkOptions(WeightedOptions):
    """Options of ``openhands-sdk``."""

    summary: bool = True
    """Each tool has the parameter summary, as the SDK gives it to the model."""
    security_risk: bool = False
    """Each tool has the parameter security_risk, as the SDK gives it to the model where it analyses
    the security of actions."""


class OpenHandsSdk(RowExporter):
    """Messages and tools in the manner of OpenAI."""

    name = "openhands-sdk"
    title = "OpenHands SDK: OpenAI messages with its tools"
    takes = "chats"
    mask = "binary"
    file = "train.jsonl"
    options = OpenHandsSdkOptions

    def form(self, options: OpenHandsSdkOptions) -> Form:
        """Weights for messages, or none."""
        return weighted_form(options, self.file)

    def row(
        self, item: ExportItem, options: OpenHandsSdkOptions, changed: Counter[str]
    ) -> dict[str, Any]:
        """One row a chat."""
        assert item.chat is not None
        writer = _Writer(item.chat, options, changed, item.trajectory.source_format == "adp_v1")
        messages = list(writer.messages())
        return {
            "id": row_id(item),
            "messages": [*writer.system(), *messages],
            "tools": writer.tools(),
            "metadata": {
                "agent": "openhands_sdk",
                "format": "openai_chat_completions",
                "source_dataset": item.trajectory.dataset,
            },
        }

    def files(self, options: OpenHandsSdkOptions, facts: Mapping[str, Any]) -> Mapping[str, str]:
        """How to train on it."""
        return {"README.md": page("Messages for the OpenHands SDK", _README, facts)}


@dataclass
class _Writer:
    """Writes one chat."""

    chat: Chat
    options: OpenHandsSdkOptions
    changed: Counter[str]
    quoted: bool
    used: set[str] = field(default_factory=set)

    def system(self) -> list[dict[str, Any]]:
        """The system prompt as a message; none when it is empty."""
        prompt = self.options.system_prompt
        prompt = _PROMPT if prompt is None else prompt
        if self.options.source_system == "append":
            words = (message.text for message in self.chat.messages if message.role == "system")
            prompt = joined(prompt, *words)
        return [{"role": "system", "content": plain(prompt)}] if prompt else []

    def tools(self) -> list[dict[str, Any]]:
        """Tools on offer: those of the SDK that are used, those of the data, finish and think."""
        tools = [make(name) for name, make in _BUILTIN.items() if name in self.used]
        tools += other_tools(self.chat, _KNOWN, self.changed)
        tools += [finisher(completed=False), thinker()]
        return [self._offered(tool["function"]) for tool in tools]

    def _offered(self, function: Mapping[str, Any]) -> dict[str, Any]:
        parameters = function.get("parameters")
        parameters = dict(parameters) if isinstance(parameters, Mapping) else {}
        properties = parameters.get("properties")
        more = {
            **({"security_risk": _RISK} if self.options.security_risk else {}),
            **({"summary": _SUMMARY} if self.options.summary else {}),
        }
        parameters = {
            **{"type": "object", **parameters},
            "properties": {**more, **(properties if isinstance(properties, Mapping) else {})},
        }
        description = function.get("description") or ""
        written = {**function, "description": description, "parameters": parameters}
        return {"type": "function", "function": plain(written)}

    def messages(self) -> Iterator[dict[str, Any]]:
        """The messages after the system prompt."""
        for turn in turns(self.chat, quoted=self.quoted):
            if turn.role == "system":
                if self.options.source_system == "drop":
                    self.changed["system messages of the source, left out"] += 1
            elif turn.role == "agent":
                yield from self._agent(turn)
            else:
                if turn.role == "result":
                    self.changed["late results, as messages of the user"] += 1
                yield {"role": "user", "content": plain(page_text(turn.message))}

    def _agent(self, turn: HarnessTurn) -> Iterator[dict[str, Any]]:
        message: dict[str, Any] = {"role": "assistant", "content": plain(turn.text)}
        if turn.message.reasoning:
            message["reasoning_content"] = plain(turn.message.reasoning)
        names: list[str] = []
        if turn.actions:
            calls = [self._call(action) for action in turn.actions]
            names = [call["function"]["name"] for call in calls]
            message["tool_calls"] = calls
        if self.options.weights:
            message["weight"] = int(turn.message.weight > 0)
        yield message
        for action, name, results in zip(turn.actions, names, turn.results, strict=True):
            yield {
                "role": "tool",
                "content": plain(self._answer(action, results)),
                "tool_call_id": plain(action.call_id),
                "name": name,
            }

    def _answer(self, action: Action, results: tuple[Message, ...]) -> str:
        """The result of a call: the SDK has exactly one for each."""
        if not results and action.is_known and action.name == "finish":
            return str(action.arguments.get("message", ""))  # as its finish tool answers
        if not results:
            self.changed["an empty result for a call that has none"] += 1
        return "\n".join(page_text(result) for result in results)

    def _call(self, action: Action) -> dict[str, Any]:
        name, arguments = self._function(action)
        self.used.add(name)
        same = arguments is action.arguments
        text = action.text if same else json.dumps(arguments, ensure_ascii=False)
        function = {"name": name, "arguments": plain(text)}
        return {"id": plain(action.call_id), "type": "function", "function": function}

    def _function(self, action: Action) -> tuple[str, Mapping[str, Any]]:
        """Name and arguments of the tool that is called."""
        if action.is_known and action.name == "python":
            command = heredoc("python", "python", str(action.arguments["code"]))
            return "terminal", {"command": command}
        if action.is_known and action.name == "finish":
            return "finish", {"message": str(action.arguments.get("message", ""))}
        if code_of(action) is not None:
            return "terminal", {"command": shell_code(action, "the OpenHands SDK")}
        return action.name, action.arguments


_BUILTIN = {"terminal": shell, "file_editor": editor}

_README = """
Each row has `messages` and `tools` in the manner of OpenAI; arguments are JSON text. Of the
messages of the assistant, those with `weight` 1 are trained; the others are context.

- A trainer that reads no weights trains every message of the assistant. Export with `--set
  weights=false` to be sure that there is nothing else to say, or with `--set expand=true` for a row
  a step.
- The system prompt and the descriptions of the SDK's tools are short ones of our own. Take the
  prompt of your OpenHands with `--system-prompt FILE`: a model is best trained with the prompt that
  it will see.
"""

EXPORTER = OpenHandsSdk()
