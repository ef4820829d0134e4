"""The keys of each ATIF object in the usual order, and which columns hold them.

``$shape`` of a row of this format may hold:

- ``keys``: the keys of the source object in order, when they are not the usual ones in the usual
  order; a listed key without a value was null.
- ``exact``: key -> number (or list of numbers) as written, when Python would write another one.
- ``content``: ``list`` for a list of parts, ``value`` for something that is no text at all.
- ``unknown``: keys of the agent whose value is `UNKNOWN`.
- ``agent``, ``metrics``, ``observation``, ``web``: the form of that inner object.
- ``tool_calls``, ``subagent_trajectories``, ``empty``: that list was there, and empty.
- ``extra``: the keys of the source's ``extra`` in order, when columns hold some of them.
- ``own``: the keys in ``extra`` that the object has beside its ``extra``; the others are in it.
- ``whole``: ``extra`` is under its own key.
- ``step_id``: the number of a step as written, where it is not its place in the list.
- ``effort``: ``number`` when the reasoning effort was one.
- ``id``: ``session_id`` when the trajectory has no id of its own.
- ``trial``: where the files of the trial are in ``extra``, and how they were laid out.
"""

from __future__ import annotations

NAME = "atif"
HARBOR, UPSTREAM = "harbor", "upstream"  # flavours

TRAJECTORY = (
    *("schema_version", "session_id", "trajectory_id", "agent", "steps", "notes"),
    *("final_metrics", "continued_trajectory_ref", "extra", "subagent_trajectories"),
)
AGENT = ("name", "version", "model_name", "tool_definitions", "extra")
STEP = (
    *("step_id", "timestamp", "source", "model_name", "reasoning_effort", "message"),
    *("reasoning_content", "tool_calls", "observation", "metrics", "is_copied_context"),
    *("llm_call_count", "extra"),
)
CALL = ("tool_call_id", "function_name", "arguments", "extra")
OBSERVATION = ("results", "extra")
RESULT = ("source_call_id", "content", "subagent_trajectory_ref", "extra")
REF = ("trajectory_id", "trajectory_path", "session_id", "extra")
METRICS = (
    *("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd", "cost"),
    *("prompt_token_ids", "completion_token_ids", "logprobs", "extra"),
)
FINAL_METRICS = (
    *("total_prompt_tokens", "total_completion_tokens", "total_cached_tokens"),
    *("total_cost_usd", "total_steps", "extra"),
)
WEB = ("html", "axtree", "url", "image_observation", "viewport_size")

UNKNOWN = "unknown"
"""What ATIF files say where an agent's name or version is not known, for they must say one."""

AGENT_COLUMNS = {"name": "agent_name", "version": "agent_version", "model_name": "agent_model"}
TOKEN_COLUMNS = {
    "prompt_tokens": "tokens_in",
    "completion_tokens": "tokens_out",
    "cached_tokens": "tokens_cached",
}
ID_COLUMNS = ("prompt_token_ids", "completion_token_ids")
TOTAL_COLUMNS = {
    "total_prompt_tokens": "total_tokens_in",
    "total_completion_tokens": "total_tokens_out",
    "total_cached_tokens": "total_tokens_cached",
    "total_cost_usd": "total_cost_usd",
    "reward": "reward",
}
"""Keys of the final metrics and their columns; upstream keeps the reward there."""

USUAL_KINDS = {"agent": "llm_turn"}
"""Source of a step -> its kind; any other step is a message."""

CARRIED = {
    "trajectories": frozenset(
        {
            *("source_version", "session_id", "source_id", "tools", "notes", "final_metrics"),
            *("extra", *AGENT_COLUMNS.values(), *TOTAL_COLUMNS.values()),
        }
    ),
    "steps": frozenset(
        {
            *("timestamp", "timestamp_text", "model", "reasoning_effort", "text", "content"),
            *("reasoning", "is_copied_context", "llm_call_count", "extra", "reward"),
            *("cost_usd", "logprobs", *TOKEN_COLUMNS.values(), *ID_COLUMNS, "edit_boundary"),
            *("edit_summary", "source", "kind", "timestamp_zone_known"),
        }
    ),
    "tool_calls": frozenset(
        {"call_id", "native_id", "name", "arguments", "arguments_raw", "extra", "kind"}
    ),
    "observations": frozenset(
        {
            *("call", "call_id", "native_call_id", "text", "content", "subagent", "extra"),
            *("reward", "html", "axtree", "url", "viewport_width", "viewport_height", "source"),
        }
    ),
}
"""Table -> columns that have a key of their own; the others go into ``extra.adp``."""
