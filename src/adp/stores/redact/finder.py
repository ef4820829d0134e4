"""Finding values in one text, and putting placeholders in their place."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import polars as pl
import pyarrow as pa

from adp.stores.redact.escapes import LAYERS, DecodedText, decoded, is_escaped
from adp.stores.redact.in_json import json_edits
from adp.stores.redact.invisible import (
    has_signs,
    may_wrap,
    without_signs,
    without_wraps,
    wrapped_end,
)
from adp.stores.redact.prefilter import Prefilter
from adp.stores.redact.rules import ENCODED_SECRET, PLACEHOLDER, Hit, Rule, placeholder

ROUNDS = 8
"""How often a text is searched again after a replacement; the second round finds hardly any."""

_BASE64 = re.compile(r";base64,(?P<v>[0-9A-Za-z+/]{64,}={0,2})")


@dataclass(frozen=True)
class FoundValue:
    """A value that was found, without the value.

    Attributes:
        kind: its kind.
        preview: its first characters.
        length: number of its characters.
    """

    kind: str
    preview: str
    length: int


@dataclass
class Cleaned:
    """A text with placeholders.

    Attributes:
        text: the text.
        values: what they stand for.
        edits: for each round, (start, end, length of what stands there now), in order.
    """

    text: str
    values: list[FoundValue] = field(default_factory=list)
    edits: list[list[tuple[int, int, int]]] = field(default_factory=list)

    def place(self, old: int, *, end: bool = False) -> int:
        """Where a character of the old text is now.

        Args:
            old: its place.
            end: it ends a span; inside a value that went, its place is after the placeholder.
        """
        for edits in self.edits:
            old = _moved(old, edits, end)
        return old


def _moved(old: int, edits: list[tuple[int, int, int]], end: bool) -> int:
    shift = 0
    for start, stop, length in edits:
        if old >= stop:
            shift += length - (stop - start)
        elif old > start:
            return start + shift + (length if end else 0)
        else:
            break
    return old + shift


RANKS = {"secrets": 0, "given": 2, "own": 3, "personal": 4}


class ValueFinder:
    """Finds the values of some rules in texts, many texts at a time.

    Args:
        rules: the rules.

    Attributes:
        screen: finds the texts to look at.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.screen = Prefilter(rules)

    def column(
        self, column: pa.ChunkedArray | pa.Array, *, is_json: bool = False
    ) -> dict[int, Cleaned]:
        """The cells of a column in which something was found, by row.

        Args:
            column: a column of texts.
            is_json: they are JSON, and stay so.
        """
        result = self.screen.rows(column)
        rows = list(result)
        texts = [column[row].as_py() for row in rows]
        cleaned = self._clean(texts, list(result.values()), is_json=is_json)
        return {row: item for row, item in zip(rows, cleaned, strict=True) if item is not None}

    def texts(self, texts: Sequence[str], *, is_json: bool = False) -> list[Cleaned | None]:
        """The same for texts: one entry each, None where nothing was found."""
        rows = self.screen.rows(list(texts))
        rules = [rows.get(row) for row in range(len(texts))]
        return self._clean(list(texts), rules, is_json=is_json)

    def text(self, text: str) -> Cleaned | None:
        """The same for one text."""
        return self.texts([text])[0]

    def _clean(
        self, texts: list[str], rules: Sequence[list[Rule] | None], *, is_json: bool
    ) -> list[Cleaned | None]:
        """Put placeholders into texts, again and again until nothing is found.

        Args:
            texts: the texts.
            rules: for each, the rules to try; None leaves it.
            is_json: they are JSON, and stay so.
        """
        out: list[Cleaned | None] = [None] * len(texts)
        todo = {row: rule for row, rule in enumerate(rules) if rule is not None}
        for _ in range(ROUNDS):
            hits = self._hits(texts, todo, is_json=is_json)
            if not hits:
                break
            for row, matches in hits.items():
                cleaned = out[row] or Cleaned(texts[row])
                _replace(cleaned, matches, is_json=is_json)
                out[row], texts[row] = cleaned, cleaned.text
            rows = list(hits)
            again = self.screen.rows([texts[row] for row in rows])
            todo = {rows[number]: row_rules for number, row_rules in again.items()}
        return out

    def _hits(
        self, texts: list[str], todo: dict[int, list[Rule]], *, is_json: bool
    ) -> dict[int, list[Hit]]:
        """The values in texts, those behind escapes too: row -> hits that do not overlap."""
        results: dict[int, list[Hit]] = {}
        views = {row: DecodedText(texts[row]) for row in todo}
        if is_json:
            # What is between the quotes of JSON is what the text says, not how it is written.
            views, todo = self._behind(views, {row: "\\" in texts[row] for row in todo}, todo)
        for _ in range(LAYERS + 1):
            for row, rules in todo.items():
                for rule in rules:
                    results.setdefault(row, []).extend(_hits_of(rule, views[row]))
            self._add_folded(views, todo, results)
            escaped = {row: is_escaped(view.text) for row, view in views.items()}
            views = {row: view for row, view in views.items() if escaped[row]}
            if not views:
                break
            views, todo = self._behind(views, escaped, {})
        apart = {row: _apart(matches, texts[row]) for row, matches in results.items() if matches}
        return {row: matches for row, matches in apart.items() if matches}

    def _add_folded(
        self,
        views: dict[int, DecodedText],
        todo: dict[int, list[Rule]],
        items: dict[int, list[Hit]],
    ) -> None:
        """Add the values that signs without a width, colours or line wraps break up."""
        plain = {row: without_signs(view) for row, view in views.items() if has_signs(view.text)}
        rows = list(plain)
        seen = self.screen.rows([plain[row].text for row in rows]) if rows else {}
        again = {rows[number]: rules for number, rules in seen.items()}
        for row, rules in again.items():
            for rule in rules:
                items.setdefault(row, []).extend(_hits_of(rule, plain[row]))
        for row, rules in (todo | again).items():
            keys = [rule for rule in rules if may_wrap(rule)]
            view = without_wraps(plain.get(row, views[row])) if keys else None
            if view is None:
                continue
            for rule in keys:
                wrapped = _hits_of(rule, view, partial(wrapped_end, rule, view))
                known = items.setdefault(row, [])
                # What has a value of its own below a break does not go on above it.
                known += [
                    hit
                    for hit in wrapped
                    if not any(hit.start < other.start < hit.end for other in known)
                ]

    def _behind(
        self, views: dict[int, DecodedText], escaped: dict[int, bool], todo: dict[int, list[Rule]]
    ) -> tuple[dict[int, DecodedText], dict[int, list[Rule]]]:
        """Decode a layer of those that have one; the views, and the rules to try on them."""
        views = {row: decoded(view) if escaped[row] else view for row, view in views.items()}
        rows = [row for row in views if escaped[row]]
        seen = self.screen.rows([views[row].text for row in rows])
        kept = {row: rules for row, rules in todo.items() if not escaped[row]}
        return views, kept | {rows[number]: matches for number, matches in seen.items()}


def _hits_of(
    rule: Rule, view: DecodedText, cut: Callable[[int, int], int] | None = None
) -> Iterator[Hit]:
    rank = RANKS[rule.group] + (1 if rule.weak else 0)
    for start, end in _values(rule, view.text):
        last = cut(start, end) if cut is not None else end
        if last:
            yield Hit(*view.span(start, last), rule.kind, rank)


def _values(rule: Rule, text: str) -> Iterator[tuple[int, int]]:
    """Where the values of a rule are that pass its check."""
    find = rule.find or partial(_given if rule.group == "given" else _built_in, rule)
    for start, end in find(text):
        if text[start - 1 : start] == "\\" and text[start] in "nrtbfu" and _odd(text, start):
            continue  # it begins inside an escape: the n of a line break
        end -= text[end - 1] == "\\" and _odd(text, end)
        if start < end and (rule.check is None or rule.check(text, start, end)):
            yield start, end


def _built_in(rule: Rule, text: str) -> Iterator[tuple[int, int]]:
    group: str | int = "v" if "v" in rule.regex.groupindex else 0
    for match in _matches(rule, text):
        start, end = match.span(group)
        yield (start, end) if start >= 0 else match.span()


def _odd(text: str, end: int) -> bool:
    """Whether the backslashes before a place are odd in number: what comes next is escaped."""
    return (end - len(text[max(0, end - 64) : end].rstrip("\\")) - max(0, end - 64)) % 2 == 1


def _given(rule: Rule, text: str) -> Iterator[tuple[int, int]]:
    """Matches of a rule of the caller, found by an engine that takes linear time.

    What is between quotes is a match of its own, so that JSON stays JSON.
    """
    done = 0
    for value in pl.Series([text]).str.extract_all(rule.pattern)[0]:
        start = text.find(value, done)
        done = start + len(value)
        for piece in re.finditer(r'[^"]+', value):
            yield start + piece.start(), start + piece.end()


def _matches(rule: Rule, text: str) -> Iterator[re.Match[str]]:
    """Matches of a rule. Where literals stand is found much faster than the patterns are tried."""
    words, where = rule.starts, text
    if rule.near and len(low := text.lower()) == len(text):
        words, where = rule.near, low
    if not words:
        yield from rule.regex.finditer(text)
        return
    for word in words:
        done = 0
        place = where.find(word)
        while place >= 0:
            if rule.near:
                # A search would go on behind the word; the next word has its own turn.
                begins = range(max(done, place - rule.back), place + 1)
                tried = (rule.regex.match(text, start) for start in begins)
                match = next((item for item in tried if item is not None), None)
            elif rule.back:
                match = rule.regex.search(text, max(done, place - rule.back), place + rule.ahead)
            else:
                match = rule.regex.match(text, place)
            if match is not None and match.start() <= place:
                yield match
                done = match.end()
            place = where.find(word, max(place + len(word), done))


def _apart(hits: list[Hit], text: str) -> list[Hit]:
    """Hits that do not overlap. Of secrets that do, one takes the place of both."""
    taken = [match.span() for match in PLACEHOLDER.finditer(text)] if "[redacted:" in text else []
    if ";base64," in text:
        # Letters there make values by chance; what they stand for does not.
        meant = {(hit.start, hit.end) for hit in hits if hit.kind == ENCODED_SECRET}
        taken += [match.span() for match in _BASE64.finditer(text) if match.span("v") not in meant]
    taken.sort()
    starts = [start for start, _ in taken]
    kept: list[Hit] = []
    for hit in sorted(set(hits), key=lambda hit: (hit.start, -hit.end, hit.rank)):
        index = bisect_right(starts, hit.end - 1) - 1
        if index >= 0 and taken[index][1] > hit.start:
            continue
        if kept and kept[-1].end > hit.start:
            last = kept[-1]
            better = min(last, hit, key=lambda item: (item.rank, item.start - item.end))
            if last.rank <= 1 and hit.rank <= 1:
                better = Hit(last.start, max(last.end, hit.end), better.kind, better.rank)
            kept[-1] = better
        else:
            kept.append(hit)
    return kept


def _replace(cleaned: Cleaned, hits: list[Hit], *, is_json: bool) -> None:
    """Put placeholders for some values into a text."""
    text = cleaned.text
    cleaned.values += [_value_of(text, hit) for hit in hits]
    new = [(hit.start, hit.end, placeholder(hit.kind)) for hit in hits]
    if is_json:
        new = json_edits(text, hits)
    pieces: list[str] = []
    done = 0
    for start, end, word in new:
        pieces += [text[done:start], word]
        done = end
    cleaned.text = "".join([*pieces, text[done:]])
    cleaned.edits.append([(start, end, len(word)) for start, end, word in new])


def _value_of(text: str, hit: Hit) -> FoundValue:
    length = hit.end - hit.start
    return FoundValue(hit.kind, text[hit.start : hit.start + min(4, length // 4)], length)
