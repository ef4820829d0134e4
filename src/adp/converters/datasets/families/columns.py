"""Rows of prompts and answers: columns become turns, and worse answers become branches."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Raw

from adp.converters.datasets.actions import add_images
from adp.converters.datasets.families.messages import TurnListReader, item_object
from adp.converters.datasets.paths import holder, opened
from adp.converters.datasets.turns import DatasetRow, new_step
from adp.converters.kit.chat import add_call
from adp.converters.kit.drafts import StepDraft
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE, BRACKET, NULL, QUOTE
from adp_schema import jsontext
from adp_schema.errors import RecordError


def read(row: DatasetRow) -> None:
    """Read the columns of a row.

    Raises:
        RecordError: there is neither a prompt nor an answer.
    """
    spec = row.recipe.columns
    _say(row, "system", spec.system)
    for path in spec.user:
        if _messages(row, path):
            break
    else:
        _say(row, "user", spec.user, spec.images)
    _answer(row)
    if spec.completions:
        _completions(row, spec.completions)
    elif spec.chosen is not None:
        _preference(row)
    if not row.run.steps:
        raise RecordError("there is neither a prompt nor an answer")


def _say(row: DatasetRow, source: str, paths: Sequence[str], images: Sequence[str] = ()) -> None:
    texts = [text for path in paths if (text := row.take_text(path))]
    if texts:
        step = new_step(row.run, "system" if source == "system" else "user")
        for text in texts:
            step.parts.text(row.builder.text(text))
        for path in images:
            add_images(row, row.source, path, step.parts)


def _messages(row: DatasetRow, path: str) -> bool:
    """Read a column that is a list of messages; whether it is one."""
    raw = row.look(path)
    value = None if raw is None else opened(raw)
    if value is None or jsontext.first_byte(value) != BRACKET:
        return False
    items = jsontext.decode_array(value)
    if not items or any(jsontext.first_byte(it) != BRACE for it in items):
        return False
    items = row.items(path)
    _reader(row).read([item_object(it, f"$.{path}[{n}]", row) for n, it in enumerate(items)])
    return True


def _reader(row: DatasetRow) -> TurnListReader:
    return TurnListReader(row, row.recipe.messages)


def _answer(row: DatasetRow) -> None:
    spec = row.recipe.columns
    thoughts = [text for path in spec.reasoning if (text := row.take_text(path))]
    texts = [text for path in spec.agent if (text := row.take_text(path)) is not None]
    calls = [] if spec.calls is None else _calls(row, spec.calls)
    if not (thoughts or texts or calls or spec.calls):
        return
    step = new_step(row.run, "agent")
    for text in thoughts:
        step.parts.reasoning(row.builder.text(text))
    for text in texts:
        step.parts.text(row.builder.text(text))
    for call in calls:
        add_call(call, step)
    if not calls and spec.calls is not None and (text := row.take_text(spec.calls)) is not None:
        _no_calls(step, text, row)
    for path in spec.result:
        if (text := row.take_text(path)) is not None:
            row.run.observe({}, by_order=True).parts.text(row.builder.text(text))


def _no_calls(step: StepDraft, text: str, row: DatasetRow) -> None:
    """What stands for no calls is kept; other words are those of the agent."""
    if text.strip() in ("[]", ""):
        step.extra["calls"] = text
    else:
        step.parts.text(row.builder.text(text))


def _calls(row: DatasetRow, path: str) -> list[SourceObject]:
    raw = row.look(path)
    value = None if raw is None else opened(raw)
    if value is None or jsontext.first_byte(value) not in (BRACE, BRACKET):
        return []
    items = [Raw(value)] if jsontext.first_byte(value) == BRACE else jsontext.decode_array(value)
    if not items or any(jsontext.first_byte(it) != BRACE for it in items):
        return []
    place = holder(row.source, path)
    if place is not None:
        place[0].drop(place[1])
    return [SourceObject(it, f"$.{path}[{n}]", row.losses) for n, it in enumerate(items)]


def _add_answer(row: DatasetRow, raw: Raw, path: str) -> None:
    """Add an answer to the run at hand: a text, a message, or a list of messages."""
    first = jsontext.first_byte(raw)
    if first == QUOTE:
        row.say("agent", jsontext.decode_value(raw))
    elif first == BRACKET:
        items = jsontext.decode_array(raw)
        _reader(row).read([item_object(it, f"{path}[{n}]", row) for n, it in enumerate(items)])
    else:
        message = item_object(raw, path, row)
        if not any(message.word(key) for key in row.recipe.messages.role):
            step = new_step(row.run, "agent")
            key = next((it for it in row.recipe.messages.text if message.word(it)), None)
            if key is not None:
                step.parts.text(row.builder.text(message.text(key) or ""))
            step.extra.update(message.rest())
        else:
            _reader(row).read([message])


def _taken(row: DatasetRow, path: str) -> Raw | None:
    place = holder(row.source, path)
    if place is None or place[0].first(place[1]) in (0, NULL):
        return None
    return place[0].take(place[1])


def _completions(row: DatasetRow, paths: Sequence[str]) -> None:
    """Several answers to one prompt: the first goes on the run, the others are branches."""
    kept = len(row.run.steps)
    if len(paths) == 1:
        answers = [(f"$.{paths[0]}[{n}]", item) for n, item in enumerate(row.items(paths[0]))]
    else:
        taken = [(f"$.{path}", _taken(row, path)) for path in paths]
        answers = [(path, raw) for path, raw in taken if raw is not None]
    for number, (path, raw) in enumerate(answers):
        with_branch(row, kept, path, raw, is_main=not number)


def with_branch(row: DatasetRow, kept: int, path: str, raw: Raw, *, is_main: bool) -> None:
    """Add an answer to the run, or to a branch that keeps its first steps."""
    main = row.run
    if not is_main:
        row.run = row.blocks.run = main.branch(kept, "alternate")
    _add_answer(row, raw, path)
    row.run = row.blocks.run = main


def _preference(row: DatasetRow) -> None:
    """A better and a worse answer; both may be long, and may begin with the same messages."""
    spec = row.recipe.columns
    chosen = None if spec.chosen is None else _taken(row, spec.chosen)
    rejected = None if spec.rejected is None else _taken(row, spec.rejected)
    if chosen is None:
        raise RecordError("there is no better answer", f"$.{spec.chosen}")
    shared = 0 if rejected is None else _shared(chosen, rejected)
    if shared:
        items = jsontext.decode_array(chosen)
        _reader(row).read(
            [item_object(it, f"$.{spec.chosen}[{n}]", row) for n, it in enumerate(items[:shared])]
        )
        chosen, rejected = _tail(chosen, shared), _tail(rejected or Raw(b"[]"), shared)
    kept = len(row.run.steps)
    _add_answer(row, chosen, f"$.{spec.chosen}")
    if rejected is not None:
        with_branch(row, kept, f"$.{spec.rejected}", rejected, is_main=False)
        row.pair_from = kept


def _tail(raw: Raw, start: int) -> Raw:
    return Raw(jsontext.encode(jsontext.decode_array(raw)[start:]))


def _shared(first: Raw, second: Raw) -> int:
    """How many messages two lists begin with alike; the last of each is always an answer."""
    if {jsontext.first_byte(first), jsontext.first_byte(second)} != {BRACKET}:
        return 0
    pairs = zip(jsontext.decode_array(first)[:-1], jsontext.decode_array(second)[:-1], strict=False)
    count = 0
    for left, right in pairs:
        if jsontext.one_line(left) != jsontext.one_line(right):
            break
        count += 1
    return count
