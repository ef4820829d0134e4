"""The keys and roles of the format, where values go, and the form that a round trip needs.

``$shape`` of a row of this format may hold:

- ``keys``: the keys of the source object in order, when they are not the usual ones.
- ``role``: the role as written, when the row's kind does not imply it.
- ``content``: ``list`` for a list of parts, ``value`` for something that is no text at all.
- ``at``: ``system``, ``chosen`` or ``rejected`` for a step that was a column of the record.
- ``weight``: key of the loss weight; ``flag``: it was true or false; ``exact``: numbers as written.
- ``reasoning``: key of the reasoning.
- ``wrap`` of a result: what stands before and after its text; ``joint``: what stands between it
  and the result before it, in the same turn; ``named``: its text says the name of the tool.
- ``list``: key of the list of turns; ``string``: its layout, when it was a JSON string.
- ``tools``: ``list`` when it was no string, ``text`` when the system text holds the tools.
- ``media``: column of media -> ``list`` or ``string``.
- ``fields``: trajectory column -> key; ``numbers``: ids that were numbers.

``$null`` lists the keys whose value was null.
"""

from __future__ import annotations

import re

from adp.converters.scalars import Fields

NAME = "sharegpt"

LISTS = ("conversations", "conversation", "dialog", "messages")
"""Keys of the list of turns. Under ``messages`` only turns with ``from`` are of this format."""

ROLE_KEYS = ("from", "role")
VALUE_KEYS = ("value", "content")
REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")
WEIGHT_KEYS = ("loss_weight", "weight", "loss", "train")

SOURCES = {
    "system": "system", "developer": "system",
    "human": "user", "user": "user", "prompter": "user",
    "gpt": "agent", "assistant": "agent", "chatgpt": "agent", "bard": "agent", "bing": "agent",
    "model": "agent", "bot": "agent", "ai": "agent", "agent": "agent",
    "function_call": "agent", "tool_call": "agent",
}  # fmt: skip
"""Role in small letters -> source of the step. Any other role makes one of the environment."""

SYNONYMS = frozenset(SOURCES) - {"developer"}
"""Roles that say no more than the step's source; others are kept in ``extra``."""

CALL_ROLES = frozenset({"function_call", "tool_call"})
"""Roles of a turn that is nothing but calls."""

RESULT_ROLES = frozenset(
    {
        *("observation", "tool", "function", "function_response", "tool_response"),
        *("tool_result", "function_result", "ipython", "environment"),
    }
)
"""Roles that make an observation."""

USUAL_ROLES = {"system": "system", "user": "human", "agent": "gpt", "environment": "event"}
RESULT_ROLE = "observation"

TURN = ("from", "value")

RECORD_FIELDS: Fields = (
    ("source_id", ("id", "conversation_id", "uuid", "unique_id", "unique_trajectory_id"), "id"),
    ("task_id", ("task_id", "instance_id"), "id"),
    ("agent_model", ("model",), "text"),
    ("success", ("success", "resolved", "kto_tag", "label"), "bool"),
    ("reward", ("reward",), "number"),
)
"""Columns of the trajectory, the keys that they are read from, and the type of the value."""

MEDIA = {"images": "image", "videos": "video", "audios": "audio"}
"""Columns of media, and the word that stands for one in the text."""

SINGLE_MEDIA = {"image": "image", "video": "video", "audio": "audio"}

TOKEN = re.compile("<(image|video|audio)>")
"""What stands in a text for the next item of a column of media."""

JOINER = "\n</tool_response>\n<tool_response>\n"
"""What stands between the results of parallel calls, in one turn."""

SIDES = ("chosen", "rejected")
