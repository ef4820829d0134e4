"""WebShop sessions of people: the pages that they saw, out of which follows what they did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from adp.converters.datasets.literals import literal
from adp.converters.datasets.paths import plain
from adp.converters.datasets.turns import DatasetRow, DatasetTurn, TurnCall
from adp.converters.kit.source_object import SourceObject
from adp_schema import jsontext

_DERIVED = {"derived": "from the page before and after"}


def turns(row: DatasetRow) -> Iterator[DatasetTurn]:
    """The turns of a session, a page view a line."""
    pages, row.rows = row.rows, []
    row.run.constant(pages[0], "goal")
    goal = plain(row.run.extra.get("goal"))
    text = goal.get("instruction_text") if isinstance(goal, dict) else None
    yield DatasetTurn("user", text if isinstance(text, str) else None)
    before: dict[str, Any] = {}
    for number, page in enumerate(pages):
        row.run.constant(page, "goal")
        view = _view(page)
        if number:
            call = TurnCall(*_action(before, view), extra=dict(_DERIVED))
            yield DatasetTurn("agent", calls=[call], columns={"actor": "human"})
        yield _seen(page)
        before = view


def _view(page: SourceObject) -> dict[str, Any]:
    content = plain(page.values.get("content"))
    view = dict(content) if isinstance(content, dict) else {}
    words = view.get("keywords")
    view["keywords"] = (literal(words) or [words]) if isinstance(words, str) else words or []
    return {**view, "page": page.word("page"), "number": view.get("page"), "url": page.word("url")}


def _action(before: dict[str, Any], after: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The action that leads from one page to the next one, in the words of WebShop."""
    first, second = before["page"], after["page"]
    if second == "search_results" and (first == "index" or before["keywords"] != after["keywords"]):
        return "search", {"keywords": " ".join(map(str, after["keywords"]))}
    if second == "search_results" and first == "search_results":
        forward = _number(after) > _number(before)
        return "click", {"value": "next >" if forward else "< prev"}
    if second == "index":
        return "click", {"value": "back to search"}
    if second == "done":
        return "click", {"value": "buy now"}
    if second == "item_sub_page":
        known = ("description", "features", "reviews", "attributes")
        url = after["url"].lower()
        return "click", {"value": next((name for name in known if f"/{name}" in url), "sub page")}
    if second == "item_page" and first == "search_results":
        return "click", {"value": str(after.get("asin"))}
    return "click", {"value": _option(before, after) or "< prev"}


def _number(view: dict[str, Any]) -> int:
    return int(view["number"]) if str(view["number"]).isdigit() else 0


def _option(before: dict[str, Any], after: dict[str, Any]) -> str | None:
    """The option that was chosen on the page of an article."""
    old, new = before.get("options"), after.get("options")
    if not isinstance(new, dict):
        return None
    old = old if isinstance(old, dict) else {}
    return next((str(value) for name, value in new.items() if old.get(name) != value), None)


def _seen(page: SourceObject) -> DatasetTurn:
    """A page: of its content the log has only a summary."""
    columns: dict[str, Any] = {"name": page.text("page"), "url": page.text("url")}
    content = page.values.get("content")
    if content is not None and bytes(content) != b"null":
        columns["structured"] = jsontext.one_line(page.values.pop("content"))
    reward = page.number("reward")
    if reward is not None:
        columns["reward"] = reward
    return DatasetTurn("result", columns=columns, extra=page.rest())
