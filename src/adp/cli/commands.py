"""The commands by name: those of this package, and those of installed ones."""

from __future__ import annotations

import ast
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from adp_schema.errors import UsageError

COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "In and out": {
        "convert": ("adp.cli.convert:convert", "Convert traces, logs and data sets into a store."),
        "export": ("adp.cli.export:export", "Write a store out in another format."),
        "merge": ("adp.cli.merge:merge", "Put several stores into one."),
        "drop": ("adp.cli.drop:drop", "Write a new store without some trajectories."),
        "publish": ("adp.cli.publish:publish", "Publish a store on the Hugging Face Hub."),
        "pull": ("adp.cli.pull:pull", "Bring a published store from the Hugging Face Hub."),
        "parse": ("adp.cli.parse:parse", "Read calls and results out of texts."),
        "redact": ("adp.cli.redact:redact", "Write a new store without secrets or personal data."),
        "formats": ("adp.cli.formats:formats", "List the formats that are read and written."),
        "rejects": ("adp.cli.rejects:rejects", "Show the records that could not be converted."),
        "seal": ("adp.cli.seal:seal", "End a growing store, so that it never changes again."),
    },
    "Curate": {
        "curate": ("adp.cli.curate:curate", "Make a data set out of stores by a recipe."),
        "why": ("adp.cli.why:why", "Say why a trajectory is in a data set, or out."),
        "diff": ("adp.cli.diff:diff", "Compare what two curations kept."),
    },
    "Train": {
        "tokens": ("adp.cli.tokens:tokens", "Count the tokens of a store, and those trained."),
        "train": (
            "adp.cli.train:app",
            "Train a model: SFT, DPO, KTO, GRPO, distillation, reward.",
        ),
        "loop": ("adp.cli.loop:loop", "Do rounds of collecting, selecting, training, evaluating."),
        "job": ("adp.cli.job:job", "Write a batch script for Slurm or LSF."),
        "methods": ("adp.cli.methods:methods", "List methods that select data and train on them."),
        "compare": ("adp.cli.compare:compare", "Select, train and measure by several methods."),
        "merge-adapter": (
            "adp.cli.merge_adapter:merge_adapter",
            "Put an adapter into its model, and save that.",
        ),
        "push-model": (
            "adp.cli.push_model:push_model",
            "Push what a training made to the Hugging Face Hub.",
        ),
    },
    "Evaluate": {
        "collect": (
            "adp.cli.collect:collect",
            "Let a policy act in an environment; a store of episodes.",
        ),
        "chat": ("adp.cli.chat:chat", "Talk to a model that has tools, on a terminal."),
        "make": ("adp.cli.make:app", "Make data: calls that are carried out, and their tasks."),
        "evolve": (
            "adp.cli.evolve:evolve",
            "Make new trajectories of those of a store, in rounds.",
        ),
        "eval": ("adp.cli.evaluate:evaluate", "Run a suite: collect, score, print the figures."),
        "score": ("adp.cli.score:score", "Score the trajectories of a store."),
        "judge": ("adp.cli.judge:app", "Check a judge, or let it compare two stores."),
        "serve-search": (
            "adp.cli.serve_search:serve_search",
            "Serve a search over documents to environments.",
        ),
    },
    "Extend": {
        "conformance": (
            "adp.cli.conformance:conformance",
            "Try whether a format keeps or reports everything.",
        ),
        "new": ("adp.cli.new:new", "Write a small package with a plug-in and its test."),
    },
    "Look": {
        "doctor": (
            "adp.cli.doctor:doctor",
            "Say what files hold, and how complete it is.",
        ),
        "info": ("adp.cli.info:info", "Say what a store holds, and check its files."),
        "head": ("adp.cli.head:head", "List the first trajectories, one a line."),
        "sample": ("adp.cli.sample:sample", "List some trajectories, the same ones every time."),
        "show": ("adp.cli.show:show", "Show one trajectory for reading."),
        "stats": ("adp.cli.stats:stats", "Count steps, calls, errors, tokens and success."),
        "report": ("adp.cli.report:app", "Report data or evaluations, as HTML or Markdown."),
        "query": ("adp.cli.query:query", "Ask a store in SQL."),
        "search": ("adp.cli.search:search", "Search the texts of a store for words."),
        "validate": ("adp.cli.validate:validate", "Check trajectories, and say how to mend them."),
    },
}
"""Section -> command -> (where its function or typer app is, one line of help)."""

VERIFYING = frozenset(
    {
        *(
            "convert",
            "export",
            "merge",
            "drop",
            "parse",
            "publish",
            "redact",
            "seal",
            "curate",
            "train",
        ),
        *(
            "tokens",
            "collect",
            "make",
            "evolve",
            "eval",
            "score",
            "report",
            "loop",
            "compare",
            "make",
        ),
    }
)
"""Commands that make a store or files from what they read in stores, so that they hash all of it
first; see `adp_schema.verification`."""

WRITE_ON_DEMAND = frozenset({"query", "rejects", "search"})
"""Commands that do so when they are told to write, by -o, or when they make an index."""

BUILTIN = {name: entry for section in COMMANDS.values() for name, entry in section.items()}
"""The commands of all sections."""


@cache
def plugin_commands() -> dict[str, tuple[str, str]]:
    """Commands of the entry points ``adp.commands``: typer apps, or functions with a docstring.

    Their line of help is the first one of their module's docstring, read without importing it.

    Raises:
        UsageError: a package takes the name of a command that is there already.
    """
    commands: dict[str, tuple[str, str]] = {}
    for entry in sorted(entry_points(group="adp.commands")):
        if entry.name in BUILTIN or commands.get(entry.name, (entry.value,))[0] != entry.value:
            raise UsageError(
                f"{entry.value} takes the name of the command '{entry.name}'; uninstall its package"
            )
        commands[entry.name] = (entry.value, _first_line(entry.module))
    return commands


def _first_line(module: str) -> str:
    """The first line of the docstring of a module that is not imported; empty without one.

    The help must come up whatever is wrong with an installed package.
    """
    try:
        spec = find_spec(module)
        if spec is None or spec.origin is None:
            return ""
        text = ast.get_docstring(ast.parse(Path(spec.origin).read_bytes()))
    except (ImportError, OSError, ValueError, SyntaxError):
        return ""
    return (text or "").partition("\n")[0]


def sections() -> dict[str, dict[str, tuple[str, str]]]:
    """Section -> its commands, those of installed packages last."""
    return {**COMMANDS, "Of installed packages": plugin_commands()}


def command_table() -> dict[str, tuple[str, str]]:
    """All commands: name -> (``module:function``, one line of help)."""
    return {**BUILTIN, **plugin_commands()}


def verifies(name: str) -> bool:
    """Whether a command hashes the stores that it reads; those of other packages always do."""
    if not name or name.startswith("-") or name in BUILTIN:
        return name in VERIFYING
    return name in plugin_commands()
