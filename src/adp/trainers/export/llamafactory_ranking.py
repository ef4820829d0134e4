"""``llamafactory-ranking``: preference pairs for LLaMA-Factory, one message a side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from adp.trainers.export.exporter import (
    ExportCounts,
    ExporterOptions,
    ExportItem,
    Mask,
    PairOptions,
    Takes,
)
from adp.trainers.export.llamafactory_files import LlamaFactorySettings, dataset_info, train_yaml
from adp.trainers.export.llamafactory_sharegpt import BODY, TEMPLATE
from adp.trainers.export.llamafactory_turns import (
    UnwritableTurns,
    assistant_turn,
    tools_text,
    turns_of,
)
from adp.trainers.export.readme import page
from adp.trainers.export.shapes import note_invalid, plain, sides

NOTES = (
    "- Only the message of each side is trained, its end included.\n"
    "- `pref_loss` may be sigmoid, hinge, ipo, kto_pair, orpo or simpo.\n"
)


class RankingOptions(PairOptions, LlamaFactorySettings):
    """Options of ``llamafactory-ranking``."""


class LlamaFactoryRanking:
    """An odd number of turns, then one turn chosen and one rejected."""

    name = "llamafactory-ranking"
    title = "LLaMA-Factory: preference pairs, dataset_info.json, train.yaml"
    takes: Takes = "pairs"
    mask: Mask = "last"
    file = "train.jsonl"
    options: type[ExporterOptions] = RankingOptions

    def schema(self, options: ExporterOptions) -> Any:
        """None: rows are JSON."""

    def rows(
        self, item: ExportItem, options: ExporterOptions, tally: ExportCounts
    ) -> Iterator[dict[str, Any]]:
        """One row, or none."""
        assert isinstance(options, RankingOptions)
        changed: Counter[str] = Counter()
        try:
            row = _row(item, options, changed)
        except UnwritableTurns as reason:
            tally.left_out[str(reason)] += 1
            return
        tally.changed += changed
        yield row

    def files(self, options: ExporterOptions, facts: Mapping[str, Any]) -> Mapping[str, str]:
        """README, ``dataset_info.json`` and ``train.yaml``."""
        assert isinstance(options, RankingOptions)
        notes = NOTES + TEMPLATE.format(template=options.template)
        body = BODY.format(command="llamafactory-cli train train.yaml", notes=notes)
        further = "pref_loss: sigmoid\npref_beta: 0.1\n"
        return {
            "README.md": page("LLaMA-Factory, preference pairs", body, facts),
            "dataset_info.json": dataset_info(ranking=True),
            "train.yaml": train_yaml(options, further=further, ranking=True),
        }


def _row(item: ExportItem, options: RankingOptions, changed: Counter[str]) -> dict[str, Any]:
    """The row of a pair.

    Raises:
        Refused: the format has no place for it.
    """
    assert item.pair is not None
    result = sides(item.pair)
    if isinstance(result, str):
        raise UnwritableTurns(result)
    chat = item.pair.chosen
    prompt = chat.messages[: item.pair.shared]
    turns = turns_of(replace(chat, messages=prompt), options.template, changed)
    if len(turns.turns) % 2 == 0:
        changed["an empty message of the user between two steps"] += 1
        turns.turns.append(("human", ""))
    answers = [assistant_turn(message, options.template) for message in result]
    note_invalid((*prompt, *result), changed)
    better, worse = ({"from": who, "value": plain(value)} for who, value in answers)
    return {
        "conversations": turns.written(),
        "chosen": better,
        "rejected": worse,
        "system": turns.system,
        "tools": tools_text(chat),
    }


EXPORTER = LlamaFactoryRanking()
