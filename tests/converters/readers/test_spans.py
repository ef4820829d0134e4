"""Spans of OTLP, Langfuse and MLflow: each message once, whatever the order of the spans."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import adp
from adp.converters.leaves import Reading
from tests.fuzz.leaves import read_lines

EXAMPLES = Path(__file__).parent / "examples"


def lines(path: Path) -> bytes:
    """A file as its reader gets it."""
    if path.suffix != ".jsonl":
        return path.read_bytes()
    return b"[" + b",\n".join(it for it in path.read_bytes().splitlines() if it) + b"]"


def steps(reading: Reading, kind: str | None = None) -> list[dict]:
    return [row for row in reading.rows["steps"] if kind is None or row["kind"] == kind]


def example(name: str, file: str) -> Reading:
    return read_lines(name, lines(EXAMPLES / name / file))


def test_a_conversation_of_two_traces_is_one_trajectory():
    reading = example("otlp", "conversation.jsonl")
    main, subagent, alternate = reading.rows["trajectories"]
    assert (main["source_id"], main["agent_name"]) == ("conv-1", "counter")
    assert [row["text"] for row in steps(reading, "llm_turn") if row.get("text")] == [
        "49 pears.", "No apples.", "Seven more.", "I see none.", "You are welcome.",
    ]  # fmt: skip
    assert (subagent["branch_kind"], subagent["agent_name"]) == ("subagent", "gardener")
    assert (alternate["branch_kind"], alternate["parent_step"]) == ("alternate", 9)
    (link,) = reading.rows["links"]
    assert (link["kind"], link["step"], link["call"]) == ("subagent", 4, 0)
    assert link["target_id"] == subagent["source_id"]


def test_results_are_there_once_and_paired():
    reading = example("otlp", "conversation.jsonl")
    results = [(row["call_id"], row["text"]) for row in reading.rows["observations"]]
    assert results == [
        ("call_a", "12"),
        ("call_b", '{"pears": 30}'),
        ("call_c", "Seven more."),
    ]
    assert all(row.get("call_step") is not None for row in reading.rows["observations"])


def test_a_turn_says_what_its_span_says():
    turn = steps(example("otlp", "conversation.jsonl"), "llm_turn")[0]
    assert turn["model"] == "m-1-0901"
    assert turn["reasoning"] == "Two places, two calls."
    assert (turn["tokens_in"], turn["tokens_out"], turn["tokens_cached"]) == (41, 20, 3)
    assert (turn["stop_reason"], turn["response_id"]) == ("stop", "resp_41")
    assert (turn["native_id"], turn["duration_ms"]) == ("a000000000000002", 90.0)


def test_a_changed_history_is_an_edit_or_a_branch():
    reading = example("otlp", "conversation.jsonl")
    (edit,) = steps(reading, "context_edit")
    assert edit["edit_boundary"] == "replace"
    assert edit["edit_summary"] == "Summary: 49 pears were counted."


def chat(number: int, prompt: list[str], answer: str, **attributes: object) -> dict:
    """A span as an exporter writes it singly; users and the model speak in turn."""
    messages = [
        {"role": "assistant" if place % 2 else "user", "parts": [{"type": "text", "content": text}]}
        for place, text in enumerate(prompt)
    ]
    reply = [{"role": "assistant", "parts": [{"type": "text", "content": answer}]}]
    return {
        "name": "chat", "trace_id": "t1", "span_id": f"s{number}",
        "start_time": 1790000000 + number,
        "attributes": {"gen_ai.operation.name": "chat", "gen_ai.input.messages": messages,
                       "gen_ai.output.messages": reply, **attributes},
    }  # fmt: skip


def test_a_compacted_context_is_an_edit():
    spans = [
        chat(1, ["Dig"], "Dug."),
        chat(2, ["Dig", "Dug.", "Sow"], "Sown."),
        chat(3, ["All is dug and sown."], "Yes.", **{"gen_ai.conversation.compacted": True}),
        chat(4, ["All is dug and sown.", "Yes.", "Reap"], "Reaped."),
    ]
    reading = read_lines("otlp", json.dumps(spans).encode())
    assert len(reading.rows["trajectories"]) == 1
    rows = [(row["kind"], row.get("text") or row.get("edit_summary")) for row in steps(reading)]
    assert rows == [
        ("message", "Dig"), ("llm_turn", "Dug."), ("message", "Sow"), ("llm_turn", "Sown."),
        ("context_edit", "All is dug and sown."), ("llm_turn", "Yes."), ("message", "Reap"),
        ("llm_turn", "Reaped."),
    ]  # fmt: skip


def test_a_turn_without_content_says_so():
    turn = steps(example("otlp", "conversation.jsonl"), "llm_turn")[-1]
    assert json.loads(turn["extra"])["content"] == "not captured"
    assert (turn.get("text"), turn["tokens_in"]) == (None, 9)


def test_a_span_of_the_client_below_the_span_with_the_messages():
    """The inner span tells nothing of what was said; a call among the blocks stands once."""
    reading = example("otlp", "client_spans.json")
    turns = steps(reading, "llm_turn")
    assert [(row.get("reasoning"), row["text"], row["tokens_in"]) for row in turns] == [
        ("A listing.", "I look.", 110),
        (None, "There is a.txt.", 130),
    ]
    calls = [(row["call_id"], row["name"]) for row in reading.rows["tool_calls"]]
    assert calls == [("toolu_1", "shell")]
    assert [row["text"] for row in reading.rows["observations"]] == ["a.txt"]


def test_conventions():
    reading = example("otlp", "dialects.json")
    by_model = {row["model"]: row for row in steps(reading, "llm_turn")}
    assert by_model["m-5"]["text"] == "Hi."
    assert by_model["m-6"]["text"] == "Watered."
    assert by_model["m-3"]["text"] == "Done."
    names = [row["name"] for row in reading.rows["tool_calls"]]
    assert names == ["ring", "water", "peel"]
    assert [row["text"] for row in reading.rows["observations"]] == ['{"wet": true}', "peeled"]
    tokens = sum(row.get("tokens_in") or 0 for row in steps(reading))
    assert tokens == 25 + 40 + 11 + 20 + 30


def test_the_spans_of_claude_code():
    reading = example("otlp", "no_content.json")
    instruction, turn, _ = steps(reading)
    assert instruction["text"] == "Fix the gate"
    assert (turn["tokens_in"], turn["tokens_cached"], turn["tokens_cache_write"]) == (124, 100, 20)
    assert reading.rows["tool_calls"][0]["name"] == "Bash"
    assert reading.rows["observations"][0]["is_error"] is True


def test_claude_code_keeps_results_in_events():
    call = {"tool_use_id": "toolu_9", "tool_name": "Read", "tool_input": '{"path": "a"}'}
    spans = [
        {"name": "claude_code.llm_request", "trace_id": "t", "span_id": "a",
         "start_time": 1790000001, "attributes": {"input_tokens": 5, "output_tokens": 2}},
        {"name": "claude_code.tool", "trace_id": "t", "span_id": "b", "start_time": 1790000002,
         "attributes": call},
        {"name": "claude_code.tool.execution", "trace_id": "t", "span_id": "c",
         "parent_span_id": "b", "start_time": 1790000003, "attributes": {"success": True},
         "events": [{"name": "tool.output", "attributes": {"content": "A line.", "size": 7}}]},
    ]  # fmt: skip
    reading = read_lines("otlp", json.dumps(spans).encode())
    (result,) = reading.rows["observations"]
    assert (result["call_id"], result["text"]) == ("toolu_9", "A line.")
    assert "not captured" not in str(result["extra"])


@pytest.mark.parametrize("file", ["conversation.jsonl", "dialects.json", "no_content.json"])
def test_the_order_of_the_spans_does_not_matter(file):
    data = json.loads(lines(EXAMPLES / "otlp" / file))
    documents = data if isinstance(data, list) else [data]
    spans = [
        span
        for document in documents
        for resource in document["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    seen = set()
    for number in range(4):
        random.Random(number).shuffle(spans)
        scope = {"scope": {"name": "x"}, "spans": spans}
        record = {"resourceSpans": [{"scopeSpans": [scope]}]}
        rows = read_lines("otlp", json.dumps(record).encode()).rows
        for row in rows["trajectories"]:
            for name in ("trajectory_id", "parent_id", "source_hash"):
                row.pop(name, None)
        tables = ("trajectories", "steps", "tool_calls", "observations")
        hidden = ("seq", "trajectory_id", "source_lengths")
        seen.add(
            repr(
                [
                    {key: value for key, value in row.items() if key not in hidden}
                    for name in tables
                    for row in rows[name]
                ]
            )
        )
    assert len(seen) == 1


def test_langfuse():
    reading = example("langfuse", "trace.json")
    (run,) = reading.rows["trajectories"]
    assert (run["session_id"], run["agent_name"]) == ("sess-1", "gatekeeper")
    assert json.loads(run["rewards"]) == {"correctness": 0.75}
    assert run["tags"] == ["farm", "test"]
    turns = steps(reading, "llm_turn")
    assert [(it["tokens_in"], it["tokens_out"]) for it in turns] == [(50, 8), (61, 5)]
    assert turns[0]["cost_usd"] == 0.003
    (result,) = reading.rows["observations"]
    assert (result["text"], result["call_id"], result["call_step"]) == ("open", "g1", 3)


def test_rows_of_langfuse():
    reading = example("langfuse", "rows.jsonl")
    assert [row["source"] for row in steps(reading)] == [
        "environment", "system", "user", "agent", "agent"]  # fmt: skip
    turn = steps(reading)[-1]
    assert (turn["text"], turn["reasoning"]) == ("Six litres.", "Milked.")
    assert (turn["tokens_in"], turn["tokens_reasoning"], turn["cost_usd"]) == (44, 2, 0.25)
    assert reading.rows["observations"][0]["text"] == "6 litres"


def test_frameworks_in_langfuse():
    """Calls of Vercel's SDK, messages of Anthropic, contents of Gemini, chunks of LangChain."""
    reading = example("langfuse", "frameworks.json")
    turns = steps(reading, "llm_turn")
    assert [(it["native_id"], it.get("text"), it.get("stop_reason")) for it in turns] == [
        ("v11", None, None), ("n10", "I look.", "tool_use"),
        ("n11", "There is a hole.", "end_turn"), ("g10", "Pressed wool.", "STOP"),
        ("l10", "Threads of a moth.", "STOP"),
    ]  # fmt: skip
    tokens = [(it["tokens_in"], it["tokens_out"], it.get("tokens_reasoning")) for it in turns]
    assert tokens == [(31, 12, 5), (25, 8, None), (41, 6, None), (6, 5, 2), (12, 5, None)]
    assert turns[1]["reasoning"] == "A hole?"
    pairs = [(row["call_id"], row["text"]) for row in reading.rows["observations"]]
    assert pairs == [("v1", '{"scarf": "short"}'), ("an1", "a hole")]
    tools = [json.loads(it["tools"])[0]["name"] for it in reading.rows["trajectories"]
             if it.get("tools")]  # fmt: skip
    assert tools == ["knit", "look"]


def test_rows_of_a_bulk_export_of_langsmith():
    """Objects stand in them as text."""
    runs = [json.loads(line) for line in
            (EXAMPLES / "langsmith" / "runs.jsonl").read_text("utf-8").splitlines()]  # fmt: skip
    rows = [
        {key: json.dumps(value) if isinstance(value, dict) else value for key, value in run.items()}
        for run in runs
    ]
    reading = read_lines("langsmith", json.dumps(rows).encode())
    expected = example("langsmith", "runs.jsonl")
    for name in ("text", "model", "tokens_in", "stop_reason"):
        assert [it.get(name) for it in steps(reading)] == [it.get(name) for it in steps(expected)]
    assert reading.rows["observations"][0]["call_id"] == "f1"
    assert reading.rows["trajectories"][0]["session_id"] == "th-1"


def test_a_page_of_the_api_of_langfuse():
    reading = example("langfuse", "page.json")
    assert [(row["kind"], row.get("text")) for row in steps(reading)] == [
        ("message", "Shear it"), ("llm_turn", "Shorn."), ("event", None)]  # fmt: skip
    assert steps(reading, "llm_turn")[0]["cost_usd"] == 0.0003


def test_mlflow():
    reading = example("mlflow", "trace.json")
    (run,) = reading.rows["trajectories"]
    assert (run["session_id"], json.loads(run["rewards"])) == ("bakery", {"crust": 0.5})
    turns = steps(reading, "llm_turn")
    assert [(it.get("text"), it["stop_reason"]) for it in turns] == [
        (None, "tool_calls"), ("Bread.", "stop")]  # fmt: skip
    (result,) = reading.rows["observations"]
    assert (result["text"], result["call_id"]) == ("hot", "h1")
    assert example("mlflow", "version2.json").rows["steps"][-1]["text"] == "Kneaded."


def test_records_of_logs():
    reading = example("otlp", "logs.jsonl")
    runs = {
        row["source_id"][:6] + row["source_id"][-1]: row for row in reading.rows["trajectories"]
    }
    assert list(runs) == ["c000001", "sift-11", "c000003", "c000004", "cc-99"]
    assert json.loads(runs["c000001"]["rewards"]) == {"fineness": 0.625}
    spoken = {}
    for row in steps(reading):
        if row["kind"] != "event":
            spoken.setdefault(row["seq"], []).append((row["source"], row.get("text")))
    assert list(spoken.values()) == [
        [("system", "You grind."), ("user", "Grind the rye."), ("agent", None),
         ("agent", "Two sacks.")],
        [("system", "You sift."), ("user", "Sift it."), ("agent", "Sifted.")],
        [("user", "Sack it."), ("agent", "Sacked.")],
        [("user", "Is it open?"), ("agent", "It is.")],
        [("user", "Mend the wheel"), ("agent", None), ("agent", None)],
    ]  # fmt: skip
    results = [(row["call_id"], row.get("text"), row.get("is_error"), row.get("duration_ms"))
               for row in reading.rows["observations"]]  # fmt: skip
    assert results == [("g7", "two sacks", None, 80.0), ("toolu_3", None, True, 45.0)]
    turns = [it for it in steps(reading, "llm_turn") if it["model"] == "m-33"]
    assert [(it["tokens_in"], it["tokens_out"], it["cost_usd"]) for it in turns] == [
        (934, 61, 0.0125), (936, 9, 0.002)]  # fmt: skip


def test_a_score_is_a_reward_and_an_event_keeps_its_time():
    reading = example("otlp", "logs.jsonl")
    turn = next(it for it in steps(reading) if it.get("native_id") == "c100000000000004")
    events = json.loads(turn["extra"])["events"]
    times = [it["timeUnixNano"][10:13] for it in events]
    assert times == ["201", "202", "203", "204", "299", "300"]


def rows_without_ids(store: str) -> list[list[dict]]:
    sql = "SELECT * EXCLUDE (seq, trajectory_id, extra) FROM {} ORDER BY ALL"
    tables = ("steps", "tool_calls", "observations")
    return [adp.query(store, sql.format(name)).to_pylist() for name in tables]


def frame_row(span: dict) -> dict:
    """A span as a row of Phoenix's data frame: a column for each attribute, keys that are paths."""
    row = {key: span[key] for key in ("name", "span_kind", "parent_id", "start_time", "end_time",
                                      "status_code", "status_message", "events")}  # fmt: skip
    row |= {f"context.{key}": value for key, value in span["context"].items()}
    row |= {f"attributes.{key}": value for key, value in span["attributes"].items()}
    for key in ("input", "output"):
        messages = row.get(f"attributes.llm.{key}_messages", [])
        for number, item in enumerate(messages):
            flat = {f"message.{name}": value for name, value in item["message"].items()}
            for call in flat.get("message.tool_calls", []):
                inner = call.pop("tool_call")
                call |= {"tool_call.id": inner["id"]} | {
                    f"tool_call.function.{name}": value for name, value in inner["function"].items()
                }
            messages[number] = flat
    return row


@pytest.mark.parametrize("form", ["parquet", "documents", "lines"])
def test_spans_of_a_file_are_a_session_however_they_are_laid_out(form, tmp_path):
    spans = json.loads(lines(EXAMPLES / "otlp" / "phoenix.json"))["data"]
    path = tmp_path / ("spans.parquet" if form == "parquet" else "spans.json")
    if form == "parquet":
        rows = [frame_row(span) for span in spans]
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {name: [row.get(name) for row in rows] for name in names}
        pq.write_table(pa.table(columns), path)
    else:
        path.write_text("\n".join(json.dumps(it, indent=2 if form == "documents" else None)
                                  for it in spans))  # fmt: skip
    stores = [str(tmp_path / "frame"), str(tmp_path / "document")]
    manifest = adp.convert([str(path)], stores[0]).manifest
    adp.convert([str(EXAMPLES / "otlp" / "phoenix.json")], stores[1])
    assert manifest.counts.used == manifest.counts.records == 1
    assert rows_without_ids(stores[0]) == rows_without_ids(stores[1])


def test_rows_of_a_data_frame_of_mlflow(tmp_path):
    trace = json.loads((EXAMPLES / "mlflow" / "trace.json").read_text("utf-8"))
    path = tmp_path / "traces.parquet"
    pq.write_table(pa.table({"trace_id": ["tr-1"], "trace": [json.dumps(trace)]}), path)
    stores = [str(tmp_path / "frame"), str(tmp_path / "document")]
    assert adp.convert([str(path)], stores[0]).manifest.counts.used == 1
    adp.convert([str(EXAMPLES / "mlflow" / "trace.json")], stores[1])
    assert rows_without_ids(stores[0]) == rows_without_ids(stores[1])


def test_langsmith():
    reading = example("langsmith", "runs.jsonl")
    (run,) = reading.rows["trajectories"]
    assert run["session_id"] == "th-1"
    turns = steps(reading, "llm_turn")
    assert [(it.get("text"), it.get("tokens_in")) for it in turns] == [(None, 12), ("Done.", 30)]
    (result,) = reading.rows["observations"]
    assert (result["text"], result["call_id"]) == ("fed", "f1")
    (turn,) = steps(example("langsmith", "batch.json"), "llm_turn")
    assert (turn["text"], turn["tokens_in"], turn["tokens_reasoning"]) == ("Cluck cluck.", 8, 1)


def test_a_choice_whose_message_is_a_text_of_json(tmp_path):
    call = {"id": "call-1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    message = {"role": "assistant", "tool_calls": [call]}
    attributes = [
        {"key": "index", "value": {"intValue": "0"}},
        {"key": "message", "value": {"stringValue": json.dumps(message)}},
    ]
    span = {
        "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331",
        "name": "chat m",
        "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000001000000000",
        "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}],
        "events": [{"name": "gen_ai.choice", "timeUnixNano": "1700000000500000000",
                    "attributes": attributes}],
    }  # fmt: skip
    trace = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": [span]}]}]}
    (tmp_path / "trace.json").write_text(json.dumps(trace))
    adp.convert([str(tmp_path / "trace.json")], str(tmp_path / "store"))
    assert adp.query(str(tmp_path / "store"), "select name from calls").to_pylist() == [
        {"name": "look"}
    ]
