"""Subagents that calls of a Codex log start, by the ids of their threads."""

from __future__ import annotations

from adp.converters.kit.drafts import ObservationDraft, StepDraft, TrajectoryDraft
from adp.converters.kit.source_object import SourceObject, embedded
from adp.converters.readers.codex.executions import KnownCall
from adp.converters.readers.codex.repeated_items import block_texts
from adp_schema.losses import Losses


def link_subagent(
    run: TrajectoryDraft, thread: str, step: StepDraft | None, call: int | None = None
) -> None:
    """Refer to the thread of a subagent, once."""
    for link in run.links:
        if link.columns["kind"] == "subagent" and link.columns.get("target_id") == thread:
            return
    columns = {} if call is None else {"call": call}
    run.link("subagent", step, target_id=thread, **columns)


def link_spawned(run: TrajectoryDraft, call: KnownCall, draft: ObservationDraft) -> None:
    """Refer to the thread that the result of ``spawn_agent`` names."""
    name = call.draft.columns.get("name")
    if name is None or not name.endswith("spawn_agent"):
        return
    text = draft.parts.columns().get("text", "")
    output = embedded(text, "$", Losses()) if text[:1] == "{" else None
    thread = (output.word("agent_id") or output.word("thread_id")) if output else ""
    if thread:
        link_subagent(run, thread, call.step, call.index)


def spawned_thread(item: SourceObject) -> str:
    """The thread of a subagent that a call started."""
    if name := item.word("new_thread_id"):
        return name
    if item.word("tool") in ("spawnAgent", "spawn_agent"):
        for key in ("receiverThreadIds", "receiver_thread_ids"):
            for name in block_texts(item.values.get(key)):
                return name
    return ""
