"""The keys of the format, where their values go, and the form that a round trip needs.

``$shape`` of a row of this format may hold:

- ``keys``: the keys of the source object in order, when they are not the usual ones in the usual
  order; a listed key without a value was null.
- ``role``: the role as written, when it is another word for the row's source.
- ``content``: ``list`` for a list of parts, ``value`` for something that is no text at all.
- ``reasoning``: the key of the reasoning, when it is not ``reasoning_content``.
- ``form`` of a call: ``flat`` (no inner object), ``custom``, or ``function_call`` (the old key);
  ``type``: its type; ``function``: keys of the inner object.
- ``tool_calls``: ``list`` for an empty list, or the layout of a list that was a JSON string.
- ``by_order`` of a result: it had no id of its own.
- ``fields``: trajectory column -> key it was read from; ``exact``: key -> number as written.
- ``messages``, ``tools``: layout of a column that was a JSON string.
"""

from __future__ import annotations

from adp.converters.scalars import Fields

NAME = "openai_chat"

ROLE_SOURCES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "agent",
    "model": "agent",
    "gpt": "agent",
    "agent": "agent",
}
"""Roles that make a step, and the step's source. Any other role makes one of the environment."""

SYNONYMS = frozenset(ROLE_SOURCES) - {"developer"}
"""Roles that say no more than the step's source. Any other one is kept in ``extra``: it says who
speaks, so a format without it must report it."""

RESULT_ROLES = frozenset(
    {"tool", "function", "ipython", "observation", "environment", "tool_response", "tool_result"}
)
"""Roles that make an observation."""

USUAL_ROLES = {
    "system": "system", "user": "user", "agent": "assistant", "environment": "environment",
}  # fmt: skip

REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")

STEP_KEYS = ("role", "content", "name", "reasoning", "tool_calls", "function_call", "weight")
RESULT_KEYS = ("role", "tool_call_id", "name", "content")
CALL_KEYS = ("id", "type", "function")

RECORD_FIELDS: Fields = (
    ("source_id", ("id", "trajectory_id", "traj_id", "uuid", "conversation_id"), "id"),
    ("task_id", ("task_id", "instance_id"), "id"),
    ("agent_model", ("model",), "text"),
    ("success", ("success", "resolved", "kto_tag", "label"), "bool"),
    ("reward", ("reward",), "number"),
)
"""Columns of the trajectory, the keys that they are read from, and the type of the value."""
