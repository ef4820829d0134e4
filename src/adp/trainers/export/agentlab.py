"""``agentlab``: a row a step, as AgentLab's generic agent sees a page and acts on it.

The prompt holds the goal, the accessibility tree of the page, the actions and what was done
before; the answer is a JSON object with ``thought`` and ``action``, a call of BrowserGym. Only
trained steps become rows, so every answer is trained; the others stand among the past actions.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from adp.rendering.chat import Chat, Message
from adp.trainers.export.exporter import ExportCounts, ExportItem, Form, RowExporter
from adp.trainers.export.harness.action_space import described
from adp.trainers.export.harness.actions import BROWSER_ACTIONS, Action, gym_call
from adp.trainers.export.harness.conversation import row_id, with_source_system
from adp.trainers.export.harness.offers import other_tools
from adp.trainers.export.harness.options import HarnessOptions, Keys
from adp.trainers.export.harness.texts import joined
from adp.trainers.export.harness.turns import HarnessTurn, turns
from adp.trainers.export.readme import page
from adp.trainers.export.shapes import plain

_PROMPT = (
    "# Instructions\nYou act in a web browser to reach the goal of the user. Look at the page and "
    "at what was done before, and choose the next action. A program reads your answer, so keep to "
    "its form."
)
_FORM = (
    "# Next action\nAnswer with one JSON object with the keys thought and action: in thought, why "
    "you act; in action, one action of the list above. When the goal is reached, tell the user "
    "with send_msg_to_user."
)


class AgentLabOptions(HarnessOptions):
    """Options of ``agentlab``."""

    keys: Keys = "role"
    """Keys of a message: role and content, or from and value with human and gpt."""
    action_space: Literal["short", "browsergym"] = "short"
    """How the actions are described: in a line each, or in the words of the package
    browsergym-core, which must be installed."""


class AgentLab(RowExporter):
    """Prompts and answers of single steps."""

    name = "agentlab"
    title = "AgentLab, BrowserGym: a row a step with the page"
    takes = "chats"
    mask = "binary"
    file = "train.jsonl"
    options = AgentLabOptions

    def form(self, options: AgentLabOptions) -> Form:
        """A row has one message of the assistant, and it is trained."""
        return Form("chats", "binary", self.file)

    def rows(
        self, item: ExportItem, options: AgentLabOptions, tally: ExportCounts
    ) -> Iterator[dict[str, Any]]:
        """A row for each trained step of a chat."""
        assert item.chat is not None
        steps = _Steps(item.chat, options, tally.changed, item.trajectory.source_format)
        prompt = _PROMPT if options.system_prompt is None else options.system_prompt
        system = with_source_system(prompt, item.chat, options)
        for number, (asked, answer) in enumerate(steps.rows()):
            yield {
                "id": f"{row_id(item)}-{number}",
                "conversations": [
                    _message("user", asked, options),
                    _message("assistant", answer, options),
                ],
                "system": system,
            }

    def files(self, options: AgentLabOptions, facts: Mapping[str, Any]) -> Mapping[str, str]:
        """How to train on it."""
        return {"README.md": page("Steps for AgentLab", _README, facts)}


def _message(role: Literal["user", "assistant"], text: str, options: AgentLabOptions) -> Any:
    if options.keys == "from":
        return {"from": {"user": "human", "assistant": "gpt"}[role], "value": plain(text)}
    return {"role": role, "content": plain(text)}


class _Steps:
    """The steps of one chat."""

    def __init__(
        self, chat: Chat, options: AgentLabOptions, changed: Counter[str], source: str | None
    ) -> None:
        self._chat = chat
        self._changed = changed
        self._drops_system = options.source_system == "drop"
        self._quoted = source == "adp_v1"
        tools = other_tools(chat, BROWSER_ACTIONS | {"browser", "finish"}, changed)
        self._actions = described(options.action_space, tools)
        self._goal: str | None = None
        self._tree: str | None = None
        self._words: list[str] = []
        self._past: list[str] = []

    def rows(self) -> Iterator[tuple[str, str]]:
        """Prompt and answer of each trained step."""
        for turn in turns(self._chat, quoted=self._quoted):
            if turn.role == "system":
                if self._drops_system:
                    self._changed["system messages of the source, left out"] += 1
            elif turn.role != "agent":
                self._see(turn.message)
            else:
                answer = self._answer(turn)
                if turn.message.weight > 0:
                    yield self._prompt(), answer
                self._past.append(answer)
                self._words = []
                for results in turn.results:
                    for result in results:
                        self._see(result)

    def _see(self, message: Message) -> None:
        """Take in what the user or the environment says."""
        shown = message.page
        is_page = shown is not None and (shown.tree is not None or shown.is_text)
        if shown is not None and is_page:
            self._tree = message.text if shown.tree is None else shown.tree
        text = "" if shown is not None and shown.is_text else message.text
        if self._goal is None and message.role == "user" and text:
            self._goal = text
        elif text:
            self._words.append(text)

    def _prompt(self) -> str:
        return joined(
            f"# Goal\n{self._goal or ''}",
            None if self._tree is None else f"# Current page Accessibility Tree\n{self._tree}",
            "# Observation\n" + "\n\n".join(self._words) if self._words else None,
            self._actions,
            "# History of past actions\n" + "\n".join(self._past),
            _FORM,
        )

    def _answer(self, turn: HarnessTurn) -> str:
        thought = turn.message.reasoning or ""
        if turn.actions:
            thought = joined(thought, turn.text)
            action = "\n".join(self._action(action) for action in turn.actions)
        else:
            action = _send(turn.text)
        return json.dumps({"thought": thought, "action": action}, ensure_ascii=False)

    def _action(self, action: Action) -> str:
        if action.is_known and action.name == "finish":
            return _send(str(action.arguments.get("message", "")))
        if action.is_known and action.name == "browser":
            return str(action.arguments["code"])
        return gym_call(action.name, action.arguments)


def _send(text: str) -> str:
    """The action that tells the user something."""
    return f"send_msg_to_user(text={json.dumps(text, ensure_ascii=False)})"


_README = """
Each row is one step: a prompt with the goal, the page and the past actions, and an answer, which is
trained.

- The prompts are short ones of our own. `--system-prompt FILE` takes another system prompt, and
  `--set action_space=browsergym` the words of BrowserGym on its actions.
"""

EXPORTER = AgentLab()
