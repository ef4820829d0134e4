"""Writing: a trajectory and its worse answer into a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adp.converters.openai_chat.write import ChatWriter
from adp.converters.preference import keys as k
from adp.converters.preference.read import pair_of, scores_of
from adp.converters.unwritten_columns import REASON, report_columns
from adp.converters.via_atif import came_from
from adp.converters.writing import add_losses, arrange, in_order, write_string
from adp_schema import jsontext
from adp_schema.extra_column import Extra, unpack
from adp_schema.losses import Losses
from adp_schema.model import Observation, Pair, Row, Step, Trajectory

_BRANCH = frozenset({"branch_kind", "parent_id", "parent_step", "extra"})
_SINGLE = "the format holds one branch, the rejected answer of a pair"


@dataclass
class _Message:
    """A message as written, and the row that it was."""

    row: Step | Observation
    value: dict[str, Any]
    extra: Extra

    def plain_text(self) -> Any:
        """Its text when it is nothing but a text, else None."""
        content = self.value.get("content")
        plain = set(self.value) == {"role", "content"} and not isinstance(content, list)
        return content if plain else None

    def listed(self) -> Any:
        """The message as an item of a list."""
        layout = self.extra.shape.get("line")
        return self.value if layout is None else write_string(self.value, layout)


class _Messages(ChatWriter):
    """Writes messages, each with its row."""

    name = k.NAME

    def carried(self, columns: frozenset[str]) -> frozenset[str]:
        """That a step of the prompt is context is said by where it stands."""
        return super().carried(columns) | {"is_copied_context"}

    def _step(self, step: Step, path: str) -> dict[str, Any]:
        if step.is_copied_context and step.source != "agent":
            self.losses.add(f"{path}.is_copied_context", REASON)
        return super()._step(step, path)

    def _not_trained(self, step: Step) -> bool:
        """No message is weighed: the rejected side and the prompt are known by their keys."""
        return False

    def messages(self) -> list[_Message]:
        """All messages in order."""
        return [_Message(row, value, self.extra(row)) for row, value in self.rows()]


def write_record(trajectory: Trajectory, losses: Losses) -> dict[str, Any]:
    """Convert one trajectory; what the format has no place for is reported."""
    return _Writer(trajectory, losses).record()


def pair_columns(run: Trajectory, pair: Pair) -> frozenset[str]:
    """The columns of a pair that a row says: those that reading it gives again."""
    branch = _worse(run)
    if branch is None or branch.trajectory_id != pair.rejected_id:
        return frozenset()
    read = {**_pair_of(run, branch), "pair_id": pair.pair_id}
    if any(getattr(pair, name) != value for name, value in read.items() if name != "level"):
        return frozenset()
    names = {name for name, value in read.items() if getattr(pair, name) == value}
    if run.source_format == k.NAME or came_from(run, k.NAME):
        scores = scores_of(unpack(run.extra).fields)
        names |= {name for name, value in scores.items() if getattr(pair, name) == value}
    return frozenset(names)


def _pair_of(run: Trajectory, branch: Trajectory) -> dict[str, Any]:
    first = branch.parent_step or 0
    last = 1 + max((step.step or 0 for step in run.steps), default=-1)
    end = 1 + max((step.step or 0 for step in branch.steps), default=first - 1)
    return pair_of(run.trajectory_id, branch.trajectory_id, first, last, end)


def _worse(run: Trajectory) -> Trajectory | None:
    """The branch that is the rejected answer to the same prompt."""
    for branch in run.branches:
        if branch.source_format == k.NAME and unpack(branch.extra).shape.get("at"):
            return branch
        for pair in run.pairs:
            read = _pair_of(run, branch)
            if all(getattr(pair, name) == read[name] for name in _PLACES):
                return branch
    return None


_PLACES = (
    *("context_id", "context_up_to", "chosen_id", "chosen_from", "chosen_to"),
    *("rejected_id", "rejected_from", "rejected_to"),
)


class _Writer:
    """Writes one row."""

    def __init__(self, run: Trajectory, losses: Losses) -> None:
        self._run = run
        self._losses = losses
        self._native = run.source_format == k.NAME
        self._extra = unpack(run.extra)
        self._form: dict[str, Any] = self._extra.shape if self._native else {}

    def record(self) -> dict[str, Any]:
        """The row."""
        run, extra = self._run, self._extra
        messages = _Messages(run, self._losses, native=self._native)
        head = messages.head(k.RECORD_FIELDS, {"source_id": run.trajectory_id})
        known = {**self._places(messages.messages()), **head}
        kept = dict(messages.kept(extra))
        self._input(known, kept)
        return arrange(in_order(known, k.ORDER), kept, self._form.get("keys"))

    def _input(self, known: dict[str, Any], kept: dict[str, Any]) -> None:
        """Put what stands inside ``input`` there."""
        names = self._form.get("input")
        if names is None:
            return
        child: dict[str, Any] = {"messages": known.pop("input", [])}
        tools = self._form.get("tools_key", "tools")
        if self._form.get("tools_in") and tools in known:
            child[tools] = known.pop(tools)
        rest = jsontext.decode_exact(kept.pop("input")) if "input" in kept else {}
        known["input"] = arrange(child, rest, names)

    # ---- places ----------------------------------------------------------------------------

    def _places(self, messages: list[_Message]) -> dict[str, Any]:
        """The values that hold messages."""
        branch = _worse(self._run)
        worse = [] if branch is None else self._branch(branch)
        for index, other in enumerate(self._run.branches):
            if other is not branch:
                self._losses.add(f"$.branches[{index}]", _SINGLE)
        places = self._form.get("places")
        if places is None:
            places = k.TRL_PAIR if self._native or branch is not None else k.TRL_LABELLED
        full = self._form.get("whole", False)
        if self._native:
            parts = self._by_marks(messages, places, branch)
        else:
            parts, full = self._by_first_answer(messages, places, branch)
        answer, rejected = _answer_keys(places)
        context = parts.get("", [])
        if full:
            for key in parts:
                context = context if key in ("", answer) else [*context, *parts[key]]
            parts[answer] = [*context, *parts.get(answer, [])]
            worse = [*context, *worse]
        if branch is not None and rejected is not None:
            parts[rejected] = worse
        elif rejected is not None:
            self._losses.add("$.branches", "the rejected answer is a branch that is not here")
        known = {
            key: _value(parts[key], kind)
            for key, kind in places
            if key in parts and (parts[key] or kind == "list")
        }
        self._copies(known, parts, answer, context)
        return known

    def _by_marks(
        self, messages: list[_Message], places: Any, branch: Trajectory | None
    ) -> dict[str, list[_Message]]:
        """The messages of each place: it begins at the row that says so."""
        answer, rejected = _answer_keys(places)
        full = self._form.get("whole", False)
        first = places[0][0]
        keys = [key for key, _ in places if key != rejected]
        parts: dict[str, list[_Message]] = {key: [] for key in keys}
        at = "" if full and first == answer else first
        if self._run.parent_id is not None:
            at = answer
        parts.setdefault(at, [])
        border = None if branch is None else branch.parent_step
        for message in messages:
            at = message.extra.shape.get("at", at)
            step = message.row.step
            if border is not None and isinstance(message.row, Step) and (step or 0) >= border:
                at = answer
            parts.setdefault(at, []).append(message)
        return parts

    def _by_first_answer(
        self, messages: list[_Message], places: Any, branch: Trajectory | None
    ) -> tuple[dict[str, list[_Message]], bool]:
        """The messages of a run of another format, and whether both sides repeat the prompt.

        A reader takes what the agent says in a prompt for context that is not trained. Where it
        is more than that, the prompt stands in both sides.
        """
        prompt, answer = places[0][0], places[1][0]
        border = len(messages)
        for index, message in enumerate(messages):
            row = message.row
            if not isinstance(row, Step) or row.source != "agent":
                continue
            if branch is not None and (row.step or 0) < (branch.parent_step or 0):
                continue
            if branch is None and row.is_copied_context:
                continue
            border = index
            break
        before, after = messages[:border], messages[border:]
        full = branch is not None and any(
            isinstance(m.row, Step) and m.row.source == "agent" and not m.row.is_copied_context
            for m in before
        )
        for message in messages if full else after:
            if isinstance(message.row, Step) and message.row.is_copied_context:
                index = self._run.steps.index(message.row)
                self._losses.add(f"$.steps[{index}].is_copied_context", REASON)
        return {"" if full else prompt: before, answer: after}, full

    def _branch(self, branch: Trajectory) -> list[_Message]:
        """The messages of the rejected answer; losses are those of the branch."""
        losses = Losses()
        native = branch.source_format == k.NAME
        report_columns(branch, _BRANCH if native else _BRANCH - {"extra"}, "$", losses)
        rows = _Messages(branch, losses, native=native).messages()
        for place, step in enumerate(branch.steps):
            if step.is_copied_context and step.source == "agent":
                losses.add(f"$.steps[{place}].is_copied_context", REASON)
        index = self._run.branches.index(branch)
        add_losses(self._losses, f"$.branches[{index}]", losses)
        return rows

    def _copies(
        self,
        known: dict[str, Any],
        parts: dict[str, list[_Message]],
        answer: str,
        context: list[_Message],
    ) -> None:
        """Keys that repeat what stands elsewhere."""
        for key, what in self._form.get("copies", {}).items():
            if what == "chosen":
                known[key] = known.get(answer, [])
                continue
            users = [m for m in context if isinstance(m.row, Step) and m.row.source == "user"]
            if users:
                chosen = users[-1] if what == "user" else users[min(what, len(users) - 1)]
                known[key] = chosen.value.get("content")


def _answer_keys(places: Any) -> tuple[str, str | None]:
    """The keys of the answer and of the worse one."""
    keys = [key for key, _ in places]
    for chosen, rejected in k.PAIRS:
        if chosen in keys:
            return chosen, rejected if rejected in keys else None
    return (k.COMPLETION if k.COMPLETION in keys else keys[-1]), None


def _value(messages: list[_Message], kind: str) -> Any:
    """The value of a place: in its form, or as a list where the messages do not fit in it."""
    texts = [message.plain_text() for message in messages]
    if kind == "text" and len(messages) == 1 and texts[0] is not None:
        return texts[0]
    if kind == "object" and len(messages) == 1:
        return messages[0].value
    if kind == "dialogue" and all(isinstance(text, str) for text in texts):
        marks = [m.extra.shape.get("mark", k.MARKS.get(_source(m.row))) for m in messages]
        if all(mark is not None for mark in marks):
            return jsontext.string("".join(f"{m}{t}" for m, t in zip(marks, texts, strict=True)))
    return [message.listed() for message in messages]


def _source(row: Row) -> str:
    return (row.source or "") if isinstance(row, Step) else ""
