"""Sessions that coding agents leave behind."""

from __future__ import annotations

from adp.converters.known.signature import (
    CHAT,
    FILLED,
    LINES,
    LIST,
    TEXT,
    KnownFormat,
    begins,
    blocks,
    both,
    either,
    ends,
    every,
    first,
    has,
    kept_as,
    lacks,
    members,
    named,
    no,
    some,
    values,
    word,
)

_CLAUDE_CODE = some(
    either(
        has("timestamp", type=TEXT, sessionId=TEXT, uuid=TEXT),
        has(type=word("summary"), summary=TEXT, leafUuid=TEXT),
    )
)
_CLAUDE_STREAM = some(
    either(
        has("session_id", type=word("system"), subtype=word("init")),
        has("session_id", "message", "parent_tool_use_id", type=word("assistant", "user")),
    )
)
_CODEX = word(
    *("session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state"),
    "inter_agent_communication",
)
_GEMINI = word("user", "gemini", "model", "info", "warning", "error")
_OPENCODE = word("step_start", "step_finish", "text", "tool_use", "reasoning", "error")
_SESSION = both(
    has(type=word("session"), id=TEXT, cwd=TEXT),
    either(lacks("harness"), has("version")),  # without a version it is one of `sts`
)
_OPENCLAW = both(_SESSION, either(has(version=TEXT), lambda row: ".openclaw" in row["cwd"]))
_PI_MESSAGE = has("content", "api", "provider", "stopReason", role=word("assistant"))
_MESSAGE = both(has("content", role=TEXT), lacks("message"))
_CLINE = both(
    every(_MESSAGE),
    blocks(every(has("type"))),
    either(named("api_conversation_history.json"), some(has("modelInfo"))),
)
_MINI_V1 = both(named(".traj.json"), every(_MESSAGE))

FORMATS: tuple[KnownFormat, ...] = (
    KnownFormat("claude_code", "a Claude Code session", _CLAUDE_CODE),
    KnownFormat(
        "claude_stream_json",
        "the stream-json output of Claude Code",
        both(_CLAUDE_STREAM, no(_CLAUDE_CODE)),
    ),
    KnownFormat(
        "claude_code_loglines",
        "a Claude Code session in one document",
        first(has(loglines=first(has("type", "message")))),
    ),
    KnownFormat("codex", "a Codex rollout", some(has("payload", type=_CODEX))),
    KnownFormat(
        "codex_legacy", "an early Codex session", first(has(session=has("id"), items=LIST))
    ),
    KnownFormat(
        "gemini_cli_legacy",
        "an early Gemini CLI session",
        first(has("startTime", "lastUpdated", sessionId=TEXT, messages=every(has(type=_GEMINI)))),
    ),
    KnownFormat(
        "gemini_cli",
        "a Gemini CLI session",
        kept_as("lines", some(both(has(sessionId=TEXT, projectHash=TEXT), lacks("messages")))),
    ),
    KnownFormat("openclaw", "an OpenClaw session", some(_OPENCLAW)),
    KnownFormat("pi", "a Pi session", some(both(_SESSION, no(_OPENCLAW)))),
    KnownFormat("pi_message", "one message of a Pi session", first(_PI_MESSAGE)),
    KnownFormat(
        "kimi_cli_wire",
        "what Kimi CLI recorded beside context.jsonl, which has the messages",
        some(has("timestamp", message=has("payload", type=TEXT))),
    ),
    KnownFormat("droid", "a Droid session", some(has(type=word("session_start"), id=TEXT))),
    KnownFormat(
        "copilot_cli",
        "a Copilot CLI session",
        some(has(type=word("session.start"), data=FILLED)),
    ),
    KnownFormat(
        "cursor",
        "a Cursor transcript",
        either(
            some(has(type=word("cursor_session_meta"))),
            kept_as(
                "lines",
                every(both(has(role=TEXT, message=has("content")), lambda row: len(row) <= 3)),
            ),
        ),
    ),
    KnownFormat(
        "cursor_db", "the database of Cursor", kept_as("sqlite", members("cursorDiskKV.key"))
    ),
    KnownFormat(
        "opencode_export",
        "an opencode export",
        first(has("info", messages=first(has("info", "parts")))),
    ),
    KnownFormat(
        "opencode_events",
        "the JSON output of opencode",
        some(has("part", type=_OPENCODE, sessionID=TEXT)),
    ),
    KnownFormat(
        "opencode_db",
        "the database of opencode",
        kept_as("sqlite", members("session.id", "message.data", "part.data")),
    ),
    KnownFormat(
        "crush_db",
        "the database of Crush or an early opencode",
        kept_as("sqlite", members("sessions.id", "messages.parts")),
    ),
    KnownFormat(
        "hermes_agent_db",
        "the database of Hermes Agent",
        kept_as("sqlite", members("sessions.system_prompt")),
    ),
    KnownFormat(
        "hermes_agent",
        "a Hermes Agent export",
        first(has("id", "source", "model", "system_prompt", messages=LIST)),
        outranks=CHAT,
    ),
    KnownFormat(
        "amp",
        "an Amp thread",
        first(has("v", id=begins("T-"), messages=some(has()))),
        outranks=CHAT,
    ),
    KnownFormat("cline", "a Cline conversation", kept_as("array", _CLINE), outranks=LINES),
    KnownFormat(
        "mini_swe_agent_v1",
        "an early mini-swe-agent run",
        kept_as("array", _MINI_V1),
        outranks=LINES,
    ),
    KnownFormat(
        "chatgpt_export",
        "a ChatGPT export",
        first(has(mapping=values(every(has("parent", "children", "message"))))),
    ),
    KnownFormat(
        "acp_updates",
        "session updates of the Agent Client Protocol",
        some(has(method=ends("session/update"), params=has(update=has("sessionUpdate")))),
    ),
)
