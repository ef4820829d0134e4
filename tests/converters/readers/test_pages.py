"""Pages of APIs and exports: records in a list of one object, and items of a conversation."""

from __future__ import annotations

import json

import pytest

import adp
from adp.converters.files.listed_records import listed_records
from adp.workflows.doctor import diagnose
from adp_schema.errors import InputError
from tests.converters.readers.samples_store import example
from tests.fuzz.readers import EXAMPLES, example_records

CHAT = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}]}
COMPLETION = {
    "id": "chatcmpl-1", "object": "chat.completion", "created": 1767225600, "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop",
                 "message": {"role": "assistant", "content": "yes"}}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1},
}  # fmt: skip
RESPONSE = {
    "id": "resp_1", "object": "response", "model": "m", "status": "completed",
    "output": [{"id": "msg_1", "type": "message", "role": "assistant",
                "content": [{"type": "output_text", "text": "yes", "annotations": []}]}],
}  # fmt: skip
BATCH = {
    "custom_id": "task-1",
    "result": {"type": "succeeded", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [{"type": "text", "text": "yes"}], "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 1}}},
}  # fmt: skip


def write(tmp_path, value, name="page.json"):
    path = tmp_path / name
    path.write_text(json.dumps(value), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("record", "name"),
    [(CHAT, "openai_chat"), (COMPLETION, "chat_completions"), (RESPONSE, "openai_responses"),
     (BATCH, "anthropic_messages")],
)  # fmt: skip
@pytest.mark.parametrize("wanted", [False, True])
def test_a_page_of_records(tmp_path, record, name, wanted):
    path = write(tmp_path, {"object": "list", "data": [record, record], "has_more": True})
    store = adp.convert([path], str(tmp_path / "store"), format=name if wanted else None)
    counts = store.manifest.counts
    assert (counts.records, counts.used, counts.skipped) == (3, 2, 1)
    rows = store.query("select source_file, framing, source_format from sources").to_pylist()
    assert rows == [{"source_file": "page.json", "framing": "list", "source_format": name}]
    (reject,) = store.query("select data, reason from rejects").to_pylist()
    assert json.loads(reject["data"]) == {"object": "list", "has_more": True}
    assert "beside the list of records, data" in reject["reason"]


def test_runs_of_a_trace_in_a_list_are_read_together(tmp_path):
    files = sorted((EXAMPLES / "langsmith").rglob("*.jsonl"))
    runs = [json.loads(line) for line in files[0].read_text().splitlines() if line]
    whole = adp.convert([str(files[0])], str(tmp_path / "lines"))
    paged = adp.convert([write(tmp_path, {"runs": runs, "next": None})], str(tmp_path / "page"))
    assert paged.manifest.counts.trajectories == whole.manifest.counts.trajectories
    assert paged.manifest.counts.skipped == 1
    count = "select count(*) as n from tool_calls"
    assert paged.query(count).to_pylist() == whole.query(count).to_pylist()


def test_chats_of_a_page_are_written_as_a_list(tmp_path):
    adp.convert([write(tmp_path, {"data": [CHAT, CHAT]})], str(tmp_path / "store"))
    adp.export(str(tmp_path / "store"), "openai_chat", str(tmp_path / "out"))
    (path,) = (tmp_path / "out").rglob("*.json")
    assert json.loads(path.read_text()) == [CHAT, CHAT]


def test_other_lists_are_no_records(tmp_path):
    with pytest.raises(InputError, match="no format recognises it"):
        adp.convert([write(tmp_path, {"data": [{"a": 1}]})], str(tmp_path / "store"))


def test_a_list_on_the_only_line_of_json_lines(tmp_path):
    path = write(tmp_path, [COMPLETION, COMPLETION], "page.jsonl")
    store = adp.convert([path], str(tmp_path / "store"))
    assert store.manifest.counts.used == 2


def test_offsets_lead_to_the_records():
    data = json.dumps({"note": '{"id": 1}', "data": [{"id": 1}, {"id": 1}, {"id": 2}]}).encode()
    listed = listed_records(data)
    assert [data[at : at + len(text)] for at, text in listed.records] == [
        text for _, text in listed.records
    ]
    assert json.loads(listed.rest) == {"note": '{"id": 1}'}
    assert listed_records(b'{"data": [], "data": [{}]}') is None
    assert listed_records(b'{"data": [{}, 1]}') is None


def test_items_are_read_oldest_first():
    rows = example("openai_responses", "items.json")
    kinds = [(row["source"], row.get("text")) for row in rows["steps"]]
    assert kinds == [
        ("user", "Does it rain in Ghent?"), ("agent", None), ("agent", "It is dry in Ghent."),
    ]  # fmt: skip
    (result,) = rows["observations"]
    assert (result["call_step"], result["call"]) == (1, 0)
    (run,) = rows["trajectories"]
    assert json.loads(run["extra"])["order"] == "desc"


def test_items_in_their_order_stay_so(tmp_path):
    (data,) = example_records(EXAMPLES / "openai_responses" / "items.json")
    page = json.loads(data)
    page["data"].reverse()
    (file,) = diagnose([write(tmp_path, page)]).files
    assert (file.format, file.steps, file.calls, file.answered) == ("openai_responses", 3, 1, 1)
