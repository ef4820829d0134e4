"""What is known of a run of Claude Code when all of its records are read."""

from __future__ import annotations

from msgspec import Raw

from adp.converters.kit.drafts import TrajectoryDraft
from adp.converters.reading import QUOTE
from adp_schema import jsontext


def complete(run: TrajectoryDraft) -> None:
    """Times and the last error of a run; its tools for the branches that share its beginning."""
    new_steps = [step for step in run.steps if not step.columns.get("is_copied_context")]
    times = [step.columns["timestamp"] for step in new_steps if "timestamp" in step.columns]
    if times:
        run.columns["started_at"], run.columns["ended_at"] = min(times), max(times)
        run.columns["time_zone_known"] = True
    turns = [step for step in new_steps if step.columns["kind"] != "event"]
    if turns and turns[-1].columns.get("llm_call_count") == 0 and "error" in turns[-1].extra:
        error = turns[-1].extra["error"]
        if isinstance(error, Raw) and jsontext.first_byte(error) == QUOTE:
            run.columns["error_type"] = jsontext.decode_value(error)
            run.columns["error_message"] = turns[-1].parts.columns().get("text")
    for branch in run.branches:
        if branch.kind != "subagent":
            for name in ("tools", "tools_origin"):
                if name in run.columns:
                    branch.columns.setdefault(name, run.columns[name])
        complete(branch)
