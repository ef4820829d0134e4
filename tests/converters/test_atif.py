"""ATIF: what the rows are, what is wrong, and that edits of the store show in the file."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from adp.converters.atif import CONVERTER
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.protocols import Match
from tests.converters.atif_records import read, record, step, write

CALL = {"tool_call_id": "c", "function_name": "search", "arguments": {"q": 1, "n": 1.0}}
RESULT = {"source_call_id": "c", "content": "found"}


def dump(value) -> bytes:
    return json.dumps(value).encode()


def acting(*results, **keys):
    return step(tool_calls=[CALL], observation={"results": list(results)}, **keys)


# ---- sniff ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (record(step()), Match.STAMP),
        ({"schema_version": "ATIF-v1.0"}, Match.STAMP),
        ({"agent": {}, "steps": [{"source": "user", "message": "x"}]}, Match.SHAPE),
        ({"agent": {}, "steps": [{"source": "user", "step_id": 1}]}, Match.SHAPE),
        ({"steps": [{"source": "user", "message": "x"}]}, Match.NO),
        ({"agent": {}, "steps": []}, Match.NO),
        ({"agent": {}, "steps": ["x"]}, Match.NO),
        ({"agent": {}, "steps": {"source": "user"}}, Match.NO),
        ({"schema_version": "1.5.0", "id": "x", "content": []}, Match.NO),
        ({"messages": []}, Match.NO),
    ],
)
def test_sniff(data, match):
    assert CONVERTER.sniff(jsontext.decode_object(dump(data))) is match


# ---- rows ----------------------------------------------------------------------------------------


def test_steps_calls_and_results():
    run = read(
        dump(
            record(
                step(source="system"),
                step(source="user"),
                acting(RESULT, model_name="m", reasoning_content="r", llm_call_count=0),
            )
        )
    )
    assert [(s.source, s.kind) for s in run.steps] == [
        ("system", "message"),
        ("user", "message"),
        ("agent", "llm_turn"),
    ]
    act = run.steps[2]
    assert (act.model, act.reasoning, act.llm_call_count) == ("m", "r", 0)
    assert act.calls[0].arguments == '{"q": 1, "n": 1.0}'
    (result,) = act.observations
    assert (result.call_step, result.call, result.call_id, result.text) == (2, 0, "c", "found")
    assert (run.source_id, run.session_id, run.source_version) == ("t", "s", "ATIF-v1.7")
    assert (run.agent_name, run.agent_version) == ("a", "1")


def test_results_find_their_calls():
    other = {**CALL, "tool_call_id": "d"}
    run = read(
        dump(
            record(
                step(tool_calls=[CALL]),
                step(
                    tool_calls=[other, CALL],
                    observation={
                        "results": [
                            RESULT,
                            RESULT,
                            {"source_call_id": "d"},
                            {"source_call_id": "gone"},
                            {"source_call_id": None, "content": "x"},
                        ]
                    },
                ),
                step(source="user", observation={"results": [{"content": "y"}]}),
            )
        )
    )
    steps = [(o.call_step, o.call, o.native_call_id) for s in run.steps for o in s.observations]
    assert steps == [
        (1, 1, "c"),
        (1, 1, "c"),
        (1, 0, None),
        (None, None, "gone"),
        (None, None, None),
        (None, None, None),
    ]
    assert {o.call_id for o in run.steps[1].observations[:2]} == {"c#2"}


def test_times():
    run = read(
        dump(
            record(
                step(timestamp="2026-01-02T03:04:05+02:00"),
                step(timestamp="2026-01-02T03:04:05"),
                step(timestamp="soon"),
            )
        )
    )
    first, second, third = run.steps
    assert first.timestamp == datetime(2026, 1, 2, 1, 4, 5, tzinfo=UTC)
    assert (first.timestamp_zone_known, second.timestamp_zone_known) == (True, False)
    assert second.timestamp == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert (third.timestamp, third.timestamp_text) == (None, "soon")


def test_metrics_and_totals():
    metrics = {"prompt_tokens": 5, "cost": 0.5, "completion_token_ids": [1, 2], "logprobs": [-1.5]}
    run = read(
        dump(
            record(
                step(metrics={**metrics, "extra": {"latency": 1}}),
                final_metrics={"total_prompt_tokens": 5, "reward": 1.0},
            )
        )
    )
    (result,) = run.steps
    assert (result.tokens_in, result.cost_usd, result.completion_token_ids) == (5, 0.5, [1, 2])
    assert result.logprobs == [-1.5]
    assert (run.total_tokens_in, run.reward) == (5, 1.0)
    assert json.loads(result.extra)["metrics"] == {"extra": {"latency": 1}}


def test_odd_log_probabilities():
    data = dump(record(step(metrics={"logprobs": [-0.5, float("nan"), float("-inf")]})))
    run = read(data)
    assert [str(value) for value in run.steps[0].logprobs] == ["-0.5", "nan", "-inf"]
    assert write(run) == json.dumps(json.loads(data), separators=(",", ":")).encode()


def test_context_edits():
    run = read(
        dump(
            record(
                step(
                    source="system",
                    observation={"results": [{"content": "short"}, {"content": "er"}]},
                    extra={"context_management": {"type": "compaction", "boundary": "replace"}},
                ),
                step(extra={"context_management": {"boundary": "other"}}),
            )
        )
    )
    edit, odd = run.steps
    assert (edit.kind, edit.edit_boundary, edit.edit_summary) == (
        "context_edit",
        "replace",
        "short\n\ner",
    )
    assert (odd.kind, odd.edit_boundary) == ("context_edit", None)


def test_references_become_links():
    ref = {"trajectory_id": "sub", "trajectory_path": None, "extra": {"a": 1}}
    run = read(
        dump(
            record(
                step(),
                acting({**RESULT, "subagent_trajectory_ref": [ref, {"session_id": "x"}]}),
                continued_trajectory_ref="next.json",
            )
        )
    )
    links = [(x.kind, x.step, x.call, x.target_id, x.target_session_id) for x in run.links]
    assert links == [
        ("subagent", 1, 0, "sub", None),
        ("subagent", 1, 0, None, "x"),
        ("continuation", None, None, None, None),
    ]
    assert run.links[2].target_path == "next.json"
    assert json.loads(run.links[0].extra) == {"extra": {"a": 1}}


def test_pages_come_back_in_columns():
    web = {"html": "<p>", "axtree": None, "url": "u", "viewport_size": [1280, 720]}
    data = dump(record(acting({**RESULT, "extra": {"web": web, "reward": 0.5, "more": 1}})))
    (page,) = read(data).steps[0].observations
    assert (page.html, page.axtree, page.url, page.viewport_width) == ("<p>", None, "u", 1280)
    assert page.reward == 0.5


# ---- wrong records -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ([], "$"),
        ({"schema_version": "ATIF-v1.7"}, "$.steps"),
        (record(steps=None), "$.steps"),
        (record(steps={}), "$.steps"),
        (record(agent=[]), "$.agent"),
        ({**record(), "steps": ["x"]}, "$.steps[0]"),
        ({**record(), "steps": [{}]}, "$.steps[0].source"),
        (record(step(source=1)), "$.steps[0].source"),
        (record(step(tool_calls={})), "$.steps[0].tool_calls"),
        (record(step(), step(tool_calls=[1])), "$.steps[1].tool_calls[0]"),
        (record(step(observation=[])), "$.steps[0].observation"),
        (record(step(observation={"results": 1})), "$.steps[0].observation.results"),
        (record(step(observation={"results": [1]})), "$.steps[0].observation.results[0]"),
        (record(step(), subagent_trajectories=[1]), "$.subagent_trajectories[0]"),
        (record(step(), subagent_trajectories=[{}]), "$.subagent_trajectories[0].steps"),
    ],
)
def test_a_wrong_record_says_where(data, path):
    with pytest.raises(RecordError) as caught:
        read(dump(data))
    assert caught.value.path == path


# ---- edits: a file is written from the columns, not copied ---------------------------------------


def edited(edit, data=None) -> dict:
    """What is written after an edit; everything else must be as it was."""
    source = data or record(step(source="user"), acting(RESULT), step(), notes="n")
    run = read(dump(source))
    assert run.raw == []
    assert json.loads(write(run)) == source
    edit(run)
    return json.loads(write(run))


def test_a_dropped_step_is_gone():
    after = edited(lambda run: run.steps.pop(2))
    assert after == record(step(source="user"), acting(RESULT), notes="n")


def test_a_dropped_first_step_renumbers_the_others():
    after = edited(lambda run: run.steps.pop(0))
    assert after == record(acting(RESULT), step(), notes="n")


def test_a_renamed_tool_shows():
    def rename(run):
        run.steps[1].calls[0].name = "find"

    after = edited(rename)
    call = {**CALL, "function_name": "find"}
    act = step(tool_calls=[call], observation={"results": [RESULT]})
    assert after == record(step(source="user"), act, step(), notes="n")


def test_a_changed_argument_shows():
    def change(run):
        run.steps[0].calls[0].arguments = '{"q": 1.50}'

    run = read(dump(record(acting(RESULT))))
    change(run)
    assert b'"arguments":{"q": 1.50}' in write(run)


@pytest.mark.parametrize("message", ["m", [{"type": "text", "text": "m"}], "\ud83d m"])
def test_a_changed_text_shows(message):
    def change(run):
        run.steps[0].text = "other"

    after = edited(change, record(step(message=message)))
    written = after["steps"][0]["message"]
    assert written == (
        [{"type": "text", "text": "other"}] if isinstance(message, list) else "other"
    )


@pytest.mark.parametrize(
    ("column", "value", "where", "written"),
    [
        ("source_id", "new", ("trajectory_id",), "new"),
        ("session_id", "new", ("session_id",), "new"),
        ("agent_name", "new", ("agent", "name"), "new"),
        ("agent_model", "new", ("agent", "model_name"), "new"),
        ("notes", "new", ("notes",), "new"),
        ("tools", '[{"a": 1}]', ("agent", "tool_definitions"), [{"a": 1}]),
        ("reward", 0.5, ("final_metrics", "reward"), 0.5),
        ("total_tokens_in", 7, ("final_metrics", "total_prompt_tokens"), 7),
        ("success", True, ("extra", "adp", "success"), True),
        ("task_id", "new", ("extra", "adp", "task_id"), "new"),
    ],
)
def test_columns_of_a_run_are_written(column, value, where, written):
    run = read(dump(record(step())))
    setattr(run, column, value)
    after = json.loads(write(run))
    for key in where:
        after = after[key]
    assert after == written
    assert getattr(read(write(run)), column) == value


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("reasoning", "new"),
        ("model", "new"),
        ("reward", 0.5),
        ("loss_weight", 0.25),
        ("labels", ["a", "b"]),
        ("stop_reason", "length"),
        ("tokens_in", 3),
        ("logprobs", [-0.5]),
        ("is_copied_context", True),
        ("llm_call_count", 3),
        ("reasoning_effort", "high"),
        ("kind", "event"),
        ("duration_ms", 2.0),
        ("timestamp", datetime(2026, 1, 2, tzinfo=UTC)),
    ],
)
def test_columns_of_a_step_come_back(column, value):
    run = read(dump(record(step())))
    setattr(run.steps[0], column, value)
    losses = Losses()
    assert getattr(read(write(run, losses)).steps[0], column) == value
    assert losses.items == []


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("name", "tool"),
        ("is_error", True),
        ("exit_code", 2),
        ("html", "<p>"),
        ("viewport_width", 3.0),
        ("structured", '{"a": 1}'),
        ("source", "user"),
        ("subagent", '[{"trajectory_id": "x"}]'),
        ("timestamp", datetime(2026, 1, 2, tzinfo=UTC)),
    ],
)
def test_columns_of_a_result_come_back(column, value):
    run = read(dump(record(acting(RESULT))))
    setattr(run.steps[0].observations[0], column, value)
    losses = Losses()
    assert getattr(read(write(run, losses)).steps[0].observations[0], column) == value
    assert losses.items == []


def test_an_edited_context_edit_is_reported():
    context = {"context_management": {"type": "compaction", "boundary": "replace"}}
    run = read(dump(record(step(source="system", extra=context))))
    run.steps[0].edit_boundary, run.steps[0].edit_summary = "append", "s"
    losses = Losses()
    write(run, losses)
    assert [item["path"] for item in losses.items] == [
        "$.steps[0].edit_boundary",
        "$.steps[0].edit_summary",
    ]


def test_a_new_context_edit_is_written():
    run = read(dump(record(step(source="system"))))
    result = run.steps[0]
    result.kind, result.edit_boundary, result.edit_summary = "context_edit", "replace", "short"
    again = read(write(run)).steps[0]
    assert (again.kind, again.edit_boundary, again.edit_summary) == (
        "context_edit",
        "replace",
        "short",
    )
