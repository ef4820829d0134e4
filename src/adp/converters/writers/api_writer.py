"""A trajectory taken apart for a writer: what a model saw and said, part by part, in order.

APIs, traces and logs of evaluations say the same things in other words: a message is a list of
parts, a call has an id, a result answers it. What a format does not say of a row is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.call_ids import CallIds
from adp.converters.json_objects import write_time
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import UsageKeys, set_usage
from adp.converters.reading import BRACE
from adp.converters.scalars import is_null
from adp.converters.unwritten_columns import REASON, report_columns
from adp.converters.writers.api_parts import ApiPart, name_of
from adp.converters.writing import (
    is_seen,
    parts_of,
    report_beside,
    report_left_parts,
    rows_of,
    spoken_text,
    string,
)
from adp_schema import jsontext, media
from adp_schema.extra_column import Extra, original, unpack
from adp_schema.losses import Losses
from adp_schema.model import Columns, Media, Observation, Row, Step, ToolCall, Trajectory
from adp_schema.parts import Part

_FORM = frozenset({"$form", "$format", "$keys", "$mime", "mime", "bare"})
"""Keys of parts that say how a source wrote a blob; the blob itself says it in the target."""
_TOKENS = ("tokens_in", "tokens_out", "tokens_cached", "tokens_cache_write", "tokens_reasoning",
           "cost_usd")  # fmt: skip
_SPELLED = frozenset(
    {"text", "prose", "reasoning", "axtree", "name", "arguments", "arguments_raw", "call_id",
     "native_id", "native_call_id"}
)  # fmt: skip
"""Columns that are written with every character of the source, if the format holds it."""
CALL = frozenset(
    {"call_id", "native_id", "kind", "name", "arguments", "arguments_raw", "language", "requestor"}
)
"""Columns of calls that every writer accounts for."""
RESULT = frozenset({"call_id", "native_call_id", "source", "text", "content"})
"""Columns of results that every writer accounts for."""
STEP = frozenset({"source", "kind", "text", "content", "reasoning"})
"""Columns of steps that every writer accounts for."""


class ApiWriter:
    """Takes a trajectory apart. A format subclasses it.

    Args:
        run: what is written.
        losses: takes what the format has no place for.

    Attributes:
        name: the format; keys of ``extra`` that were read from it may be written again.
        part_keys: kind of a part -> key of its ``extra`` that the format has, with the first
            character of its value.
        opaque_types: type of a part that the format has as it is -> a key that it has there.
        exact: whether it can hold every character of the source, such as half of a pair of
            surrogates.
    """

    name: ClassVar[str]
    part_keys: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    opaque_types: ClassVar[Mapping[str, str]] = {}
    exact: ClassVar[bool] = True

    def __init__(self, run: Trajectory, losses: Losses) -> None:
        self.run = run
        self.losses = losses
        self.native = run.source_format == self.name
        self._ids = CallIds(run, losses, native=False)
        self._calls = {(call.step, call.call): call for step in run.steps for call in step.calls}

    # ---- rows ------------------------------------------------------------------------------

    def head(self, *carried: str) -> None:
        """Report what the format does not say of the whole run.

        Args:
            carried: columns that it says; what becomes of ``extra`` is for the caller to say.
        """
        self.report(self.run, "$", frozenset(carried))
        report_beside(self.run, self.losses)

    def model(self) -> str:
        """The model of the run."""
        models = (self.run.agent_model, *(step.model for step in self.run.steps))
        return next((model for model in models if model is not None), "unknown")

    def rows(self) -> Iterator[tuple[Step | Observation, str]]:
        """Steps and observations with their paths, without the steps that no model saw."""
        for row, path in rows_of(self.run):
            if not isinstance(row, Step) or is_seen(row):
                yield row, path
            else:
                self.leave_out(row, path)

    def leave_out(self, row: Step | Observation, path: str) -> None:
        """Report all that a row says, of a step with its calls."""
        report_columns(row, frozenset(), path, self.losses)
        report_left_parts(row, path, self.losses)

    def report(self, row: Row, path: str, carried: frozenset[str]) -> None:
        """Report what the format does not say of a row; ``extra`` is for `kept`."""
        report_columns(row, carried | {"extra"}, path, self.losses)
        for column in unpack(row.extra).escaped:  # type: ignore[attr-defined]
            if not self.exact or column not in _SPELLED:
                self.losses.add(f"{path}.{column}", "characters that are no text are replaced")

    def spelling(self, row: Row) -> Extra:
        """The unpacked ``extra`` of a row, as far as the format holds the characters in it."""
        return unpack(row.extra) if self.exact else Extra()  # type: ignore[attr-defined]

    def report_result(self, row: Observation, path: str, *carried: str) -> None:
        """Report what the format does not say of a result.

        Args:
            row: the result.
            path: where it is.
            carried: columns that it says, besides `RESULT`.
        """
        tree = {"axtree"} if row.text is None else frozenset()
        self.report(row, path, RESULT | tree | {*carried})

    def report_type(self, blob: Media | None) -> None:
        """Report the type of a blob of which only the address is written."""
        if blob is not None and blob.mime is not None:
            self.losses.add(f"$.media.{blob.media_id}.mime", REASON)

    def kept(self, row: Row, path: str, *allowed: str) -> dict[str, Raw]:
        """Keys of the ``extra`` of a row that the format has, if the run was read from it.

        Args:
            row: the row; keys that are not written are reported.
            path: where it is.
            allowed: the keys.
        """
        return self.allowed(unpack(row.extra).fields, path, *allowed)  # type: ignore[attr-defined]

    def allowed(self, fields: Mapping[str, Raw], path: str, *allowed: str) -> dict[str, Raw]:
        """Keys of ``extra``, as `kept` has them."""
        out: dict[str, Raw] = {}
        for key, value in fields.items():
            if self.native and key in allowed and not is_null(value):
                out[key] = value
            else:
                self.losses.add(f"{path}.extra.{key}", REASON)
        return out

    def time(self, row: Row, path: str, column: str, text_column: str) -> str | None:
        """A time, in the spelling of its source if that says the same; None when there is none.

        Args:
            row: the row.
            path: where it is.
            column: the time.
            text_column: its spelling.
        """
        spelled = getattr(row, text_column)
        text = write_time(getattr(row, column), spelled)
        if spelled not in (None, text):
            self.losses.add(f"{path}.{text_column}", "the time is spelled in the usual way")
        return text

    # ---- parts -----------------------------------------------------------------------------

    def parts(self, row: Step | Observation, path: str) -> list[ApiPart]:
        """The parts of a row in order: reasoning, texts, media and calls.

        Args:
            row: the step or the observation. One without text gives its accessibility tree.
            path: where it is.
        """
        extra = self.spelling(row)
        text = spoken_text(row, extra)
        listed = parts_of(row, text, extra)
        kinds = {part.type for part in listed}
        # An edit may have filled a column that the parts do not know.
        out = [part for part in self._plain(row, text, extra, path) if part.kind not in kinds]
        for index, part in enumerate(listed):
            made = self._listed(part, row, path, f"{path}.content[{index}]")
            out += [] if made is None else [made]
        if isinstance(row, Observation) and text is None and row.axtree is not None:
            tree = original(row, "axtree", extra)
            out.insert(0, ApiPart("text", f"{path}.axtree", self._restored(tree)))
        if isinstance(row, Step):
            there = {id(part.call) for part in out if part.call is not None}
            out += [
                self._called(row, number, path)
                for number, call in enumerate(row.calls) if id(call) not in there
            ]  # fmt: skip
        return [part for part in out if self._fits(part)]

    def _plain(
        self, row: Step | Observation, text: str | None, extra: Extra, path: str
    ) -> list[ApiPart]:
        out = []
        reasoning = original(row, "reasoning", extra) if isinstance(row, Step) else None
        if reasoning is not None:
            out.append(ApiPart("reasoning", f"{path}.reasoning", self._restored(reasoning)))
        if text is not None:
            out.append(ApiPart("text", f"{path}.text", self._restored(text)))
        return out

    def _listed(self, part: Part, row: Step | Observation, path: str, place: str) -> ApiPart | None:
        if part.type == "tool_call":
            known = isinstance(row, Step) and part.call in range(len(row.calls))
            return self._called(row, part.call or 0, path) if known else None
        made = ApiPart(part.type, place, self._restored(part.text), value=part.value)
        if part.type == "media":
            made.blob = self._blob(part.media_id, part.extra)
        made.extra = self._part_extra(part.type, part.extra, place)
        return made

    def _called(self, step: Any, number: int, path: str) -> ApiPart:
        return ApiPart("call", f"{path}.calls[{number}]", call=step.calls[number])

    def _restored(self, text: str) -> str:
        return media.restore(text, self.run.media)

    def _blob(self, media_id: str | None, extra: Mapping[str, Raw]) -> Media | None:
        blob = self.run.media.get(media_id or "")
        mime = extra.get("$mime")
        if blob is None or mime is None:
            return blob
        return blob.model_copy(update={"mime": jsontext.decode_value(mime)})

    def _part_extra(self, kind: str, extra: Mapping[str, Raw], path: str) -> dict[str, Raw]:
        keys = self.part_keys.get(kind, {})
        out: dict[str, Raw] = {}
        for key, value in extra.items():
            if key in keys and bytes(value)[:1].decode("ascii", "replace") == keys[key]:
                out[key] = value
            elif key not in _FORM and not (self.native and key in ("type", "source")):
                self.losses.add(f"{path}.extra.{key}", REASON)
        return out

    def _fits(self, part: ApiPart) -> bool:
        """Whether the format has a part; of one that it has not, a report is made."""
        fits = part.kind != "opaque" or self._is_known(part.value)
        fits = fits and (part.kind != "media" or self.takes_blob(part))
        if not fits:
            self.losses.add(part.path, REASON)
        return fits

    def _is_known(self, value: Raw) -> bool:
        source = SourceObject(value, "", Losses())
        key = self.opaque_types.get(source.word("type"))
        return key is not None and key in source

    def takes_blob(self, part: ApiPart) -> bool:
        """Whether the format has a place for a blob: by default, with a type or an address."""
        blob = part.blob
        return blob is not None and bool(blob.mime if blob.data is not None else blob.uri)

    # ---- calls and results -----------------------------------------------------------------

    def call_id(self, part: ApiPart, step: Step, carried: frozenset[str] = CALL) -> str | Raw:
        """The id of a call, which is made up where the source had none.

        What the format does not say of it is reported, but for its arguments.

        Args:
            part: the part with the call.
            step: the step that makes it.
            carried: columns of calls that the format says.
        """
        call, path = part.call or ToolCall(), part.path
        self.report(call, path, carried)
        if call.kind not in (None, "function"):
            self.losses.add(f"{path}.kind", f"a call of kind {call.kind} becomes one of a function")
        if call.language is not None and (call.name is not None or call.kind != "code"):
            self.losses.add(f"{path}.language", REASON)
        if call.requestor == "user" and step.source != "user":
            self.losses.add(f"{path}.requestor", "a call belongs to whom its message does")
        written: str | Raw = string(self._ids.of(call, self.spelling(call), path) or "")
        return written

    def call_name(self, call: ToolCall | None) -> Any:
        """The name under which a call is written, as the encoder takes it."""
        if call is None:
            return ""
        name = original(call, "name", self.spelling(call))
        return string(name_of(call) if name is None else name)

    def arguments(self, part: ApiPart) -> Raw:
        """The arguments of a call as an object; others stand in one, which is reported."""
        call = part.call or ToolCall()
        extra = self.spelling(call)
        text = original(call, "arguments", extra)
        if text is not None and jsontext.first_byte(text.encode("utf-8")) == BRACE:
            return jsontext.raw(text)
        loose = original(call, "arguments_raw", extra)
        if text is None and loose is None:
            return Raw(b"{}")
        key = "code" if call.kind == "code" else "input"
        column = "arguments_raw" if text is None else "arguments"
        self.losses.add(f"{part.path}.{column}", f"arguments that are no object get the key {key}")
        value = jsontext.raw(text) if text is not None else string(self._restored(loose))
        return jsontext.raw(jsontext.text_of({key: value}))

    def answered(self, row: Observation, path: str) -> str | Raw | None:
        """The id of the call that a result answers; None where it answers none."""
        answered = self._ids.answered(row, self.spelling(row), path)
        if answered is None:
            self.losses.add(f"{path}.source", "a result without a call becomes a user's message")
        elif row.call_step is None:
            column = "call_id" if row.call_id is not None else "native_call_id"
            self.losses.add(f"{path}.{column}", "no call before it has this id")
        if answered is not None and row.source not in (None, "environment"):
            self.losses.add(f"{path}.source", f"{row.source} is written as a tool")
        if answered is None:
            return None
        written: str | Raw = string(answered)
        return written

    def result_name(self, row: Observation) -> str:
        """The name of the tool that a result is of; empty when nobody says it."""
        call = self.answered_call(row)
        return row.name or ("" if call is None else name_of(call))

    def answered_call(self, row: Observation) -> ToolCall | None:
        """The call that a result answers."""
        return self._calls.get((row.call_step, row.call))

    # ---- tokens ----------------------------------------------------------------------------

    def usage_fits(self, step: Step, keys: UsageKeys, *needed: str) -> bool:
        """Whether the usage record of a step says what its columns say, as the format would.

        Args:
            step: the step.
            keys: where the format has the numbers.
            needed: keys that the record must have.
        """
        if step.usage is None:
            return False
        record, columns = SourceObject(step.usage.encode("utf-8"), "", Losses()), Columns()
        set_usage(record, columns, keys)
        return all(key in record for key in needed) and all(
            columns.get(key) == getattr(step, key) for key in _TOKENS
        )
