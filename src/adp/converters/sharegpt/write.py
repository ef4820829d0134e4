"""Writing back what was read from this format, in the dialect that it came in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from adp.converters.openai_chat.content import write_content
from adp.converters.scalars import write_fields, write_number
from adp.converters.sharegpt import keys as k
from adp.converters.sharegpt.read import pair_of
from adp.converters.sharegpt.system_tools import offered_tools
from adp.converters.text_calls import (
    call_edit,
    find_bare,
    find_tagged,
    object_at,
    rewrite,
    with_member,
)
from adp.converters.unwritten_columns import report_columns
from adp.converters.writing import add_losses, in_order, string, write_string
from adp_schema import jsontext, media
from adp_schema.extra_column import Extra, original, unpack
from adp_schema.losses import Losses
from adp_schema.model import Observation, Pair, Step, Trajectory
from adp_schema.parts import JOINT, resolve

_RECORD = frozenset({"source_id", "task_id", "agent_model", "success", "reward", "tools", "extra"})
_BRANCH = frozenset({"branch_kind", "extra"})
_STEP = frozenset({"source", "kind", "actor", "text", "content", "reasoning", "loss_weight"})
_CALL = frozenset({"call_id", "native_id", "kind", "name", "arguments", "arguments_raw", "extra"})
_RESULT = frozenset({"source", "name", "text", "content", "call_id", "native_call_id", "extra"})


def write_record(trajectory: Trajectory, losses: Losses) -> dict[str, Any]:
    """Convert a trajectory that was read from this format."""
    return _Writer(trajectory, losses).record()


def said_of_pair(run: Trajectory, pair: Pair) -> frozenset[str]:
    """The columns of a preference pair that a record says: those that reading it gives again."""
    if run.source_format != k.NAME:
        return frozenset()
    last = run.steps[-1] if run.steps else None
    at = None if last is None else unpack(last.extra).shape.get("at")
    branch = next((b for b in run.branches if unpack(b.extra).shape.get("at") == "rejected"), None)
    if last is None or at != "chosen" or branch is None:
        return frozenset()
    read = pair_of(run.trajectory_id, branch.trajectory_id, last.step or 0)
    if any(getattr(pair, name) != value for name, value in read.items() if name != "pair_id"):
        return frozenset()
    return frozenset(read)


def _speaker(step: Step, extra: Extra) -> str | None:
    """The role that ``extra`` keeps because the step's source does not say it, if there is one."""
    raw = extra.fields.get("role")
    has_both = set(k.ROLE_KEYS) <= set(extra.shape.get("keys", ()))
    if raw is None or has_both or "role" in extra.shape or jsontext.first_byte(raw) != ord('"'):
        return None
    if not jsontext.is_valid(raw):  # lone surrogates
        return None
    role: str = jsontext.decode_value(raw)
    same_source = k.SOURCES.get(role.lower(), "environment") == (step.source or "user")
    return role if same_source and role.lower() not in k.SYNONYMS else None


@dataclass
class _Turn:
    """A turn: its keys besides what is said, that, and how the keys are ordered."""

    known: dict[str, Any]
    value_text: Any
    extra: Extra

    def written(self) -> dict[str, Any]:
        names = tuple(self.extra.shape.get("keys", k.TURN))
        values = [name for name in k.VALUE_KEYS if name in names and not self._taken(name)]
        known = dict(self.known)
        text = string(self.value_text)
        if values or text is not None:
            known[values[0] if values else "value"] = text
        roles = [name for name in k.ROLE_KEYS if name in names and not self._taken(name)]
        known = {roles[0] if roles else "from": known.pop("role"), **known}
        return arrange(known, self.extra, names)

    def _taken(self, name: str) -> bool:
        return name in self.extra.fields or name in self.extra.null


def arrange(
    known: dict[str, Any], extra: Extra, names: tuple[str, ...] | list[str] | None
) -> dict[str, Any]:
    """Put the keys of an object in the order of the source."""
    full = {**known, **extra.fields, **dict.fromkeys(extra.null)}
    ordered = {name: full.pop(name) for name in names or () if name in full}
    return {**ordered, **full}


class _Writer:
    """Writes one trajectory."""

    def __init__(self, trajectory: Trajectory, losses: Losses) -> None:
        self._run = trajectory
        self._losses = losses
        self._references: dict[str, list[Any]] = {}
        self._texts: dict[int | None, str] = {}

    def record(self) -> dict[str, Any]:
        """The record."""
        run = self._run
        extra = unpack(run.extra)
        form = extra.shape
        report_columns(run, _RECORD, "$", self._losses)
        known: dict[str, Any] = {}
        tools = self._tools(extra)
        turns = self.turns(known)
        listed: Any = [turn.written() for turn in turns]
        if (layout := form.get("string")) is not None:
            listed = write_string(listed, layout)
        known[form.get("list", k.LISTS[0])] = listed
        if tools is not None:
            known["tools"] = tools
        self._branches(known)
        names = {**k.MEDIA, **k.SINGLE_MEDIA}
        for name, way in form.get("media", {}).items():
            items = self._references.pop(names[name], [])
            known[name] = items[0] if way == "string" and len(items) == 1 else items
        plural = {word: name for name, word in k.MEDIA.items()}
        known.update({plural[word]: items for word, items in self._references.items()})
        known |= write_fields(k.RECORD_FIELDS, run, extra, {})
        order = [*k.RECORD_FIELDS[0][1], *k.LISTS, *k.SIDES, "system", "tools", *names]
        return arrange(in_order(known, order), extra, form.get("keys"))

    def _tools(self, extra: Extra) -> Any:
        """The column ``tools``; None when there is none, or the system text has them."""
        text = original(self._run, "tools", extra)
        form = extra.shape.get("tools")
        if text is None:
            return None
        if form == "text":
            step = next((step for step in self._run.steps if step.source == "system"), None)
            before = (step.text if step is not None else None) or ""
            result = offered_tools(before)
            if step is not None and result is not None:
                if result.tools != text:
                    self._texts[step.step] = before[: result.start] + text + before[result.end :]
                return None
        return jsontext.raw(text) if form == "list" else jsontext.string(text)

    def _branches(self, known: dict[str, Any]) -> None:
        """The rejected answer of a preference pair."""
        reason = "the format holds one branch, the rejected answer of a pair"
        for index, branch in enumerate(self._run.branches):
            if unpack(branch.extra).shape.get("at") != "rejected" or "rejected" in known:
                self._losses.add(f"$.branches[{index}]", reason)
                continue
            losses = Losses()
            report_columns(branch, _BRANCH, "$", losses)
            _Writer(branch, losses).turns(known)
            add_losses(self._losses, f"$.branches[{index}]", losses)
        if "chosen" in known and "rejected" not in known:
            self._losses.add("$.branches", "the rejected answer is a branch that is not here")

    # ---- turns -----------------------------------------------------------------------------

    def turns(self, known: dict[str, Any]) -> list[_Turn]:
        """The turns of the list; steps that are columns of the record go to ``known``."""
        turns: list[_Turn] = []
        self._results(self._run.early_observations, "$.early_observations", turns)
        for index, step in enumerate(self._run.steps):
            path = f"$.steps[{index}]"
            extra = unpack(step.extra)
            turn = self._step(step, extra, path)
            at = extra.shape.get("at")
            if at == "system":
                known["system"] = turn.written()["value"]
            elif at is not None:
                known[at] = turn.written()
            else:
                turns.append(turn)
            self._results(step.observations, f"{path}.observations", turns)
        return turns

    def _step(self, step: Step, extra: Extra, path: str) -> _Turn:
        report_columns(step, _STEP | {"extra"}, path, self._losses)
        role = extra.shape.get("role", k.USUAL_ROLES[step.source or "user"])
        if (speaker := _speaker(step, extra)) is not None:
            role = speaker
            fields = {name: value for name, value in extra.fields.items() if name != "role"}
            extra = replace(extra, fields=fields)
        known: dict[str, Any] = {"role": jsontext.string(role)}
        if step.actor is not None:
            known["name"] = jsontext.string(original(step, "actor", extra))
        if step.reasoning is not None:
            key = extra.shape.get("reasoning", k.REASONING_KEYS[0])
            known[key] = jsontext.string(original(step, "reasoning", extra))
        if step.loss_weight is not None:
            key = extra.shape.get("weight", "weight")
            known[key] = _weight(step.loss_weight, key, extra)
        text: Any
        if step.prose is not None or step.calls:
            text = self._with_calls(step, extra, role, path)
        else:
            text = self._value_text(step, extra)
        return _Turn(known, text, extra)

    def _with_calls(self, step: Step, extra: Extra, role: str, path: str) -> str:
        """The text with its calls, in which only what was edited is written anew."""
        text = original(step, "text", extra) or ""
        calling = role.lower() in k.CALL_ROLES
        for index, call in enumerate(step.calls):
            report_columns(call, _CALL, f"{path}.calls[{index}]", self._losses)
        wanted = [call_edit(call) for call in step.calls]
        groups = find_bare(text) if calling else find_tagged(text)
        return rewrite(text, groups, wanted, tagged=not calling)

    def _results(self, rows: list[Observation], path: str, turns: list[_Turn]) -> None:
        """Add the turns of results; some share one."""
        before: _Turn | None = None
        for index, row in enumerate(rows):
            report_columns(row, _RESULT, f"{path}[{index}]", self._losses)
            extra = unpack(row.extra)
            text = self._value_text(row, extra)
            if isinstance(text, str):
                text = self._wrapped(row, text, extra)
            joint = extra.shape.get("joint")
            if joint is not None and before is not None and isinstance(before.value_text, str):
                before.value_text = f"{before.value_text}{joint}{text or ''}"
                continue
            known: dict[str, Any] = {
                "role": jsontext.string(extra.shape.get("role", k.RESULT_ROLE))
            }
            if row.name is not None and not extra.shape.get("named"):
                known["name"] = jsontext.string(original(row, "name", extra))
            before = _Turn(known, text, extra)
            turns.append(before)

    def _wrapped(self, row: Observation, text: str, extra: Extra) -> str:
        """The text of a result with what stands around it."""
        if extra.shape.get("named") and row.name is not None:
            result = object_at(text)
            if result is not None and "name" in result.members:
                name = original(row, "name", extra)
                if result.members["name"].text != name:
                    text = with_member(text, result, "name", name)
        before, after = extra.shape.get("wrap", ("", ""))
        return f"{before}{text}{after}"

    def _value_text(self, row: Step | Observation, extra: Extra) -> Any:
        """What a turn says: a text, nothing, or what the source had in its place."""
        blobs = self._run.media
        if "content" in extra.shape:
            return write_content(row, extra, blobs)
        text = original(row, "text", extra)
        if isinstance(row, Step):
            text = self._texts.get(row.step, text)
        if row.content is None:
            return None if text is None else media.restore(text, blobs)
        pieces: list[str] = []
        last = ""
        reasoning = original(row, "reasoning", extra) if isinstance(row, Step) else None
        for part in resolve(row.content, text, reasoning):
            if part.type == "text":
                pieces += [JOINT] if last == "text" else []
                pieces.append(media.restore(part.text, blobs))
            elif part.type == "media":
                plain = {key: jsontext.decode_value(value) for key, value in part.extra.items()}
                word = plain.get("kind", "image")
                blob = blobs.get(part.media_id or "")
                reference = (
                    "" if blob is None else media.reference_of_media(blob, plain.get("$mime"))
                )
                self._references.setdefault(word, []).append(jsontext.string(reference))
                pieces.append(f"<{word}>")
            last = part.type
        return "".join(pieces)


def _weight(value: float, key: str, extra: Extra) -> Any:
    if extra.shape.get("flag") and value in (0.0, 1.0):
        return value == 1.0
    return write_number(value, key, extra.shape)
