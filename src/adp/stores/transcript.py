"""A trajectory as lines for reading.

Calls stand together with their results, also when a result arrived later. Nothing in the data
is taken for markup, and control characters are shown, so a log cannot steer the terminal.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.text import Text

from adp.stores.visible_text import human_size, visible
from adp_schema.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from adp_schema.model import Observation, Step, ToolCall, Trajectory

KINDS = ("user", "agent", "system", "environment", "reasoning", "call", "result", "event")
"""What ``TranscriptView.kinds`` may hold: texts by their source, and the parts of a turn.

Events of a log without a text, such as a change of settings, are shown only on request.
"""

_TEXT_LIMIT, _CHARACTERS_A_LINE = 2000, 50
_MARGIN = "  "


@dataclass(frozen=True)
class TranscriptView:
    """What is shown of a trajectory.

    Attributes:
        full: do not cut long texts.
        first: first step to show.
        last: step after the last one to show; None for the end.
        kinds: names of `KINDS`; empty shows all.
        limit: characters of a text; of arguments and results half as many, and a line for
            every 50.
        hint: how to see what was cut; stands after the number of characters.

    Raises:
        UsageError: there is no such kind.
    """

    full: bool = False
    first: int = 0
    last: int | None = None
    kinds: Sequence[str] = field(default=())
    limit: int = _TEXT_LIMIT
    hint: str = " (--full)"

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in KINDS:
                raise UsageError(unknown_name("kind", kind, KINDS))

    def shows(self, kind: str) -> bool:
        """Whether a kind of line is shown."""
        return not self.kinds or kind in self.kinds

    def holds(self, step: int) -> bool:
        """Whether a step lies in the range."""
        return self.first <= step and (self.last is None or step < self.last)


def transcript(trajectory: Trajectory, view: TranscriptView | None = None) -> Iterator[Text]:
    """The lines of a trajectory.

    Args:
        trajectory: as `Store.get` returns it.
        view: what is shown; None shows all, with long texts cut.
    """
    view = view or TranscriptView()
    yield from header(trajectory)
    yield from _Writer(trajectory, view).lines()


class Transcript(str):
    """A trajectory as text, which shows itself at the prompt of Python and in notebooks."""

    __slots__ = ()

    @classmethod
    def of(cls, trajectory: Trajectory, view: TranscriptView) -> Transcript:
        """The text of a trajectory; its arguments are those of `transcript`."""
        return cls("\n".join(line.plain.rstrip() for line in transcript(trajectory, view)))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self)}</pre>"


def header(trajectory: Trajectory) -> Iterator[Text]:
    """Who ran, on what, with which tools, and how it ended."""
    yield _line(trajectory.trajectory_id or "", "bold")
    agent = _join([trajectory.agent_name, trajectory.agent_version, trajectory.agent_model], " ")
    rows = {
        "dataset": _join([trajectory.dataset, trajectory.split], ", "),
        "agent": agent,
        "task": trajectory.task_id or "",
        "outcome": _outcome(trajectory),
        "answer": _first_words(trajectory.final_answer),
        "tools": ", ".join(_tool_names(trajectory.tools)),
        "branch": _join([trajectory.branch_kind, "of", trajectory.parent_id], " ")
        if trajectory.parent_id
        else "",
        "source": _source(trajectory),
    }
    for name, value in rows.items():
        if value:
            red = name == "outcome" and bool(trajectory.error_type or trajectory.success is False)
            yield Text.assemble((f"{name:<8} ", "dim"), (visible(value), "red" if red else ""))


def _outcome(trajectory: Trajectory) -> str:
    words = {True: "success", False: "failure", None: "success not recorded"}[trajectory.success]
    reward = "" if trajectory.reward is None else f"reward {trajectory.reward:g}"
    error = _join([trajectory.error_type, trajectory.error_message], ": ")
    cut = "cut by a limit" if trajectory.truncated else ""
    stop = f"stopped: {trajectory.stop_reason}" if trajectory.stop_reason else ""
    return _join([words, reward, cut, stop, error], ", ")


def _tool_names(tools: str | None) -> list[str]:
    try:
        value = json.loads(tools or "[]")
    except ValueError:
        return []
    names = []
    for tool in value if isinstance(value, list) else []:
        child = tool.get("function", tool) if isinstance(tool, dict) else tool
        name = child.get("name") if isinstance(child, dict) else child
        names.append(str(name or "?"))
    return names


def _source(trajectory: Trajectory) -> str:
    records = ", ".join(f"#{number}" for number in (trajectory.source_records or [])[:5])
    name = f"({trajectory.source_format})" if trajectory.source_format else ""
    return _join([f"{trajectory.source_file or ''}{records}", name], " ")


def _first_words(text: str | None) -> str:
    words = " ".join((text or "")[:1000].split())
    return words if len(words) <= 200 else words[:199] + "…"


class _Writer:
    """Makes the lines of one trajectory's steps."""

    def __init__(self, trajectory: Trajectory, view: TranscriptView) -> None:
        self.trajectory = trajectory
        self.view = view
        self.answers: dict[tuple[int | None, int | None], list[Observation]] = {}
        calls = {(call.step, call.call) for step in trajectory.steps for call in step.calls}
        for observation in self._observations():
            key = (observation.call_step, observation.call)
            if key in calls:
                self.answers.setdefault(key, []).append(observation)
        self.paired = {id(item) for items in self.answers.values() for item in items}

    def _observations(self) -> Iterator[Observation]:
        yield from self.trajectory.early_observations
        for step in self.trajectory.steps:
            yield from step.observations

    def lines(self) -> Iterator[Text]:
        if self.view.first == 0 and self.view.shows("result"):
            for observation in self.trajectory.early_observations:
                yield from self._result(observation, "  ")
        for step in self.trajectory.steps:
            if self.view.holds(step.step or 0):
                body = list(self._step(step))
                if body:
                    yield Text()
                    yield self._head(step)
                    yield from body

    def _head(self, step: Step) -> Text:
        kind = step.kind if step.kind in ("context_edit", "event") else None
        colours = {"user": "green", "agent": "cyan", "system": "yellow"}
        words = [step.actor, step.model, step.stop_reason]
        if step.tokens_in is not None or step.tokens_out is not None:
            words.append(f"{step.tokens_in or 0:,} + {step.tokens_out or 0:,} tokens")
        words.append(_time(step))
        words.append("copied context" if step.is_copied_context else None)
        title = _join([step.source, (kind or "").replace("_", " ")], ", ")
        return Text.assemble(
            (f"[{step.step}] {title}", f"bold {colours.get(step.source or '', 'magenta')}"),
            (visible("  " + _join(words, " · ")), "dim"),
        )

    def _step(self, step: Step) -> Iterator[Text]:
        if step.reasoning and self.view.shows("reasoning"):
            yield _line(f"{_MARGIN}reasoning:", "dim")  # its style is not seen outside a terminal
            yield from self._block(step.reasoning, _MARGIN * 2, "dim italic", self.view.limit)
        if self.view.shows(step.source or ""):
            text = step.prose if step.prose is not None else step.text
            if text:
                yield from self._block(text, _MARGIN, "", self.view.limit)
            yield from self._media(step.content, step.text)
            if step.kind == "context_edit":
                yield from self._edit(step)
        if step.kind == "event" and step.extra and "event" in self.view.kinds:
            yield from self._block(step.extra, _MARGIN, "dim", self.view.limit // 2)
        for call in step.calls:
            yield from self._call(step, call)
        if self.view.shows("result"):
            for observation in step.observations:
                if id(observation) not in self.paired:
                    yield from self._result(observation, _MARGIN)

    def _edit(self, step: Step) -> Iterator[Text]:
        kept = (
            f"keeps steps {step.edit_from or 0} to {(step.edit_to or 0) - 1}"
            if step.edit_to
            else ""
        )
        yield _line(_MARGIN + _join([f"context: {step.edit_boundary}", kept], ", "), "magenta")
        if step.edit_summary:
            yield from self._block(step.edit_summary, _MARGIN, "", self.view.limit)

    def _call(self, step: Step, call: ToolCall) -> Iterator[Text]:
        if self.view.shows("call"):
            words = [call.language, call.status, call.call_id]
            words.append("by the user" if call.requestor == "user" else None)
            yield Text.assemble(
                f"{_MARGIN}→ ",
                (visible(call.name or call.kind or "call"), "bold blue"),
                (visible("  " + _join(words, " · ")), "dim"),
            )
            yield from self._arguments(call)
        if not self.view.shows("result"):
            return
        answers = self.answers.get((call.step, call.call), [])
        for observation in answers:
            later = observation.step if observation.step != step.step else None
            yield from self._result(observation, _MARGIN, later)
        if not answers and call.kind != "message":
            yield _line(f"{_MARGIN}← no result recorded", "dim")

    def _arguments(self, call: ToolCall) -> Iterator[Text]:
        margin = _MARGIN * 3
        if call.arguments is None:
            if call.arguments_raw:
                yield from self._block(call.arguments_raw, margin, "yellow", self.view.limit // 2)
            return
        try:
            value = json.loads(call.arguments)
        except ValueError:
            value = call.arguments
        if not isinstance(value, dict):
            yield from self._block(_words(value), margin, "", self.view.limit // 2)
            return
        for name, child in value.items():
            words = _words(child)
            if "\n" in words or len(words) > 100:
                yield _line(f"{margin}{name}:", "blue")
                yield from self._block(words, margin + _MARGIN, "", self.view.limit // 2)
            else:
                yield Text.assemble(margin, (f"{visible(name)}: ", "blue"), visible(words))

    def _result(self, item: Observation, margin: str, later: int | None = None) -> Iterator[Text]:
        bad = bool(item.is_error) or bool(item.error_type) or bool(item.exit_code)
        words = [
            "error" if bad else None,
            item.error_type,
            None if item.exit_code is None else f"exit code {item.exit_code}",
            None if later is None else f"arrived after step {later}",
            "cut by the source" if item.truncated else None,
        ]
        if id(item) not in self.paired:
            words.insert(0, _join([item.source, item.name, "answers no call"], ", "))
        style = "red" if bad else "dim"
        yield _line(f"{margin}← {_join(words, ' · ') or 'result'}", style)
        body = margin + _MARGIN * 2
        text = item.text or ""
        if text:
            yield from self._block(text, body, "red" if bad else "", self.view.limit // 2)
        yield from self._media(item.content, item.text, body)
        if not text and not item.content and item.structured:
            yield from self._block(item.structured, body, "", self.view.limit // 2)
        page = [
            f"{name} {human_size(len(value.encode('utf-8', 'replace')))}"
            for name, value in (("html", item.html), ("axtree", item.axtree))
            if value
        ]
        if page or item.url:
            yield _line(f"{body}[page {_join([item.url, *page], ' ')}]", "magenta")

    def _media(
        self, content: str | None, text: str | None, margin: str = _MARGIN
    ) -> Iterator[Text]:
        if content is None or '"media"' not in content:
            return
        from adp_schema.parts import resolve

        for part in resolve(content, text):
            if part.type == "media":
                yield _line(margin + self.media_label(part.media_id or ""), "magenta")

    def media_label(self, media_id: str) -> str:
        """What stands for a blob: ``[image png 12 kB abcd1234]``."""
        try:
            blob = self.trajectory.media[media_id]
        except KeyError:
            return f"[media {media_id[:8]}, not in the store]"
        kind, _, form = (blob.mime or "media").partition("/")
        place = _first_words(blob.uri) if blob.data is None else human_size(blob.size or 0)
        return f"[{_join([kind, form, place, media_id[:8]], ' ')}]"

    def _block(self, text: str, margin: str, style: str, limit: int) -> Iterator[Text]:
        """The lines of a text, cut when it is long."""
        shown = text if self.view.full else _cut(text, limit, self.view.limit // _CHARACTERS_A_LINE)
        left = len(text) - len(shown)
        if "adp-media:" in shown:
            shown = self._name_blobs(shown)
        for line in visible(shown).split("\n"):
            yield Text.assemble(margin, (line, style))
        if left:
            yield _line(f"{margin}... {left:,} more characters{self.view.hint}", "dim")

    def _name_blobs(self, text: str) -> str:
        return re.sub(
            "adp-media:([0-9a-f]{32})", lambda match: self.media_label(match.group(1)), text
        )


def _cut(text: str, limit: int, most: int) -> str:
    lines = text.split("\n", most)
    if len(lines) > most:
        text = "\n".join(lines[:most])
    # A cut that saves a few characters only would cost more than it saves.
    return text if len(text) <= limit * 1.1 else text[:limit]


def _time(step: Step) -> str | None:
    """The time of a step as its source wrote it; a number of seconds as a date."""
    text = step.timestamp_text
    if text and step.timestamp is not None and text.replace(".", "", 1).isdigit():
        return step.timestamp.isoformat().replace("+00:00", "Z")
    return text


def _words(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _line(text: str, style: str = "") -> Text:
    return Text(visible(text), style)


def _join(words: Sequence[str | None], joint: str) -> str:
    return joint.join(word for word in words if word)


def as_json(trajectory: Trajectory) -> dict[str, Any]:
    """A trajectory as one tree: steps hold their calls and observations; nulls are left out.

    JSON text stays text, as it stands in the store.
    """
    tree = _filled(trajectory)
    tree["early_observations"] = [_filled(item) for item in trajectory.early_observations]
    tree["links"] = [_filled(item) for item in trajectory.links]
    tree["task"] = None if trajectory.task is None else _filled(trajectory.task)
    tree["steps"] = [
        {
            **_filled(step),
            "calls": [_filled(call) for call in step.calls],
            "observations": [_filled(item) for item in step.observations],
        }
        for step in trajectory.steps
    ]
    return tree


def _filled(row: Any) -> dict[str, Any]:
    values: dict[str, Any] = row.model_dump(mode="json", exclude_none=True)
    return values
