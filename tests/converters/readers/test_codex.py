"""Codex: what events add, which calls there are, what is repeated, how files hang together."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import adp
from adp.converters.framing import lines_as_array
from tests import samples
from tests.converters.readers.test_readers import EXAMPLES
from tests.fuzz.leaves import read_lines

FOLDER = EXAMPLES / "codex"
REAL = samples.ROOT
SESSION = REAL / "formats/codex/teich_example_codex_session.jsonl"
PAGINATED = REAL / "formats_new/codex/constructed_paginated_a"
needs_samples = pytest.mark.skipif(not SESSION.is_file(), reason="the sample files are not here")


def rows(path: Path) -> dict[str, list[dict]]:
    data = path.read_bytes()
    return read_lines("codex", lines_as_array(data) if path.suffix == ".jsonl" else data).rows


def example(name: str) -> dict[str, list[dict]]:
    return rows(FOLDER / name)


def of_text(read: dict, text: str) -> list[dict]:
    return [row for row in read["steps"] if row.get("text") == text]


def named(read: dict, name: str) -> tuple[dict, list[dict]]:
    """The only call of a name, and its results."""
    [call] = [row for row in read["tool_calls"] if row["name"] == name]
    key = (call["step"], call["call"])
    return call, [it for it in read["observations"] if (it.get("call_step"), it.get("call")) == key]


def test_the_items_of_one_call_of_the_model_are_one_step_and_its_usage_stands_once():
    read = example("classic.jsonl")
    agent = [row for row in read["steps"] if row["source"] == "agent"]
    assert [row.get("tokens_in") for row in agent] == [1000, 1500, 2000, 2500]
    assert sum(row["tokens_out"] for row in agent) == 150
    first = agent[0]
    assert (first["model"], first["reasoning_effort"]) == ("gpt-kite", "high")
    assert first["reasoning"] == "**Looking at the tail**"
    assert first["text"] == "I look at the tail first."
    calls = Counter(row["step"] for row in read["tool_calls"])
    assert calls[first["step"]] == 2
    trajectory = read["trajectories"][0]
    assert (trajectory["total_tokens_in"], trajectory["total_tokens_out"]) == (7000, 150)
    assert trajectory["tools_origin"] == "recorded"


def test_echoes_are_not_counted_twice_and_what_only_they_say_is_kept():
    read = example("classic.jsonl")
    assert len(of_text(read, "I look at the tail first.")) == 1
    [user] = [row for row in read["steps"] if row.get("text") == "Make the kite fly"]
    assert user.get("synthetic") is None
    [last] = [row for row in read["steps"] if "The kite flies." in (row.get("text") or "")]
    assert "It flies, says the event alone." in last["text"]
    [context] = [row for row in read["steps"] if "<environment_context>" in (row.get("text") or "")]
    assert context["synthetic"] is True


def test_events_give_results_their_exit_codes_errors_and_durations():
    read = example("classic.jsonl")
    _, [result] = named(read, "exec_command")
    assert (result["exit_code"], result["is_error"]) == (0, False)
    assert json.loads(result["structured"])["stdout"] == "ribbon\n"
    call, [failed] = named(read, "shell")
    assert call["arguments_kind"] == "invalid"
    assert (failed["exit_code"], failed["duration_ms"]) == (127, 250.0)
    patch, [patched] = named(read, "apply_patch")
    assert patch["arguments_kind"] == "text"
    assert patched["is_error"] is False
    assert len(read["media"]) == 1  # the picture of the user and of the result is the same one
    _, [wind] = named(read, "mcp__weather__wind")
    assert wind["is_error"] is True
    lone, [rain] = named(read, "rain")
    assert (lone["kind"], rain["text"]) == ("mcp", "dry")
    assert len(named(read, "web_search")[1]) == 1


def test_a_subagent_is_linked_from_the_call_that_started_it():
    read = example("classic.jsonl")
    call, _ = named(read, "spawn_agent")
    [link] = read["links"]
    assert link["kind"] == "subagent"
    assert link["target_id"] == "0195a000-2222-7000-8000-000000000002"
    assert (link["step"], link["call"]) == (call["step"], call["call"])


def test_completed_items_become_results_events_inside_a_call_or_calls():
    read = example("paginated.jsonl")
    names = [row["name"] for row in read["tool_calls"]]
    assert names == ["exec", "exec_command", "FileChange", "lookup", "web_search"]
    assert len(read["observations"]) == 5
    _, [moon] = named(read, "exec_command")
    assert (moon["text"], moon["exit_code"]) == ("full\n", 0)
    [child] = [row for row in read["steps"] if row.get("native_id") == "exec-0001"]
    assert (child["kind"], child["visibility"], child["text"]) == ("event", "none", "no moon\n")
    assert json.loads(child["extra"])["call_id"] == "call_a"
    agent = [row for row in read["steps"] if row["source"] == "agent"]
    assert [row.get("tokens_in") for row in agent] == [1200, 1300, None, 1500, None]
    assert agent[0]["response_id"] == "resp_1"
    assert agent[0]["tokens_cache_write"] == 50
    assert read["trajectories"][0]["error_type"] == "usage_limit_exceeded"


def test_the_kinds_of_items_tell_prompts_from_what_was_put_in():
    read = example("paginated.jsonl")
    assert of_text(read, "Tide rules: be brief.")[0]["synthetic"] is True
    assert of_text(read, "When is high tide?")[0].get("synthetic") is None


def test_a_repeated_history_is_stored_once():
    read = example("paginated.jsonl")
    edits = [row for row in read["steps"] if row["kind"] == "context_edit"]
    first, second = (json.loads(row["extra"])["replacement_history"] for row in edits)
    assert first[:2] == [{"step": 4}, {"step": 5}]
    assert first[2]["id"] == "s1"
    assert second[1] == {"step": 5, "id": "m2-again"}
    assert second[2] == {"step": edits[0]["step"], "item": 2}
    assert edits[0]["edit_summary"] == "Summary: the tide is known."


def test_a_log_that_repeats_its_history_ten_times_takes_a_fifth_of_its_size(tmp_path):
    chance = random.Random(7)
    history: list[dict] = []
    lines = [{"type": "session_meta", "payload": {"id": "t-1", "cwd": "/srv"}}]
    for number in range(400):
        words = " ".join(f"{chance.getrandbits(40):x}" for _ in range(30))
        kind = number % 4
        item = {"type": "message", "role": "user" if kind == 0 else "assistant",
                "content": [{"type": "input_text" if kind == 0 else "output_text",
                             "text": words}]}  # fmt: skip
        if kind == 2:
            item = {"type": "function_call", "name": "f", "arguments": json.dumps({"q": words}),
                    "call_id": f"c{number}"}  # fmt: skip
        if kind == 3:
            item = {"type": "function_call_output", "call_id": f"c{number - 1}", "output": words}
        history.append(item)
        lines.append({"type": "response_item", "payload": item})
        if number % 40 == 39:
            payload = {"message": "", "replacement_history": history}
            lines.append({"type": "compacted", "payload": payload})
    raw = "".join(json.dumps(line) + "\n" for line in lines).encode()
    log = tmp_path / "rollout.jsonl"
    log.write_bytes(raw)
    adp.convert([str(log)], str(tmp_path / "store"))
    size = sum(it.stat().st_size for it in (tmp_path / "store").rglob("*.parquet"))
    compressed = len(pa.compress(raw, codec="zstd", asbytes=True))
    assert size * 5 <= len(raw), (size, compressed, len(raw))
    entries = json.loads(rows(log)["steps"][-1]["extra"])["replacement_history"]
    assert len(entries) == 400
    assert all("step" in entry for entry in entries)


def test_the_bytes_of_a_session_come_back_where_they_are_kept(tmp_path):
    source = tmp_path / "session.jsonl"
    lines = (FOLDER / "paginated.jsonl").read_bytes().splitlines()
    source.write_bytes(b"\xef\xbb\xbf" + b" \r\n\n".join(lines))
    adp.convert(source, tmp_path / "store", keep_raw=True)
    [path] = (tmp_path / "store" / "raw").iterdir()
    [kept] = pq.read_table(path).to_pylist()
    assert kept["data"] == source.read_bytes()
    assert (kept["record"], kept["offset"]) == (1, 0)


def test_copied_lines_are_marked_and_links_lead_to_the_parents():
    read = example("subagent.jsonl")
    copied = [row.get("text") for row in read["steps"] if row.get("is_copied_context")]
    assert [text for text in copied if text] == ["Look at the reef.", "I ask a helper."]
    later = [row.get("text") for row in read["steps"] if not row.get("is_copied_context")]
    assert later[-2:] == ["Count the fish.", "There are seven of them."]
    kinds = {link["kind"]: link for link in read["links"]}
    assert set(kinds) == {"fork", "subagent", "continuation"}
    assert json.loads(kinds["continuation"]["extra"])["end_byte_offset"] == 4096
    assert read["trajectories"][0]["session_id"] == kinds["fork"]["target_id"]
    assert read["trajectories"][0]["source_id"].endswith("d2")


def test_a_fork_without_ordinals_copies_what_was_written_at_once():
    read = example("fork.jsonl")
    copied = [row for row in read["steps"] if row.get("is_copied_context")]
    assert [row.get("text") for row in copied if row.get("text")] == [
        "Grind the corn.", "All the corn is ground."]  # fmt: skip
    _, [broken] = named(read, "local_shell")
    assert (broken["text"], broken["is_error"]) == ("stone broke", True)
    assert len(named(read, "image_generation")[1]) == 1


def test_reports_before_the_items_of_their_call_belong_to_what_follows():
    read = example("reports_first.jsonl")
    agent = [row for row in read["steps"] if row["source"] == "agent"]
    assert [row["tokens_in"] for row in agent] == [100, 150]
    assert Counter(row["step"] for row in read["tool_calls"]) == {agent[0]["step"]: 2}


@pytest.mark.parametrize("name", ["flat.jsonl", "early.json"])
def test_early_sessions(name):
    read = example(name)
    assert [row["source"] for row in read["steps"] if row["kind"] != "event"] == [
        "system", "user", "agent", "agent"]  # fmt: skip
    _, [result] = named(read, "shell")
    assert result["exit_code"] in (0, 1)


def test_a_line_that_was_cut_off_is_kept_and_reported():
    data = (FOLDER / "fork.jsonl").read_bytes() + b'\r\n\n{"type":"response_item","payl'
    read = read_lines("codex", lines_as_array(data))
    assert any('"payl' in (row.get("extra") or "") for row in read.rows["steps"])
    assert read.losses


@needs_samples
def test_a_real_session_has_the_calls_results_and_tokens_of_its_lines():
    lines = [json.loads(line) for line in SESSION.read_text("utf-8").splitlines()]
    payloads = [line["payload"] for line in lines]
    calls = [it for it in payloads if it.get("type") in ("function_call", "custom_tool_call")]
    results = [it for it in payloads if str(it.get("type")).endswith("_call_output")]
    infos = [it["info"] for it in payloads if it.get("type") == "token_count" and it["info"]]
    totals = [json.dumps(info["total_token_usage"]) for info in infos]
    read = rows(SESSION)
    assert len(read["tool_calls"]) == len(calls)
    assert [it.get("call_id") for it in read["observations"]] == [it["call_id"] for it in results]
    assert all(it.get("call_step") is not None for it in read["observations"])
    agent = [row for row in read["steps"] if row["source"] == "agent"]
    assert len(agent) == len(set(totals))
    used = sum(row["tokens_in"] for row in agent)
    assert used == infos[-1]["total_token_usage"]["input_tokens"]
    texts = sorted(text for it in payloads if it.get("role") == "assistant"
                  for text in [it["content"][0]["text"]])  # fmt: skip
    assert sorted(row["text"] for row in agent if row.get("text")) == texts


@needs_samples
def test_a_store_of_paginated_files_joins_by_the_id_of_the_thread(tmp_path):
    store = adp.convert([str(PAGINATED)], str(tmp_path / "store"))
    sql = "select l.kind from links l join trajectories t on l.target_id = t.source_id"
    assert sorted(store.query(sql)["kind"].to_pylist()) == ["continuation", "fork"]
    names = store.query("select name from tool_calls order by name")["name"].to_pylist()
    assert names == ["CommandExecution", "FileChange", "exec_command", "lookup"]


def test_lines_of_other_surfaces_have_their_item_or_their_event_in_place_of_a_payload():
    read = example("surface.jsonl")
    assert [row["call_id"] for row in read["tool_calls"]] == ["ki-1", "kc-2"]
    assert {row["call_id"]: row["text"] for row in read["observations"]} == {
        "ki-1": "the red kite", "kc-2": "red, blue"}  # fmt: skip
    texts = [(row["source"], row.get("text")) for row in read["steps"] if row["kind"] != "event"]
    assert texts == [
        ("user", "Which kites fly?"), ("agent", None), ("agent", "The red one flies.")]  # fmt: skip
    read = example("protocol.jsonl")
    (main,) = read["trajectories"]
    assert main["source_id"].endswith("f2")
    assert (main["agent_model"], main["total_tokens_in"]) == ("gpt-kite", 900)
    assert [row["text"] for row in read["steps"] if row["source"] == "user"] == ["Count the kites."]
    assert [row["text"] for row in read["observations"]] == ["blue red"]
