"""What `adp chat` shows: turns, calls and results as they come, or one JSON object a turn."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from rich.text import Text

from adp.cli.chat_input import COMMANDS, HELP
from adp.cli.text import console, visible
from adp.rollouts.tools import plain
from adp.rollouts.turns import Outcome, Tool, Turn

LONGEST = 4_000
"""Characters of a result that are shown."""


class ChatScreen:
    """Shows a conversation. Nothing that a model or a tool says reaches a terminal as a control.

    Args:
        as_json: print one JSON object a turn, and nothing else.
    """

    def __init__(self, *, as_json: bool) -> None:
        self._console = console()
        self._json = as_json
        self._turn: Turn | None = None

    def waiting(self) -> AbstractContextManager[Any]:
        """Show on a terminal that something is under way."""
        if self._json or not self._console.is_terminal:
            return nullcontext()
        return self._console.status("Ctrl-C stops this turn")

    def turn(self, turn: Turn) -> None:
        """Show a turn."""
        self._turn = turn
        if turn.reasoning:
            self._print(turn.reasoning, "dim italic")
        if turn.text or not turn.calls:
            self._print(turn.text or "(an empty answer)", "" if turn.text else "dim")
        for call in turn.calls:
            self._print(f"-> {call.name}({call.arguments})", "cyan")

    def outcome(self, outcome: Outcome) -> None:
        """Show what the calls of the last turn brought."""
        for result in outcome.results:
            text = result.text
            if len(text) > LONGEST:
                text = f"{text[:LONGEST]}\n... {len(text) - LONGEST:,} more characters"
            self._print(f"<- {text}", "red" if result.error else "green")
        if self._json and self._turn is not None:
            self._line(_as_json(self._turn, outcome))
        self._turn = None

    def ended(self, columns: Mapping[str, Any]) -> None:
        """Show why a turn broke, or how the environment ended the episode."""
        if self._json:
            names = ("error_type", "error_message", "stop_reason")
            self._line({name: columns[name] for name in names if columns.get(name)})
        elif columns.get("error_message"):
            self._print(f"{columns['error_type']}: {columns['error_message']}", "red")
            self.note("nothing was answered; say something to go on, or /undo")
        elif columns.get("truncated"):
            self.note(f"cut: {columns.get('stop_reason')}; /reset begins another conversation")
        else:
            self.note(f"the environment ended the episode: {columns.get('stop_reason')}")

    def turns_used_up(self, turns: int) -> None:
        """Show that the policy did not come to an answer."""
        self.note(f"stopped after {turns} turns without an answer; say something to go on")

    def tools(self, tools: Sequence[Tool]) -> None:
        """Show the tools on offer."""
        if self._json:
            self._line({"tools": plain(tools)})
            return
        if not tools:
            self.note("no tools; give an environment with --env")
        for tool in tools:
            function = tool["function"]
            properties = (function.get("parameters") or {}).get("properties") or {}
            self._print(f"{function['name']}({', '.join(map(str, properties))})", "cyan")
            self._print(f"    {function.get('description') or ''}")

    def help(self) -> None:
        """Show the commands."""
        width = max(map(len, COMMANDS))
        for name, about in COMMANDS.items():
            self.note(f"{name:<{width}}  {about}")
        self.note(HELP)

    def note(self, text: str) -> None:
        """Say something of the program's own."""
        if not self._json:
            self._print(text, "dim")

    def kept(self, store: str, recovered: Iterable[str], damaged: Iterable[Any]) -> None:
        """Say where a conversation is kept, and what an earlier process had left there."""
        for name in recovered:
            self.note(f"{name}: left by a process that was killed; it is in {store} now")
        for path in damaged:
            print(f"{path} is no draft of a conversation; it was left there", file=sys.stderr)

    def _print(self, text: str, style: str = "") -> None:
        if not self._json:
            self._console.print(Text(visible(text), style), soft_wrap=True)

    def _line(self, value: Mapping[str, Any]) -> None:
        # Only ASCII, so no control character either.
        print(json.dumps(plain(value)), flush=True)


def _as_json(turn: Turn, outcome: Outcome) -> dict[str, Any]:
    calls = [{"id": call.call_id, "name": call.name, "arguments": call.arguments}
             for call in turn.calls]  # fmt: skip
    results = [
        {
            "id": result.call_id,
            "name": result.name,
            "text": result.text,
            "error": None if result.error is None else str(result.error),
        }
        for result in outcome.results
    ]
    return {
        "text": turn.text,
        "reasoning": turn.reasoning,
        "calls": calls,
        "results": results,
        "malformed": turn.malformed,
        "stop_reason": outcome.stop_reason or turn.stop_reason,
    }
