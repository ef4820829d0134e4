"""Requests and replies of model APIs: what examples mean, and that real replies are read whole."""

from __future__ import annotations

import json

import pytest

from tests.converters.readers.stores import (
    EXAMPLES,
    convert,
    load,
    need,
    objects,
    real,
    rows,
)

ANTHROPIC = real("formats_new/anthropic_messages")
RESPONSES = [
    path
    for path in real("formats_new/openai_responses", "formats/openai_responses")
    if "error" not in path.name and path.suffix == ".json"
]
RESULT_TYPES = ("shell_call_output", "function_call_output", "tool_search_output")
OUTPUT_KEYS = ("output", "outputs", "results", "result", "error")


def test_an_anthropic_request_with_its_reply(tmp_path):
    convert(EXAMPLES / "anthropic_messages", tmp_path / "s")
    first = rows(tmp_path / "s", "trajectories")[0]
    steps = [it for it in rows(tmp_path / "s", "steps")
             if it["trajectory_id"] == first["trajectory_id"]]  # fmt: skip
    assert [(it["source"], it["kind"]) for it in steps] == [
        ("system", "message"),
        ("user", "message"),
        ("agent", "llm_turn"),
        ("user", "message"),
        ("system", "context_edit"),
        ("system", "context_edit"),
        ("agent", "llm_turn"),
    ]
    assert steps[2]["reasoning"] == "Open it before anything else."
    assert steps[3]["text"] == "Go on with the next file."
    assert [it["edit_boundary"] for it in steps[4:6]] == ["truncate", "replace"]
    assert steps[5]["edit_summary"] == "The user wants a.txt."
    last = steps[6]
    # The tokens of the compaction stand only in the iterations.
    assert (last["tokens_in"], last["tokens_out"], last["llm_call_count"]) == (715, 47, 2)
    assert last["model"] == first["agent_model"] == "claude-x-0601"
    assert first["session_id"] == "sess-7"
    observations = [it for it in rows(tmp_path / "s", "observations") if it["seq"] == first["seq"]]
    assert [(it["call_id"], it["is_error"], it["text"]) for it in observations] == [
        ("toolu_2", True, "no such file"),
        ("toolu_1", None, "alpha"),
    ]


def test_tools_that_anthropic_runs(tmp_path):
    convert(EXAMPLES / "anthropic_messages", tmp_path / "s")
    answers = {it["call_id"]: it for it in rows(tmp_path / "s", "observations")}
    assert (answers["srvtoolu_1"]["exit_code"], answers["srvtoolu_1"]["is_error"]) == (3, True)
    assert answers["srvtoolu_2"]["text"] == "Memos"
    assert answers["srvtoolu_3"]["error_type"] == "unavailable"
    assert answers["srvtoolu_4"]["text"] == "Stop here."
    calls = {it["call_id"]: it for it in rows(tmp_path / "s", "tool_calls")}
    assert calls["mcptoolu_1"]["kind"] == "mcp"


def test_a_stream_is_joined_and_a_refusal_is_a_turn(tmp_path):
    convert(EXAMPLES / "anthropic_messages", tmp_path / "s")
    steps = {it["response_id"]: it for it in rows(tmp_path / "s", "steps")}
    assert steps["msg_s1"]["reasoning"] == "List the folder."
    assert (steps["msg_s1"]["tokens_in"], steps["msg_s1"]["tokens_out"]) == (25, 33)
    calls = {it["call_id"]: it for it in rows(tmp_path / "s", "tool_calls")}
    assert json.loads(calls["toolu_s"]["arguments"]) == {"path": "src"}
    assert steps["msg_3"]["stop_reason"] == "refusal"
    tags = [it["tags"] for it in rows(tmp_path / "s", "trajectories")]
    assert tags == [None, None, ["reply only"], None, ["reply only"], None]


def test_items_are_turns(tmp_path):
    convert(EXAMPLES / "openai_responses", tmp_path / "s")
    tables = {name: rows(tmp_path / "s", name) for name in ("steps", "tool_calls", "observations")}
    first = [it for it in tables["steps"] if it["trajectory_id"].endswith("/resp_1")]
    sources = ["system", "system", "user", "agent", "agent"]
    assert [it["source"] for it in first] == sources
    assert first[3]["reasoning"] == "Ask the tool.\n\nAsk it for two cities."
    assert (first[4]["tokens_in"], first[4]["tokens_cached"]) == (65, 3)
    assert (first[4]["tokens_cache_write"], first[4]["tokens_reasoning"]) == (2, 4)
    assert first[4]["reasoning_effort"] == "low"
    calls = {it["call_id"]: it for it in tables["tool_calls"]}
    assert calls["call_2"]["arguments_kind"] == "invalid"
    assert (calls["call_k"]["arguments_kind"], calls["call_k"]["arguments_raw"]) == (
        "text",
        "SELECT 1",
    )
    assert (calls["ci_1"]["kind"], calls["ci_1"]["language"]) == ("code", "python")
    assert calls["call_c"]["kind"] == "gui"
    answers = {it["call_id"]: it for it in tables["observations"]}
    assert (answers["call_s"]["exit_code"], answers["ts_1"]["structured"] is not None) == (2, True)
    assert answers["mcp_1"]["is_error"]
    assert "media" in answers["ig_1"]["content"]
    # The call that was allowed is the one that was asked for.
    assert [it["source"] for it in tables["observations"] if it["call_id"] == "mcpr_1"] == [
        "user",
        "environment",
    ]
    assert sum(it["call_id"] == "mcpr_1" for it in tables["tool_calls"]) == 2
    edits = [it for it in tables["steps"] if it["kind"] == "context_edit"]
    assert [it["native_id"] for it in edits] == ["cmp_1"]
    [rollout] = [it for it in rows(tmp_path / "s", "trajectories") if it["total_tokens_in"]]
    assert (rollout["total_tokens_in"], rollout["total_tokens_out"]) == (65, 28)
    assert [it["target_id"] for it in rows(tmp_path / "s", "links")] == ["resp_0"]


def test_chat_completions_with_choices(tmp_path):
    manifest = convert(EXAMPLES / "chat_completions", tmp_path / "s")
    assert manifest.counts.records == 6
    trajectories = rows(tmp_path / "s", "trajectories")
    assert [it["branch_kind"] for it in trajectories if it["branch_kind"]] == ["alternate"]
    steps = [it for it in rows(tmp_path / "s", "steps") if it["response_id"] == "chatcmpl-1"]
    assert [it["text"] for it in steps] == ["Two files.", "One file."]
    assert steps[0]["logprobs"] == [-0.5, -0.25]
    assert [it["cost_usd"] for it in steps] == [0.25, None]
    assert trajectories[-1]["error_type"] == "invalid_request_error"
    [streamed] = [it for it in rows(tmp_path / "s", "steps") if it["response_id"] == "gen-1"]
    assert (streamed["reasoning"], streamed["tokens_cached"]) == ("Run it.", 8)


def test_gemini_replies(tmp_path):
    convert(EXAMPLES / "gemini_responses", tmp_path / "s")
    steps = rows(tmp_path / "s", "steps")
    first = steps[0]
    assert first["text"] == "I will now go on and read."
    assert first["reasoning"] == "**Plan of the work** read it."
    assert (first["tokens_in"], first["tokens_out"], first["tokens_reasoning"]) == (100, 30, 5)
    code = next(it for it in rows(tmp_path / "s", "tool_calls") if it["kind"] == "code")
    assert (code["language"], code["arguments_raw"]) == ("PYTHON", "print(2)")
    answers = rows(tmp_path / "s", "observations")
    assert [(it["call_id"], it["is_error"], it["text"]) for it in answers] == [
        ("f1", None, "alpha"),
        (None, True, "boom"),
    ]
    assert [it["call"] for it in answers] == [0, 0]


@pytest.mark.parametrize("path", ANTHROPIC, ids=lambda path: path.name)
def test_real_anthropic_replies(path, tmp_path):
    convert(path, tmp_path / "s")
    raw = load(path)
    uses = [it for it in raw["content"] if it["type"].endswith("tool_use")]
    results = [it for it in raw["content"] if it["type"].endswith("tool_result")]
    assert len(rows(tmp_path / "s", "tool_calls")) == len(uses)
    observations = rows(tmp_path / "s", "observations")
    assert len(observations) == len(results)
    assert all(it["call_id"] for it in observations)
    [step] = rows(tmp_path / "s", "steps")
    usage = raw["usage"]
    cached = usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"]
    assert step["tokens_in"] == usage["input_tokens"] + cached
    assert step["tokens_out"] == usage["output_tokens"]
    texts = [it["text"] for it in raw["content"] if it["type"] == "text"]
    assert (step["text"] or "") == "\n\n".join(texts)


@pytest.mark.parametrize("path", RESPONSES, ids=lambda path: path.name)
def test_real_responses(path, tmp_path):
    convert(path, tmp_path / "s")
    raw = load(path)
    kinds = [it for it in objects(raw) if (isinstance(it.get("type"), str) and "status" in it)
             or it.get("type") == "mcp_approval_request"]  # fmt: skip
    made = [it for it in kinds if it["type"].endswith(("_call", "_request"))]
    got = [it for it in objects(raw) if it.get("type") in RESULT_TYPES]
    got += [it for it in made if any(it.get(key) not in (None, []) for key in OUTPUT_KEYS)]
    got += [it for it in objects(raw) if it.get("type") == "mcp_list_tools"]
    assert len(rows(tmp_path / "s", "tool_calls")) == len(made)
    assert len(rows(tmp_path / "s", "observations")) >= len(got)
    usages = [it["usage"] for it in objects(raw) if it.get("object") == "response"]
    steps = rows(tmp_path / "s", "steps")
    assert sum(it["tokens_in"] or 0 for it in steps) == sum(it["input_tokens"] for it in usages)
    assert sum(it["tokens_out"] or 0 for it in steps) == sum(it["output_tokens"] for it in usages)


def test_real_batches(tmp_path):
    files = real("datasets_new/openai_batch_files")
    need(files)
    folder = files[0].parent
    for name, used in (("chat_completion_batch", 8), ("chat_completion_batch_results", None)):
        convert(folder / f"{name}.jsonl", tmp_path / name)
        lines = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
        whole = [
            it
            for it in lines
            if "body" in it or "choices" in ((it["response"] or {}).get("body") or {})
        ]
        assert len(rows(tmp_path / name, "trajectories")) == len(whole)
        assert used in (None, len(whole))


def test_real_gemini_replies(tmp_path):
    files = real("formats_new/gemini_responses")
    need(files)
    for number, path in enumerate(files):
        convert(path, tmp_path / str(number))
        lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
        calls = sum("functionCall" in it for line in lines for it in objects(line))
        assert len(rows(tmp_path / str(number), "tool_calls")) == calls
        assert len(rows(tmp_path / str(number), "steps")) == len(lines)
