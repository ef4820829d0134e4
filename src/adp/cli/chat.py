"""``adp chat``: a person talks to a policy that has tools, on a terminal or by a script."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from adp.cli import process
from adp.cli.chat_input import ChatInput
from adp.cli.chat_screen import ChatScreen
from adp.cli.options import JsonReport
from adp.cli.text import epilog
from adp.rollouts.collecting.offered_tools import closed, made
from adp.rollouts.collecting.threads import DaemonThreads
from adp.rollouts.conversations.conversation import ConversationPlan, InteractiveChat
from adp.rollouts.conversations.conversation_store import ConversationStore
from adp.rollouts.policies.names import policy_spec
from adp.rollouts.policy import POLICIES
from adp.rollouts.spec import load, load_environment
from adp.rollouts.tool_environment import ToolEnvironment
from adp_schema.errors import AdpError, RolloutError, UsageError

_T = TypeVar("_T")

EPILOG = epilog("adp chat runs/sft --env calculator --store chats", 2, 3, 5, 12)


def chat(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="Folder of a model or an adapter, tiny, or a policy such as openai:model=m.",
        ),
    ],
    env: Annotated[
        str | None,
        typer.Option("--env", "-e", metavar="ENV", help="Environment: NAME[:key=value,...]."),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option("--store", "-o", metavar="STORE", help="Keep what is said in this store."),
    ] = None,
    max_turns: Annotated[
        int, typer.Option(min=1, help="Turns of the model after a message, at most.")
    ] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the environment and the model.")] = 0,
    as_json: JsonReport = False,
) -> None:
    """Talk to a model that has the tools of an environment.

    Its turns, calls and results are shown as they come. Each line of a pipe is a message or a
    command (/help lists them); with --json there is one JSON object a turn. With --store a
    conversation becomes a trajectory of a growing store, when it ends or when a killed one is gone
    on with. The exit code is 12 when the last message of a pipe was not answered.
    """
    policy_kind, policy_about = load(POLICIES, policy_spec(model))
    name = None
    environments: Any = ToolEnvironment
    if env is not None:
        kind, about = load_environment(env)
        name, environments = kind.name, lambda: made(kind, about)
        closed(made(kind, about))
    screen = ChatScreen(as_json=as_json)
    with asyncio.Runner() as runner:
        runner.get_loop().set_default_executor(DaemonThreads("adp-tool"))
        policy = policy_kind.make(policy_about)
        plan = ConversationPlan(policy, environments, name, max_turns, seed)
        session = _Session(runner, InteractiveChat(plan, screen, None), screen)
        try:
            if store is not None:
                session.save(store)
            session.talk()
        finally:
            session.end()
            runner.run(policy.close())
    if session.failed and not session.reader.asks:
        raise RolloutError("the last message was not answered; the reason is above")


@dataclass
class _Session:
    """One call of the command."""

    _runner: asyncio.Runner
    _conversation: InteractiveChat
    _screen: ChatScreen
    failed: bool = False

    def __post_init__(self) -> None:
        self.reader = ChatInput()

    def talk(self) -> None:
        """Read messages and commands until the end."""
        if self.reader.asks:
            self._screen.note("say something; /help lists the commands, Ctrl-D ends")
        while True:
            try:
                line = self.reader.read()
            except KeyboardInterrupt:
                if not self.reader.asks:
                    raise
                process.was_interrupted()
                print()
                continue
            if line is None or line == ("/quit", True):
                return
            text, is_command = line
            if is_command:
                self._command(*text.partition(" ")[::2])
            elif text.strip():
                self._say(text)

    def _say(self, text: str) -> None:
        try:
            with self._screen.waiting():
                self.failed = not self._run(self._conversation.say(text))
        except KeyboardInterrupt:
            if not self.reader.asks:
                raise
            process.was_interrupted()  # it is answered
            self._screen.note("stopped; say something to go on, or /undo")

    def _command(self, name: str, rest: str) -> None:
        try:
            match name:
                case "/tools":
                    self._screen.tools(self._run(self._conversation.tools()))
                case "/reset":
                    self._run(self._conversation.reset())
                    self._screen.note("another conversation begins")
                case "/undo":
                    undone = self._run(self._conversation.undo())
                    self._screen.note("undone" if undone else "there is nothing to undo")
                case "/save":
                    self.save(rest.strip())
                case "/help":
                    self._screen.help()
                case _:
                    raise UsageError(f"there is no command {name}; /help lists them")
        except AdpError as error:
            if not self.reader.asks:
                raise
            self._screen.note(str(error))

    def save(self, place: str) -> None:
        """Keep the conversation in a store from now on.

        Raises:
            UsageError: no store is named, or another one is under way.
            StoreError: it cannot be written to.
        """
        current = self._conversation.store
        if current is None:
            if not place:
                raise UsageError("name a store: /save STORE")
            current = self._conversation.store = ConversationStore(Path(place))
            self._screen.kept(place, current.recovered, current.damaged)
        elif place and Path(place).resolve() != current.root.resolve():
            raise UsageError(f"this is kept in {current.root}; it cannot go to two stores")
        self._run(self._conversation.keep())
        self._screen.note(f"kept in {current.root}, where it is a trajectory when it ends")

    def end(self) -> None:
        """End the conversation, and free what it holds."""
        try:
            self._run(self._conversation.reset())
        finally:
            if self._conversation.store is not None:
                self._conversation.store.close()

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        return self._runner.run(work)
