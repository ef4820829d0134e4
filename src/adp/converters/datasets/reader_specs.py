"""What a recipe says of the rows of each reader: which keys are the turns, the steps, the lists."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from adp.converters.datasets.spec_types import Path, Paths, Regex, Spec, Words
from adp.core.options import OptionsModel

TurnKind = Literal["system", "user", "agent", "result", "call", "merged", "environment"]
"""What a turn is: ``call`` is nothing but calls, ``merged`` a call with its result."""


class MergedCall(OptionsModel):
    """Keys of a turn that is a call together with its result."""

    name: Path
    """The tool."""
    arguments: Path
    """The arguments."""
    result: Path | None = None
    """What came back."""
    error: Path | None = None
    """Filled when it failed."""


class MessagesSpec(OptionsModel):
    """A list of turns."""

    path: Paths = ("messages", "conversations", "conversation", "$")
    """Where it is: a list, or a string of one; ``$`` is the record itself."""
    role: Words = ("role", "from", "speaker")
    """Keys that say who speaks."""
    text: Words = ("content", "value", "text")
    """Keys of what is said."""
    reasoning: Words = ()
    """Keys of reasoning, beside the usual ones."""
    roles: dict[str, TurnKind] = Field(default_factory=dict)
    """Role -> what it is, beside the usual ones."""
    system: Paths = ()
    """Paths of a system prompt that stands outside of the list."""
    images: Paths = ()
    """Paths of pictures outside of the list, which the first turn of the user shows."""
    weight: Words = ()
    """Keys that say whether a turn is trained, beside the usual ones."""
    merged: MergedCall | None = None
    """Turns that are a call with its result: those of the role ``merged``."""
    calls: Words = ("tool_calls", "function_calls")
    """Keys of the calls of a turn."""
    call_name: Words = ()
    """Keys of the tool in a call, beside the usual ones."""
    call_arguments: Words = ()
    """Keys of the arguments of a call, beside the usual ones."""
    result_text: Regex | None = None
    """What is found in the words of a user that are the result of the calls before them."""
    result_lines: bool = False
    """Whether a result of several lines of JSON is a result a line, in the order of the calls."""
    drop_nulls: bool = False
    """Whether arguments that are null belong to other tools, and are left out."""
    join_calls: bool = True
    """Whether a turn that is nothing but calls belongs to the turn of the agent before it."""


class TranscriptSpec(OptionsModel):
    """A text that holds a run, cut by marks."""

    text: Paths = ()
    """Where it is."""
    system: Paths = ()
    """The system prompt, if it stands elsewhere."""
    marks: dict[Literal["system", "user", "agent", "result"], Words]
    """What turns begin with. A mark with ``^`` before it counts at the beginning of a line only."""
    ends: Words = ()
    """What stands at the end of a turn, and is no word of it."""
    first: Literal["system", "user", "agent", "result"] = "user"
    """Whose words those before the first mark are."""


class ColumnsSpec(OptionsModel):
    """A row of prompts and answers."""

    system: Paths = ()
    """Columns of the system prompt, joined by a blank line."""
    user: Paths = ()
    """Columns of the prompt, joined by a blank line; a list of messages is taken as such."""
    images: Paths = ()
    """Paths, addresses or data URIs of pictures of the prompt; they need not be there."""
    agent: Paths = ()
    """Columns of the answer, joined by a blank line."""
    reasoning: Paths = ()
    """Columns of the reasoning of the answer."""
    calls: Path | None = None
    """Calls of the answer: a list, or a string of one."""
    result: Paths = ()
    """What came back from the calls."""
    chosen: Path | None = None
    """The better answer: a text, a message or a list of messages."""
    rejected: Path | None = None
    """The worse one, which becomes a branch and a preference pair."""
    completions: Paths = ()
    """A list of answers to one prompt, or columns of one each: the first is the run, the others
    are branches of it."""


class ObservationSpec(OptionsModel):
    """Where the parts of what an agent sees stand."""

    text: Paths = ()
    """Its words."""
    axtree: Path | None = None
    """Accessibility tree."""
    html: Path | None = None
    """Page source."""
    url: Path | None = None
    """Address of the page."""
    image: Paths = ()
    """Paths, addresses or data URIs of pictures; they need not be there."""
    annotations: Path | None = None
    """Labelled boxes."""
    structured: Path | None = None
    """Any other value."""
    width: Path | None = None
    """Width of the view."""
    height: Path | None = None
    """Height of the view."""
    reward: Path | None = None
    """Reward that came with it."""


class ActionPattern(OptionsModel):
    """A form of actions that are words."""

    regex: Regex
    """What the words are, from their beginning; named groups are the arguments of the call."""
    name: str | None = None
    """Name of the tool; without it that of the language."""
    code: Literal["bash", "python", "sql"] | None = None
    """The group ``code`` is a program in this language."""


class ActionSpec(OptionsModel):
    """Where the action of a step stands."""

    text: Paths = ()
    """The words of the agent; calls in them are found by the dialect."""
    call: Path | None = None
    """An object that is the action."""
    name: Path | None = None
    """Its name: a key of ``call``, or of the row. Without ``call`` and ``arguments`` the action
    has no arguments."""
    arguments: Path | None = None
    """Its arguments: a key of ``call``, or of the row; without it all other keys of ``call``."""
    code: Literal["bash", "python", "sql"] | None = None
    """The words are a program in this language."""
    patterns: tuple[ActionPattern, ...] = ()
    """Forms of the words that are looked for before ``code``; the first that fits counts."""
    kind: Literal["function", "gui", "mcp"] = "function"
    """Kind of the calls."""
    reasoning: Paths = ()
    """Reasoning before the action."""


class StepsSpec(OptionsModel):
    """Rows that are steps of runs."""

    group: Spec | None = None
    """What the rows of a run have in common; without it the file is a run."""
    group_also: Spec | None = None
    """What else they have in common, where several runs may have one id."""
    runs: bool = False
    """Whether a value of ``group`` that comes again after another one begins another run."""
    order: Spec | None = None
    """Number of the step in its run; without it the rows stand in order."""
    task: Paths = ()
    """What the agent is asked to do; the same in all rows of a run."""
    system: Paths = ()
    """System prompt; the same in all rows of a run."""
    messages: Path | None = None
    """A row that is a short chat: what was before of it in the run is not said again."""
    prefixes: bool = False
    """Whether rows repeat what was before them: those that another one begins with are left out,
    and each of the others is a run. ``messages`` says where."""
    observation: ObservationSpec = ObservationSpec()
    """What the agent saw."""
    before: bool = True
    """Whether it saw that before the action of its row; false: it is the result of that action."""
    action: ActionSpec = ActionSpec()
    """What it did."""


class ListsSpec(OptionsModel):
    """Lists that belong together, item by item."""

    task: Paths = ()
    """What the agent is asked to do."""
    system: Paths = ()
    """System prompt."""
    steps: Path | None = None
    """A list of objects; the other paths begin inside of its items."""
    actions: Path | None = None
    """What it did: texts, or objects."""
    action: ActionSpec = ActionSpec()
    """What an action is."""
    thoughts: Path | None = None
    """Reasoning before each action."""
    observations: Path | None = None
    """What it saw after each action, or before it (see ``before``)."""
    observation: ObservationSpec = ObservationSpec()
    """What an observation is, where it is an object."""
    rewards: Path | None = None
    """Reward of each action."""
    others: Paths = ()
    """Further lists, kept with each step."""
    before: bool = False
    """Whether an observation is what the agent saw before the action with its number."""
