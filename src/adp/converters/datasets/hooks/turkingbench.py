"""TurkingBench: a page with a form, and the answers that a person filled in."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser

from adp.converters.datasets.paths import plain
from adp.converters.datasets.turns import DatasetRow, DatasetTurn, TurnCall

_TAGS = ("input", "textarea", "select", "crowd-checkbox", "crowd-slider", "crowd-input")
_UNUSED = ("hidden", "submit", "reset", "button")
_LONGEST_PAGE = 20_000_000
"""Characters of a page; a value that would make it longer is not put in."""
_KNOWN = ("_id", "Task", "Title", "Description", "Keywords", "Template", "Answer")


def turns(row: DatasetRow) -> Iterator[DatasetTurn]:
    """What is asked, the page with the values of the row, and an action for each answer."""
    words = [text for key in ("Title", "Description") if (text := row.take_text(key))]
    yield DatasetTurn("user", "\n\n".join(words) or None)
    template = row.take_text("Template") or ""
    page = template
    for key, raw in row.source.values.items():
        value, place = plain(raw), f"${{{key}}}"
        if key not in _KNOWN and isinstance(value, str):
            if len(page) + page.count(place) * len(value) > _LONGEST_PAGE:
                continue
            page = page.replace(place, value)
    extra = {} if page == template else {"Template": template}
    yield DatasetTurn("result", columns={"html": page}, extra=extra)
    answers = plain(row.look("Answer"))
    calls = list(_calls(page, answers if isinstance(answers, dict) else {}))
    yield DatasetTurn("agent", None, calls)


def _calls(page: str, answers: dict[str, object]) -> Iterator[TurnCall]:
    """The actions that bring the answers into the form; an answer that stands there needs none."""
    form = _Form()
    form.feed(page)
    for tag, attributes, options in form.fields:
        name, kind = attributes.get("name") or "", attributes.get("type") or ""
        given = answers.get(name)
        if not name or not isinstance(given, str) or (tag == "input" and kind in _UNUSED):
            continue
        value = given.strip()
        typed = f' and @type="{kind}"' if kind else ""
        xpath = f'//{tag}[@name="{name}"{typed}]'
        if kind in ("radio", "checkbox") or tag == "crowd-checkbox":
            choice = attributes.get("value") or "on"
            chosen = f' and @value="{choice}"' if attributes.get("value") else ""
            is_set = "checked" in attributes
            wanted = bool(value) and _same(value, choice)
            if (wanted and not is_set) or (is_set and not value):
                yield TurnCall("click", {"xpath": f'//{tag}[@name="{name}"{typed}{chosen}]'})
        elif tag == "select":
            if value in options and value != options[0]:
                yield TurnCall("select", {"xpath": xpath, "value": value})
        elif not _same(value, attributes.get("value") or ""):
            action = "modify_range" if kind == "range" or tag == "crowd-slider" else "type"
            yield TurnCall(action, {"xpath": xpath, "value": value})


def _same(first: str, second: str) -> bool:
    """Whether two values are equal; 1 and 1.0 are."""
    try:
        return float(first) == float(second)
    except ValueError:
        return first.strip() == second.strip()


class _Form(HTMLParser):
    """The fields of a form, in the order of the page; the options of a list begin with its own."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.fields: list[tuple[str, dict[str, str | None], list[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag in _TAGS:
            self.fields.append((tag, attributes, []))
        elif tag == "option" and self.fields and self.fields[-1][0] == "select":
            options, value = self.fields[-1][2], attributes.get("value") or ""
            options.insert(0 if "selected" in attributes else len(options), value)
