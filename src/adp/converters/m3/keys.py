"""The keys of the format, and the form that a round trip needs.

``$shape`` of the trajectory may hold ``keys`` (its keys in order, when they are not the usual
ones), ``interactions`` (it had an empty one), ``tools`` (``json`` when they were no string), and
``side``: the name and the layout of the file with the outcome.

``$shape`` of a step may hold:

- ``keys``, ``metadata``, ``output``: keys in order, of the object and of those inside it;
- ``key``: key of the interaction, when it is not its number;
- ``role`` of an output that another role was expected for; null when it had none;
- ``thought``: ``apart`` when the text does not begin with it, ``text`` when only the text has it;
- ``arguments``: ``none`` when the metadata have no arguments although the text has them, ``plain``
  when they have characters where the text has escapes;
- ``reward``: ``whole`` when it is no sum of names in braces, and so is one label;
- ``observation``: ``next`` when it is the next query of the user;
- ``alternates``, ``input``: ``none`` when there was no such list;
- ``message``: the role of a step that stands in the input only.

``$shape`` of an observation may hold ``role``, when the input shows it to the model as another
one; that of a call ``at``: ``metadata``, when the text does not hold the call.
"""

from __future__ import annotations

NAME = "m3"

RUN = (
    *("system", "tools", "interactions"),
    *("tool_availability_policy", "tool_usage_policy", "final_answer_policy"),
)
POLICIES = {
    "tool_availability_policy": "policy_tool_availability",
    "tool_usage_policy": "policy_tool_usage",
    "final_answer_policy": "policy_final_answer",
}
AVAILABILITIES = ("only_rag", "only_api", "both_api_rag", "neither_api_rag")
"""Scenarios: which tools a run is allowed to see."""

INTERACTION = ("input", "metadata", "actor", "output", "reward", "alternate_trace")
ALTERNATE = ("metadata", "actor", "output", "reward")
METADATA = ("thought", "action", "action_arguments", "observation")
OUTPUT = ("role", "content")
MESSAGE = ("role", "content")

RETRIEVE = "retrieve_documents"
OBSERVATION = "observation"
"""The role of a result in the input."""

MATCH = "REWARD_FINAL_ANSWER_MATCH"
NO_MATCH = "REWARD_FINAL_ANSWER_NO_MATCH"

SOURCES = {"user": "user", "system": "system", "assistant": "agent", "function": "agent"}
"""Role of a message of the input -> source of its step; any other is one of the environment."""
