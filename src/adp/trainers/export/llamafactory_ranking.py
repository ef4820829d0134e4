"""``llamafactory-ranking``: preference pairs for LLaMA-Factory, one message a side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from adp.trainers.export.exporter import (
    ExportItem,
    PairOptions,
    RowExporter,
)
from adp.trainers.export.llamafactory_files import LlamaFactorySettings, dataset_info, train_yaml
from adp.trainers.export.llamafactory_sharegpt import BODY, TEMPLATE
from adp.trainers.export.llamafactory_turns import (
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


class LlamaFactoryRanking(RowExporter):
    """An odd number of turns, then one turn chosen and one rejected."""

    name = "llamafactory-ranking"
    title = "LLaMA-Factory: preference pairs, dataset_info.json, train.yaml"
    takes = "pairs"
    mask = "last"
    file = "train.jsonl"
    options = RankingOptions

    def row(
        self, item: ExportItem, options: RankingOptions, changed: Counter[str]
    ) -> dict[str, Any]:
        """The row of a pair."""
        assert item.pair is not None
        messages = sides(item.pair)
        chat = item.pair.chosen
        prompt = chat.messages[: item.pair.shared]
        turns = turns_of(replace(chat, messages=prompt), options.template, changed)
        if len(turns.turns) % 2 == 0:
            changed["an empty message of the user between two steps"] += 1
            turns.turns.append(("human", ""))
        answers = [assistant_turn(message, options.template) for message in messages]
        note_invalid((*prompt, *messages), changed)
        better, worse = ({"from": who, "value": plain(value)} for who, value in answers)
        return {
            "conversations": turns.written(),
            "chosen": better,
            "rejected": worse,
            "system": turns.system,
            "tools": tools_text(chat),
        }

    def files(self, options: RankingOptions, facts: Mapping[str, Any]) -> Mapping[str, str]:
        """README, ``dataset_info.json`` and ``train.yaml``."""
        notes = NOTES + TEMPLATE.format(template=options.template)
        body = BODY.format(command="llamafactory-cli train train.yaml", notes=notes)
        further = "pref_loss: sigmoid\npref_beta: 0.1\n"
        return {
            "README.md": page("LLaMA-Factory, preference pairs", body, facts),
            "dataset_info.json": dataset_info(ranking=True),
            "train.yaml": train_yaml(options, further=further, ranking=True),
        }


EXPORTER = LlamaFactoryRanking()
