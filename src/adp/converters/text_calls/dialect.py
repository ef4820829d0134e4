"""What a dialect is: the one page that a grammar of actions in texts implements.

A dialect takes apart the words of one turn. It never runs anything, never looks at other turns, and
takes linear time on any text. It only says where things stand: the steps keep their text whole, and
`adp.converters.text_calls.apply` makes calls, reasoning and observations of what it says.

A dialect lives in one file of ``adp.converters.text_calls.dialects`` and is listed in
``adp.converters.text_calls.registry``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Span = tuple[int, int]
"""First character and the character after the last one."""


class Marked(NamedTuple):
    """Words of a turn with what marks them: tags, labels and the space that belongs to these.

    Attributes:
        span: all of it, marks included.
        words: the words alone, inside of ``span``.
    """

    span: Span
    words: Span


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """A call in the text of a turn.

    Attributes:
        span: its characters, with its tags, labels and fences.
        name: name of the tool as the text writes it; of code ``bash``, ``python`` and so on.
        arguments: JSON text of an object; None when it is code or free text.
        raw: the code or the free text, or arguments that are no JSON, as written.
        written_as: column ``arguments_kind``: ``object`` (JSON as it stands in the text),
            ``python_literal`` and ``dsl`` (JSON made of other notations), ``text`` (code, free
            text), ``invalid``.
        kind: ``function``, ``code``, ``gui`` or ``mcp``.
        language: programming language of code.
        call_id: id that the text gives.
        places: member (``name``, ``arguments``) -> its span, where an edit can be put in its place.
    """

    span: Span
    name: str
    arguments: str | None = None
    raw: str | None = None
    written_as: Literal["object", "python_literal", "dsl", "text", "invalid"] = "dsl"
    kind: Literal["function", "code", "gui", "mcp"] = "function"
    language: str | None = None
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class ParsedTurn:
    """What a turn of an agent holds, in the order of the text. Spans do not overlap.

    Attributes:
        calls: its calls and code actions.
        thoughts: its reasoning.
        answer: its final answer, when it marks one.
        left: why something that looks like an action was left in the text; None when nothing was.
    """

    calls: tuple[ParsedCall, ...] = ()
    thoughts: tuple[Marked, ...] = ()
    answer: Marked | None = None
    left: str | None = None

    def __bool__(self) -> bool:
        return bool(self.calls or self.thoughts or self.answer)


@dataclass(frozen=True, slots=True)
class ParsedResult:
    """A result in a turn of the user or the environment.

    Attributes:
        marked: its words, with its tags and labels.
        call: index, among the calls that wait, of the one that it answers; None: by order.
        name: name of the tool, when the text says it.
        is_error: whether the text marks it as an error; None when it does not say.
        exit_code: exit status, when the text says it.
    """

    marked: Marked
    call: int | None = None
    name: str | None = None
    is_error: bool | None = None
    exit_code: int | None = None


class Piece(NamedTuple):
    """A part of a text that holds a run of several turns: of the agent, or a result."""

    source: Literal["agent", "result"]
    span: Span


HARNESS = (
    "Your command ", "Your last ", "Your previous ", "Your proposed ", "The last command",
    "The command ", "Command ", "EXECUTION RESULT", "Error", "ERROR", "[ERROR", "Traceback (most",
    "Invalid ", "Exit code", "No output", "Timeout", "Please make sure your output",
    "Please always provide",
)  # fmt: skip
"""How a harness speaks when it has no output to show, or did not understand an action."""


class Dialect:
    """A grammar, with defaults for what need not be said."""

    name: str
    """Name for ``--dialect``."""
    title: str
    """One line for ``adp formats --dialects``."""
    example: str
    """A turn of an agent in it, for the docs and the common tests."""
    marks: tuple[str, ...] = ()
    """Each turn with an action holds one of these strings; texts without them are not parsed."""
    prompts: tuple[str, ...] = ()
    """What prompts say that teach it, beside ``marks``; evidence for choosing it automatically."""
    automatic: bool = True
    """Whether it may be chosen without being named. False for one that other texts look like."""
    results: tuple[str, ...] = ("Observation:", "OBSERVATION:", "observation:")
    """What turns with results begin with. Cut off from the observation, never from the text."""
    answers_all: bool = True
    """Whether the turn after calls is their result even without a mark of ``results``."""

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart.

        Args:
            text: its words.
            tools: names of the tools on offer, the longest first; empty when they are not known.
        """
        raise NotImplementedError

    def results_in(self, text: str, calls: Sequence[ParsedCall]) -> tuple[ParsedResult, ...]:
        """The results in a turn that follows calls; none when it is a turn of a person.

        Spans are in order. Characters between them belong to the result before (those before the
        first one to the first).

        Args:
            text: the words of the turn.
            calls: the calls of the turn before that have no result yet.
        """
        start = len(text) - len(text.lstrip())
        for mark in self.results:
            if text.startswith(mark, start):
                begin = start + len(mark)
                begin += len(text[begin:]) - len(text[begin:].lstrip(" \n"))
                words = (min(begin, len(text)), len(text))
                return (ParsedResult(Marked((0, len(text)), words)),)
        if self.answers_all:
            return (ParsedResult(Marked((0, len(text)), (0, len(text)))),)
        return ()

    def pieces(self, text: str) -> Sequence[Piece]:
        """The turns in a text that holds a whole run; none when it is one turn.

        The spans follow each other without gaps, from the first to the last character.
        """
        return ()

    def write(self, call: ParsedCall) -> str | None:
        """The characters of a call, for one that was edited; None when it cannot be written.

        Args:
            call: what it shall say; its span is that of the call that it replaces.
        """
        return None
