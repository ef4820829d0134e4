"""Sessions that coding agents leave behind."""

from __future__ import annotations

from adp.converters.known.signature import (
    CHAT,
    LINES,
    LIST,
    TEXT,
    KnownFormat,
    begins,
    blocks,
    both,
    either,
    every,
    first,
    has,
    kept_as,
    lacks,
    members,
    named,
    some,
    values,
    word,
)

_PI_MESSAGE = has("content", "api", "provider", "stopReason", role=word("assistant"))
_MESSAGE = both(has("content", role=TEXT), lacks("message"), lacks("message_id"))
_CLINE = both(
    every(_MESSAGE),
    blocks(every(has("type"))),
    either(named("api_conversation_history.json"), some(has("modelInfo"))),
)
_MINI_V1 = both(named(".traj.json"), every(_MESSAGE))

FORMATS: tuple[KnownFormat, ...] = (
    KnownFormat("pi_message", "one message of a Pi session", first(_PI_MESSAGE)),
    KnownFormat(
        "opencode_export",
        "an opencode export",
        first(has("info", messages=first(has("info", "parts")))),
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
)
