"""Preference rows: two answers to a prompt, or one answer with a label.

The dialects of TRL (``prompt``, ``chosen``, ``rejected``; ``prompt``, ``completion``, ``label``),
of OpenAI (``input``, ``preferred_output``, ``non_preferred_output``), of UltraFeedback and HH-RLHF
(both sides with the prompt in them), and chats with a label. The better answer ends the run, the
worse one is a branch of kind ``alternate``, and a row of the table ``pairs`` names both; a label
is the success of the run. See `keys` for what ``extra.$shape`` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from adp.converters.format import Format
from adp.converters.preference import keys as k
from adp.converters.preference.places import first_role
from adp_schema import jsontext
from adp_schema.losses import Losses
from adp_schema.model import Pair, Trajectory
from adp_schema.protocols import Match, RawRecord

if TYPE_CHECKING:
    from adp_schema.builder import RowBuilder


class Preference(Format):
    """The format ``preference``."""

    name = k.NAME
    holds_text_actions = True
    title = "Preference rows: chosen and rejected answers, or an answer with a label"
    recognised = (
        "`chosen` and `rejected` (texts, messages or lists of them) without `conversations`; "
        "`input`, `preferred_output` and `non_preferred_output`; `prompt` and `completion`, or "
        "`messages`, with a `label` or `kto_tag` that is true or false."
    )
    versions = (
        "Reads the rows of TRL (standard and conversational, with and without a prompt, paired "
        "and labelled), OpenAI preference fine-tuning, UltraFeedback with scores, HH-RLHF "
        "dialogues and LLaMA-Factory's KTO; writes the dialect that was read, and TRL's from "
        "other formats."
    )

    def embeds(self, branch: Trajectory) -> bool:
        """The rejected answer of a pair; other branches are no part of the format."""
        return branch.source_format == self.name or branch.branch_kind == "alternate"

    def pair_columns(self, trajectory: Trajectory, pair: Pair) -> frozenset[str]:
        """The columns of a pair that a row says: what reading it gives again."""
        from adp.converters.preference.write import pair_columns

        return pair_columns(trajectory, pair)

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """Two answers, or one with a label."""
        if any(name in record for name in k.SHAREGPT_LISTS):
            return Match.NO
        try:
            return Match.STAMP if _is_pair(record) or _is_labelled(record) else Match.NO
        except (ValueError, RecursionError):
            return Match.NO

    def read(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        """Convert a row into one trajectory, and a branch when it is a pair."""
        from adp.converters.preference.read import read_record

        read_record(record, builder, losses)

    def write(
        self, trajectory: Trajectory, losses: Losses, flavour: str | None = None
    ) -> dict[str, Any]:
        """Convert a trajectory into a row."""
        from adp.converters.preference.write import write_record

        return write_record(trajectory, losses)


def _is_pair(record: Mapping[str, Raw]) -> bool:
    for chosen, rejected in k.PAIRS:
        if chosen in record and rejected in record:
            return all(_is_answer(record[name]) for name in (chosen, rejected))
    return False


def _is_labelled(record: Mapping[str, Raw]) -> bool:
    labels = [record[name] for name in k.LABELS if name in record]
    if not any(jsontext.first_byte(raw) in b"tf" for raw in labels):
        return False
    if "completion" in record and "prompt" in record:
        return _is_answer(record["completion"])
    messages = record.get("messages")
    return (
        messages is not None
        and jsontext.first_byte(messages) == ord("[")
        and first_role(messages) is not None
    )


def _is_answer(raw: Raw) -> bool:
    """A text, a message, or a list of messages."""
    return jsontext.first_byte(raw) == ord('"') or first_role(raw) is not None


CONVERTER = Preference()
