"""What the product promises of whole exports: the same format, --strict, pairs, the way back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.fidelity import exact
from tests.fidelity.check import Notes, Trial, is_form
from tests.fidelity.exact import INSIDE, Keys, Number, containers, leaves
from tests.fidelity.marks import Mark, Marker, is_word
from tests.fidelity.product import LINES, Reading, Written

PAIRS = (("chosen", "rejected"), ("preferred_output", "non_preferred_output"))
"""Keys of the two sides of a preference pair, in the layouts that people have."""

HOP = "atif"
"""The format that holds all of the others: what it took without a report comes back without one."""

_ABOUT_PAIRS = re.compile(r"pair|prefer|chosen|reject|branch", re.IGNORECASE)
_SIDE_RUN = re.compile(r"reject|non_preferred|alternate|branch|subagent", re.IGNORECASE)

_MARKUP = re.compile(r"\n\n(?:Human|Assistant):|</?\w+>|\\[nrtu\"]")


def check_promises(trial: Trial) -> None:
    """Check every target of a record."""
    for target in trial.targets:
        _strict(trial, target)
    _same_format(trial)
    _pairs(trial)
    _way_back(trial)


def documents(written: Written) -> list[Any]:
    """The records of an export."""
    results: list[Any] = []
    for name, text in written.files.items():
        if name.endswith((".jsonl", ".ndjson")):
            results += [exact.parse(line) for line in text.split("\n") if line.strip()]
        elif name.endswith(".json"):
            results.append(exact.parse(text))
    return results


def _same_format(trial: Trial) -> None:
    """An export in the source's own format is the source, key by key and digit by digit."""
    name, raw = trial.source.format, trial.source.raw or trial.source.text(trial.source.tree)
    reading = trial.product.read(raw, name, trial.source.suffix)
    if reading is None:
        return
    check_same(trial, reading, raw)
    trial.product.forget(reading)


def check_same(notes: Notes, reading: Reading, raw: str) -> None:
    """Compare an export in the source's own format with the file."""
    name = notes.source.format
    written = reading.written(name)
    made = next(iter(written.files.values()), "")
    if len(written.files) == 1 and made == raw:
        if written.exported:
            notes.alarm(
                "a report about the same bytes", name, (), str(dict(written.exported))[:200]
            )
        if not reading.strict(name):
            notes.alarm("--strict fails on the same bytes", name, (), "")
    elif not written.reports and not _same_data(made, raw, notes.source.suffix):
        notes.add("same format", name, (), "other data, no report")


def _same_data(text: str, two: str, suffix: str) -> bool:
    """Whether two files hold the same, with the order of keys and the spelling of numbers."""
    return exact.dump(_document(text, suffix)) == exact.dump(_document(two, suffix))


def _document(text: str, suffix: str) -> Any:
    if suffix == ".jsonl":
        return [exact.parse(line) for line in text.split("\n") if line.strip()]
    return exact.parse(text)


def _strict(trial: Trial, target: str) -> None:
    """--strict goes through exactly where nothing is reported."""
    written, passes = trial.base.written(target), trial.base.strict(target)
    if passes and written.exported:
        trial.add("--strict passes a loss", target, (), str(dict(written.exported))[:200])
    if not passes and not written.exported:
        trial.alarm("--strict fails", target, (), "nothing is reported")


def _pairs(trial: Trial) -> None:
    """A rejected answer is never a plain row, and a pair is carried or reported."""
    tree = trial.source.tree
    for keys, holder in containers(tree):
        if not isinstance(holder, dict):
            continue
        for chosen, rejected in PAIRS:
            if holder.get(chosen) and holder.get(rejected):
                _pair(trial, keys, (chosen, rejected))
        if holder.get("alternate_trace"):
            _check_side_runs(trial, (*keys, "alternate_trace"), "alternate")


def _pair(trial: Trial, holder: Keys, names: tuple[str, str]) -> None:
    """All words of both sides that a target has stand there as the sides of a pair."""
    tree = trial.source.tree
    sides = [_below(tree, (*holder, name)) for name in names]
    values = [{exact.at(tree, where) for where in side} for side in sides]
    shared = values[0] & values[1]
    paths = {where for side in sides for where in side if exact.at(tree, where) not in shared}
    marked = Marker(500).mark(tree, paths)
    reading = trial.read(marked.tree)
    for target in trial.targets if reading is not None else ():
        written = reading.written(target)
        if any(_ABOUT_PAIRS.search(report) for report in written.reports):
            continue
        marks = [mark for mark in marked.marks if mark.is_in(written.text)]
        wanted = [[mark for mark in marks if mark.keys in side] for side in sides]
        pairs = [pair for document in documents(written) for pair in pairs_of(document)]
        if not any(_holds(pair, wanted) for pair in pairs):
            trial.add("pair", target, (*holder, names[1]), "neither carried nor reported")
    _check_side_runs(trial, (*holder, names[1]), names[1])


def _holds(pair: tuple[str, str], wanted: list[list[Mark]]) -> bool:
    """Whether each side has all of its own marks, and none of the other's.

    A side that quotes the other one has its mark, too.
    """
    return all(
        all(mark.is_in(text) for mark in ours)
        and not any(mark.is_in(text) for mark in others if not _is_quoted(mark, ours))
        for text, ours, others in zip(pair, wanted, reversed(wanted), strict=True)
    )


def _is_quoted(mark: Mark, marks: list[Mark]) -> bool:
    return any(str(mark.value) in str(other.value) for other in marks)


def _below(tree: Any, keys: Keys) -> set[Keys]:
    return {where for where, _ in leaves(tree) if where[: len(keys)] == keys}


def pairs_of(document: Any) -> Iterator[tuple[str, str]]:
    """What is preferred, and what is not, for every pair that a record of any format says."""
    for _, holder in containers(document):
        if isinstance(holder, dict):
            for chosen, rejected in PAIRS:
                if holder.get(chosen) and holder.get(rejected):
                    yield exact.dump(holder[chosen]), exact.dump(holder[rejected])
    adp = _adp_extra(document)
    runs = list(_runs(document)) if isinstance(document, dict) else []
    for pair in adp.get("pairs") or ():
        steps = [_steps(runs, pair, side) for side in ("chosen", "rejected")]
        if all(steps) and _steps(runs, pair, "context") is not None:
            yield exact.dump(steps[0]), exact.dump(steps[1])


def _adp_extra(run: Any) -> dict[str, Any]:
    """What a record of ATIF says under ``extra.adp``."""
    extra = run.get("extra") if isinstance(run, dict) else None
    adp = extra.get("adp") if isinstance(extra, dict) else None
    return adp if isinstance(adp, dict) else {}


def _runs(run: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A run and those in it, each before its own: by these numbers pairs name them."""
    yield run
    for subagent_trajectory in run.get("subagent_trajectories") or ():
        yield from _runs(subagent_trajectory)


def _steps(runs: list[dict[str, Any]], pair: dict[str, Any], side: str) -> list[Any] | None:
    """The steps that a side of a pair names; None when there are no such steps."""
    number = int(pair.get(f"{side}_id", "-1"))
    if not 0 <= number < len(runs):
        return None
    steps, before = runs[number]["steps"], int(_adp_extra(runs[number]).get("parent_step", "0"))
    if side == "context":
        end = int(pair["context_up_to"])
        return steps[:end] if 0 <= end <= before + len(steps) else None
    first = int(pair.get(f"{side}_from", before)) - before
    last = int(pair.get(f"{side}_to", before + len(steps))) - before
    return steps[first:last] if 0 <= first < last <= len(steps) else None


def _check_side_runs(trial: Trial, keys: Keys, name: str) -> None:
    """What was not the main line is no ordinary row of a target."""
    tree = trial.source.tree
    below = {where for where, _ in leaves(tree) if where[: len(keys)] == keys}
    others = {value for where, value in leaves(tree) if where not in below}
    below = {where for where in below if exact.at(tree, where) not in others}
    marked = Marker(300).mark(tree, below)
    reading = trial.read(marked.tree)
    if reading is None:
        return
    for target in trial.targets:
        for document in documents(reading.written(target)):
            text = exact.dump(document)
            if any(mark.is_in(text) for mark in marked.marks) and not _SIDE_RUN.search(text):
                trial.add(f"{name} as an ordinary row", target, keys, text[:160])
                break


def _way_back(trial: Trial) -> None:
    """Through another format and back without a report: the source again, up to its form."""
    name = trial.source.format
    for target in trial.targets:
        there = trial.base.written(target)
        if target == name or there.reports or len(there.files) != 1:
            continue
        suffix = ".jsonl" if target in LINES or next(iter(there.files)).endswith("l") else ".json"
        back = trial.product.read(there.text, target, suffix)
        if back is None:
            trial.add("way back", target, (), "what was written is refused")
            continue
        again = back.written(name)
        lost = sorted(_words(trial.source.tree) - _words(documents(again)))
        output = ", ".join(again.reports)[:200]
        trial.product.forget(back)
        if again.reports and target != HOP:
            continue
        if lost:
            trial.add("way back", target, (), f"gone: {' '.join(lost)[:100]}; {output}")
        elif again.reports:
            trial.alarm("a report on the way back of nothing", target, (), output)


def _words(tree: Any) -> set[str]:
    """The words of a record, without its form: another dialect has other keys and tags.

    Marks of whose turn it is in a transcript are form: another dialect has roles. Keys of JSON
    in a text are words: the same text is no JSON where tags stand around it.
    """
    results = {key for keys, _ in leaves(tree) for key in _inside(keys) if isinstance(key, str)}
    return results | {
        word
        for keys, value in leaves(tree)
        if isinstance(value, str) and not is_form(keys) and not is_word(keys, value)
        for word in _words_of(value)
    }


def _words_of(value: str) -> list[str]:
    """The words of a text, or of a number: 1.0 is 1."""
    plain = re.sub(r"\.0+$", "", value) if isinstance(value, Number) else _MARKUP.sub(" ", value)
    return re.findall(r"\w+", plain)


def _inside(keys: Keys) -> Keys:
    """The part of a place that is inside of JSON in a text."""
    return keys[keys.index(INSIDE) + 1 :] if INSIDE in keys else ()
