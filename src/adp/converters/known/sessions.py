"""Sessions that coding agents leave behind."""

from __future__ import annotations

from adp.converters.known.head import Head
from adp.converters.known.signature import (
    CHAT,
    KnownFormat,
    Row,
    blocks,
    every,
    first,
    has,
    inner,
    is_text,
    items,
    kept_as,
    members,
    some,
    text,
)

_CODEX = {
    *("session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state"),
    "inter_agent_communication",
}
_GEMINI = {"user", "gemini", "model", "info", "warning", "error"}
_OPENCODE = {"step_start", "step_finish", "text", "tool_use", "reasoning", "error"}


def _claude_code(row: Row) -> bool:
    chat = is_text(row, "type", "sessionId", "uuid") and "timestamp" in row
    summary = row.get("type") == "summary" and is_text(row, "summary", "leafUuid")
    return chat or summary


def _stream_json(row: Row) -> bool:
    began = row.get("type") == "system" and row.get("subtype") == "init" and "session_id" in row
    chat = text(row, "type") in ("assistant", "user") and has(row, "session_id", "message")
    return began or (chat and has(row, "parent_tool_use_id"))


def _loglines(row: Row) -> bool:
    lines = items(row, "loglines")
    return bool(lines) and has(lines[0], "type", "message")


def _gemini_document(row: Row) -> bool:
    messages = items(row, "messages")
    return (
        is_text(row, "sessionId")
        and has(row, "startTime", "lastUpdated")
        and bool(messages)
        and all(text(message, "type") in _GEMINI for message in messages)
    )


def _gemini_lines(row: Row) -> bool:
    return is_text(row, "sessionId", "projectHash") and "messages" not in row


def _session_head(row: Row) -> bool:
    is_codex = "harness" not in row or "version" in row  # without a version it is one of `sts`
    return row.get("type") == "session" and is_text(row, "id", "cwd") and is_codex


def _openclaw(row: Row) -> bool:
    return _session_head(row) and (".openclaw" in text(row, "cwd") or is_text(row, "version"))


def _pi(row: Row) -> bool:
    return _session_head(row) and not _openclaw(row)


def _pi_message(row: Row) -> bool:
    return row.get("role") == "assistant" and has(row, "content", "api", "provider", "stopReason")


def _cursor(head: Head) -> bool:
    if any(row.get("type") == "cursor_session_meta" for row in head.rows):
        return True
    return head.container == "lines" and every(
        lambda row: is_text(row, "role") and "content" in inner(row, "message") and len(row) <= 3
    )(head)


def _opencode_export(row: Row) -> bool:
    messages = items(row, "messages")
    return "info" in row and bool(messages) and has(messages[0], "info", "parts")


def _opencode_events(row: Row) -> bool:
    return text(row, "type") in _OPENCODE and is_text(row, "sessionID") and "part" in row


def _opencode_tables(columns: frozenset[str]) -> bool:
    return {"session.id", "message.data", "part.data"} <= columns


def _hermes(row: Row) -> bool:
    return has(row, "id", "source", "model", "system_prompt") and isinstance(
        row.get("messages"), list
    )


def _dataclaw(row: Row) -> bool:
    return has(row, "session_id", "project", "source", "stats") and bool(items(row, "messages"))


def _amp(row: Row) -> bool:
    return text(row, "id").startswith("T-") and "v" in row and bool(items(row, "messages"))


def _is_message(row: Row) -> bool:
    return is_text(row, "role") and "content" in row and "message" not in row


def _cline(head: Head) -> bool:
    named = head.name.endswith("api_conversation_history.json")
    messages = head.rows
    typed = bool(blocks(messages)) and all("type" in block for block in blocks(messages))
    marked = named or any(has(row, "modelInfo") for row in messages)
    return every(_is_message)(head) and typed and marked


def _mini_v1(head: Head) -> bool:
    return head.name.endswith(".traj.json") and every(_is_message)(head)


def _bare_messages(head: Head) -> bool:
    return (
        every(_is_message)(head)
        and len(head.rows) > 1
        and not (_cline(head) or _mini_v1(head) or _pi_message(head.rows[0]))
    )


def _chatgpt(row: Row) -> bool:
    nodes = [node for node in inner(row, "mapping").values() if isinstance(node, dict)]
    return bool(nodes) and all(has(node, "parent", "children", "message") for node in nodes)


def _acp(row: Row) -> bool:
    update = inner(inner(row, "params"), "update")
    return text(row, "method").endswith("session/update") and "sessionUpdate" in update


FORMATS: tuple[KnownFormat, ...] = (
    KnownFormat("claude_code", "a Claude Code session", some(_claude_code)),
    KnownFormat(
        "claude_stream_json",
        "the stream-json output of Claude Code",
        lambda head: some(_stream_json)(head) and not some(_claude_code)(head),
    ),
    KnownFormat("claude_code_loglines", "a Claude Code session in one document", first(_loglines)),
    KnownFormat(
        "codex",
        "a Codex rollout",
        some(lambda row: text(row, "type") in _CODEX and "payload" in row),
    ),
    KnownFormat(
        "codex_legacy",
        "an early Codex session",
        first(lambda row: "id" in inner(row, "session") and isinstance(row.get("items"), list)),
    ),
    KnownFormat("gemini_cli_legacy", "an early Gemini CLI session", first(_gemini_document)),
    KnownFormat("gemini_cli", "a Gemini CLI session", kept_as("lines", some(_gemini_lines))),
    KnownFormat("openclaw", "an OpenClaw session", some(_openclaw)),
    KnownFormat("pi", "a Pi session", some(_pi)),
    KnownFormat("pi_message", "one message of a Pi session", first(_pi_message)),
    KnownFormat(
        "droid",
        "a Droid session",
        some(lambda row: row.get("type") == "session_start" and is_text(row, "id")),
    ),
    KnownFormat(
        "copilot_cli",
        "a Copilot CLI session",
        some(lambda row: row.get("type") == "session.start" and bool(inner(row, "data"))),
    ),
    KnownFormat("cursor", "a Cursor transcript", _cursor),
    KnownFormat(
        "cursor_db",
        "the database of Cursor",
        kept_as("sqlite", members(lambda columns: "cursorDiskKV.key" in columns)),
    ),
    KnownFormat("opencode_export", "an opencode export", first(_opencode_export)),
    KnownFormat("opencode_events", "the JSON output of opencode", some(_opencode_events)),
    KnownFormat(
        "opencode_db", "the database of opencode", kept_as("sqlite", members(_opencode_tables))
    ),
    KnownFormat(
        "crush_db",
        "the database of Crush or an early opencode",
        kept_as("sqlite", members(lambda columns: {"sessions.id", "messages.parts"} <= columns)),
    ),
    KnownFormat(
        "hermes_agent_db",
        "the database of Hermes Agent",
        kept_as("sqlite", members(lambda columns: "sessions.system_prompt" in columns)),
    ),
    KnownFormat("hermes_agent", "a Hermes Agent export", first(_hermes), outranks=CHAT),
    KnownFormat("dataclaw", "a DataClaw export", first(_dataclaw), outranks=CHAT),
    KnownFormat("amp", "an Amp thread", first(_amp), outranks=CHAT),
    KnownFormat("cline", "a Cline conversation", kept_as("array", _cline)),
    KnownFormat("mini_swe_agent_v1", "an early mini-swe-agent run", kept_as("array", _mini_v1)),
    KnownFormat(
        "message_list",
        "a list of chat messages that is no row of its own",
        kept_as("array", _bare_messages),
    ),
    KnownFormat("chatgpt_export", "a ChatGPT export", first(_chatgpt)),
    KnownFormat("acp_updates", "session updates of the Agent Client Protocol", some(_acp)),
)
