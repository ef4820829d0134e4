"""Reading turns: each becomes a step, or observations."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
from msgspec import Raw

from adp.converters.openai_chat.content import content_columns
from adp.converters.reading import (
    NUMBER,
    QUOTE,
    begins,
    drop_nulls,
    object_fields,
    report_marks,
    take_first_text,
    take_text,
)
from adp.converters.scalars import read_number
from adp.converters.sharegpt import keys as k
from adp.converters.sharegpt.media import MediaColumns, role_key, value_key
from adp.converters.sharegpt.results import ResultPiece, named_tool, split_results
from adp.converters.text_calls import OPEN, CallGroup, TextCall, find_bare, find_tagged, prose
from adp_schema import extra_column, jsontext
from adp_schema.builder import RowBuilder
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.model import Columns

_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN = re.compile(rb'\{\s*"from":\s*"([A-Za-z_]+)",\s*"value":\s*(".*")\s*\}', re.DOTALL)
_packed: dict[Any, str | None] = {}


class TurnReader:
    """Reads the turns of one record.

    Args:
        builder: takes the rows.
        losses: takes what cannot be kept.
        media: the columns of media.
        record: bytes of the record, when it holds no marks yet.
    """

    def __init__(
        self, builder: RowBuilder, losses: Losses, media: MediaColumns, record: bytes | None
    ) -> None:
        self._builder = builder
        self._losses = losses
        self._media = media
        self._record = record
        self._waiting: list[str | None] = []

    def read(self, raw: Raw, path: str, side: str | None = None) -> int:
        """Read a turn.

        Args:
            raw: the turn.
            path: where it is.
            side: the column of the record that it is, when it is no turn of the list.

        Returns:
            The index of the step; -1 when it has become observations.

        Raises:
            RecordError: it is no turn.
        """
        match = None if side is not None else _PLAIN.fullmatch(raw)
        text = None if match is None else _plain_text(match.group(2))
        if match is not None and text is not None:
            return self._emit({}, match.group(1).decode("ascii"), text, {}, ())
        turn = object_fields(raw, path, self._losses, "a turn object")
        names = tuple(turn)
        key = role_key(turn)
        if key is None:
            raise RecordError("expected a role (`from` or `role`)", path)
        role: str = jsontext.decode_value(turn.pop(key))
        report_marks(role, f"{path}.{key}", self._losses)
        value_name = value_key(turn)
        value = None if value_name is None else turn.pop(value_name)
        null = drop_nulls(turn)
        form: dict[str, Any] = {} if side is None else {"at": side}
        if names != k.TURN:
            form["keys"] = names
        if begins(value, QUOTE):
            value = jsontext.decode_value(value)
        return self._emit(turn, role, value, form, null)

    def _emit(
        self,
        turn: dict[str, Raw],
        role: str,
        value: str | Raw | None,
        form: dict[str, Any],
        null: tuple[str, ...],
    ) -> int:
        if role.lower() in k.RESULT_ROLES:
            self._result(turn, role, value, form, null)
            return -1
        return self._step(turn, role, value, form, null)

    # ---- steps -----------------------------------------------------------------------------

    def _step(
        self,
        turn: dict[str, Raw],
        role: str,
        value: str | Raw | None,
        form: dict[str, Any],
        null: tuple[str, ...],
    ) -> int:
        source = k.SOURCES.get(role.lower(), "environment")
        columns: Columns = {
            "source": source,
            "kind": "llm_turn" if source == "agent" else "message",
        }
        if role != k.USUAL_ROLES[source]:
            if role.lower() in k.SYNONYMS or "role" in turn:
                form["role"] = role
            else:
                turn = {"role": Raw(jsontext.encode(role)), **turn}
        groups: list[CallGroup] = []
        if isinstance(value, str):
            if source == "agent":
                groups = self._calls(value, role)
            if groups:
                # The spans are those of the text as it stands, so no base64 leaves it.
                columns |= {"text": value, "prose": prose(value, groups)}
            else:
                self._media.content(value, columns)
        else:
            content_columns(value, columns, form, self._builder)
        if turn:
            _take_words(turn, columns, form)
            _take_weight(turn, columns, form)
        columns["extra"] = _pack(turn, form, null)
        index = self._builder.step(columns)
        calls = [call for group in groups for call in group.calls]
        for call in calls:
            self._builder.call(self._call(call))
        if calls:
            self._waiting = [call.values.name for call in calls]
        return index

    def _calls(self, text: str, role: str) -> list[CallGroup]:
        """The calls in what the agent wrote; none where they could not be stored."""
        if OPEN not in text and ("{" not in text or role.lower() not in k.CALL_ROLES):
            return []
        groups = find_bare(text) if role.lower() in k.CALL_ROLES else find_tagged(text)
        plain = text.isascii() or not jsontext.has_mark(text)
        for group in groups:
            if not plain and jsontext.has_mark(text[group.start : group.end]):
                return []
            for call in group.calls:
                if any(_is_odd(value) for value in call.values) and not self._may_mark():
                    return []
        return groups

    def _may_mark(self) -> bool:
        """Whether marks can stand for lone surrogates: the record must not have such characters."""
        return self._record is None or not jsontext.has_mark(self._record.decode("utf-8"))

    def _call(self, call: TextCall) -> Columns:
        columns: Columns = {
            "kind": "function",
            "requestor": "agent",
            "origin": "parsed_from_text",
            "span_start": call.span[0],
            "span_end": call.span[1],
        }
        values = call.values
        names = ("call_id", "name", "arguments", "arguments_raw")
        for name, value in zip(names, values, strict=True):
            if value is not None:
                columns[name] = self._storable(value)
        if call.kind is not None:
            columns["arguments_kind"] = call.kind
        if call.others:
            others = {
                _escaped(key): jsontext.raw(value) if jsontext.is_valid(value) else _escaped(value)
                for key, value in call.others.items()
            }
            columns["extra"] = extra_column.pack(others)
        return columns

    def _storable(self, text: str) -> str:
        """A text with marks in the place of lone surrogates."""
        if not _is_odd(text):
            return text
        self._builder.mark()
        marked: str = jsontext.decode_value(jsontext.sanitise(json.dumps(text).encode()))
        return marked

    # ---- observations ----------------------------------------------------------------------

    def _result(
        self,
        turn: dict[str, Raw],
        role: str,
        value: str | Raw | None,
        form: dict[str, Any],
        null: tuple[str, ...],
    ) -> None:
        if role != k.RESULT_ROLE:
            form["role"] = role
        columns: Columns = {"source": "environment"}
        if (name := take_text(turn, "name")) is not None:
            columns["name"] = name
        if not isinstance(value, str):
            content_columns(value, columns, form, self._builder)
            columns["extra"] = _pack(turn, form, null)
            self._observe(columns)
            return
        pieces = [ResultPiece(None, "", value, "")]
        if "<" in value:
            pieces = split_results(value, len(self._waiting))
        for piece in pieces:
            self._piece(piece, dict(columns), turn, dict(form), null)
            # What else the turn says belongs to its first result.
            turn, null = {}, ()
            form["keys"] = tuple(
                name for name in form.get("keys", ()) if name in (*k.ROLE_KEYS, *k.VALUE_KEYS)
            )
            if not form["keys"]:
                del form["keys"]

    def _piece(
        self,
        piece: ResultPiece,
        columns: Columns,
        turn: dict[str, Raw],
        form: dict[str, Any],
        null: tuple[str, ...],
    ) -> None:
        if piece.joint is not None:
            form["joint"] = piece.joint
            columns.pop("name", None)
        if piece.before or piece.after:
            form["wrap"] = (piece.before, piece.after)
            name = named_tool(piece.text) if "name" not in columns else None
            if name is not None and not _is_odd(name):
                columns["name"] = name
                form["named"] = True
        self._media.content(piece.text, columns)
        columns["extra"] = _pack(turn, form, null)
        self._observe(columns)

    def _observe(self, columns: Columns) -> None:
        if self._waiting:
            name = columns.get("name")
            self._waiting.remove(name if name in self._waiting else self._waiting[0])
        self._builder.observation(columns, by_order=True)


def _plain_text(raw: bytes) -> str | None:
    """What a turn says that has nothing else; None when there is more in it."""
    try:
        text = jsontext.decode_value(raw)
    except msgspec.DecodeError:
        return None
    return text if isinstance(text, str) and text[:1] != jsontext.NUMBER_MARK else None


def _is_odd(text: str | None) -> bool:
    return text is not None and not text.isascii() and _SURROGATE.search(text) is not None


def _escaped(text: str) -> str:
    """A text without lone surrogates."""
    return jsontext.replace_surrogates(text)


def _take_words(turn: dict[str, Raw], columns: Columns, form: dict[str, Any]) -> None:
    """The sender's name, and reasoning that stands apart."""
    columns["actor"] = take_text(turn, "name")
    if (reasoning := take_first_text(turn, k.REASONING_KEYS)) is not None:
        form["reasoning"], columns["reasoning"] = reasoning


def _take_weight(turn: dict[str, Raw], columns: Columns, form: dict[str, Any]) -> None:
    """The weight in the loss: a number, or whether the turn is trained."""
    for name in k.WEIGHT_KEYS:
        raw = turn.get(name)
        first = 0 if raw is None else jsontext.first_byte(raw)
        if raw is not None and first in b"tf":
            columns["loss_weight"] = 1.0 if first == ord("t") else 0.0
            form["flag"] = True
        elif raw is not None and first in NUMBER:
            weight = read_number(raw, name, form)
            if weight is None:
                continue
            columns["loss_weight"] = weight
        else:
            continue
        form["weight"] = name
        del turn[name]
        return


def _pack(rest: dict[str, Raw], form: dict[str, Any], null: tuple[str, ...]) -> str | None:
    """``extra`` of a turn. Most turns have one of a few forms, so the texts are kept."""
    if rest or "exact" in form:
        return extra_column.pack(rest, shape=form, null=list(null))
    key = (tuple(form.items()), null)
    if key not in _packed:
        if len(_packed) > 10_000:
            _packed.clear()
        _packed[key] = extra_column.pack(None, shape=form, null=list(null))
    return _packed[key]
