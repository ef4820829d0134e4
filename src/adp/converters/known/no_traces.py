"""Files that hold no run: texts, schemas, configurations, questions, scores."""

from __future__ import annotations

from typing import Any

from adp.converters.known.head import Head
from adp.converters.known.signature import (
    FILLED,
    LIST,
    TEXT,
    KnownFormat,
    Test,
    both,
    either,
    every,
    first,
    has,
    kept_as,
    lacks,
    objects,
    only,
    some,
    values,
)

_SCHEMA = both(
    either(has("$schema"), has("$defs"), has("definitions")),
    either(has("properties", type=TEXT), has("items", type=TEXT), has("anyOf"), has("oneOf")),
)
_ANSWERED = either(
    *(has(key) for key in ("answers", "ground_truth", "expected_tool", "Golden_Answers"))
)

_ABOUT_A_SESSION = either(
    both(has("session_id", "stats", "environment"), lacks("messages")),
    has("session_id", "cwd", "session_state"),
    has("agents", "workDir", "lastPrompt"),
    has("info", "session_summary", "num_messages"),
    has("turnCount", "userMessageCount", "assistantMessageCount"),
    has("conversationId", "layout", rows=LIST),
    has("files_in_context", "model_usage"),
    both(has("task", "tokensIn", "tokensOut", "totalCost"), lacks("messages")),
    both(has(agentType=TEXT), only("agentType", "description", "toolUseId", "spawnDepth")),
)
"""What agents keep beside the log of a session."""

_TYPED = either(
    both(has("ts", session_id=TEXT, text=TEXT), only("ts", "session_id", "text")),
    has("pastedContents", "project", display=TEXT),
    both(has("messageId", "timestamp", sessionId=TEXT, message=TEXT), lacks("uuid")),
)
"""A line of a history: of Codex, of Claude Code, of Gemini CLI."""


def _holds_no_objects(row: dict[str, Any]) -> bool:
    return not any(map(objects, row.values()))


_QUESTION = either(
    both(has("api_list"), either(has("question"), has("problem"))),
    both(either(has(question=TEXT), has(problem=TEXT)), _ANSWERED, _holds_no_objects),
    has("expected_tool", prompt=TEXT),
)
"""A question, with its answer or its tools, and no run."""


def _lists_of_text(head: Head) -> bool:
    """A list of texts, or a table from a text to texts."""
    if head.container == "array":
        return bool(head.records) and all(isinstance(record, str) for record in head.records)
    if head.container != "object" or not head.rows[0]:
        return False
    return all(
        isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)
        for value in head.rows[0].values()
    )


def _anything(head: Head) -> bool:
    return True


_TESTS: tuple[tuple[str, str, Test], ...] = (
    ("text", "a text", kept_as("text", _anything)),
    ("yaml", "a YAML document", kept_as("yaml", _anything)),
    ("empty", "an empty file", kept_as("empty", _anything)),
    (
        "json_schema",
        "a JSON schema",
        kept_as("object", first(either(_SCHEMA, has(components=has("schemas"))))),
    ),
    (
        "dataset_metadata",
        "the metadata of a data set",
        first(has("custom_tools", "code_enabled", "browser_enabled")),
    ),
    (
        "tool_catalogue",
        "a catalogue of tools",
        every(has("capabilities", "inputs", tool_id=TEXT, name=TEXT)),
    ),
    ("provenance", "a note on where files come from", first(has("files", "legend", source=TEXT))),
    (
        "training_configuration",
        "a training configuration",
        first(has(model=FILLED, training=FILLED, data=FILLED)),
    ),
    (
        "run_metadata",
        "the metadata of a run",
        first(has("sample_id", "truncated", "terminated", "total_time_steps")),
    ),
    (
        "session_metadata",
        "what an agent keeps beside the log of a session",
        kept_as("object", first(_ABOUT_A_SESSION)),
    ),
    ("prompt_history", "the prompts that a user typed, beside the logs of sessions", some(_TYPED)),
    (
        "conversation_state",
        "the state of a conversation",
        first(has("workspace", "persistence_dir", agent=has("llm"))),
    ),
    (
        "tau2_settings",
        "the settings of tau2-bench beside its simulations",
        first(both(has("tasks", info=has("agent_info", "user_info")), lacks("simulations"))),
    ),
    (
        "harbor_trial",
        "the outcome of a trial of Harbor, whose trajectory is not there",
        first(
            both(
                has("task_name", "trial_name"), either(has("verifier_result"), has("agent_result"))
            )
        ),
    ),
    (
        "harbor_job",
        "the settings or the summary of a job of Harbor",
        first(
            either(
                has("jobs_dir", "agents"),
                has("n_total_trials", "stats"),
                has("stats", "trial_results"),
                both(has("trials_dir", "trial_name"), lacks("agent_result")),
            )
        ),
    ),
    ("questions", "questions without runs", every(_QUESTION)),
    (
        "answer_keys",
        "answers to questions",
        every(both(has("id", "ground_truth"), only("id", "ground_truth"))),
    ),
    (
        "verdicts",
        "verdicts of a checker",
        first(
            either(
                has("id", "valid", "error_type", "mutation"),
                has("cases", oracle=TEXT),
                has("verdicts", oracle=TEXT),
            )
        ),
    ),
    ("scores", "scores of runs", every(both(has("task_id", "trial", "reward"), lacks("traj")))),
    (
        "predictions",
        "patches to be scored",
        first(has("model_patch", instance_id=TEXT, model_name_or_path=TEXT)),
    ),
    (
        "documentation",
        "examples of a documentation",
        first(has(source=TEXT, examples=first(has("attribute", "value")))),
    ),
    ("otlp_metrics", "metrics of OpenTelemetry", first(has("resourceMetrics"))),
    (
        "expected_messages",
        "messages that a test of Langfuse expects",
        kept_as("object", first(values(every(has(output=has("success")))))),
    ),
    (
        "mcp_server",
        "a catalogue of the tools of an MCP server",
        kept_as("object", first(has("labels", metadata=has("remote_server_response")))),
    ),
    (
        "api_catalogue",
        "a catalogue of APIs",
        kept_as("object", first(has("count", entries=every(has("API", "Link"))))),
    ),
    (
        "evaluation_report",
        "a report of an evaluation",
        kept_as(
            "object",
            first(
                either(
                    has("patch_exists", "resolved", "tests_status"),
                    has("ids_resolved", "ids_unresolved"),
                )
            ),
        ),
    ),
    (
        "judged_predictions",
        "predictions beside their references, without prompts",
        every(both(has(label=TEXT, predict=TEXT), only("label", "predict"))),
    ),
    (
        "environment_data",
        "data that the tools of an environment look things up in",
        kept_as("object", first(has(item_info=LIST, person_info=LIST))),
    ),
    ("word_lists", "lists of texts", _lists_of_text),
)

FORMATS = tuple(KnownFormat(*signature, is_trace=False) for signature in _TESTS)
