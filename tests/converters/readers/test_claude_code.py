"""Claude Code: what the examples mean, and that real files lose and double nothing."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import adp
from adp.converters.leaves import read_records
from adp.converters.registry import formats
from adp_schema import jsontext
from adp_schema.protocols import Match
from tests import samples
from tests.fuzz.leaves import read_lines

EXAMPLES = Path(__file__).parent / "examples"
SESSION = "7d0c0000-0000-4000-8000-000000000001"
DATA = samples.ROOT
REAL = [
    path
    for folder in ("formats/claude_code", "formats_new/claude_code")
    for path in sorted((DATA / folder).rglob("*.json*"))
    if path.name != "journal.jsonl" and not path.name.endswith(".meta.json")
    and path.parent.name != "workflows"
]  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    out = tmp_path_factory.mktemp("claude") / "store"
    return adp.convert([str(EXAMPLES / "claude_code")], str(out))


def rows(store, sql: str) -> list[dict[str, Any]]:
    return store.query(sql).to_pylist()


def steps(store, trajectory: str = SESSION) -> list[dict[str, Any]]:
    sql = f"SELECT * FROM steps WHERE trajectory_id LIKE '%/{trajectory}' ORDER BY seq, step"
    return rows(store, sql)


def test_the_system_prompt_and_the_tools_are_recorded_once(store):
    first = steps(store)[0]
    assert (first["source"], first["kind"]) == ("system", "message")
    assert first["text"] == "You help at the mill.\n\n# Tone\nBe brief."
    assert [it["source"] for it in steps(store)].count("system") == 2  # and the compaction
    run = rows(store, f"SELECT * FROM trajectories WHERE source_id = '{SESSION}'")[0]
    assert [tool["name"] for tool in json.loads(run["tools"])] == [
        "Bash",
        "Agent",
        "mcp__mill__open",
    ]
    assert run["tools_origin"] == "recorded"
    assert (run["agent_version"], run["agent_model"]) == ("2.1.290", "claude-opus-9")
    assert (run["error_type"], run["total_cost_usd"]) == ("server_error", 0.5)


def test_blocks_of_a_response_are_one_turn_with_one_usage(store):
    turn = next(it for it in steps(store) if it["response_id"] == "msg_1")
    assert (turn["reasoning"], turn["text"]) == (
        "Look at the water first.",
        "I look at two things.",
    )
    # The iterations of an adviser are not in the outer numbers.
    assert (turn["tokens_in"], turn["tokens_out"], turn["tokens_reasoning"]) == (2134, 70, 20)
    assert (turn["stop_reason"], turn["reasoning_effort"]) == ("tool_use", "high")
    calls = rows(store, f"SELECT * FROM tool_calls WHERE call_id IN ('toolu_1', 'toolu_2')"
                        f" AND trajectory_id LIKE '%/{SESSION}' ORDER BY call")  # fmt: skip
    assert [(it["step"], it["call"]) for it in calls] == [(turn["step"], 0), (turn["step"], 1)]


def test_results(store):
    by_call = {it["call_id"]: it for it in rows(store, "SELECT * FROM observations")}
    assert by_call["toolu_1"]["truncated"] is True
    assert json.loads(by_call["toolu_1"]["structured"])["persistedOutputSize"] == 64123
    assert by_call["toolu_2"]["duration_ms"] == 4200
    assert (by_call["toolu_3"]["is_error"], by_call["toolu_3"]["exit_code"]) == (True, 3)
    assert by_call["toolu_4"]["error_type"] == "user-rejected"
    assert by_call["toolu_q1"]["exit_code"] == 0
    assert None not in by_call  # each answers a call


def test_rewinds_and_retries_are_branches_but_parallel_results_are_not(store):
    result_rows = rows(
        store,
        "SELECT b.branch_kind, b.parent_step, s.native_id FROM all_trajectories b JOIN steps s"
        " ON s.seq = b.seq AND s.step = b.parent_step JOIN trajectories t"
        f" ON t.trajectory_id = b.parent_id WHERE t.source_id = '{SESSION}' ORDER BY b.seq",
    )
    assert [(it["branch_kind"], it["native_id"]) for it in result_rows] == [
        ("rewind", "r17"),
        ("alternate", "r21"),
    ]
    kept = [it["native_id"] for it in steps(store)[: result_rows[1]["parent_step"]]]
    assert kept[-2:] == ["r19", "r20"]


def test_what_was_taken_back_or_made_up_is_not_trained_on(store):
    every = {it["native_id"]: it for it in rows(store, "SELECT * FROM steps")}
    assert (every["r21"]["loss_weight"], every["r21"]["labels"]) == (0.0, ["retracted"])
    assert (every["r30"]["loss_weight"], every["r30"]["kind"]) == (0.0, "message")
    assert every["r27"]["synthetic"] is True
    assert (every["r28"]["synthetic"], every["r28"]["actor"]) == (True, "task-notification")
    assert (every["r04"]["source"], every["r04"]["synthetic"]) == ("user", True)
    assert (every["r20"]["source"], every["r20"]["text"]) == ("user", "And be quick.")


def test_a_compaction_has_its_summary_and_what_it_keeps(store):
    every = {it["native_id"]: it for it in steps(store)}
    edit = every["r24"]
    assert (edit["kind"], edit["edit_boundary"]) == ("context_edit", "replace")
    assert edit["edit_summary"].startswith("Low water")
    assert edit["edit_from"] == every["r19"]["step"]
    assert edit["edit_to"] == every["r22"]["step"] + 1
    assert "r25" not in every  # its text is not told twice


def test_links(store):
    result_rows = rows(store, "SELECT t.source_id, l.kind, l.target_id, l.step, l.call FROM links l"
                        " JOIN trajectories t ON t.seq = l.seq ORDER BY l.seq")  # fmt: skip
    links = {(it["source_id"], it["kind"], it["target_id"]): it for it in result_rows}
    assert set(links) == {
        (SESSION, "subagent", f"{SESSION}/agent-b0b1"),
        (SESSION, "continuation", SESSION[:-1] + "2"),
        (SESSION[:-1] + "3", "fork", SESSION),
    }
    started = links[SESSION, "subagent", f"{SESSION}/agent-b0b1"]
    assert steps(store)[started["step"]]["response_id"] == "msg_1"
    assert started["call"] == 1
    agent = rows(store, "SELECT * FROM trajectories WHERE source_id LIKE '%agent-b0b1'")[0]
    extra = json.loads(agent["extra"])
    assert (agent["session_id"], extra["parent_source_id"]) == (SESSION, SESSION)
    assert extra["meta"]["toolUseId"] == "toolu_2"


def test_copies_of_a_fork_are_marked_and_count_no_tokens(store):
    result_rows = steps(store, SESSION[:-1] + "3")
    assert [it["is_copied_context"] for it in result_rows] == [True, True, None, None]
    assert [it["tokens_out"] for it in result_rows] == [None, None, None, 1]
    assert result_rows[1]["usage"] is not None


def test_sidechains_between_the_lines_of_an_old_session_are_subagents(store):
    result_rows = rows(store, "SELECT b.branch_kind AS kind, s.text AS text FROM all_trajectories b"
                        " JOIN steps s ON s.seq = b.seq WHERE b.branch_kind = 'subagent'"
                        " ORDER BY s.seq, s.step")  # fmt: skip
    texts = [it["text"] for it in result_rows]
    assert texts == ["Count the east side", None, "Count the west side", "West: 5"]
    turns = steps(store, "01d00000-0000-4000-8000-000000000001")
    assert [it["text"] for it in turns] == [
        None, "How many hens?", "Two of us count the hens.", "Nine.",
    ]  # fmt: skip
    assert (turns[2]["cost_usd"], turns[2]["duration_ms"]) == (0.25, 900)


def test_a_record_that_nobody_knows_is_kept_and_counted(tmp_path):
    path = tmp_path / "a.jsonl"
    base = {"sessionId": "s", "uuid": "u", "isSidechain": False}
    lines = [
        {**base, "type": "user", "message": {"role": "user", "content": "Hi."}},
        {**base, "type": "never-seen", "value": 7},
        {**base, "type": "attachment", "attachment": {"type": "new_thing", "value": 8}},
        {**base, "type": "system", "subtype": "new_note", "content": "Ho."},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    store = adp.convert([str(path)], str(tmp_path / "store"))
    kinds = {name.split(": ", 1)[1] for name in store.manifest.unknown}
    assert kinds == {
        "record type never-seen", "attachment type new_thing", "system subtype new_note",
    }  # fmt: skip
    assert [it["kind"] for it in rows(store, "SELECT kind FROM steps")].count("event") == 3


def test_words_in_an_output_make_no_link():
    line = {"type": "user", "sessionId": "s", "uuid": "u", "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t", "content": "agentId: abc"}]},
        "toolUseResult": {"stdout": "agentId: abc"}}  # fmt: skip
    assert read_lines("claude_code", json.dumps([line]).encode()).rows["links"] == []


def test_reasoning_inside_a_result_is_kept():
    line = {"type": "user", "sessionId": "s", "uuid": "u", "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t", "content": [
            {"type": "thinking", "thinking": "Hm."},
            {"type": "text", "text": "Done."}]}]}}  # fmt: skip
    (row,) = read_lines("claude_code", json.dumps([line]).encode()).rows["observations"]
    assert row["text"] == "Done."
    assert json.loads(row["content"])[0]["value"]["thinking"] == "Hm."


def test_files_of_other_agents_that_write_such_records_are_left_to_them():
    sniff = formats.get("claude_code").sniff
    base = {"uuid": "u", "parentUuid": None, "sessionId": "s", "type": "user"}
    for more, match in (
        ({"isSidechain": False, "message": {"role": "user", "content": "Hi."}}, Match.STAMP),
        ({"message": {"role": "user", "content": "Hi."}}, Match.SHAPE),
        ({"message": {"role": "user", "parts": [{"text": "Hi."}]}}, Match.NO),
        ({"type": "system", "systemPayload": {}}, Match.NO),
    ):
        assert sniff(jsontext.decode_object(json.dumps({**base, **more}).encode())) is match


def test_a_circle_of_parents_ends():
    lines = [
        {"type": "user", "sessionId": "s", "uuid": name, "parentUuid": parent,
         "message": {"role": "user", "content": name}}
        for name, parent in (("a", "c"), ("b", "a"), ("c", "b"))
    ]  # fmt: skip
    result_rows = read_lines("claude_code", json.dumps(lines).encode()).rows["steps"]
    assert [it["text"] for it in result_rows] == ["a", "b", "c"]


# ---- real files -------------------------------------------------------------------------------


def records_of(path: Path) -> list[dict[str, Any]]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return list(json.loads(text)["loglines"])
    result_rows = []
    for line in text.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            result_rows.append(value)
    return result_rows


def walk(records: list[dict[str, Any]]) -> Counter[str]:
    """Counts of the raw records, each message of a response and its usage once."""
    counts: Counter[str] = Counter()
    seen: set[str] = set()
    usage: dict[str, int] = {}
    for number, record in enumerate(records):
        message = record.get("message")
        if not isinstance(message, dict):
            continue
        text = json.dumps([record.get("uuid"), message])
        if record.get("uuid") and text in seen:
            continue
        seen.add(text)
        content = message.get("content")
        for block in content if isinstance(content, list) else []:
            kind = block.get("type") if isinstance(block, dict) else None
            counts["calls"] += kind == "tool_use"
            counts["results"] += kind == "tool_result"
        if (record.get("type") or message.get("role")) == "assistant":
            usage.setdefault(message.get("id") or str(number), 0)
            if message.get("usage"):
                usage[message.get("id") or str(number)] = message["usage"]["output_tokens"]
    counts["turns"], counts["tokens"] = len(usage), sum(usage.values())
    return counts


@pytest.mark.skipif(not REAL, reason="the real files of Claude Code are not on this machine")
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name[:40])
def test_real_files_keep_every_call_result_and_token(path):
    data = b"[" + b",\n".join(it for it in path.read_bytes().splitlines() if it.strip()) + b"]"
    if path.suffix == ".json":
        data = path.read_bytes()
    result_rows = read_records(formats.get("claude_code"), [data]).rows
    copied = {(it["seq"], it["step"]) for it in result_rows["steps"] if it["is_copied_context"]}
    turns = [it for it in result_rows["steps"] if it["source"] == "agent"
             and (it["seq"], it["step"]) not in copied]  # fmt: skip
    raw = walk(records_of(path))
    calls = [it for it in result_rows["tool_calls"] if (it["seq"], it["step"]) not in copied]
    assert len(calls) == raw["calls"]
    assert len(result_rows["observations"]) >= raw["results"]
    assert len(turns) == raw["turns"]
    assert sum(it["tokens_out"] or 0 for it in turns) == raw["tokens"]
