"""What APIs, traces and evaluation logs look like when they are written, and who takes them."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from adp.converters.registry import BUILTIN, formats
from adp_schema.builder import Origin, RowBuilder
from adp_schema.losses import Losses
from adp_schema.media import media_of_bytes
from adp_schema.model import Media, Trajectory
from adp_schema.parts import Parts
from adp_schema.reader import assemble, to_models
from tests.converters.test_edits import runs_of
from tests.fuzz.readers import example_files, example_records
from tests.roundtrip import read_one, write_one

SCHEMAS = Path(__file__).parents[3].parent / "shared" / "data" / "formats" / "otel_genai"
TOOLS = '[{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}}]'  # noqa: E501


def built(**columns: Any) -> Trajectory:
    """A run with calls side by side, an error, an image, reasoning with a signature, tokens."""
    builder = RowBuilder()
    builder.begin(Origin(0, "d", {"source_format": "other"}))
    builder.trajectory({"source_id": "run", "session_id": "s", "agent_name": "a",
                        "agent_model": "m-1", "tools": TOOLS, **columns})  # fmt: skip
    builder.step({"source": "system", "kind": "message", "text": "Be brief."})
    parts = Parts()
    parts.text("Look.")
    parts.media(builder.media(media_of_bytes(b"\x89PNG", "image/png")))
    builder.step({"source": "user", "kind": "message", **parts.columns()})
    builder.step({"source": "environment", "kind": "event", "visibility": "none"})
    parts = Parts()
    parts.reasoning("Hm.", {"signature": "c2ln"})
    parts.text("I look.")
    for number in (0, 1):
        parts.call(number)
    time = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    builder.step({"source": "agent", "kind": "llm_turn", "timestamp": time, "duration_ms": 250.0,
                  "tokens_in": 9, "tokens_out": 4, **parts.columns()})  # fmt: skip
    for number, at in enumerate("xy"):
        builder.call({"kind": "function", "name": "look", "call_id": f"c{number}",
                      "arguments": f'{{"at": "{at}"}}', "arguments_kind": "object"})  # fmt: skip
    builder.observation({"source": "environment", "text": "no y", "is_error": True}, answers="c1")
    builder.observation({"source": "environment", "text": "an x"}, answers="c0")
    builder.step({"source": "agent", "kind": "llm_turn", "text": "An x.", "model": "m-2",
                  "stop_reason": "end_turn", "response_id": "r-1", "tokens_in": 20,
                  "tokens_out": 3, "tokens_cached": 9, "cost_usd": 0.5})  # fmt: skip
    builder.finish()
    tables = builder.tables()
    media = {blob.media_id or "": blob for blob in to_models(tables["media"], Media)}
    (run,) = assemble(tables["trajectories"], tables, media)
    return run


def written(name: str, run: Trajectory) -> tuple[Any, list[str]]:
    losses = Losses()
    record = json.loads(write_one(formats.get(name), run, losses))
    return record, [item["path"] for item in losses.items]


def test_a_request_with_its_last_reply():
    record, losses = written("anthropic_messages", built())
    request, reply = record["request"], record["response"]
    assert (record["id"], record["session_id"], request["model"]) == ("run", "s", "m-1")
    assert request["system"] == "Be brief."
    assert [it["role"] for it in request["messages"]] == ["user", "assistant", "user"]
    thought, text, first, second = request["messages"][1]["content"]
    assert (thought["signature"], text["text"]) == ("c2ln", "I look.")
    assert [it["input"] for it in (first, second)] == [{"at": "x"}, {"at": "y"}]
    results = request["messages"][2]["content"]
    assert [it["tool_use_id"] for it in results] == ["c1", "c0"]
    assert results[0]["is_error"] is True
    assert request["tools"][0]["input_schema"]["properties"] == {"at": {"type": "string"}}
    assert (reply["id"], reply["model"], reply["stop_reason"]) == ("r-1", "m-2", "end_turn")
    assert reply["usage"] == {
        "input_tokens": 11, "output_tokens": 3, "cache_read_input_tokens": 9}  # fmt: skip
    # Of a turn that is part of the request the API keeps no tokens, and an event is no message.
    assert {"$.steps[3].tokens_in", "$.steps[2].kind", "$.steps[4].cost_usd"} <= set(losses)


def test_items_and_a_stored_response():
    record, _ = written("openai_responses", built())
    items, response = record["request"]["input"], record["response"]
    assert [item["type"] for item in items] == [
        "message", "message", "reasoning", "message", "function_call", "function_call",
        "function_call_output", "function_call_output",
    ]  # fmt: skip
    assert [part["type"] for part in items[1]["content"]] == ["input_text", "input_image"]
    assert items[4]["arguments"] == '{"at": "x"}'
    assert items[6] == {"type": "function_call_output", "call_id": "c1", "output": "no y",
                        "status": "incomplete"}  # fmt: skip
    assert response["output"][0]["content"][0]["text"] == "An x."
    assert response["usage"]["input_tokens_details"]["cached_tokens"] == 9
    assert response["tools"] == record["request"]["tools"]


def test_free_text_keeps_its_characters_as_input_of_a_custom_tool():
    run = built()
    call = run.steps[3].calls[0]
    call.arguments, call.arguments_raw, call.arguments_kind = None, "*** Begin", "text"
    record, _ = written("openai_responses", run)
    call_item = record["request"]["input"][4]
    assert (call_item["type"], call_item["input"]) == ("custom_tool_call", "*** Begin")
    assert record["request"]["input"][7]["type"] == "custom_tool_call_output"
    record, losses = written("anthropic_messages", run)
    assert record["request"]["messages"][1]["content"][2]["input"] == {"input": "*** Begin"}
    assert "$.steps[3].calls[0].arguments_raw" in losses


def spans_of(run: Trajectory) -> list[dict[str, Any]]:
    ((line,), _) = written("otlp", run)
    (resource,) = line["resourceSpans"]
    spans = resource["scopeSpans"][0]["spans"]
    for span in spans:
        values = {it["key"]: next(iter(it["value"].values())) for it in span["attributes"]}
        span["attributes"] = values
    return list(spans)


def test_a_trace_has_a_span_for_each_turn_and_result():
    root, turn, failed, look, last = spans = spans_of(built(error_message="it broke"))
    operations = [span["attributes"]["gen_ai.operation.name"] for span in spans]
    assert operations == ["invoke_agent", "chat", "execute_tool", "execute_tool", "chat"]
    assert len({span["spanId"] for span in spans}) == len(spans)
    assert {span.get("parentSpanId") for span in spans} == {None, root["spanId"]}
    starts = [int(span["startTimeUnixNano"]) for span in spans[1:]]
    assert starts == sorted(set(starts))
    assert int(turn["endTimeUnixNano"]) - starts[0] == 250_000_000
    assert (root["status"]["message"], failed["status"]) == ("it broke", {"code": 2})
    assert look["attributes"]["gen_ai.tool.call.result"] == "an x"
    before = json.loads(last["attributes"]["gen_ai.input.messages"])
    assert [it["role"] for it in before] == ["user", "assistant", "tool", "tool"]
    assert last["attributes"]["gen_ai.usage.input_tokens"] == "20"
    assert last["attributes"]["gen_ai.system_instructions"].startswith('[{"type":"text"')


def test_a_run_without_times_has_spans_without_times():
    run = built()
    for step in run.steps:
        step.timestamp = None
    assert not any("startTimeUnixNano" in span for span in spans_of(run))
    (back,) = read_one(formats.get("otlp"), write_one(formats.get("otlp"), run))
    assert back.started_at is None
    assert [it.text for it in back.steps if it.source == "agent"] == ["I look.", "An x."]


def test_named_rewards_are_results_of_evaluations():
    run = built(rewards='{"tests": 0.5, "style": 1, "note": "x"}')
    losses = Losses()
    (back,) = read_one(formats.get("otlp"), write_one(formats.get("otlp"), run, losses))
    assert back.json_value("rewards") == {"tests": 0.5, "style": 1.0}
    assert "$.rewards.note" in [item["path"] for item in losses.items]


def test_a_log_with_scores_and_a_pool():
    columns = {"success": True, "reward": 0.5, "rewards": '{"tests": 0.5}', "final_answer": "x"}
    log, losses = written("inspect", built(**columns, task_id="sums/one", truncated=True))
    (sample,) = log["samples"]
    assert (log["eval"]["task"], sample["id"], sample["epoch"]) == ("sums", "one", 1)
    assert sample["scores"]["success"] == {"value": "C", "answer": "x"}
    assert sample["scores"]["tests"] == {"value": 0.5}
    assert "$.reward" in losses
    assert sample["limit"]["type"] == "custom"
    models = [it for it in sample["events"] if it["event"] == "model"]
    assert [it["input_refs"] for it in models] == [[[0, 2]], [[0, 5]]]
    assert len(sample["events_data"]["messages"]) == 5
    assert models[1]["output"]["usage"]["input_tokens_cache_read"] == 9
    assert sample["model_usage"]["m-1"]["input_tokens"] == 29  # of both turns
    errors = [it["error"]["type"] for it in sample["messages"] if "error" in it]
    assert errors == ["unknown"]


# ---- what the owners of the formats say --------------------------------------------------------


if folder := os.environ.get("ADP_APIS"):
    sys.path.append(folder)  # `make api-tests`: packages that this project does not need
ASK = "make api-tests asks it"


def everything() -> list[Trajectory]:
    """The runs of all examples that are sessions, and of every format that is written."""
    runs = [built(), *(run for name in sorted(BUILTIN) for run in runs_of(name))]
    for name in ("pi", "claude_code", "codex", "gemini_cli", "cline"):
        records = [data for path in example_files(name) for data in example_records(path)]
        runs += [run for data in records for run in read_one(formats.get(name), data)]
    return runs


def test_anthropic_takes_it():
    types = pytest.importorskip("anthropic.types", reason=ASK)
    from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
    from pydantic import TypeAdapter

    request = TypeAdapter(MessageCreateParamsNonStreaming)
    message, block = TypeAdapter(types.MessageParam), TypeAdapter(types.ContentBlockParam)
    tool, reply = TypeAdapter(types.ToolUnionParam), TypeAdapter(types.Message)
    for run in everything():
        record, _ = written("anthropic_messages", run)
        request.validate_python(record["request"])
        for item in record["request"]["messages"]:
            message.validate_python(item)
            for part in item["content"] if isinstance(item["content"], list) else ():
                block.validate_python(part)
        for item in record["request"].get("tools", ()):
            tool.validate_python(item)
        if "response" in record:
            reply.validate_python(record["response"])


def test_openai_takes_it():
    types = pytest.importorskip("openai.types.responses", reason=ASK)
    from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
    from pydantic import TypeAdapter

    request, item = (
        TypeAdapter(ResponseCreateParamsNonStreaming),
        TypeAdapter(types.ResponseInputItemParam),
    )
    tool, reply = TypeAdapter(types.ToolParam), TypeAdapter(types.Response)
    for run in everything():
        record, _ = written("openai_responses", run)
        request.validate_python(record["request"])
        for value in record["request"]["input"]:
            item.validate_python(value)
        for value in record["request"].get("tools", ()):
            tool.validate_python(value)
        if "response" in record:
            reply.validate_python(record["response"])


def test_inspect_opens_it(tmp_path):
    log = pytest.importorskip("inspect_ai.log", reason=ASK)
    for number, run in enumerate(everything()):
        name = f"2026-01-02T03-04-05+00-00_{number}.json"
        (tmp_path / name).write_bytes(write_one(formats.get("inspect"), run))
        (sample,) = log.read_eval_log(str(tmp_path / name)).samples
        turns = [event for event in sample.events if event.event == "model"]
        assert all(len(event.input) < len(sample.messages) for event in turns)
    assert len(log.list_eval_logs(str(tmp_path))) == len(everything())


def test_the_collector_parses_it():
    trace = pytest.importorskip("opentelemetry.proto.trace.v1.trace_pb2", reason=ASK)
    from google.protobuf import json_format

    for run in everything():
        ((line,), _) = written("otlp", run)
        assert json_format.Parse(json.dumps(line), trace.TracesData()).resource_spans


def test_messages_of_spans_follow_the_conventions():
    if not SCHEMAS.exists():
        pytest.skip("the schemas of the conventions are not here")
    names = {
        f"gen_ai.{key.replace('-', '.', 1)}".replace("system.", "system_"): json.loads(
            (SCHEMAS / f"schema_gen-ai-{key}.json").read_text()
        )
        for key in ("input-messages", "output-messages", "system-instructions", "tool-definitions")
    }
    checked = 0
    for span in (span for run in everything() for span in spans_of(run)):
        for key in span["attributes"].keys() & names.keys():
            values = json.loads(span["attributes"][key])
            assert list(Draft202012Validator(names[key]).iter_errors(values)) == []
            checked += 1
    assert checked > 20
