"""Files that hold no run: texts, schemas, configurations, questions, scores."""

from __future__ import annotations

from adp.converters.known.head import Head
from adp.converters.known.signature import (
    HeadTest,
    KnownFormat,
    Row,
    every,
    first,
    has,
    inner,
    is_text,
    items,
    kept_as,
)

_ANSWERS = ("answer", "answers", "ground_truth", "expected_tool", "Golden_Answers")


def _json_schema(row: Row) -> bool:
    document = "$schema" in row or "$defs" in row or "definitions" in row
    typed = is_text(row, "type") and ("properties" in row or "items" in row)
    return (document and (typed or "anyOf" in row or "oneOf" in row)) or (
        "schemas" in inner(row, "components")
    )


def _dataset_metadata(row: Row) -> bool:
    return has(row, "custom_tools", "code_enabled", "browser_enabled")


def _provenance(row: Row) -> bool:
    return is_text(row, "source") and has(row, "files", "legend")


def _training_configuration(row: Row) -> bool:
    return bool(inner(row, "model")) and bool(inner(row, "training")) and bool(inner(row, "data"))


def _run_metadata(row: Row) -> bool:
    return has(row, "sample_id", "truncated", "terminated", "total_time_steps")


def _conversation_state(row: Row) -> bool:
    return has(row, "agent", "workspace", "persistence_dir") and "llm" in inner(row, "agent")


def _questions(row: Row) -> bool:
    """A question, with its answer or its tools, and no run."""
    asked = any(key in row for key in ("question", "problem", "query"))
    apis = asked and has(row, "api_list")
    tools = isinstance(row.get("question"), list) and has(row, "function")
    turns = isinstance(row.get("question"), list) and has(row, "involved_classes")
    answered = is_text(row, "question") or is_text(row, "problem")
    plain = (
        answered and any(key in row for key in _ANSWERS) and not any(items(row, key) for key in row)
    )
    expected = is_text(row, "prompt") and has(row, "expected_tool")
    rl = isinstance(row.get("prompt"), list) and has(row, "reward_model", "data_source")
    documented = has(row, "Instructions", "Golden_Answers")
    return apis or tools or turns or plain or expected or rl or documented


def _answer_keys(row: Row) -> bool:
    return set(row) == {"id", "ground_truth"}


def _verdicts(row: Row) -> bool:
    by_case = has(row, "id", "valid", "error_type", "mutation")
    oracle = is_text(row, "oracle") and (has(row, "cases") or has(row, "verdicts"))
    return by_case or oracle


def _scores(row: Row) -> bool:
    return has(row, "task_id", "trial", "reward") and not has(row, "traj")


def _predictions(row: Row) -> bool:
    return is_text(row, "instance_id", "model_name_or_path") and "model_patch" in row


def _documentation(row: Row) -> bool:
    examples = items(row, "examples")
    return is_text(row, "source") and bool(examples) and has(examples[0], "attribute", "value")


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


def _none(name: str, title: str, test: HeadTest) -> KnownFormat:
    return KnownFormat(name, title, test, is_trace=False)


FORMATS: tuple[KnownFormat, ...] = (
    _none("text", "a text", lambda head: head.container == "text"),
    _none("yaml", "a YAML document", lambda head: head.container == "yaml"),
    _none("empty", "an empty file", lambda head: head.container == "empty"),
    _none("json_schema", "a JSON schema", kept_as("object", first(_json_schema))),
    _none("dataset_metadata", "the metadata of a data set", first(_dataset_metadata)),
    _none("provenance", "a note on where files come from", first(_provenance)),
    _none("training_configuration", "a training configuration", first(_training_configuration)),
    _none("run_metadata", "the metadata of a run", first(_run_metadata)),
    _none("conversation_state", "the state of a conversation", first(_conversation_state)),
    _none("questions", "questions without runs", every(_questions)),
    _none("answer_keys", "answers to questions", every(_answer_keys)),
    _none("verdicts", "verdicts of a checker", first(_verdicts)),
    _none("scores", "scores of runs", every(_scores)),
    _none("predictions", "patches to be scored", every(_predictions)),
    _none("documentation", "examples of a documentation", first(_documentation)),
    _none("word_lists", "lists of texts", _lists_of_text),
)
