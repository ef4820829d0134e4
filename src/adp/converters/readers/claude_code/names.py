"""The words that Claude Code writes: types of records, of attachments and of system messages."""

from __future__ import annotations

import re

KEPT = frozenset(
    {
        *("summary", "progress", "queue-operation", "file-history-snapshot", "file-history-delta"),
        *("mode", "permission-mode", "agent-name", "agent-color", "agent-setting", "custom-title"),
        *("ai-title", "last-prompt", "frame-link", "pr-link", "relocated", "worktree-state"),
        *("bridge-session", "atis-latch", "cost-state", "content-replacement", "tag"),
        *("started", "result", "task-summary", "speculation-accept", "attribution-snapshot"),
        *("api-request", "api-request-blob", "api-request-shape", "tools-used"),
    }
)  # fmt: skip
"""Types of records that are no messages."""

DISTINCT = frozenset({name for name in KEPT if "-" in name} | {"continued-in"})
"""Types that no other format writes beside a ``sessionId``."""

ATTACHMENTS = frozenset(
    {
        *("hook_success", "hook_additional_context", "hook_non_blocking_error"),
        *("hook_blocking_error", "hook_cancelled", "hook_error_during_execution"),
        *("hook_system_message", "hook_stopped_continuation", "hook_permission_decision"),
        *("agent_listing_delta", "command_permissions", "deferred_tools_delta"),
        *("mcp_instructions_delta", "nested_memory", "queued_command", "skill_listing"),
        *("invoked_skills", "dynamic_skill", "task_reminder", "todo_reminder", "todo"),
        *("task_status", "file", "compact_file_reference", "read_truncation_notice"),
        *("edited_text_file", "edited_image_file", "date_change", "auto_mode", "auto_mode_exit"),
        *("plan_mode", "plan_mode_exit", "plan_mode_reentry", "plan_file_reference"),
        *("ultra_effort_enter", "ultra_effort_exit", "budget_usd", "total_tokens_reminder"),
        *("batching_reminder_sent", "silent_turn_reminder", "instructions", "environment"),
        *("model", "session_context", "remote_session_change", "goal_status"),
        *("bash_output_audience_note", "thinking_drop", "prompt_snapshot", "directory"),
        *("already_read_file", "pdf_reference", "selected_lines_in_ide", "opened_file_in_ide"),
        *("diagnostics", "mcp_resource", "critical_system_reminder", "output_style"),
        *("token_usage", "output_token_usage", "verify_plan_reminder", "max_turns_reached"),
        *("async_hook_response", "structured_output", "relevant_memories"),
        *("ultrathink_effort", "agent_mention", "team_context", "teammate_mailbox"),
        *("teammate_shutdown_batch", "skill_discovery", "companion_intro", "context_efficiency"),
        *("date",),
    }
)  # fmt: skip
"""Types of attachments."""

SUBTYPES = frozenset(
    {
        *("", "session_start", "api_refusal", "api_error", "model_refusal_fallback", "error"),
        *("turn_duration", "stop_hook_summary", "scheduled_task_fire", "agents_killed"),
        *("away_summary", "local_command", "informational", "bridge_status", "memory_saved"),
        *("permission_retry", "api_metrics", "file_snapshot", "thinking", "init", "status"),
        *("hook_started", "hook_progress", "hook_response", "task_started", "task_progress"),
        *("task_notification", "task_updated", "files_persisted", "api_retry"),
        *("local_command_output", "session_state_changed", "post_turn_summary"),
        *("elicitation_complete", "hook_callback", "model_fallback", "thinking_tokens",
          "background_tasks_changed"),
    }
)  # fmt: skip
"""Values of ``subtype`` of system records that are no edits of the context."""

EDITS = {"compact_boundary": "replace", "microcompact_boundary": None}
"""Edits of the context -> ``edit_boundary``; a small one clears results where they are."""

CONSTANT = (
    *("sessionId", "session_id", "cwd", "gitBranch", "userType", "entrypoint", "slug"),
    *("isSidechain", "agentId", "agentType", "sessionKind", "teamName", "agentName", "agentColor"),
)  # fmt: skip
"""Values that nearly every record repeats."""

NULL_KEYS = (
    *("stop_sequence", "stop_details", "container", "context_management", "diagnostics"),
    "stop_reason",
)
"""Keys of messages that are null nearly always."""

EXIT_CODE = re.compile(r"(?:Error: )?Exit code (\d{1,9})(?![\w.])")
"""How a failed command begins its result."""

PERSISTED_OUTPUT = "<persisted-output>"
"""How a result begins whose whole text lies in a file of its own."""
