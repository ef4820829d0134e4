"""A smallest file of each known kind, written by hand."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

_USER = {"role": "user", "content": "hi"}
_TEXT = [{"type": "text", "text": "hi"}]

LINES: dict[str, list[Any]] = {
    "prompt_history": [{"session_id": "s", "ts": 1767225600, "text": "hi"}],
    "hermes_agent": [
        {"id": "1", "source": "cli", "model": "m", "system_prompt": "p", "messages": [_USER]}
    ],
    "bfcl_results": [{"id": "simple_0", "model": "m", "category": "simple", "result": []}],
    "mind2web": [{"annotation_id": "1", "confirmed_task": "do", "actions": [{"action_uid": "2"}]}],
    "android_control": [{"episode_id": 0, "goal": "g", "screenshots": [], "actions": []}],
    "aitw": [{"episode_id": "1", "step_id": 0, "results/action_type": 4, "goal_info": "g"}],
    "omniact": [{"id": "1", "task": "t", "image": "i", "ocr": {}, "box": {}}],
    "anthropic_messages": [
        {
            "model": "m", "max_tokens": 1, "system": "s",
            "messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "1"}]}],
        }
    ],
    "alpaca": [{"instruction": "i", "input": "", "output": "o"}],
    "prompt_completion": [{"prompt": "p", "completion": "c"}],
    "action_studio": [{"unique_trajectory_id": "1", "task_instruction": "t", "conversation": []}],
    "tool_catalogue": [
        {"tool_id": "a_001", "name": "a", "category": "c", "capabilities": [], "inputs": []}
    ],
    "otlp_metrics": [{"resourceMetrics": [{"scopeMetrics": []}]}],
    "weave": [{"id": "1", "op_name": "weave:///o", "trace_id": "t", "inputs": {}, "summary": {}}],
    "questions": [{"question": "q", "api_list": []}],
    "answer_keys": [{"id": "1", "ground_truth": [{"f": {}}]}],
    "scores": [{"task_id": 0, "trial": 0, "reward": 1.0}],
    "judged_predictions": [{"label": "a", "predict": "b"}],
    "predictions": [{"instance_id": "1", "model_name_or_path": "m", "model_patch": "p"}],
}  # fmt: skip
"""Kinds that are kept as JSON Lines, by name; one record in an array or document does as well."""

DOCUMENTS: dict[str, Any] = {
    "pi_message": {
        "role": "assistant", "content": [], "api": "a", "provider": "p", "stopReason": "stop",
    },
    "opencode_export": {"info": {"id": "1"}, "messages": [{"info": {}, "parts": []}]},
    "amp": {"v": 0, "id": "T-1", "messages": [{"role": "user", "content": _TEXT}]},
    "cline": [{"role": "user", "content": _TEXT}, {"role": "assistant", "content": _TEXT}],
    "mini_swe_agent_v1": [_USER, {"role": "assistant", "content": "ls"}],
    "chatgpt_export": {
        "id": "1",
        "mapping": {"root": {"id": "root", "parent": None, "children": [], "message": None}},
    },
    "openhands_llm_log": {
        "messages": [_USER], "kwargs": {}, "response": {"id": "1"}, "latency_sec": 1.0,
    },
    "harbor_trial": {"task_name": "t", "trial_name": "t__1", "verifier_result": {"rewards": {}}},
    "harbor_job": {"job_name": "j", "jobs_dir": "jobs", "n_attempts": 1, "agents": []},
    "tau2_settings": {"timestamp": "t", "info": {"agent_info": {}, "user_info": {}}, "tasks": []},
    "expected_messages": {
        "a1": {"input": {"success": True, "data": [_USER]}, "output": {"success": False}},
    },
    "json_schema": {"$defs": {}, "type": "array", "items": {}},
    "dataset_metadata": {"custom_tools": [], "code_enabled": [], "browser_enabled": False},
    "provenance": {"source": "s", "legend": {}, "files": {}},
    "training_configuration": {
        "model": {"name": "m"}, "training": {"method": "sft"}, "data": {"strategy": "s"},
    },
    "run_metadata": {
        "sample_id": 1, "truncated": False, "terminated": True, "total_time_steps": 3,
    },
    "session_metadata": {"session_id": "1", "stats": {"steps": 5}, "environment": {}},
    "conversation_state": {
        "id": "1", "agent": {"llm": {"model": "m"}}, "workspace": {}, "persistence_dir": "/",
    },
    "verdicts": {"oracle": "o", "cases": [{"valid": True}]},
    "documentation": {"source": "s", "examples": [{"attribute": "a", "value": []}]},
    "mcp_server": {"labels": {}, "metadata": {"remote_server_response": {"tools": []}}},
    "api_catalogue": {"count": 1, "entries": [{"API": "Tides", "Link": "https://example.org"}]},
    "evaluation_report": {"patch_exists": True, "resolved": False, "tests_status": {}},
    "environment_data": {"item_info": [{"name": "rope"}], "person_info": []},
    "word_lists": ["buy a shirt", "buy a hat"],
}  # fmt: skip
"""Kinds that are one JSON document, by name."""

FILE_NAMES = {
    "cline": "api_conversation_history.json",
    "mini_swe_agent_v1": "task.traj.json",
    "text": "ORIGIN.md",
    "yaml": "data.yaml",
}
"""Names of files that count."""

TABLES = {
    "opencode_db": [
        "CREATE TABLE session (id TEXT)",
        "CREATE TABLE message (id TEXT, data TEXT)",
        "CREATE TABLE part (id TEXT, data TEXT)",
    ],
    "crush_db": ["CREATE TABLE sessions (id TEXT)", "CREATE TABLE messages (id TEXT, parts TEXT)"],
    "hermes_agent_db": [
        "CREATE TABLE sessions (id TEXT, system_prompt TEXT)",
        "CREATE TABLE messages (id TEXT, session_id TEXT)",
    ],
}
"""Kinds that are SQLite files, by name."""

OTHERS = {"text": b"# Title\n", "yaml": b"a: 1\n", "empty": b""}

SUPPORTED: dict[str, Any] = {
    "sts": [
        {"type": "session", "harness": "llama.app", "id": "1", "cwd": "/h"},
        {"type": "message", "message": _USER},
    ],
    "openai_chat": [{"messages": [_USER, {"role": "assistant", "content": "ho"}]}],
    "openai_chat_tools": [
        {
            "messages": [_USER, {"role": "assistant", "content": None, "tool_calls": []}],
            "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
        }
    ],
    "openai_chat_parts": [{"messages": [{"role": "user", "content": _TEXT}]}],
    "openai_chat_string": [{"messages": json.dumps([_USER]), "instance_id": "1", "model": "m"}],
    "adp_v1": [
        {"id": "1", "content": [{"class_": "text_observation", "content": "hi"}], "details": {}}
    ],
    "atif": {"schema_version": "ATIF-v1.7", "agent": {"name": "a"}, "steps": [{"step_id": 1}]},
    "sharegpt": [{"conversations": [{"from": "human", "value": "hi"}], "tools": "[]"}],
}
"""Records of formats that are read, or will be: no known kind may claim them."""


def write_example(name: str, folder: Path) -> Path:
    """Write the smallest file of a kind."""
    if name in LINES:
        path = folder / FILE_NAMES.get(name, "file.jsonl")
        path.write_text("".join(json.dumps(item) + "\n" for item in LINES[name]), "utf-8")
    elif name in DOCUMENTS:
        path = folder / FILE_NAMES.get(name, "file.json")
        path.write_text(json.dumps(DOCUMENTS[name], indent=2), "utf-8")
    elif name in TABLES:
        path = folder / "file.db"
        connection = sqlite3.connect(path)
        for statement in TABLES[name]:
            connection.execute(statement)
        connection.commit()
        connection.close()
    else:
        path = folder / FILE_NAMES.get(name, "file.json")
        path.write_bytes(OTHERS[name])
    return path
