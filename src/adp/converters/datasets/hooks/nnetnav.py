"""NNetNav: a row a step, whose prompt has the page, its address, the objective and past actions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from adp.converters.datasets.turns import DatasetRow, DatasetTurn
from adp.converters.kit.drafts import merge_extra
from adp.converters.kit.source_object import SourceObject
from adp_schema.model import Columns

_PAGE, _URL, _TASK, _PAST = "OBSERVATION:\n", "\nURL: ", "\nOBJECTIVE: ", "\nPREVIOUS ACTIONS:"


def turns(row: DatasetRow) -> Iterator[DatasetTurn]:
    """The instructions and the objective once; then the page and the answer of each row."""
    rows, row.rows = row.rows, []
    known: set[tuple[str, str]] = set()
    for source in rows:
        rest: dict[str, Any] = {}
        for message in source.objects("messages"):
            role, text = message.text("role") or "", message.text("content") or ""
            if role == "user":
                yield from _page(text, known, message)
            elif role == "assistant":
                rest = source.rest()
                extra = message.rest()
                merge_extra(extra, rest)
                yield DatasetTurn("agent", text, extra=extra)
            elif (role, text) not in known or message:
                known.add((role, text))
                yield DatasetTurn("system", text, extra=message.rest())
        if not rest and (rest := source.rest()):
            yield DatasetTurn("environment", None, columns={"kind": "event"}, extra=rest)


def _page(text: str, known: set[tuple[str, str]], message: SourceObject) -> Iterator[DatasetTurn]:
    """The page as an observation, whole as the agent saw it; before the first, the objective."""
    columns: Columns = {}
    objective = text.find(_TASK)
    address = text.rfind(_URL, 0, objective) if objective > 0 else -1
    past = text.find(_PAST, objective)
    if text.startswith(_PAGE) and 0 < address < past:
        columns = {
            "axtree": text[len(_PAGE) : address],
            "url": text[address + len(_URL) : objective],
        }
        task = text[objective + len(_TASK) : past]
        if ("user", task) not in known:
            known.add(("user", task))
            yield DatasetTurn("user", task)
    yield DatasetTurn("result", text, columns=columns, extra=message.rest())
