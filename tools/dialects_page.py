"""The page of the dialects: grammars of actions in texts."""

from __future__ import annotations

from adp.converters.text_calls.dialect import Dialect
from adp.converters.text_calls.registry import dialects
from tools.markdown import NOTE, table

_INTRO = """
A *dialect* is a way in which models write actions into their texts. `adp convert` and `adp parse`
make calls, reasoning and observations of them: [Actions in texts](text-actions.md) tells how.
`adp formats --dialects` prints this list. Those that other texts look like too are not chosen
automatically: name them with `--dialect NAME`, or use a recipe of a data set that does.
"""

_MOST = 8
"""Marks and results that are shown of a dialect."""


def dialects_page() -> str:
    """The page of the dialects."""
    known = dialects()
    rows = [
        (f"[`{it.name}`](#{it.name})", it.title, "yes" if it.automatic else "when named")
        for it in known
    ]
    lines = ["# Dialects of actions in texts", "", NOTE, *_INTRO.splitlines(), ""]
    lines += [*table(("name", "writes", "chosen automatically"), rows), ""]
    for grammar in known:
        lines += _section(grammar)
    return "\n".join(lines).rstrip() + "\n"


def _section(grammar: Dialect) -> list[str]:
    """An example of a dialect, with what marks its actions and its results."""
    results = [mark for mark in grammar.results if mark.strip()]
    calls = grammar.parse(grammar.example, ()).calls
    words = [
        (call.name, call.kind, call.raw if call.arguments is None else call.arguments)
        for call in calls
    ]
    fence = "````"
    return [
        f"## {grammar.name}",
        "",
        f"{grammar.title}.",
        "",
        f"{fence}text",
        *grammar.example.splitlines(),
        fence,
        "",
        *table(("call", "kind", "arguments, or code"),
               [(f"`{name}`", kind, _code(words or "")) for name, kind, words in words]),
        "",
        f"A turn with an action holds {_listed(grammar.marks)}."
        + (f" Results begin with {_listed(results)}." if results else ""),
        "",
    ]  # fmt: skip


def _listed(marks: tuple[str, ...] | list[str]) -> str:
    """Marks in words; of many the first ones."""
    shown = [_code(mark) for mark in marks[:_MOST]]
    if len(marks) > _MOST:
        return f"one of {', '.join(shown)} and {len(marks) - _MOST} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def _code(text: str) -> str:
    """A text as inline code of Markdown, in one line."""
    words = text.replace("\n", "\\n").strip()
    bar = "``" if "`" in words else "`"
    bar = "`" * 4 if "``" in words else bar
    space = " " if "`" in words else ""
    return f"{bar}{space}{words}{space}{bar}" if words else ""
