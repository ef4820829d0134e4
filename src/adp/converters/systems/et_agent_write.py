"""Writing records of ET-Agent: the attempts at a task, each as one text in tags."""

from __future__ import annotations

from typing import Any

from adp.converters.json_objects import arrange
from adp.converters.reading import BRACKET, begins
from adp.converters.scalars import write_number
from adp.converters.systems.et_agent_keys import PROMPTS, EtKeys, derived, task_columns
from adp.converters.systems.objects import written_text
from adp.converters.systems.tagged_text import TaggedText
from adp.converters.unwritten_columns import report_columns
from adp.converters.writing import is_seen
from adp_schema import jsontext
from adp_schema.extra_column import Extra, original, unpack
from adp_schema.losses import Losses
from adp_schema.model import Step, Trajectory
from adp_schema.parts import resolve

_STEP = frozenset({"source", "kind", "text", "content", "extra"})
_RUN = frozenset({"final_answer", "extra"})


class EtWriter:
    """Writes one record.

    Args:
        name: name of the format.
        keys: its keys.
        run: the first attempt; the others are among its branches.
        losses: takes what has no place in the record.
    """

    def __init__(self, name: str, keys: EtKeys, run: Trajectory, losses: Losses) -> None:
        self._name, self._keys, self._losses = name, keys, losses
        self._run = run
        self._attempts = [run, *run.branches]

    def record(self) -> dict[str, Any]:
        """The record."""
        run, keys = self._run, self._keys
        native = run.source_format == self._name
        extra = unpack(run.extra) if native else Extra()
        known: dict[str, Any] = {}
        if native:
            kept = dict(extra.fields)
        else:
            kept = {}
            known["answer"] = self._answer()
        rows = [self._attempt(run, n) for n, run in enumerate(self._attempts)]
        known |= rows[0][1]
        judged = [key for key in keys.verdicts if any(key in item for item, _ in rows)]
        spread = extra.shape.get("spread", [keys.output, keys.prediction, *judged])
        for key in spread:
            kept.pop(key, None)
        if extra.shape.get("empty"):
            known |= {key: [] for key in spread}
        elif keys.several:
            known |= {key: [item.get(key) for item, _ in rows] for key in spread}
        else:
            known |= rows[0][0]
        for key, listed in keys.copies:
            if key in extra.shape.get("same", ()):
                known[key] = rows[0][0].get(listed)
        record = arrange(known, kept, extra.shape, keys.order)
        self._report_task(record)
        return record

    def _report_task(self, record: dict[str, Any]) -> None:
        """Report what the record does not say of the task: its id is made from the question."""
        data = jsontext.encode(record)
        data = data if jsontext.is_valid(data) else jsontext.sanitise(data)
        values = jsontext.decode_object(data)
        expected = task_columns({key: values[key] for key in ("input", "answer") if key in values})
        for number, run in enumerate(self._attempts):
            root = "$" if not number else f"$.branches[{number - 1}]"
            if run.task_id not in (None, expected["task_id"]):
                self._losses.add(f"{root}.task_id", "it is made from the question")
            for index, link in enumerate(run.links):
                report_columns(link, frozenset(), f"{root}.links[{index}]", self._losses)
            if run.task is not None:
                same = {
                    name for name, value in expected.items() if getattr(run.task, name) == value
                }
                report_columns(run.task, frozenset(same), f"{root}.task", self._losses)

    def _answer(self) -> Any:
        """The reference answer of a run of another format."""
        task = self._run.task
        if task is None or task.answers is None:
            return ""
        given = jsontext.raw(task.answers)
        answers = jsontext.decode_array(given) if begins(given, BRACKET) else []
        return answers[0] if len(answers) == 1 else given

    def _attempt(self, run: Trajectory, number: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """The items of an attempt, and the prompts of its run."""
        keys, root = self._keys, "$" if not number else f"$.branches[{number - 1}]"
        native = run.source_format == self._name
        extra = unpack(run.extra)
        prompts, steps, place = self._prompts(run, root, native=native)
        item: dict[str, Any] = {}
        text = self._output(run, steps, place, root, native=native)
        if text is not None:
            item[keys.output] = text
        if run.final_answer is not None:
            item[keys.prediction] = jsontext.string(original(run, "final_answer", extra))
        elif not native:
            item[keys.prediction] = ""
        carried = {*_RUN, "task_id"}
        if keys.several and run.attempt == number:
            carried.add("attempt")
        for key, column in keys.verdicts.items():
            value = getattr(run, column)
            if value is not None:
                form = extra.shape if native else {}
                item[key] = value if column == "success" else write_number(value, key, form)
                carried.add(column)
        if native:
            spread = extra.shape.get("spread", (keys.output, keys.prediction))
            item |= {k: extra.fields[k] for k in spread if k in extra.fields and k not in item}
            expected = derived(extra.fields)
            carried |= {name for name, value in expected.items() if getattr(run, name) == value}
        if not native:
            carried.remove("extra")
        report_columns(run, frozenset(carried), root, self._losses)
        if number:
            self._compare(prompts, root)
        else:
            self._first = prompts
        return item, prompts

    def _prompts(
        self, run: Trajectory, root: str, *, native: bool
    ) -> tuple[dict[str, Any], list[Step], int]:
        """The prompts before the first turn of the agent, the steps after them, and their place."""
        out: dict[str, Any] = {} if native else {"instruction": "", "input": ""}
        place = 0
        for source, key in PROMPTS:
            step = run.steps[place] if place < len(run.steps) else None
            if step is None or step.source != source or step.observations or step.calls:
                continue
            if not is_seen(step) or step.content is not None:
                continue
            text = written_text(run, step, "text", unpack(step.extra))
            if text is None:
                continue
            carried = _STEP if native else _STEP - {"extra"}
            report_columns(step, carried, f"{root}.steps[{place}]", self._losses)
            out[key] = text
            place += 1
        return out, run.steps[place:], place

    def _compare(self, prompts: dict[str, Any], root: str) -> None:
        """Report prompts that differ from those of the first attempt, which stand for all."""
        for number, (_, key) in enumerate(PROMPTS):
            if prompts.get(key) != self._first.get(key):
                reason = "the attempts at a task have one prompt in the record, that of the first"
                self._losses.add(f"{root}.steps[{number}].text", reason)

    def _output(
        self, run: Trajectory, steps: list[Step], place: int, root: str, *, native: bool
    ) -> Any:
        """The text of an attempt: that of its only step, or what its steps make."""
        if native and not steps:
            return None
        if native and len(steps) == 1 and not steps[0].calls and not steps[0].observations:
            step = steps[0]
            extra = unpack(step.extra)
            report_columns(step, _STEP, f"{root}.steps[{place}]", self._losses)
            if step.content is not None:
                parts = resolve(original(step, "content", extra), step.text)
                if len(parts) == 1 and parts[0].type == "opaque":
                    return parts[0].value
            return written_text(run, step, "text", extra)
        return TaggedText(run, self._losses, root).of(steps, place)
