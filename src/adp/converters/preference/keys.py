"""The keys of the dialects, where their values go, and the form that a round trip needs.

``$shape`` of a row of this format may hold:

- ``keys``: the keys of the source object in order, when they are not the usual ones.
- ``places``: the keys that hold messages, in the order of the conversation, each with its form:
  ``list``, ``object`` (one message), ``text``, or ``dialogue`` (a text with the turns of both
  sides); when they are not those of a conversational TRL pair.
- ``whole``: both sides repeat the prompt.
- ``copies``: key -> ``chosen``, or ``user`` for the text of a message of the user: it repeats that.
- ``input``: keys of the object ``input`` in order; ``tools_in``: the tools stand there.
- ``at`` of a step or a result: the place that it begins, when it is not the first one.
- ``line`` of a step or a result: layout of a message that was a JSON string in its list.
- ``mark`` of a step: what stands before a turn of a dialogue, when it is not the usual mark.
- and what rows of ``openai_chat`` may hold.
"""

from __future__ import annotations

from adp.converters.scalars import Fields

NAME = "preference"

SHAREGPT_LISTS = ("conversations", "conversation", "dialog")

PAIRS = (("chosen", "rejected"), ("preferred_output", "non_preferred_output"))
LABELS = ("label", "kto_tag")
PROMPTS = ("prompt", "question", "query", "instruction")
COMPLETION = "completion"

TRL_PAIR = (("prompt", "list"), ("chosen", "list"), ("rejected", "list"))
TRL_LABELLED = (("prompt", "list"), (COMPLETION, "list"))

RECORD_FIELDS: Fields = (
    ("source_id", ("id", "uuid", "trajectory_id"), "id"),
    ("task_id", ("task_id", "prompt_id", "instance_id"), "id"),
    ("agent_model", ("model",), "text"),
    ("success", (*LABELS, "success"), "bool"),
    ("reward", ("reward",), "number"),
)
"""Columns of the trajectory, the keys that they are read from, and the type of the value."""

SCORES = (
    ("chosen_score", ("score_chosen", "chosen_score", "chosen_rating", "chosen-rating")),
    ("rejected_score", ("score_rejected", "rejected_score", "rejected_rating", "rejected-rating")),
    ("margin", ("margin",)),
)
"""Columns of the pair, and the keys that they are read from. The keys stay in ``extra`` too."""

ORDER = (
    *("id", "task_id", "prompt_id", "system", "input", *PROMPTS, "messages", COMPLETION),
    *("chosen", "rejected", "preferred_output", "non_preferred_output"),
    *(*LABELS, "success", "tools", "functions"),
)
"""The usual order of the keys."""

MARKS = {"user": "\n\nHuman: ", "agent": "\n\nAssistant: "}
"""What begins a turn of a dialogue, as in HH-RLHF."""
