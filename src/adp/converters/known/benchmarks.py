"""What benchmarks, harnesses and environments write."""

from __future__ import annotations

from adp.converters.known.head import Head
from adp.converters.known.signature import (
    CHAT,
    KnownFormat,
    Row,
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

_V1_SOURCES = {"agent", "user", "environment", "hook"}


def _v0_event(row: Row) -> bool:
    acts = "action" in row and ("args" in row or "content" in row)
    sees = "observation" in row and "extras" in row
    return is_text(row, "source") and (acts or sees)


def _v0_events(row: Row) -> bool:
    return any(_v0_event(item) for item in items(row, "trajectory")[:20])


def _v0_history(row: Row) -> list[Row]:
    """The events of an evaluation's history: a list, or pairs of action and observation."""
    history = row.get("history")
    if not isinstance(history, list):
        return []
    flat = [entry for item in history for entry in (item if isinstance(item, list) else [item])]
    return [item for item in flat if isinstance(item, dict)]


def _v0_output(row: Row) -> bool:
    events = _v0_history(row)
    named = has(row, "instance_id") or has(row, "issue", "git_patch")
    acts = [event for event in events if "action" in event or "observation" in event]
    return named and bool(acts) and not any(has(event, "message_type") for event in events)


def _llm_log(row: Row) -> bool:
    return (
        has(row, "messages", "response", "kwargs")
        and isinstance(row["response"], dict)
        and has(row, "latency_sec")
    )


def _v1_event(row: Row) -> bool:
    kind = text(row, "kind")
    known = kind.endswith("Event") or kind in ("Condensation", "UserRejectObservation")
    return known and text(row, "source") in _V1_SOURCES and has(row, "id", "timestamp")


def _swe_agent(row: Row) -> bool:
    steps = items(row, "trajectory")
    stepped = bool(steps) and has(steps[0], "action", "observation", "response")
    history = items(row, "history")
    return (stepped and "source" not in steps[0]) or (
        bool(history) and has(history[0], "role", "agent", "message_type")
    )


def _swe_agent_rows(row: Row) -> bool:
    turns = items(row, "trajectory")
    return "instance_id" in row and bool(turns) and has(turns[0], "role", "text", "system_prompt")


def _inspect(row: Row) -> bool:
    return (
        isinstance(row.get("version"), int)
        and is_text(row, "status")
        and has(inner(row, "eval"), "task", "model")
    )


def _inspect_zip(names: frozenset[str]) -> bool:
    return "header.json" in names or "_journal/start.json" in names


def _tau2(row: Row) -> bool:
    return has(row, "simulations", "tasks", "info")


def _toolbench(row: Row) -> bool:
    if "query" in inner(row, "answer_generation"):
        return "tree" in row or "try_count" in row
    # The answer comes last, after a tree that may be larger than what is looked at.
    return has(inner(inner(row, "tree"), "tree"), "node_type", "io_state")


def _values(head: Head) -> list[Row]:
    """The values of a document that is a table by id."""
    if head.container != "object":
        return []
    return [value for value in head.rows[0].values() if isinstance(value, dict)]


def _tooleval(head: Head) -> bool:
    return any(
        has(row, "query", "available_tools") and "answer_details" in inner(row, "answer")
        for row in _values(head)
    )


def _fireact(head: Head) -> bool:
    return any(has(row, "traj", "em", "f1", "pred") for row in _values(head))


def _atif_by_name(head: Head) -> bool:
    return any(
        text(row, "schema_version").startswith("ATIF-v") and "steps" in row for row in _values(head)
    )


def _bfcl_result(row: Row) -> bool:
    return has(row, "id", "model", "result", "category") or (
        has(row, "id", "result") and has(row, "input_token_count", "latency")
    )


def _webshop(row: Row) -> bool:
    return is_text(row, "page", "url") and "instruction_text" in inner(row, "goal")


def _verifiers(row: Row) -> bool:
    nodes = items(row, "nodes")
    return has(row, "nodes", "calls") and ("rewards" in row or "verifiers" in row) and bool(nodes)


FORMATS: tuple[KnownFormat, ...] = (
    KnownFormat(
        "openhands_v0",
        "OpenHands events (version 0)",
        lambda head: every(_v0_event)(head) or some(_v0_events)(head),
    ),
    KnownFormat("openhands_v0_output", "OpenHands evaluation output", first(_v0_output)),
    KnownFormat("openhands_llm_log", "an OpenHands model log", first(_llm_log), outranks=CHAT),
    KnownFormat("openhands_v1", "OpenHands events (version 1)", some(_v1_event)),
    KnownFormat("swe_agent", "a SWE-agent trajectory", kept_as("object", first(_swe_agent))),
    KnownFormat("swe_agent_rows", "SWE-agent trajectories as rows", first(_swe_agent_rows)),
    KnownFormat(
        "mini_swe_agent",
        "a mini-swe-agent run",
        first(lambda row: text(row, "trajectory_format").startswith("mini-swe-agent")),
        outranks=CHAT,
    ),
    KnownFormat("inspect_eval", "an Inspect log (.eval)", kept_as("zip", members(_inspect_zip))),
    KnownFormat("inspect_json", "an Inspect log (.json)", kept_as("object", first(_inspect))),
    KnownFormat(
        "tau_bench",
        "tau-bench results",
        first(lambda row: has(row, "task_id", "reward", "traj", "trial")),
    ),
    KnownFormat("tau2", "tau2 results", first(_tau2)),
    KnownFormat(
        "tau_bench_few_shot",
        "tau-bench examples as text",
        first(lambda row: is_text(row, "messages_display")),
    ),
    KnownFormat("toolbench", "a ToolBench answer", first(_toolbench)),
    KnownFormat("tooleval", "ToolEval answers", _tooleval),
    KnownFormat("fireact", "FireAct runs", _fireact),
    KnownFormat("atif_by_name", "ATIF trajectories in one object, by name", _atif_by_name),
    KnownFormat("bfcl_results", "BFCL model outputs", first(_bfcl_result)),
    KnownFormat("webshop_log", "a WebShop session of a person", first(_webshop)),
    KnownFormat(
        "mind2web",
        "Mind2Web tasks",
        first(lambda row: has(row, "annotation_id", "actions", "confirmed_task")),
    ),
    KnownFormat(
        "nnetnav",
        "NNetNav steps, one row each",
        first(lambda row: is_text(row, "task_name", "prompt", "output") and "messages" in row),
        outranks=CHAT,
    ),
    KnownFormat(
        "android_control",
        "AndroidControl episodes",
        first(lambda row: has(row, "episode_id", "goal", "screenshots", "actions")),
    ),
    KnownFormat(
        "aitw",
        "Android in the Wild frames, one row each",
        first(lambda row: has(row, "episode_id", "step_id", "results/action_type")),
    ),
    KnownFormat(
        "omniact",
        "OmniACT tasks",
        first(lambda row: has(row, "task", "image", "ocr", "box")),
    ),
    KnownFormat("verifiers", "a verifiers trace", first(_verifiers)),
)
