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

from pydantic import BaseModel, ConfigDict, Field

from adp.core.render.chat import Chat
from adp.core.render.pairs import PairChats
from adp_schema.model import Trajectory

Mask = Literal["tokens", "weights", "binary", "last", "all"]
"""How a format says what is trained.

- ``tokens``: any weight for every token.
- ``weights``: any weight for each message of an assistant.
- ``binary``: 0 or 1 for each message of an assistant.
- ``last``: only the last message is trained; the rest is context.
- ``all``: every message of an assistant is trained, always.
"""


class ExporterOptions(BaseModel):
    """Options that every exporter takes; given as ``--set NAME=VALUE``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    expand: bool = Field(
        False,
        description="Write one row for each trained step, with what came before it as context, "
        "where the format cannot mark single steps.",
    )


@dataclass(frozen=True)
class Item:
    """What one call of `Exporter.rows` gets.

    Attributes:
        chat: a chat; of an exporter that takes pairs, None.
        pair: a pair; of an exporter that takes chats, None.
        trajectory: where the chat comes from (without its parent's steps), with its task; of a
            pair, that of the chosen side.
    """

    chat: Chat | None
    pair: PairChats | None
    trajectory: Trajectory


@dataclass
class Tally:
    """What became of the steps and items of an export.

    Attributes:
        rows: rows written.
        trained: trained steps in them.
        left_out: reason -> number of trained steps (of pairs: pairs) that are in no row.
        changed: what was written differently from the store -> how often.
    """

    rows: int = 0
    trained: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)


class Exporter(Protocol):
    """A trainer's format. Methods are pure: no clock, randomness or network."""

    name: str
    """Name for ``--to``, such as ``trl-sft``."""
    title: str
    """One line for ``adp formats``."""
    takes: Literal["chats", "pairs"]
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

    def rows(self, item: Item, options: ExporterOptions, tally: Tally) -> Iterator[dict[str, Any]]:
        """The rows of one chat or pair, as plain values in key order.

        What cannot be written is counted in ``tally.left_out`` and gives no row.
        """
        ...

    def files(self, options: ExporterOptions, facts: Mapping[str, Any]) -> Mapping[str, str]:
        """Further files by name; ``README.md``, which says how to train on it, is always there.

        Args:
            options: as given.
            facts: rows, trained steps, what was left out, name of the store.
        """
        ...
