"""Writing trajectories of other formats, as LLaMA-Factory loads them.

Its loader wants turns of a human (or of results) and of the model by turns, begun by the human and
ended by the model. So what stands on one side without a break becomes one turn:

- words are joined by a blank line, results by what the loader's own template puts between them;
- calls alone, perhaps after one piece of reasoning, make a ``function_call`` turn of JSON;
- calls beside other words stand in ``<tool_call>`` tags inside a ``gpt`` turn;
- reasoning stands between ``<think>`` tags.

Nothing is put in where a side is missing; that is reported, for the loader leaves such records out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from adp.converters.sharegpt import keys as k
from adp.converters.sharegpt.results import split_results
from adp.converters.text_calls import (
    CLOSE,
    OPEN,
    call_text,
    find_bare,
    find_tagged,
)
from adp.converters.unwritten_columns import REASON, report_columns
from adp.converters.writing import is_seen, leave_out, parts_of, report_beside, spoken_text
from adp_schema import jsontext, media
from adp_schema.extra_column import Extra, original, unpack
from adp_schema.losses import Losses
from adp_schema.model import Observation, Row, Step, ToolCall, Trajectory
from adp_schema.parts import JOINT, Part

_RECORD = frozenset({"source_id", "tools"})
_STEP = frozenset({"source", "kind", "text", "content"})
_CALL = frozenset({"kind", "name", "arguments", "arguments_raw", "language"})
_RESULT = frozenset({"source", "text", "content"})
_PART = frozenset({"mime", "$mime", "bare", "kind"})

_MERGED = "it becomes a part of the turn before it, which is of the same side"
_LEFT_OUT = "LLaMA-Factory leaves out a conversation that"


@dataclass
class _Turn:
    """What one side says until the other one speaks.

    Attributes:
        agent: whether it is the side of the model.
        pieces: (words, thought, call or result) and text, in order.
        results: where its results come from.
        calls: where its calls come from.
    """

    agent: bool
    pieces: list[tuple[str, str]] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def texts(self, *kinds: str) -> list[str]:
        return [text for kind, text in self.pieces if kind in kinds]


class OtherFormatWriter:
    """Writes one trajectory of another format.

    Args:
        trajectory: with its steps.
        losses: takes what has no place in the record.
    """

    def __init__(self, trajectory: Trajectory, losses: Losses) -> None:
        self._run = trajectory
        self._losses = losses
        self._turns: list[_Turn] = []
        self._system: list[str] = []
        self._references: dict[str, list[Any]] = {}
        self._media_paths: list[str] = []
        self._waiting: list[tuple[int | None, int | None]] = []

    def record(self) -> dict[str, Any]:
        """The record."""
        run, losses = self._run, self._losses
        report_columns(run, _RECORD, "$", losses)
        report_beside(run, losses)
        for index in range(len(run.branches)):
            losses.add(f"$.branches[{index}]", "the format has no place for branches")
        self._results(run.early_observations, "$.early_observations")
        for index, step in enumerate(run.steps):
            self._step(step, f"$.steps[{index}]")
            self._results(step.observations, f"$.steps[{index}].observations")
        turns = [_written(turn) for turn in self._turns]
        self._check(turns)
        self._check_tags(turns)
        extra = _extra(run)
        source_id = original(run, "source_id", extra)
        known: dict[str, Any] = {
            "id": jsontext.string(source_id or run.trajectory_id or ""),
            "conversations": [_encoded(turn) for turn in turns],
        }
        if self._system:
            known["system"] = jsontext.string(JOINT.join(self._system))
        if run.tools is not None:
            known["tools"] = jsontext.string(original(run, "tools", extra))
        for name, word in k.MEDIA.items():
            if word in self._references:
                known[name] = self._references[word]
        return known

    def _check(self, turns: list[dict[str, str]]) -> None:
        """Report what the loader, or a reader, would not take as it was."""
        if turns and self._turns[0].agent:
            self._losses.add("$.steps", f"{_LEFT_OUT} the model begins")
        if turns and not self._turns[-1].agent:
            self._losses.add("$.steps", f"{_LEFT_OUT} does not end with the model")
        for turn in self._turns:
            for path in turn.results if turn.texts("words") else []:
                reason = "a result beside words of the user becomes a part of them"
                self._losses.add(f"{path}.source", reason)
        values = [turn["value"] for turn in turns]
        words = [word for text in values for word in k.TOKEN.findall(text)]
        placed = all(words.count(word) == len(self._references[word]) for word in self._references)
        calling = (
            turn for turn in turns if turn["from"] == "function_call" or OPEN in turn["value"]
        )
        if placed and not any(k.TOKEN.search(turn["value"]) for turn in calling):
            return
        for path in self._media_paths:
            self._losses.add(path, "a text has such a tag too, so the place of the media is unsure")

    def _check_tags(self, turns: list[dict[str, str]]) -> None:
        """Report calls and results that a reader would not find among words that look like tags."""
        for turn, written in zip(self._turns, turns, strict=True):
            if written["from"] == "gpt" and _count_calls(written["value"]) < len(turn.calls):
                for path in turn.calls:
                    for column in ("name", "arguments"):
                        reason = "words beside it look like tags, and hide it"
                        self._losses.add(f"{path}.{column}", reason)
            for path, text in zip(turn.results, turn.texts("result"), strict=True):
                if [piece.text for piece in split_results(text, 1)] != [text]:
                    self._losses.add(f"{path}.text", "the text has the tags of a result")

    # ---- steps -----------------------------------------------------------------------------

    def _step(self, step: Step, path: str) -> None:
        if not is_seen(step):
            leave_out(step, path, self._losses)
            return
        agent = step.source == "agent"
        report_columns(step, _STEP | {"reasoning"} if agent else _STEP, path, self._losses)
        if agent:
            self._agent(step, path)
            return
        for index, call in enumerate(step.calls):
            where = f"{path}.calls[{index}]"
            report_columns(call, frozenset(), where, self._losses)
            if call.name is None:
                self._losses.add(f"{where}.name", REASON)
        pieces = [(kind, text) for kind, text in self._pieces(step, path) if kind == "words"]
        if step.source == "system" and not self._turns:
            if self._system:
                self._losses.add(path, _MERGED)
            self._system += [text for _, text in pieces]
            return
        if step.source in ("system", "environment"):
            self._losses.add(f"{path}.source", f"{step.source} is written as the role human")
        self._turn(agent=False, path=path).pieces += pieces or [("words", "")]

    def _agent(self, step: Step, path: str) -> None:
        turn = self._turn(agent=True, path=path)
        if not turn.texts("call"):
            self._waiting = []
        left = dict(enumerate(step.calls))
        pieces = self._pieces(step, path)
        for kind, text in pieces:
            if kind == "call" and int(text) in left:
                self._call(turn, left.pop(int(text)), f"{path}.calls[{text}]")
            elif kind != "call":
                turn.pieces.append((kind, text))
        for index, call in left.items():
            self._call(turn, call, f"{path}.calls[{index}]")

    def _turn(self, *, agent: bool, path: str | None = None) -> _Turn:
        """The open turn of a side; a new one when the other side spoke last.

        Args:
            agent: the side.
            path: where the step that speaks is; None for a result.
        """
        if not self._turns or self._turns[-1].agent != agent:
            self._turns.append(_Turn(agent))
        elif path is not None and (agent or self._turns[-1].texts("words")):
            self._losses.add(path, _MERGED)
        return self._turns[-1]

    def _pieces(self, row: Step | Observation, path: str) -> list[tuple[str, str]]:
        """Words, thoughts and calls (by index) of a row, in order."""
        extra = _extra(row)
        reasoning = original(row, "reasoning", extra) if isinstance(row, Step) else None
        text = spoken_text(row, extra)
        parts = parts_of(row, text, extra)
        if sum(part.type == "text" for part in parts) > 1:
            reason = "several texts become one, joined by a blank line"
            self._losses.add(f"{path}.content", reason)
        kinds = {part.type for part in parts}
        pieces: list[tuple[str, str]] = []
        if reasoning is not None and "reasoning" not in kinds:
            pieces.append(("thought", self._restored(reasoning)))
        if text and "text" not in kinds:
            pieces.append(("words", self._restored(text)))
        for index, part in enumerate(parts):
            for key in sorted(part.extra.keys() - _PART):
                self._losses.add(f"{path}.content[{index}].extra.{key}", REASON)
            if part.type == "opaque":
                self._losses.add(f"{path}.content[{index}]", REASON)
            elif part.type == "media":
                pieces.append(("words", self._media(part, f"{path}.content[{index}]")))
            elif part.type == "tool_call":
                pieces.append(("call", str(part.call)))
            else:
                kind = "thought" if part.type == "reasoning" else "words"
                pieces.append((kind, self._restored(part.text)))
        return pieces

    def _restored(self, text: str) -> str:
        return media.restore(text, self._run.media)

    def _media(self, part: Part, path: str) -> str:
        """Put the item in its column, and return what stands for it in the text."""
        known = [key for key in ("$mime", "mime", "kind") if key in part.extra]
        plain = {key: jsontext.decode_value(part.extra[key]) for key in known}
        mime = plain.get("$mime") or plain.get("mime")
        blob = self._run.media.get(part.media_id or "")
        if blob is None:
            self._losses.add(path, "the store does not hold it")
        reference = "" if blob is None else media.reference_of_media(blob, mime)
        kind = str(mime or (blob.mime if blob is not None else None) or "")
        family, _, ending = kind.partition("/")
        endings = (".jpeg", ".jpg") if ending == "jpeg" else (f".{ending}",)
        by_name = reference.lower().endswith(endings)
        if blob is not None and blob.data is None and ending and not by_name:
            self._losses.add(f"$.media.{blob.media_id}", f"the type {kind} of a path is not kept")
        word = plain.get("kind") or (family if family in ("video", "audio") else "image")
        self._references.setdefault(word, []).append(jsontext.string(reference))
        self._media_paths.append(path)
        return f"<{word}>"

    # ---- calls and results -----------------------------------------------------------------

    def _call(self, turn: _Turn, call: ToolCall, path: str) -> None:
        report_columns(call, _CALL, path, self._losses)
        written = call_text(call, _extra(call), self._run.media, path, self._losses)
        turn.pieces.append(("call", written))
        turn.calls.append(path)
        self._waiting.append((call.step, call.call))

    def _results(self, rows: list[Observation], path: str) -> None:
        indexed = list(enumerate(rows))
        places = [(row.call_step, row.call) for row in rows]
        if None not in {call for _, call in places} and len(set(places)) == len(places):
            # Results are paired by order.
            indexed.sort(key=lambda item: (item[1].call_step or 0, item[1].call or 0))
        for index, row in indexed:
            where = f"{path}[{index}]"
            tree = row.text is None and row.axtree is not None
            report_columns(row, _RESULT | {"axtree"} if tree else _RESULT, where, self._losses)
            pieces = [text for kind, text in self._pieces(row, where) if kind == "words"]
            if tree:
                pieces.insert(0, self._restored(original(row, "axtree", _extra(row))))
            turn = self._turn(agent=False)
            turn.pieces.append(("result", JOINT.join(pieces)))
            turn.results.append(where)
            if row.source not in (None, "environment"):
                self._losses.add(f"{where}.source", f"{row.source} is written as observation")
            self._pairing(row, where)

    def _pairing(self, row: Observation, path: str) -> None:
        """Report a result that a reader would not give to its call."""
        if row.call is None:
            return
        place = (row.call_step, row.call)
        if not self._waiting or self._waiting[0] != place:
            reason = "results are paired by order, and this one stands elsewhere"
            self._losses.add(f"{path}.call", reason)
        if place in self._waiting:
            self._waiting.remove(place)


def _extra(row: Row) -> Extra:
    """What restores characters; the rest of another format's ``extra`` means nothing here."""
    return Extra(escaped=unpack(row.extra).escaped)  # type: ignore[attr-defined]


def _encoded(turn: dict[str, str]) -> dict[str, Any]:
    return {key: jsontext.string(value) for key, value in turn.items()}


def _written(turn: _Turn) -> dict[str, str]:
    """A turn as role and text."""
    if turn.agent:
        return _agent_turn(turn)
    if turn.texts("words"):
        return {"from": "human", "value": JOINT.join(text for _, text in turn.pieces if text)}
    return {"from": "observation", "value": k.JOINER.join(turn.texts("result"))}


def _agent_turn(turn: _Turn) -> dict[str, str]:
    calls, thoughts = turn.texts("call"), turn.texts("thought")
    kinds = [kind for kind, text in turn.pieces if kind != "words" or text]
    if calls and len(thoughts) < 2 and kinds == ["thought"] * len(thoughts) + ["call"] * len(calls):
        listed = calls[0] if len(calls) == 1 else f"[{', '.join(calls)}]"
        value = JOINT.join([*map(_thought, thoughts), listed])
        groups = find_bare(value)
        if len(groups) == 1 and groups[0].start == len(value) - len(listed):
            return {"from": "function_call", "value": value}
    value = _mixed(turn.pieces)
    if _count_calls(value) < len(calls):
        # A tag of a thought among the words would swallow the calls that follow it.
        value = _mixed(sorted(turn.pieces, key=lambda piece: piece[0] != "call"))
    return {"from": "gpt", "value": value}


def _count_calls(value: str) -> int:
    """How many calls a reader finds in a text."""
    return sum(len(group.calls) for group in find_tagged(value))


def _thought(text: str) -> str:
    return f"<think>\n{text}\n</think>"


def _mixed(pieces: list[tuple[str, str]]) -> str:
    """Words, thoughts and calls in tags, in order."""
    out = ""
    for kind, text in pieces:
        if kind == "words" and not text:
            continue
        written = {"thought": _thought(text), "call": f"{OPEN}\n{text}\n{CLOSE}"}.get(kind, text)
        between = "\n" if kind == "call" else JOINT
        out += (between if out else "") + written
    return out
