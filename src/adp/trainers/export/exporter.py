"""What an exporter is: the one page that each implements.

An exporter turns chats, or pairs of chats, into rows of a trainer's own format. It says how it
carries the mask. The runner makes sure that no mask is dropped in silence: what an exporter cannot
carry is expanded into prefix rows when asked, or the export is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from adp.core.options import OptionsModel
from adp.rendering.chat import Chat, PairChats
from adp_schema.model import Trajectory

Mask = Literal["tokens", "weights", "binary", "last", "all"]
"""How a format says what is trained.

- ``tokens``: any weight for every token.
- ``weights``: any weight for each message of an assistant.
- ``binary``: 0 or 1 for each message of an assistant.
- ``last``: only the last message is trained; the rest is context.
- ``all``: every message of an assistant is trained, always.
"""

Takes = Literal["chats", "pairs", "prompts", "rollouts"]
"""What an exporter gets, and what is counted.

- ``chats``: what the model saw, with the trained steps; steps are counted.
- ``pairs``: both sides of a preference pair; pairs are counted.
- ``prompts``: what stands before the first step of the agent; trajectories are counted.
- ``rollouts``: whole trajectories, for their tokens and rewards; trajectories are counted.
"""


class ExporterOptions(OptionsModel):
    """Options that every exporter takes; given as ``--set NAME=VALUE``."""

    expand: bool = False
    """Write one row for each trained step, with what came before it as context, where the format
    cannot mark single steps."""
    train: Literal["all", "last_step", "last_turn"] = "all"
    """Which of the steps that have a weight are trained: all, the last one, or those after the
    last message of the user."""
    reasoning: Literal["keep", "strip", "last_turn"] = "keep"
    """Reasoning that is written: of all steps, of none, or of those after the last message of
    the user."""
    tools: Literal["own", "text"] = "own"
    """Where tools and calls stand: in the format's own fields, or as text in the Hermes manner."""
    fractions: Literal["refuse", "ones"] = "refuse"
    """Weights that are neither 0 nor 1, where the format knows no others: refuse the export, or
    write them as 1."""
    tool_names: Literal["store", "adp", "source"] = "store"
    """Names of tools and their arguments: those of the store, those of the Agent Data Protocol
    (terminal, python, file_editor, finish and others), or those of the source."""
    unfit: Literal["refuse", "leave_out"] = "refuse"
    """Chats whose mask the format cannot carry: refuse the export, or leave them out, counted."""


class PairOptions(ExporterOptions):
    """Options of exporters of pairs."""

    multi_turn: Literal["refuse", "cut", "leave_out"] = "refuse"
    """Pairs of which a side has several steps, where the format knows one message a side: refuse
    the export; cut both sides to the first step in which they differ; or leave these pairs out."""


@dataclass(frozen=True)
class Form:
    """What an exporter writes under given options.

    Attributes:
        takes: what `Exporter.rows` gets.
        mask: how the mask is carried.
        file: name of the data file.
        model: whether rows are made of tokens: then each item has `ExportItem.rendered`. With
            ``optional`` a model may be named, and each item then has `ExportItem.renderer`.
        unique: whether a row that is equal to an earlier one is left out.
        mix: column by whose values the rows are mixed evenly; None keeps the order of the store.
        instead: what to do where the mask cannot be carried: the end of a sentence.
    """

    takes: Takes
    mask: Mask
    file: str
    model: bool | Literal["optional"] = False
    unique: bool = False
    mix: str | None = None
    instead: str = "choose another exporter; adp formats lists them"


@dataclass(frozen=True)
class ExportItem:
    """What one call of `Exporter.rows` gets.

    Attributes:
        chat: a chat; of an exporter that takes pairs or rollouts, None. Of one that takes prompts,
            the messages before the first step of the agent. When only the last message can be
            trained, the chat ends with it.
        pair: a pair; of an exporter that takes chats, None. When only the last message can be
            trained, each side ends with it, and everything before it is common to both.
        trajectory: where the chat comes from (without its parent's steps), with its task; of a
            pair, that of the chosen side. A rollout, with its parent's steps and its task.
        rendered: the chat as tokens (`adp.rendering.render.Rendered`), for a form with a model.
        dataset: of a prompt, the data set of its task; of a rollout whose task names none, the
            environment. The data set of a rollout itself is named after the run.
        renderer: of a rollout, the `adp.rendering.render.Renderer` of the model that was named.
    """

    chat: Chat | None
    pair: PairChats | None
    trajectory: Trajectory
    rendered: Any = None
    dataset: str | None = None
    renderer: Any = None


@dataclass
class ExportCounts:
    """What became of the steps and items of an export.

    Attributes:
        rows: rows written; the runner counts them.
        trained: what is in them: steps, pairs or trajectories; the runner counts them.
        left_out: reason -> number of trained steps (pairs, trajectories) that are in no row.
        changed: what was written differently from the store -> how often.
    """

    rows: int = 0
    trained: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)


class Exporter(Protocol):
    """A trainer's format. Methods are pure: no clock, randomness or network.

    One whose form depends on its options has a method ``form(options) -> Form`` besides; then
    `takes`, `mask` and `file` are those of its default options. See `form_of`.
    """

    name: str
    """Name for ``--to``, such as ``trl-sft``."""
    title: str
    """One line for ``adp formats``."""
    takes: Takes
    """What `rows` gets."""
    mask: Mask
    """How the format carries the mask."""
    file: str
    """Name of the data file under the output folder.

    Its ending says how it is written: ``.jsonl`` a row a line, ``.json`` one array, ``.parquet`` by
    `schema`.
    """
    options: type[ExporterOptions]
    """What it takes by ``--set``."""

    def schema(self, options: ExporterOptions) -> Any:
        """Arrow schema of a Parquet file; None for the others. Arguments are never a struct."""
        ...

    def rows(
        self, item: ExportItem, options: ExporterOptions, tally: ExportCounts
    ) -> Iterator[dict[str, Any]]:
        """The rows of one chat or pair, as plain values in key order.

        What cannot be written is counted in ``tally.left_out`` and gives no row.
        """
        ...

    def files(self, options: ExporterOptions, facts: Mapping[str, Any]) -> Mapping[str, str]:
        """Further files by name; ``README.md``, which says how to train on it, is always there.

        Args:
            options: as given.
            facts: ``exporter``, ``store`` (its name), ``file``, ``rows``, ``unit`` (steps, pairs
                or trajectories), ``in_store``, ``in_rows``, ``left_out``, ``changed``,
                ``command`` (the call that makes the export again). `adp.trainers.export.readme`
                writes what all pages have in common.
        """
        ...


class UnwritableChatError(Exception):
    """The format has no place for something in a chat or a pair; the message says for what."""


class RowExporter:
    """An exporter of JSON that makes one row, or none, of an item: it implements `row`."""

    takes: Takes

    def schema(self, options: Any) -> Any:
        """None: rows are JSON."""

    def row(self, item: ExportItem, options: Any, changed: Counter[str]) -> dict[str, Any] | None:
        """The row of an item; None when there is nothing to write.

        Args:
            item: a chat or a pair.
            options: as given.
            changed: counts what is written differently; forgotten when the item is refused.

        Raises:
            UnwritableChatError: the format has no place for something in it.
        """
        raise NotImplementedError

    def rows(self, item: ExportItem, options: Any, tally: ExportCounts) -> Iterator[dict[str, Any]]:
        """One row, or none: what `row` refuses is counted."""
        changed: Counter[str] = Counter()
        try:
            row = self.row(item, options, changed)
        except UnwritableChatError as reason:
            chat = item.chat if self.takes == "chats" else None
            tally.left_out[str(reason)] += 1 if chat is None else len(chat.trained())
            return
        if row is not None:
            tally.changed += changed
            yield row


def form_of(exporter: Exporter, options: ExporterOptions) -> Form:
    """What an exporter writes under some options."""
    own_form = getattr(exporter, "form", None)
    if own_form is not None:
        form: Form = own_form(options)
        return form
    return Form(exporter.takes, exporter.mask, exporter.file)
