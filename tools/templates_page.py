"""The page ``docs/chat-templates.md``: what each chat template takes, and where its rows drift.

It is made from the templates that TRL ships and those of the tests. Without TRL there is nothing
to make it from, so the page that is there is kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from adp.rendering.probe import Forms
from adp.rendering.render import Renderer
from tests.rendering.families import OWN_TEMPLATES, files, renderer, trl_folder
from tests.rendering.talks import TALKS
from tools.markdown import NOTE, cell

PAGE = Path(__file__).resolve().parent.parent / "docs" / "chat-templates.md"

SHOWN = {
    "turns": "three turns of the user",
    "tool with words": "two calls with words, in one turn",
    "reasoning turns": "two turns with reasoning",
    "reasoning and tools": "two turns with reasoning and calls",
}
"""Conversations of the table of rows."""

PICTURES = ("idefics3", "llava_next", "smolvlm")

INTRO = """\
A model's own chat template decides how a conversation is written. Templates differ in what they
take; nothing says which, so `adp` tries each one out on small conversations before it renders. This
is what it finds out about the templates that TRL {version} ships, and about four that are written
in the manner of Mistral, Granite and Hermes 2 Pro.

What a template cannot write is not dropped without a word: the conversation is refused, with what
to do instead (`tools: text`, `parallel_calls: split`), or what is left out is counted in the notes.
With `--strict`, `adp tokens`, `adp train` and exports of tokens make each such count an error
([training.md](training.md#what-is-counted)). A rollout with a model in process says at its end in
how many prompts something was dropped or written differently.
"""

FORMS = """\
- *arguments*: how the arguments of calls are given; `-`: it writes no calls.
- *words*: whether it writes the text of a message that has calls.
- *results*, *tools*, *system*: whether it writes results of tools, the tools on offer, a message of
  the system. Without *system*, these words go before those of the user.
- *parallel*: whether it writes several calls of one message.
- *turns*: `strict` when it refuses two messages of the user in a row; they are joined.
- *reasoning*: `field` when it has a place for it, `inline` when it is given as text between
  `<think>` tags, `-` when it drops all of it.
- *marks*: whether it marks what the model generates (`{% generation %}`).
- *ends*: the token that ends a turn without calls, and one with calls where that is another one.
  `next`: the next message begins with it, and rows that end with the turn get it. The tests use
  tokenizers whose end-of-sequence token is `</s>`.

A template that does not write *words* beside calls drops them, from what is trained and from what
the model sees later. What becomes of such a step is the option `words`; other steps of the run are
trained in any case, but for `refuse`:

- `keep` (default): it is not trained, and counted. As context it is what the template makes of it.
- `before`: the words are a message of their own, which ends its turn, and the calls are one after
  it; both are trained. Where a template refuses two messages of the agent in a row, as `keep`.
- `drop`: the calls are trained without the words; these are counted.
- `refuse`: the whole run is refused.

`keep` is the default because it trains nothing that the agent did not do: after `drop` a model
calls without a word where the agent spoke first; after `before` it ends its turn between words and
call, and the loop that runs it must ask once more. Where most steps have words beside calls, one of
these, another template or `tools: text` is a decision to take by what the model is for.

Templates that ask for ids of nine letters and digits (Mistral's) get valid ids as they are. Other
ids are derived from the id, the name and the arguments of the call by a hash, and counted: the same
call has the same id in every row, a result names that of its call, and a model learns no one id by
heart.
"""

ROWS = """\
A row is exact when the model sees, before each trained step, what it will see at inference. Where a
template rewrites history (it leaves out earlier reasoning, or ends the last turn with another
token), one row cannot be exact for all steps, so there are several, and each step is trained in one
of them. `history: one_row` gives one row instead.

A number is that of the rows; `*`: at some steps the prompt at inference is another one in any case,
because the template writes the answer without the prompt's end (such as `<think>`); `+`: some
messages are put after their prompt, because the template rewrites what came before them; `!`: some
steps are not trained, for the template drops their words. `-`: the conversation is refused.
"""

TRL = """\
TRL masks by the marks of a template (`assistant_only_loss`), and swaps in a template of its own for
those that it knows. Given the same template with marks, our labels are TRL's, token for token, on
rows that do not drift. The tests compare all that TRL ships. What is different:

- `diffusion_gemma_training`: it marks a turn with calls in several parts, so marks cannot be told
  apart by message; then the span goes from the prompt to the end of the turn.
- Of a last character that several tokens make (bytes of a line end in a SentencePiece vocabulary),
  TRL trains the first token alone; here all of them are trained.
- A token that reaches over the edge of a span is trained by TRL and not here; it is counted.
- Without marks, the line end after the end-of-turn token is not trained: the model never writes it.
  TRL's own templates mark it.
- TRL writes one row however the template rewrites history, and trains masked steps too.
"""


def templates_page() -> str:
    """The page; the one that is there when TRL is not installed."""
    if trl_folder() is None:
        return PAGE.read_text(encoding="utf-8")
    from importlib.metadata import version

    names = [name for name in _names() if not name.startswith(PICTURES)]
    lines = ["# Chat templates", "", NOTE, "", INTRO.format(version=version("trl")), ""]
    lines += ["## What they take", "", FORMS, "", *_forms(names), "", "## Rows", "", ROWS, ""]
    lines += [*_rows(names), "", "## TRL's masks", "", TRL]
    return "\n".join(lines).replace("\n\n\n", "\n\n").rstrip() + "\n"


def _names() -> list[str]:
    stems = {path.stem for path in OWN_TEMPLATES.glob("*.jinja")}
    more = os.environ.get("ADP_CHAT_TEMPLATES")
    other = {path.stem for path in Path(more).glob("*.jinja")} if more else set()
    return sorted({name for name in files() if not name.endswith("_training")} - (other - stems))


def _forms(names: list[str]) -> Iterator[str]:
    columns = ("template", "arguments", "words", "results", "tools", "system", "parallel")
    yield _line(*columns, "turns", "reasoning", "marks", "ends")
    yield "|---" * 11 + "|"
    for name in names:
        made = renderer(name)
        forms = made.template.forms
        abilities = (
            forms.text_with_calls,
            forms.results,
            forms.tools,
            forms.system,
            forms.parallel,
        )
        yield _line(
            f"`{name}`",
            forms.arguments or "-",
            *("yes" if able else "-" for able in abilities),
            "strict" if forms.alternates else "",
            forms.reasoning or "-",
            "yes" if made.template.marks else "",
            _ends(forms),
        )


def _ends(forms: Forms) -> str:
    kinds = [forms.answer] if forms.calls == forms.answer else [forms.answer, forms.calls]
    statement = (
        f"`{kind.stop}`" + " next" * bool(kind.left) if kind.stop else "-" for kind in kinds
    )
    return ", ".join(statement)


def _rows(names: list[str]) -> Iterator[str]:
    yield _line("template", *SHOWN.values())
    yield "|---" * (1 + len(SHOWN)) + "|"
    for name in names:
        yield _line(f"`{name}`", *(_count(renderer(name), title) for title in SHOWN))


def _count(made: Renderer, title: str) -> str:
    chat = made.chat(TALKS[title])
    if chat.rejected is not None:
        return "-"
    other = chat.notes["steps whose prompt at inference is another one"]
    moved = chat.notes["steps put after their prompt, which the template rewrites later"]
    left = "!" if chat.lost else ""
    return f"{len(chat.rows)}{'*' if other else ''}{'+' if moved else ''}{left}"


def _line(*words: str) -> str:
    return "| " + " | ".join(map(cell, words)) + " |"
