"""The kinds of events of a Codex log, by what they are."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Raw

from adp.converters.kit.session import inner, word
from adp.converters.readers.codex.executions import KINDS

REPEATED = {
    "user_message": ("user", ("message",)),
    "UserMessage": ("user", ("content",)),
    "agent_message": ("assistant", ("message",)),
    "AgentMessage": ("assistant", ("content",)),
    "agent_reasoning": ("reasoning", ("text",)),
    "agent_reasoning_raw_content": ("reasoning", ("text",)),
    "Reasoning": ("reasoning", ("summary_text", "raw_content")),
}
"""Kinds of events that repeat an item -> the role of the item, and the keys of its text."""
PLAIN = frozenset(
    {"task_started", "turn_started", "task_complete", "turn_complete", "turn_aborted",
     "turn.completed", "error", "warning", "stream_error", "context_compacted", "ContextCompaction",
     "thread_name_updated", "thread_goal_updated", "thread_settings_applied", "guardian_assessment",
     "undo_started", "undo_completed", "thread_rolled_back", "plan_update", "Plan", "turn_diff",
     "background_event", "shutdown_complete", "session_configured", "exec_command_begin",
     "exec_command_output_delta", "exec_approval_request", "apply_patch_approval_request",
     "patch_apply_begin", "patch_apply_updated", "mcp_tool_call_begin", "web_search_begin",
     "image_generation_begin", "item_started", "hook_started", "hook_completed", "HookPrompt",
     "request_user_input", "request_permissions", "elicitation_request", "deprecation_notice",
     "model_reroute", "entered_review_mode", "exited_review_mode", "EnteredReviewMode",
     "ExitedReviewMode", "dynamic_tool_call_request", "collab_agent_spawn_begin",
     "collab_agent_interaction_begin", "collab_waiting_begin", "collab_close_begin",
     "collab_resume_begin", "sub_agent_activity", "SubAgentActivity", "FunctionCallOutput",
     "agent_reasoning_section_break", "plan_delta", "mcp_startup_update", "mcp_startup_complete",
     "terminal_interaction", "codex/event/raw_item", "raw_response_item", "user_input_answer",
     "realtime_conversation_started", "realtime_conversation_closed", "Sleep"}
)  # fmt: skip
"""Kinds of events that only stand for themselves."""


def is_event(record: Mapping[str, Raw]) -> bool:
    """Whether a line is an event of another surface: under ``msg``, or a completed item."""
    if word(record, "type") in ("item_started", "item_completed"):
        return bool(word(inner(record, "item"), "type"))
    kind = word(inner(record, "msg"), "type")
    return "id" in record and (kind in PLAIN or kind in KINDS or kind in REPEATED)
