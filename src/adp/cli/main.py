"""The command ``adp``: a table of commands, each imported only when it is called.

Every error ends as one sentence on stderr and an exit code; ``ADP_DEBUG=1`` shows the traceback
of an unexpected one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextvars import copy_context
from functools import lru_cache
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from adp.cli import process, write_errors
from adp.cli.commands import (
    BUILTIN,
    WRITE_ON_DEMAND,
    command_table,
    plugin_commands,
    sections,
    verifies,
)
from adp.cli.engine_options import let_choose_engine
from adp.cli.process import STOPPED
from adp.core.code_files import attribute_of
from adp_schema.errors import AdpError, OutputExistsError, UsageError, unknown_name
from adp_schema.unfinished import calling, goes_on

UNEXPECTED = 70

_GOES_ON = {
    "collect": "the same call goes on, with the episodes that are not whole yet",
    "evolve": "the same call goes on, with what is not there yet",
    "eval": "the same call goes on, with the episodes that are not whole yet",
    "train": "the same call with --resume goes on from the last checkpoint, if there is one",
    "seal": "the same call goes on",
    "loop": "the same call goes on",
}
"""Command -> what to do after Ctrl-C, at whatever moment it came."""

_WHOLE = "the output is whole if it is there, else the same call begins anew"
_FILES = "files that are there are whole; the same call wants another -o, or these removed"
_ANEW = {
    **dict.fromkeys(("convert", "merge", "drop", "redact", "curate", "publish"), _WHOLE),
    **dict.fromkeys(("pull", "report", "score", "merge-adapter"), _WHOLE),
    **dict.fromkeys(("query", "rejects", "tokens"), _WHOLE),
    "export": _FILES,
}
"""Command -> what to say after Ctrl-C when it has left no run that goes on."""

_ON_DEMAND = frozenset({"query", "rejects", "tokens"})
"""Commands of them that leave something only where they are told to write: -o."""

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}


class LazyGroup(TyperGroup):
    """A group that knows its commands by name and imports one when it is asked for.

    Contexts and commands are of type Any: typer took click's classes up to some version and
    brings its own ones since.
    """

    _completing = False

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Complete the name of a command, from the table alone."""
        self._completing = True
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self._completing = False

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the commands."""
        return list(command_table())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command; None when there is none of this name."""
        entry = BUILTIN.get(cmd_name) or plugin_commands().get(cmd_name)
        if self._completing and entry:
            return TyperCommand(cmd_name, short_help=entry[1])
        return load_command(cmd_name, *entry) if entry else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the arguments begin with.

        Raises:
            UsageError: there is none of this name.
        """
        name = args[0]
        if not name.startswith("-") and name not in BUILTIN and name not in plugin_commands():
            raise UsageError(unknown_name("command", name, command_table()))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands by section, from the table alone."""
        width = max(len(name) for name in command_table())
        for section, commands in sections().items():
            with formatter.section(section):
                formatter.write_dl(
                    [(name.ljust(width), line) for name, (_, line) in commands.items()]
                )


def load_command(name: str, target: str, line: str) -> Any:
    """Import a command function (or a typer app) and make a command of it.

    The function's docstring is its help. A module may have an ``EPILOG``: examples, exit codes.

    Raises:
        UsageError: the module of an installed package cannot be imported.
    """
    result = attribute_of(target)
    epilog = getattr(sys.modules[target.partition(":")[0]], "EPILOG", None)
    skips = verifies(name) or name in WRITE_ON_DEMAND
    return _made_of(result, name, line, epilog, skips=skips)


@lru_cache(maxsize=256)
def _made_of(result: Any, name: str, line: str, epilog: str | None, *, skips: bool) -> Any:
    """The command of a function, made once: a program, or a test, may call it many times."""
    if isinstance(result, typer.Typer):
        group: Any = typer.main.get_command(result)
        for part in group.commands.values():
            _let_skip(part, skips=skips)
        return group
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    register = single.command(name, short_help=line, epilog=epilog, context_settings=HELP_OPTIONS)
    register(result)
    return let_choose_engine(_let_skip(typer.main.get_command(single), skips=skips))


def _let_skip(command: Any, *, skips: bool) -> Any:
    """Give a command that hashes the stores that it reads an option not to do so."""
    if skips:
        giver = typer.Typer(add_completion=False)
        giver.command()(_skipping)
        (skip,) = (param for param in typer.main.get_command(giver).params if param.name != "help")
        skip.expose_value = False
        command.params.append(skip)
    return command


def _skip_hashes(wanted: bool) -> None:
    if wanted:
        from adp_schema.verification import hash_nothing

        hash_nothing()


def _skipping(
    no_verify: Annotated[
        bool,
        typer.Option(
            "--no-verify", callback=_skip_hashes, help="Do not hash the stores that are read."
        ),
    ] = False,
) -> None:
    """Carry the option --no-verify, which other commands get."""


app = typer.Typer(
    name="adp",
    cls=LazyGroup,
    rich_markup_mode=None,
    context_settings=HELP_OPTIONS,
    epilog="\b\nExample:\n  adp convert logs/ -o my_store && adp stats my_store",
)


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Convert, query, curate, train on and evaluate agent trajectories."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Args:
        arguments: the words after ``adp``; None takes them from the process.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal that cannot show a character must not stop the command.
            stream.reconfigure(errors="backslashreplace")
    if arguments is not None:
        return _ended(arguments)
    process.keep_interrupts()
    try:
        code = _ended(None)
        # The command has ended: Ctrl-C while Python itself ends would show a traceback.
        process.ignore_interrupts()
    except KeyboardInterrupt:  # pressed again, while the first one was answered
        code = _stopped(None)
    engine = sys.modules.get("adp_schema.gate_engine")
    if engine is not None and engine.unfinished():
        process.leave_at_once(code)  # Python would wait for a query that does not stop
    if code == STOPPED:
        process.leave(code)
    return code


def _ended(arguments: Sequence[str] | None) -> int:
    """Run a command; whatever ends it becomes an exit code."""
    try:
        code = copy_context().run(_call, arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return _leave_pipe()
    except KeyboardInterrupt:
        return _stopped(arguments)
    except (GeneratorExit, SystemExit):
        raise
    except BaseException as error:  # the panics of Polars are no Exception
        if process.was_interrupted() or _is_interrupt(error):
            return _stopped(arguments)
        if isinstance(error, AdpError):
            return _complain(str(error), error.exit_code)
        return _explain(error, sys.argv[1:] if arguments is None else arguments)


def _stopped(arguments: Sequence[str] | None) -> int:
    """Say that Ctrl-C ended a command, and what the same call does."""
    if arguments is None:
        process.ignore_interrupts()  # who presses it twice reads the sentence once
    return _complain(f"stopped{_way_on(arguments)}", STOPPED, label="")


def _is_interrupt(error: BaseException) -> bool:
    """Whether Ctrl-C led to an error: a library may have made another one of it."""
    return any(isinstance(cause, KeyboardInterrupt) for cause in write_errors.chain(error))


def _way_on(arguments: Sequence[str] | None) -> str:
    """What the same call does after Ctrl-C; empty for those that write nothing."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    command = words[0] if words else ""
    if command in _GOES_ON:
        return f"; {_GOES_ON[command]}"
    remark = _ANEW.get(command, "" if command in BUILTIN else _FILES)
    if remark and ((command in _ANEW and command not in _ON_DEMAND) or _is_told(words)):
        return f"; {'the same call goes on where it stopped' if goes_on() else remark}"
    return ""


def _is_told(words: Sequence[str]) -> bool:
    """Whether a command is told where to write."""
    return any(word.startswith(("-o", "--out")) for word in words)


def _call(arguments: Sequence[str] | None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["--version"]:
        # Not left to typer, which imports pydantic as soon as it reads an option.
        from adp.version import __version__

        typer.echo(f"adp {__version__}")
        return 0
    group = typer.main.get_command(app)
    try:
        _choose_hashing(words)
        with calling(words):
            code = group.main(words or ["--help"], prog_name="adp", standalone_mode=False)
    except SystemExit as stop:
        if stop.code == 1:
            # The library under typer leaves like this when a pipe breaks.
            raise BrokenPipeError from stop
        return stop.code if isinstance(stop.code, int) else 0
    except typer.Abort as stop:
        raise KeyboardInterrupt from stop
    if code == STOPPED:
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0


def _choose_hashing(words: Sequence[str]) -> None:
    """Let a command hash what it reads in stores, if it makes something from that."""
    if known := sys.modules.get("adp_schema.verification"):
        known.forget()
    name = words[0] if words else ""
    if verifies(name) or (name in WRITE_ON_DEMAND and _is_told(words)):
        from adp_schema.verification import hash_all

        hash_all()


def _leave_pipe() -> int:
    """The reader of our output is gone: end quietly, also when Python flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _explain(error: BaseException, words: Sequence[str]) -> int:
    """One sentence for an exception that is no `AdpError`."""
    if os.environ.get("ADP_DEBUG"):
        import traceback

        traceback.print_exc()
    message = getattr(error, "format_message", None)
    if message is not None:  # the call did not parse
        context = getattr(error, "ctx", None)
        path = context.command_path if context else _command_path(words)
        text = str(message()).strip().rstrip(".").replace("Value error, ", "")
        return _complain(f"{text[:1].lower()}{text[1:]}; see: {path} --help", UsageError.exit_code)
    if damaged := _damaged():
        return _complain(str(damaged), damaged.exit_code)
    if refused := write_errors.explain(error, words):
        return _complain(refused, OutputExistsError.exit_code)
    if "huggingface_hub" in sys.modules:
        from adp_schema.errors import HubError
        from adp_schema.hub import HubPath, explain

        if sentence := explain(error, HubPath("the repository")):
            return _complain(sentence, HubError.exit_code)
    if isinstance(error, OSError) and error.errno:
        # Arrow puts the name of the file into the text; Python keeps the two apart.
        place = f" {error.filename}" if error.filename else ""
        return _complain(f"cannot read or write{place}: {error.strerror}", 5)
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(error, arrow.ArrowException):
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        return _complain(f"a file is damaged ({first}); check with: adp info STORE --verify", 5)
    return _complain(
        f"unexpected {type(error).__name__}: {error}; please report it with the output of the "
        "same command under ADP_DEBUG=1 at the project's issue tracker",
        UNEXPECTED,
    )


def _command_path(words: Sequence[str]) -> str:
    """The command that a call names, where its parser failed before it knew."""
    path = ["adp"]
    if words and words[0] in command_table():
        path.append(words[0])
        is_group = command_table()[words[0]][0].endswith(":app")
        path += [word for word in words[1:2] if is_group and not word.startswith("-")]
    return " ".join(path)


def _damaged() -> AdpError | None:
    """The error for a damaged store that this call read: what it leads to takes many forms."""
    verifying = sys.modules.get("adp_schema.verification")
    return verifying.explain() if verifying is not None else None


def _complain(sentence: str, code: int, *, label: str = "error: ") -> int:
    """Print a sentence on stderr, in red on a terminal, and return the exit code.

    Several faults are lines that begin with a dash.
    """
    from adp.stores.visible_text import visible

    parts = [" ".join(part.split()) for part in f"{label}{sentence}".split("\n- ")]
    line = visible("\n- ".join(parts))
    red = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    print(f"\x1b[31m{line}\x1b[0m" if red else line, file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
