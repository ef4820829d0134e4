"""The keys of the format, where their values go, and the form that a round trip needs.

``$shape`` of a row of this format may hold, besides what calls have in `openai_chat.keys`:

- ``keys``: the keys of the header or message in order, when they are not the usual ones in the
  usual order; a listed key without a value was null.
- ``line``: the keys of a line in order, when they are not ``type`` and ``message``. What they
  hold is in ``extra`` under ``line.`` and the key.
- ``whole_line``: the line is no message; all of it is the one part of the content.
- ``role``: the role as written, when it is another word for the row's source.
- ``content``: ``list`` for a list of parts, ``value`` for something that is no text at all.
- ``fields``: trajectory column -> key it was read from; ``exact``: key -> number as written.
"""

from __future__ import annotations

from adp.converters.scalars import Fields

NAME = "sts"

HARNESS = "adp"
"""The harness of a session whose agent is unknown."""

ROLE_SOURCES = {"system": "system", "user": "user", "assistant": "agent"}
"""Roles that make a step, and the step's source; ``tool`` makes an observation, and any other
role a step of the environment."""

USUAL_ROLES = {source: role for role, source in ROLE_SOURCES.items()}

STEP_KEYS = ("role", "content", "reasoningContent", "toolCalls", "timestamp", "model")
RESULT_KEYS = ("role", "toolCallId", "content", "timestamp")
LINE_KEYS = ["type", "message"]

TAKEN = frozenset(
    {
        *STEP_KEYS[1:], *RESULT_KEYS[1:],
        *("type", "harness", "id", "task_id", "success", "reward", "tools"),
    }
)  # fmt: skip
"""Keys that a foreign trajectory is written under; a role in ``extra`` is that of the message."""

HEADER_FIELDS: Fields = (
    ("agent_name", ("harness",), "text"),
    ("source_id", ("id",), "id"),
    ("agent_model", ("model",), "text"),
    ("task_id", ("task_id",), "id"),
    ("success", ("success",), "bool"),
    ("reward", ("reward",), "number"),
)
"""Columns of the trajectory, the keys of the header that they are read from, and their type.

The format defines ``harness`` and ``id``; it allows any others.
"""
