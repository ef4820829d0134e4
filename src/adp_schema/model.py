"""The interlingua: what a trajectory is.

A trajectory is a list of steps. A step may hold tool calls, and observations arrive after a
step. Each class here is one table of the store and each field is one column, so the class is
the documentation of the table: `adp_schema.tables` derives the Arrow schema from it.

Two kinds of field hold structure. *JSON text* (`JsonText`) is kept as the characters of the
source, because key order and number spelling reach the prompt; `Row.json` parses it. Lists of
numbers or strings are Arrow lists. Nothing is an Arrow struct, map, dictionary or union.

Absent and null differ in many source formats. Columns do not show the difference; the reserved
keys of ``extra`` do: ``$absent``, ``$null``, ``$shape`` and ``$escaped``
(see `adp_schema.extra_column`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

JsonText = Annotated[str, "json"]
Int32 = Annotated[int, "int32"]
Columns = dict[str, Any]
"""Values of one row: column name -> value. Missing columns are null."""


_IN_SHORT, _CHARACTERS = 8, 60
"""Fields and characters of each in the ``repr`` of a row."""


class _Short:
    """A value as a ``repr`` shows it."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __repr__(self) -> str:
        value = self._value
        if isinstance(value, list) and isinstance(value[0], BaseModel):
            return str(len(value))
        if isinstance(value, str | bytes) and len(value) > _CHARACTERS:
            return repr(value[:_CHARACTERS]) + "..."
        if isinstance(value, list) and len(value) > _IN_SHORT:
            return f"<{len(value)} values>"
        return repr(value)


def _field(description: str) -> Any:
    """A nullable column with its one-line description."""
    return Field(default=None, description=description)


class Row(BaseModel):
    """One row of one table."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    _in_short: ClassVar[Sequence[str]] = ()
    """Fields that stand in its ``repr``; none means all."""

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        """A few of the values that are not null: texts are cut, and rows are counted."""
        empty: tuple[Any, ...] = (None, [])
        filled = [name for name, value in self if name != "media" and value not in empty]
        chosen = [name for name in self._in_short if name in filled] or filled
        for name in chosen[:_IN_SHORT]:
            yield name, _Short(getattr(self, name))

    def _repr_html_(self) -> str:
        from adp_schema.notebook import row_html

        return row_html(self)

    def json_value(self, column: str) -> Any:
        """Parse a JSON-text column. Returns None when the column is null.

        Args:
            column: name of a `JsonText` field, such as ``"arguments"`` or ``"extra"``.
        """
        text = getattr(self, column)
        return None if text is None else json.loads(text)


class ToolCall(Row):
    """One call of a tool, function or code interpreter by a step."""

    step: Int32 | None = _field("Index of the step that makes the call.")
    call: Int32 | None = _field("Index of the call within its step, from 0.")
    call_id: str | None = _field("Id, unique in the trajectory; null when the source had none.")
    kind: str | None = _field("function, code, message, gui or mcp.")
    name: str | None = _field("Name of the tool, as the source wrote it.")
    arguments: JsonText | None = _field(
        "Arguments, the characters of the source; null when they are not valid JSON."
    )
    arguments_raw: str | None = _field("Arguments as written, only when they are not valid JSON.")
    arguments_kind: str | None = _field(
        "How the source wrote them: object, json_string, python_literal, dsl, text or invalid."
    )
    language: str | None = _field("Programming language of a code call.")
    requestor: str | None = _field("Who made the call: agent or user; null means agent.")
    origin: str | None = _field("structured or parsed_from_text; null means structured.")
    span_start: Int32 | None = _field("First character of the call in the step's text.")
    span_end: Int32 | None = _field("Character after the call in the step's text.")
    status: str | None = _field("Status that the source recorded, such as completed or rejected.")
    native_id: str | None = _field("The source's own id where it differs from call_id.")
    duration_ms: float | None = _field("Time the call took, in milliseconds.")
    extra: JsonText | None = _field("Everything else the source said about the call.")


class Observation(Row):
    """What came back: the result of a call, or something that the environment said by itself."""

    step: Int32 | None = _field("Index of the step after which it arrived; -1 before the first.")
    order: Int32 | None = _field("Order among the observations that arrived after that step.")
    call_step: Int32 | None = _field("Step of the call that it answers; null when it answers none.")
    call: Int32 | None = _field("Index, within that step, of the call that it answers.")
    call_id: str | None = _field("call_id of the call that it answers.")
    native_call_id: str | None = _field("The call id the source wrote, where it differs.")
    source: str | None = _field("environment, user or agent.")
    name: str | None = _field("Name of the tool or sender, as the source wrote it.")
    text: str | None = _field("The text, whole; parts are joined by a blank line.")
    content: JsonText | None = _field("Ordered parts, when it is more than one text.")
    visible_text: str | None = _field("What the model saw, where that differs from text.")
    is_error: bool | None = _field("True when the source marks it as an error; null when unknown.")
    error_type: str | None = _field("Type of the error.")
    exit_code: Int32 | None = _field("Exit status of a command.")
    truncated: bool | None = _field("True when the source says the text was cut.")
    html: str | None = _field("Page source of a web observation.")
    axtree: str | None = _field("Accessibility tree of a web observation.")
    url: str | None = _field("Address of the page.")
    viewport_width: float | None = _field("Width of the view, in pixels.")
    viewport_height: float | None = _field("Height of the view, in pixels.")
    annotations: JsonText | None = _field("Labelled boxes on an image.")
    structured: JsonText | None = _field("Machine-readable payload beside the text.")
    reward: float | None = _field("Reward given with this observation.")
    subagent: JsonText | None = _field("Reference to the trajectory of a subagent.")
    timestamp: datetime | None = _field("When it arrived, UTC.")
    timestamp_text: str | None = _field("That time as the source wrote it.")
    timestamp_zone_known: bool | None = _field("False when the source gave no time zone.")
    duration_ms: float | None = _field("Time until the result, in milliseconds.")
    extra: JsonText | None = _field("Everything else the source said about it.")


class Step(Row):
    """One turn of the log: a message, a model's turn, an edit of the context, or an event."""

    _in_short = ("step", "source", "kind", "text", "calls", "observations")

    step: Int32 | None = _field("Index of the step, from 0; a branch numbers on from its parent.")
    turn: Int32 | None = _field("Index of the user's turn that it belongs to, from 0.")
    source: str | None = _field("system, user, agent or environment.")
    kind: str | None = _field("message, llm_turn, context_edit or event.")
    actor: str | None = _field("Who it was, where the source says so: agent, expert or a name.")
    text: str | None = _field("The text, whole; parts are joined by a blank line.")
    prose: str | None = _field("The text without the spans that were parsed into calls.")
    content: JsonText | None = _field(
        "Ordered parts, when the step is more than reasoning, text and calls in that order."
    )
    reasoning: str | None = _field("Reasoning of the model, where the source keeps it apart.")
    model: str | None = _field("Model that wrote the step.")
    response_id: str | None = _field("Id of the model's response.")
    native_id: str | None = _field("The source's own id of the record or message.")
    stop_reason: str | None = _field("Why the model stopped.")
    timestamp: datetime | None = _field("When it was written, UTC.")
    timestamp_text: str | None = _field("That time as the source wrote it.")
    timestamp_zone_known: bool | None = _field("False when the source gave no time zone.")
    duration_ms: float | None = _field("Time the step took, in milliseconds.")
    reward: float | None = _field("Reward given for the step.")
    labels: list[str] | None = _field("Set of labels, such as reward categories.")
    loss_weight: float | None = _field("Weight in the training loss; null means the default.")
    is_copied_context: bool | None = _field("True when it repeats earlier context; never trained.")
    synthetic: bool | None = _field("True when a converter or op made it up.")
    visibility: str | None = _field("Who saw it: llm, user, both or none; null means both.")
    parent_step: Int32 | None = _field("Step that it follows in a tree; null means the one before.")
    tokens_in: int | None = _field("Prompt tokens, the cached ones included.")
    tokens_out: int | None = _field("Tokens that the model wrote.")
    tokens_cached: int | None = _field("Prompt tokens that were read from a cache.")
    tokens_cache_write: int | None = _field("Prompt tokens that were written to a cache.")
    tokens_reasoning: int | None = _field("Written tokens that were reasoning.")
    cost_usd: float | None = _field("Cost in US dollars.")
    usage: JsonText | None = _field("The usage record as the source wrote it.")
    prompt_token_ids: list[Int32] | None = _field("Token ids of the prompt, when recorded.")
    completion_token_ids: list[Int32] | None = _field("Token ids that the model wrote.")
    logprobs: list[float] | None = _field("Log probabilities of those tokens, natural logarithm.")
    token_mask: list[Int32] | None = _field("Recorded loss mask of those tokens, 0 or 1.")
    reasoning_effort: str | None = _field("Reasoning effort that was asked for.")
    llm_call_count: Int32 | None = _field("Model calls behind the step; 0 marks a made-up turn.")
    edit_boundary: str | None = _field("Context edit: replace, append or truncate.")
    edit_from: Int32 | None = _field("Context edit: first step of the range that is kept.")
    edit_to: Int32 | None = _field("Context edit: step after the range that is kept.")
    edit_summary: str | None = _field("Context edit: the summary that stands for the rest.")
    made_from_trajectory: str | None = _field("Constructed step: trajectory that it comes from.")
    made_from_step: Int32 | None = _field("Constructed step: step that it comes from.")
    made_by: str | None = _field("Constructed step: the op that made it.")
    extra: JsonText | None = _field("Everything else the source said about the step.")

    calls: list[ToolCall] = Field(default_factory=list, exclude=True)
    observations: list[Observation] = Field(default_factory=list, exclude=True)


class Link(Row):
    """A trajectory refers to another one: a subagent, a continuation, a fork, a compaction."""

    kind: str | None = _field("subagent, continuation, fork or compaction.")
    step: Int32 | None = _field("Step that the link starts from.")
    call: Int32 | None = _field("Call, within that step, that started the other trajectory.")
    target_id: str | None = _field("Id of the other trajectory, in this store or in its source.")
    target_path: str | None = _field("Path of the other trajectory, relative to this one's file.")
    target_session_id: str | None = _field("Session id of the other trajectory.")
    extra: JsonText | None = _field("Everything else the source said about the link.")


class Trajectory(Row):
    """One run of an agent, with its outcome and where it came from."""

    _in_short = ("trajectory_id", "agent_name", "agent_model", "task_id", "success", "reward",
                 "parent_id", "steps")  # fmt: skip

    seq: int | None = _field("Input order; sort and join key of all tables; ordered, not dense.")
    trajectory_id: str | None = _field("dataset/source_id, with #2, #3 on repeats.")
    source_id: str | None = _field("The id that the source gave; null when it gave none.")
    source_format: str | None = _field("Format it was read from.")
    source_version: str | None = _field("Version of that format, as the source declares it.")
    session_id: str | None = _field("Session that it belongs to.")
    dataset: str | None = _field("Name of the data set.")
    split: str | None = _field("Split of the data set, such as train or test.")
    task_id: str | None = _field("Task that it tries to solve; see the tasks table.")
    attempt: Int32 | None = _field("Number of this attempt at the task, from 0.")
    agent_name: str | None = _field("Agent or harness.")
    agent_version: str | None = _field("Version of the agent.")
    agent_model: str | None = _field("Model behind the agent.")
    tools: JsonText | None = _field("Tools on offer: a list in the OpenAI schema style.")
    tools_origin: str | None = _field("recorded, parsed, inferred or builtin.")
    success: bool | None = _field("Whether the task was solved; null when unknown.")
    reward: float | None = _field("Reward of the whole run.")
    rewards: JsonText | None = _field("Named rewards: an object of numbers.")
    terminated: bool | None = _field("True when the run reached an end of its own.")
    truncated: bool | None = _field("True when a limit cut the run.")
    error_type: str | None = _field("Type of the error that ended the run.")
    error_message: str | None = _field("Message of that error.")
    stop_reason: str | None = _field("Why the run stopped, as the source says.")
    final_answer: str | None = _field("The answer that was given.")
    judge: JsonText | None = _field("Verdict of a judge, with its explanation.")
    policy_tool_availability: str | None = _field("Which tools the run was allowed to see.")
    policy_tool_usage: str | None = _field("How the run was told to use its tools.")
    policy_final_answer: str | None = _field("How the run was told to answer.")
    parent_id: str | None = _field("Branch: trajectory that it starts from; null on a main line.")
    parent_step: Int32 | None = _field("Branch: number of the parent's steps that it keeps.")
    branch_kind: str | None = _field(
        "alternate, attempt, subagent, continuation, fork, rewind or revision."
    )
    license: str | None = _field("License of the content.")
    source_url: str | None = _field("Where the data set comes from.")
    may_publish: bool | None = _field("Whether it may be published; null when unknown.")
    tags: list[str] | None = _field("Free labels.")
    started_at: datetime | None = _field("Start of the run, UTC.")
    started_text: str | None = _field("Start as the source wrote it.")
    ended_at: datetime | None = _field("End of the run, UTC.")
    ended_text: str | None = _field("End as the source wrote it.")
    time_zone_known: bool | None = _field("False when the source gave no time zone.")
    notes: str | None = _field("Free text about the run.")
    total_tokens_in: int | None = _field("Prompt tokens of the run, cached ones included.")
    total_tokens_out: int | None = _field("Tokens that the model wrote in the run.")
    total_tokens_cached: int | None = _field("Prompt tokens of the run that came from a cache.")
    total_cost_usd: float | None = _field("Cost of the run in US dollars.")
    final_metrics: JsonText | None = _field("Metrics of the run as the source wrote them.")
    source_file: str | None = _field("Input file, relative to the root of the conversion.")
    source_records: list[int] | None = _field("Numbers of the records it was made from, from 1.")
    source_offsets: list[int] | None = _field("Byte offset of each of those records.")
    source_lengths: list[int] | None = _field("Length in bytes of each of those records.")
    source_hash: str | None = _field("blake2b-128 of the raw records, in hexadecimal.")
    converter: str | None = _field("Converter that read it.")
    converter_version: str | None = _field("Version of that converter.")
    losses: JsonText | None = _field("What could not be kept: a list of {path, reason}.")
    extra: JsonText | None = _field("Everything else the source said about the run.")

    steps: list[Step] = Field(default_factory=list, exclude=True)
    early_observations: list[Observation] = Field(default_factory=list, exclude=True)
    links: list[Link] = Field(default_factory=list, exclude=True)
    media: Mapping[str, Media] = Field(default_factory=dict, exclude=True)
    raw: list[RawRow] = Field(default_factory=list, exclude=True)
    task: Task | None = Field(default=None, exclude=True)
    branches: list[Trajectory] = Field(default_factory=list, exclude=True)
    pairs: list[Pair] = Field(default_factory=list, exclude=True)
    """Preference pairs that name it. An export fills it; they are rows of the store, not of it."""


class Task(Row):
    """What is right, apart from what happened."""

    task_id: str | None = _field("Id of the task.")
    dataset: str | None = _field("Data set that the task belongs to.")
    split: str | None = _field("Split that the task belongs to.")
    instruction: str | None = _field("What the agent is asked to do.")
    turns: JsonText | None = _field(
        "List of {query, gold_answer, raw_answer, was_truncated}, one a turn of the user."
    )
    answers: JsonText | None = _field("Reference answers.")
    expected_calls: JsonText | None = _field("Calls that a right run makes.")
    gold_trajectory: JsonText | None = _field("A right run, as the source wrote it.")
    tests: JsonText | None = _field("Tests that decide about success.")
    environment: str | None = _field("Environment that the task runs in.")
    environment_config: JsonText | None = _field("Configuration of the environment.")
    reward_spec: JsonText | None = _field("How the reward is computed.")
    difficulty: str | None = _field("Difficulty, as the source names it.")
    extra: JsonText | None = _field("Everything else the source said about the task.")


class Media(Row):
    """An image, a sound or another blob, stored once by its hash."""

    media_id: str | None = _field("blake2b-128 of the bytes (of the URI when there are no bytes).")
    mime: str | None = _field("Media type, such as image/png.")
    data: bytes | None = _field("The bytes; null when only a URI is known.")
    uri: str | None = _field("Path or URL, when the bytes are not stored.")
    size: int | None = _field("Number of bytes.")


class Pair(Row):
    """A preference pair, by reference to trajectories and steps."""

    pair_id: str | None = _field("Id of the pair.")
    task_id: str | None = _field("Task that both sides try to solve.")
    context_id: str | None = _field("Trajectory that gives the shared context.")
    context_up_to: Int32 | None = _field("Number of its steps that are context.")
    chosen_id: str | None = _field("Trajectory of the chosen side.")
    chosen_from: Int32 | None = _field("First step of the chosen side.")
    chosen_to: Int32 | None = _field("Step after the last one of the chosen side.")
    rejected_id: str | None = _field("Trajectory of the rejected side.")
    rejected_from: Int32 | None = _field("First step of the rejected side.")
    rejected_to: Int32 | None = _field("Step after the last one of the rejected side.")
    level: str | None = _field("What is compared: trajectory, step or turn.")
    margin: float | None = _field("Score of chosen minus score of rejected.")
    chosen_score: float | None = _field("Score of the chosen side.")
    rejected_score: float | None = _field("Score of the rejected side.")
    scores: JsonText | None = _field("Further scores of both sides.")
    rule: str | None = _field("Rule that made the pair.")
    chosen_mask: str | None = _field("Mask policy of the chosen side.")
    rejected_mask: str | None = _field("Mask policy of the rejected side.")
    extra: JsonText | None = _field("Everything else about the pair.")


class RawRow(Row):
    """A raw record of the source, kept on request."""

    record: int | None = _field("Number of the record in its file, from 1.")
    source_file: str | None = _field("Input file, relative to the root of the conversion.")
    offset: int | None = _field("Byte offset of the record.")
    data: bytes | None = _field("The bytes of the record.")


class Reject(Row):
    """A record that could not be converted, or was skipped, with the reason."""

    seq: int | None = _field("Place of the record in the input order.")
    status: str | None = _field("rejected, or skipped when the format says it is no trajectory.")
    source_file: str | None = _field("Input file, relative to the root of the conversion.")
    record: int | None = _field("Number of the record in its file, from 1.")
    offset: int | None = _field("Byte offset of the record.")
    length: int | None = _field("Length of the record in bytes.")
    path: str | None = _field("JSON path of what is wrong.")
    reason: str | None = _field("What is wrong.")
    source_hash: str | None = _field("blake2b-128 of the raw record, in hexadecimal.")
    data: bytes | None = _field("The first bytes of the record, up to one MiB.")


class SourceFile(Row):
    """An input file of the store: its fingerprint, its form, and what became of its records."""

    source_file: str | None = _field("Path, relative to the root of the conversion.")
    dataset: str | None = _field("Data set that its trajectories were put in.")
    source_format: str | None = _field("Format that it was read as.")
    framing: str | None = _field(
        "How it is cut into records, such as jsonl, json or session; "
        "side, log, index: it belongs to another."
    )
    size: int | None = _field("Size in bytes.")
    fingerprint: str | None = _field("blake2b-128 over its size and the hashes of its records.")
    style: JsonText | None = _field("How it was laid out; used to write it back the same way.")
    records: int | None = _field("Records in the file.")
    used: int | None = _field("Records that became trajectories.")
    skipped: int | None = _field("Records that are no trajectories.")
    rejected: int | None = _field("Records that could not be converted.")
    trajectories: int | None = _field("Trajectories that came out.")
