"""Subagents, checkpoints and repeated histories of agents: planted calls are found exactly once."""

from __future__ import annotations

import itertools
import json
import random
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from tests.converters.readers.planted import Planter, links_of, write_lines
from tests.effort import examples

SEEDS = pytest.mark.parametrize("seed", range(examples(12)))


@pytest.fixture
def planter(seed):
    made = Planter()
    made.chance, made.clock = random.Random(seed), itertools.count()
    return made


def stamp(planter: Planter) -> str:
    number = next(planter.clock)
    return f"2026-02-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}.000Z"


# ---- opencode ------------------------------------------------------------------------------------


class Opencode:
    """The database of opencode; a subagent is a session with a parent."""

    def __init__(self, planter: Planter) -> None:
        self.planter = planter
        self.rows: dict[str, list[tuple[Any, ...]]] = {"session": [], "message": [], "part": []}

    def session(self, name: str, parent: str | None, depth: int) -> None:
        now = next(self.planter.clock)
        self.rows["session"].append((name, parent, "/x", now, now))
        self.message(name, "user", [{"type": "text", "text": f"Do {name}."}])
        for number in range(self.planter.chance.randrange(1, 4)):
            parts: list[dict[str, Any]] = [{"type": "step-start"}]
            parts += [self.tool("bash") for _ in range(self.planter.chance.randrange(3))]
            if depth and not number:
                child = f"{name}c{depth}"
                parts.append(self.tool("task", {"sessionId": child}))
                self.session(child, name, depth - 1)
            tokens = {"input": 3, "output": 4, "reasoning": 0, "cache": {"read": 0, "write": 0}}
            self.planter.tokens += 4
            parts.append({"type": "step-finish", "reason": "stop", "tokens": tokens, "cost": 0})
            self.message(name, "assistant", parts, tokens=tokens, modelID="m", cost=0)

    def tool(self, name: str, metadata: dict[str, Any] | None = None) -> dict[str, Any]:
        word = self.planter.word()
        state = {"status": "completed", "input": {"command": word}, "output": f"done {word}",
                 "title": "x", "metadata": metadata or {}, "time": {"start": 1}}  # fmt: skip
        return {"type": "tool", "callID": f"c{word}", "tool": name, "state": state}

    def message(self, session: str, role: str, parts: list[dict[str, Any]], **more: Any) -> None:
        name = f"msg_{next(self.planter.clock):06}"
        now = next(self.planter.clock)
        data = json.dumps({"role": role, "time": {"created": now}, **more})
        self.rows["message"].append((name, session, now, data))
        for part in parts:
            place = next(self.planter.clock)
            self.rows["part"].append((f"prt_{place:06}", name, session, place, json.dumps(part)))

    def write(self, path) -> None:
        with closing(sqlite3.connect(path)) as connection:
            for table, columns in (
                ("session", "id, parent_id, directory, time_created, time_updated"),
                ("message", "id, session_id, time_created, data"),
                ("part", "id, message_id, session_id, time_created, data"),
            ):
                connection.execute(f"CREATE TABLE {table} ({columns})")
                rows = self.rows[table]
                self.planter.chance.shuffle(rows)
                marks = ", ".join("?" * len(rows[0]))
                connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
            connection.commit()


@SEEDS
def test_opencode(planter, tmp_path):
    database = Opencode(planter)
    for number in range(3):
        database.session(f"ses_{number}", None, number)
    (tmp_path / "in").mkdir()
    database.write(tmp_path / "in" / "opencode.db")
    store = planter.check(tmp_path / "in", tmp_path / "store")
    rows = store.query("SELECT target_session_id AS t FROM links WHERE kind = 'subagent'")
    assert sorted(rows["t"].to_pylist()) == ["ses_1c1", "ses_2c2", "ses_2c2c1"]


# ---- Copilot CLI ---------------------------------------------------------------------------------


def copilot_turn(planter: Planter, lines: list, inside: str, depth: int) -> None:
    """A message with calls; one of them may start an agent, whose lines stand among the others."""
    around = {"parentToolCallId": inside} if inside else {}
    calls, events = [], []
    for number in range(planter.chance.randrange(1, 3)):
        word = planter.word()
        starts = depth and not number
        name, call_id = "task" if starts else "bash", f"call_{word}"
        arguments = {"command": word}
        calls.append({"toolCallId": call_id, "name": name, "arguments": arguments})
        started = {**around, "toolCallId": call_id, "toolName": name, "arguments": arguments}
        part = [("tool.execution_start", started)]
        if starts:
            part.append(("subagent.started", {"toolCallId": call_id, "agentName": "explore"}))
            copilot_turn(planter, part, call_id, depth - 1)
            part.append(("subagent.completed", {"toolCallId": call_id, "agentName": "explore"}))
        done = {"toolCallId": call_id, "success": True, "result": {"content": f"done {word}"}}
        part.append(("tool.execution_complete", {**around, **done}))
        events.append(part)
    planter.tokens += 6
    message = {"messageId": f"m{planter.tokens}", "content": "", "toolRequests": calls,
               "outputTokens": 6}  # fmt: skip
    lines.append(("assistant.message", {**around, **message}))
    while any(events):
        lines.append(planter.chance.choice([part for part in events if part]).pop(0))


@SEEDS
def test_copilot(planter, tmp_path):
    lines: list[tuple[str, dict[str, Any]]] = [
        ("session.start", {"sessionId": "s1", "version": 1, "producer": "copilot-agent"}),
        ("user.message", {"content": "Go."}),
    ]
    for depth in (0, 1, 2):
        copilot_turn(planter, lines, "", depth)
        lines.append(("session.compaction_complete", {"success": True, "summaryContent": "So."}))
    entries = [
        {"type": kind, "data": data, "id": f"e{number}", "timestamp": stamp(planter),
         "parentId": f"e{number - 1}" if number else None}
        for number, (kind, data) in enumerate(lines)
    ]  # fmt: skip
    write_lines(tmp_path / "in" / "s1" / "events.jsonl", entries)
    store = planter.check(tmp_path / "in", tmp_path / "store")
    kinds = store.query("SELECT branch_kind AS k FROM all_trajectories WHERE parent_id <> ''")
    assert kinds["k"].to_pylist().count("subagent") == 3


# ---- Kimi ----------------------------------------------------------------------------------------


def kimi_wire(planter: Planter, agent: str) -> list[dict[str, Any]]:
    """The wire of an agent; ids of calls begin anew in each turn."""
    lines: list[dict[str, Any]] = [
        {"type": "metadata", "protocol_version": "1.4", "created_at": 1790000000000}
    ]

    def add(event: dict[str, Any]) -> None:
        lines.append({"type": "context.append_loop_event", "event": event, "agentId": agent})

    for turn in range(planter.chance.randrange(2, 5)):
        message = {"role": "user", "content": [{"type": "text", "text": f"{agent} {turn}"}],
                   "toolCalls": [], "origin": {"kind": "user"}}  # fmt: skip
        lines.append({"type": "context.append_message", "message": message, "agentId": agent})
        step = f"{agent}-{turn}"
        add({"type": "step.begin", "uuid": step, "turnId": str(turn), "step": 1})
        words = [planter.word() for _ in range(planter.chance.randrange(3))]
        for number, word in enumerate(words):
            add({"type": "tool.call", "uuid": f"Bash_{number}", "stepUuid": step, "name": "Bash",
                 "toolCallId": f"Bash_{number}", "args": {"command": word}})  # fmt: skip
        for number, word in enumerate(words):
            result = {"output": f"done {word}"}
            add({"type": "tool.result", "toolCallId": f"Bash_{number}", "result": result})
        used = {"inputOther": 2, "output": 3, "inputCacheRead": 0, "inputCacheCreation": 0}
        planter.tokens += 3
        add({"type": "step.end", "uuid": step, "turnId": str(turn), "step": 1, "usage": used})
        lines.append({"type": "usage.record", "usage": used, "usageScope": "turn"})
        change = planter.chance.choice([
            None, {"type": "context.undo", "count": 1}, {"type": "context.clear"},
            {"type": "context.apply_compaction", "summary": "So.", "compactedCount": 2},
        ])  # fmt: skip
        lines += [change] if change else []
    for number, line in enumerate(lines):
        line["time"] = 1790000000000 + 1000 * number
    return lines


@SEEDS
def test_kimi(planter, tmp_path):
    for agent in ("main", "agent-0", "agent-1"):
        lines = kimi_wire(planter, agent)
        write_lines(tmp_path / "in" / "session_x" / "agents" / agent / "wire.jsonl", lines)
    store = planter.check(tmp_path / "in", tmp_path / "store")
    links = {(kind, target) for _, kind, target in links_of(store)}
    assert links == {("subagent", "session_x")}


# ---- Gemini CLI ----------------------------------------------------------------------------------


@SEEDS
def test_gemini(planter, tmp_path):
    """Versions of a message, rewinds, and checkpoints that write the history again."""
    lines: list[dict[str, Any]] = [
        {
            "sessionId": "s1",
            "projectHash": "ab",
            "startTime": stamp(planter),
            "kind": "main",
            "lastUpdated": stamp(planter),
        }
    ]
    history: list[dict[str, Any]] = []
    for turn in range(6):
        lines.append({"id": f"u{turn}", "timestamp": stamp(planter), "type": "user",
                      "content": f"Do {turn}."})  # fmt: skip
        history.append(lines[-1])
        words = [planter.word() for _ in range(planter.chance.randrange(3))]
        calls = [{"id": f"c{word}", "name": "shell", "args": {"command": word},
                  "status": "executing"} for word in words]  # fmt: skip
        message = {"id": f"g{turn}", "timestamp": stamp(planter), "type": "gemini", "content": "",
                   "model": "m", "tokens": {"input": 1, "output": 2, "total": 3}}  # fmt: skip
        planter.tokens += 2
        lines.append({**message, "toolCalls": calls})
        for number, call in enumerate(calls):
            response = {"output": f"done {call['args']['command']}"}
            result = [{"functionResponse": {"id": call["id"], "name": "shell",
                                            "response": response}}]  # fmt: skip
            calls[number] = {**call, "status": "success", "result": result}
            lines.append({**message, "toolCalls": list(calls)})
        history.append(lines[-1])
        change = planter.chance.randrange(4)
        if change == 1:
            lines.append({"$rewindTo": f"u{turn}"})
            del history[-2:]
        elif change == 2:
            summary = {"id": f"s{turn}", "timestamp": stamp(planter), "type": "user",
                       "content": "So far."}  # fmt: skip
            history = [summary, *history[-2:]]
            lines.append({"$set": {"messages": list(history)}})
        elif change == 3:
            lines.append({"$set": {"messages": list(history)}})
    write_lines(tmp_path / "in" / "session-a.jsonl", lines)
    planter.check(tmp_path / "in", tmp_path / "store")


# ---- ACP -----------------------------------------------------------------------------------------


@SEEDS
def test_acp(planter, tmp_path):
    """Calls that grow by updates in any order, of two prompts."""
    lines: list[dict[str, Any]] = []
    for turn in range(2):
        prompt = [{"type": "text", "text": f"Do {turn}."}]
        lines.append({"jsonrpc": "2.0", "id": turn, "method": "session/prompt",
                      "params": {"sessionId": "s1", "prompt": prompt}})  # fmt: skip
        parts = []
        for number in range(planter.chance.randrange(1, 4)):
            word, call = planter.word(), {"toolCallId": f"t{turn}-{number}"}
            text = {"type": "content", "content": {"type": "text", "text": f"done {word}"}}
            start = {"sessionUpdate": "tool_call", **call, "title": "Run", "status": "pending"}
            grown = {"sessionUpdate": "tool_call_update", **call, "rawInput": {"command": word}}
            end = {"sessionUpdate": "tool_call_update", **call, "status": "completed",
                   "content": [text]}  # fmt: skip
            parts.append([start, {**grown, "status": "in_progress"}, end])
        while any(parts):
            update = planter.chance.choice([part for part in parts if part]).pop(0)
            lines.append({"jsonrpc": "2.0", "method": "session/update",
                          "params": {"sessionId": "s1", "update": update}})  # fmt: skip
        lines.append({"jsonrpc": "2.0", "id": turn, "result": {"stopReason": "end_turn"}})
    write_lines(tmp_path / "in" / "updates.jsonl", lines)
    planter.check(tmp_path / "in", tmp_path / "store")


# ---- Qwen Code -----------------------------------------------------------------------------------


@SEEDS
def test_qwen(planter, tmp_path):
    """A session with a rewind and histories that were made shorter, and the file of an agent."""
    for agent in ("", "agent-1"):
        lines: list[dict[str, Any]] = []
        history: list[dict[str, Any]] = []

        def add(kind: str, lines=lines, agent=agent, **more: Any) -> dict[str, Any]:
            entry = {"uuid": f"{agent}{len(lines)}", "sessionId": "s1", "timestamp": stamp(planter),
                     "parentUuid": lines[-1]["uuid"] if lines else None, "type": kind,
                     "version": "0.21.0", "cwd": "/x"}  # fmt: skip
            lines.append(entry | ({"agentId": agent, "isSidechain": True} if agent else {}) | more)
            return lines[-1]

        for turn in range(4):
            before = lines[-1]["uuid"] if lines else None
            user = {"role": "user", "parts": [{"text": f"Do {agent} {turn}."}]}
            add("user", message=user)
            words = [planter.word() for _ in range(planter.chance.randrange(3))]
            calls = [{"functionCall": {"id": f"c{word}", "name": "f", "args": {"command": word}}}
                     for word in words]  # fmt: skip
            used = {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7}
            planter.tokens += 4
            model = {"role": "model", "parts": [{"text": "So."}, *calls]}
            add("assistant", model="m", message=model, usageMetadata=used)
            history += [user, model]
            for word in words:
                answer = {"id": f"c{word}", "name": "shell", "response": {"output": f"done {word}"}}
                message = {"role": "user", "parts": [{"functionResponse": answer}]}
                history.append(message)
                add("tool_result", message=message,
                    toolCallResult={"callId": f"c{word}", "status": "success"})  # fmt: skip
            change = planter.chance.randrange(3)
            if change == 1:
                add("system", subtype="chat_compression",
                    systemPayload={"compressedHistory": list(history)})  # fmt: skip
            elif change == 2 and before:
                add("system", subtype="rewind", parentUuid=before, systemPayload={})
        name = f"{agent}.jsonl" if agent else "session.jsonl"
        write_lines(tmp_path / "in" / "chats" / name, lines)
    planter.check(tmp_path / "in", tmp_path / "store")
