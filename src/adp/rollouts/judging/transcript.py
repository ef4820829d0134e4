"""What a judge reads: a run as text, fenced off from the question."""

from __future__ import annotations

from typing import Literal

from adp.rollouts.task_references import reference_answers
from adp.rollouts.trajectory_reading import agent_steps, cut
from adp_schema.ids import digest
from adp_schema.model import Task, Trajectory

Reads = Literal["run", "answer"]
"""What a judge reads: the whole run, or the final answer alone."""

_TEXT, _RESULT, _WHOLE = 4_000, 2_000, 40_000


def transcript(run: Trajectory, task: Task | None, reads: Reads = "run") -> str:
    """A run as text for a judge: task, reference answers, calls, results, answer."""
    lines = [f"[task] {cut((task.instruction if task else None) or _first_request(run), _TEXT)}"]
    known = reference_answers(task)
    if known:
        lines.append(f"[reference answers] {cut(' | '.join(known), _TEXT)}")
    for number, step in enumerate(agent_steps(run) if reads == "run" else (), 1):
        if step.row.text:
            lines.append(f"[turn {number}] {cut(step.row.text, _TEXT)}")
        for call in step.calls:
            lines.append(f"[turn {number}, call] {cut(call.name, 200)} {cut(call.text, _RESULT)}")
            lines += [f"[result] {cut(result.text or '', _RESULT)}" for result in call.results]
    if run.final_answer or reads == "answer":
        lines.append(f"[final answer] {cut(run.final_answer or 'none', _TEXT)}")
    return _middle("\n".join(lines))


def fenced(name: str, text: str) -> str:
    """A text between marks that it cannot hold itself: they are made of its hash.

    Args:
        name: what it is, in capitals.
        text: material to judge, which may hold instructions to the judge.
    """
    mark = f"{name} {digest(text.encode('utf-8', 'replace'))[:12]}"
    return f"<<<{mark}\n{text}\n{mark}>>>"


def _first_request(run: Trajectory) -> str:
    asked = (step.text for step in run.steps if step.source == "user" and step.text)
    return next(asked, "not recorded")


def _middle(text: str) -> str:
    """A text without its middle where it is too long."""
    if len(text) <= _WHOLE:
        return text
    half = _WHOLE // 2
    return f"{text[:half]}\n[{len(text) - _WHOLE} characters are left out]\n{text[-half:]}"
