"""The exports that are compared with the trainers' own code, and what is known to differ there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adp.core.progress import Silent
from adp.rendering.chat import Chat
from adp.rendering.options import RenderOptions
from adp.rendering.render import Renderer
from adp.trainers.export.exporter import ExportCounts, ExportItem
from adp.trainers.export.fit import Fitter, UnfitError
from adp.trainers.export.registry import exporters
from adp.trainers.export.settings import read_settings
from adp.trainers.export.source import StoreItems
from adp_schema.store import Store
from tools.oracle.differences import CALLS, EMPTY, END, LAST, OPENING, SAME, STOP, TAG, THOUGHT

SHAREGPT, RANKING = "llamafactory-sharegpt", "llamafactory-ranking"
ALIKE = {"unfit": "leave_out"}
ALL = frozenset({SAME, END})
LLAMA = frozenset({SAME, THOUGHT})


@dataclass(frozen=True)
class Way:
    """One export that is compared.

    Attributes:
        exporter: name of the exporter.
        family: of the tokenizer and its template.
        settings: options of the exporter.
        store: which store it takes: runs or pairs.
        what: what the trainer's side does with it.
        known: kinds of differences that may be found.
        more: what else the trainer's side is told.
    """

    exporter: str
    family: str
    settings: dict[str, Any]
    store: str = "runs"
    what: str = "rows"
    known: frozenset[str] = ALL
    more: dict[str, str] = field(default_factory=dict)


def _templates() -> Iterator[tuple[str, Way]]:
    for template, family, known in (
        ("qwen", "qwen2.5", ALL),
        ("qwen3_nothink", "qwen3-instruct", ALL),
        ("qwen3", "qwen3", ALL),
        ("llama3", "llama3.1", LLAMA),
    ):
        native = {"template": template}
        expand = {**native, "expand": True}
        yield f"sft, {template}", Way(SHAREGPT, family, {**native, **ALIKE}, known=known)
        yield f"sft expanded, {template}", Way(SHAREGPT, family, expand, known=known)
        yield f"ranking, {template}", Way(RANKING, family, native, store="pairs", known=known)


V1_NOTHINK = frozenset({f"{END}; {OPENING}"})
V1_QWEN3 = frozenset(
    {f"{END}; {OPENING}", f"{END}; {OPENING}; {EMPTY}", f"{END}; {OPENING}; {THOUGHT}"}
)

WAYS: dict[str, Way] = {
    **dict(_templates()),
    "v1, qwen3_nothink": Way(
        *(SHAREGPT, "qwen3-instruct", {"template": "qwen3_nothink", "engine": "v1"}, "runs"),
        *("rows-v1", V1_NOTHINK),
    ),
    "v1, qwen3": Way(
        *(SHAREGPT, "qwen3", {"template": "qwen3", "engine": "v1"}, "runs", "rows-v1", V1_QWEN3)
    ),
}

TRAINED = {
    "train, sft": ("sft expanded, qwen", "train"),
    "train, ranking": ("ranking, qwen", "train"),
    "train, v1": ("v1, qwen3", "train-v1"),
}
"""Training runs of two steps with the folder's own train.yaml: name -> way, what to do."""


CHATML = "chatml"

_THOUGHTS = frozenset({SAME, EMPTY, THOUGHT, f"{EMPTY}; {TAG}", f"{TAG}; {THOUGHT}", TAG})
"""Axolotl writes a chat once: it trains steps without the reasoning that the template takes out of
what came before, and with what it puts there for the model to go on from left out."""

AXOLOTL: dict[str, Way] = {
    "qwen2.5": Way(CHATML, "qwen2.5", {}, known=LLAMA),
    "qwen3": Way(CHATML, "qwen3", {}, known=_THOUGHTS),
    "llama3.1": Way(CHATML, "llama3.1", {}, known=LLAMA),
    "llama3.1-base, without eot_tokens": Way(
        CHATML, "llama3.1-base", {}, known=frozenset({STOP, f"{THOUGHT}; {STOP}"})
    ),
    "llama3.1-base, with eot_tokens": Way(
        CHATML, "llama3.1-base", {}, what="rows-eot", known=LLAMA
    ),
}
"""Where the tokenizer's end of a text is another token than that of a turn, Axolotl trains no end
without ``eot_tokens``."""

_SWIFT = ALL | {LAST, *(f"{END}; {more}" for more in (CALLS, LAST, f"{CALLS}; {LAST}"))}
"""ms-swift trains the end of the last turn of a chat, whatever its flag says."""

SWIFT: dict[str, Way] = {
    family: Way(
        CHATML,
        family,
        {"flag": "loss", "reasoning": "strip"},
        known=_SWIFT,
        more={"model": model, "template": name},
    )
    for family, model, name in (
        ("qwen2.5", "qwen2", "qwen2_5"),
        ("qwen3-instruct", "qwen3", "qwen3_nothinking"),
        ("llama3.1", "llama", "llama3_2"),
    )
}


@dataclass(frozen=True)
class Expected:
    """What is trained of one row by our renderer.

    Attributes:
        trajectory_id: where the row comes from.
        row: the row, as it was exported.
        trained: pieces of text; of a pair, those of both sides.
        text: the whole text; of a pair, that of the chosen side.
        refused: why there is nothing to compare with.
    """

    trajectory_id: str
    row: dict[str, Any]
    trained: list[str]
    text: str
    refused: str | None


def expected(store: Store, way: Way, model: Path) -> Iterator[Expected]:
    """What our renderer trains of every row of an export, in its order."""
    exporter = exporters.get(way.exporter)
    settings = read_settings(exporter, way.settings)
    tally = ExportCounts()
    fitter = Fitter(exporter.name, settings.form, settings.options, tally.changed)
    renderer = Renderer.load(str(model), RenderOptions())
    for item in StoreItems(store, settings.form, (), tally, settings.options.train).items(Silent()):
        for fitted in _fitted(fitter, item):
            pair = fitted.pair
            chats = [pair.chosen, pair.rejected] if pair else [fitted.chat] if fitted.chat else []
            for row in exporter.rows(fitted, settings.options, tally):
                yield _rendered(renderer, chats, row)


def _fitted(fitter: Fitter, item: ExportItem) -> list[ExportItem]:
    try:
        if item.pair is not None:
            pair = fitter.pair(item.pair)
            return [] if isinstance(pair, str) else [ExportItem(None, pair, item.trajectory)]
        assert item.chat is not None
        return [ExportItem(chat, None, item.trajectory) for chat in fitter.chats(item.chat)]
    except UnfitError:
        return []


def _rendered(renderer: Renderer, chats: list[Chat], row: dict[str, Any]) -> Expected:
    results: list[str] = []
    texts: list[str] = []
    refused: str | None = None
    for chat in chats:
        rendered = renderer.chat(chat)
        if rendered.lost:
            refused = rendered.rejected or next(iter(rendered.lost))
        spans = [(span, item.text) for item in rendered.rows for span in item.spans]
        results += [text[first:end] for (_, first, end), text in sorted(spans)]
        texts += [item.text for item in rendered.rows]
    return Expected(chats[0].trajectory_id, row, results, texts[0] if texts else "", refused)
