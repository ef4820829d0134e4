"""Claude Code: sessions of many files, with planted calls that must each be found once."""

from __future__ import annotations

import json
import random
import uuid
from pathlib import Path
from typing import Any

import pytest

import adp
from tests.effort import examples

TREES = examples(4)


class Maker:
    """Writes a project folder of made-up sessions, and remembers what it planted."""

    def __init__(self, root: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.root = root / "projects" / "-made-up"
        self.planted: list[str] = []
        self.tokens = 0
        self.agents: list[tuple[str, str]] = []

    def name(self) -> str:
        return str(uuid.UUID(int=self.chance.getrandbits(128)))

    def write(self, path: Path, records: list[dict[str, Any]]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(record) + "\n" for record in records))


class File:
    """One file of records that follow each other."""

    def __init__(self, maker: Maker, session: str, agent: str = "") -> None:
        self.maker, self.session, self.agent = maker, session, agent
        self.records: list[dict[str, Any]] = []
        self.last: str | None = None

    def add(self, kind: str, parent: str | None = None, **more: Any) -> str:
        name = self.maker.name()
        record = {
            "parentUuid": parent or self.last,
            "isSidechain": bool(self.agent),
            "sessionId": self.session,
            "version": "2.1.300",
            "type": kind,
            "uuid": name,
            "timestamp": f"2026-01-01T00:{len(self.records) // 60:02}:{len(self.records) % 60:02}Z",
            **({"agentId": self.agent} if self.agent else {}),
            **more,
        }
        self.records.append(record)
        self.last = name
        return name

    def prompt(self, text: str, parent: str | None = None) -> str:
        return self.add("user", parent, message={"role": "user", "content": text})

    def turn(self, count: int, parent: str | None = None) -> list[tuple[str, str]]:
        """A response with thinking and parallel calls; a record for each block of it."""
        message_id, calls = f"msg_{self.maker.name()}", []
        blocks: list[dict[str, Any]] = [{"type": "thinking", "thinking": "Hm.", "signature": "x"}]
        for _ in range(count):
            planted = f"planted_{len(self.maker.planted)}"
            self.maker.planted.append(planted)
            blocks.append(
                {
                    "type": "tool_use",
                    "id": f"toolu_{planted}",
                    "name": "Bash",
                    "input": {"command": planted},
                }
            )
        self.maker.tokens += 7
        for number, block in enumerate(blocks):
            final = number == len(blocks) - 1
            message = {
                "id": message_id,
                "type": "message",
                "role": "assistant",
                "model": "claude-x",
                "content": [block],
                "stop_reason": "tool_use" if final else None,
                "usage": {"input_tokens": 3, "output_tokens": 7 if final else 1},
            }
            name = self.add("assistant", parent if number == 0 else None, message=message)
            if block["type"] == "tool_use":
                calls.append((block["id"], name))
        return calls

    def result(self, call: tuple[str, str], **more: Any) -> str:
        block = {"type": "tool_result", "tool_use_id": call[0], "content": f"done {call[0]}"}
        return self.add("user", call[1], message={"role": "user", "content": [block]}, **more)

    def work(self, turns: int) -> None:
        """A prompt, and turns with parallel calls whose results come in any order."""
        self.prompt("Do it.")
        for _ in range(turns):
            calls = self.turn(self.maker.chance.randint(0, 3))
            self.maker.chance.shuffle(calls)
            for call in calls:
                self.result(call)
                if self.maker.chance.random() < 0.3:
                    self.add("attachment", attachment={"type": "date_change", "newDate": "x"})

    def start(self, **outcome: Any) -> str:
        """A call whose outcome names another trajectory."""
        call = self.turn(1)[0]
        self.result(call, toolUseResult={"status": "completed", **outcome})
        return call[0]


def make_agent(maker: Maker, session: str, folder: Path, depth: int, call: str, name: str) -> None:
    """A subagent's file with the file beside it, and those of the agents that it starts."""
    file = File(maker, session, name)
    file.work(2)
    path = folder / f"agent-{name}.jsonl"
    if depth:
        inner = maker.name()[:8]
        make_agent(maker, session, path.with_suffix("") / "subagents" if depth == 2 else folder,
                   depth - 1, file.start(agentId=inner), inner)  # fmt: skip
    file.prompt("And?")
    file.turn(0)
    maker.write(path, file.records)
    meta = {"agentType": "Explore", "spawnDepth": depth, "toolUseId": call}
    (path.parent / f"agent-{name}.meta.json").write_text(json.dumps(meta))
    maker.agents.append((call, f"{session}/agent-{name}"))


def make_workflow(maker: Maker, file: File, folder: Path) -> None:
    """A run of a workflow: agents, a journal, and the record of the run."""
    run = f"wf_{maker.name()[:8]}"
    call = file.start(isAsync=True, runId=run, transcriptDir=f"x/subagents/workflows/{run}")
    maker.agents.append((call, f"{file.session}/workflow-{run}"))
    journal, progress = [], []
    for number in range(2):
        name = maker.name()[:8]
        agent = File(maker, f"{file.session}#agent-{name}", name)
        agent.work(2)
        maker.write(folder / "subagents/workflows" / run / f"agent-{name}.jsonl", agent.records)
        journal.append({"type": "started", "key": f"v2:{number}", "agentId": name})
        journal.append({"type": "result", "key": f"v2:{number}", "agentId": name, "result": "ok"})
        progress.append({"type": "workflow_agent", "agentId": name, "label": "a", "state": "done"})
    maker.write(folder / "subagents/workflows" / run / "journal.jsonl", journal)
    (folder / "workflows").mkdir(parents=True, exist_ok=True)
    record = {
        "runId": run,
        "workflowName": "w",
        "status": "completed",
        "workflowProgress": progress,
    }
    (folder / "workflows" / f"{run}.json").write_text(json.dumps(record, indent=2))


def make_inline(maker: Maker, file: File) -> None:
    """Agents whose records stand between those of the session, as old versions wrote them."""
    named = File(maker, file.session, maker.name()[:8])
    nameless = [File(maker, file.session, "x") for _ in range(2)]
    call = file.turn(1)[0]
    for agent in (named, *nameless):
        agent.work(2)
    for agent in nameless:
        for record in agent.records:
            del record["agentId"]
    queues = [agent.records for agent in (named, *nameless)]
    while any(queues):
        file.records.append(maker.chance.choice([it for it in queues if it]).pop(0))
    file.result(call, toolUseResult={"status": "completed", "agentId": named.agent})
    maker.agents.append((call[0], f"{file.session}/agent-{named.agent}"))


def make_tree(maker: Maker) -> list[str]:
    """All kinds of files; the ids of the sessions."""
    session = maker.name()
    folder = maker.root / session
    file = File(maker, session)
    file.add("attachment", attachment={"type": "prompt_snapshot", "systemPrompt": ["Be brief."]})
    file.work(3)
    for depth in (0, 1, 2):
        name = maker.name()[:8]
        make_agent(maker, session, folder / "subagents", depth, file.start(agentId=name), name)
    make_workflow(maker, file, folder)
    make_inline(maker, file)
    # A prompt that was written anew, and a response that was asked for again.
    place = file.last
    file.prompt("First words.")
    file.turn(2)
    file.prompt("Better words.", place)
    place = file.last
    file.turn(1)
    file.turn(2, place)
    kept = file.records[-1]
    # A compaction that writes again what it keeps.
    boundary = file.add("system", subtype="compact_boundary", compactMetadata={"trigger": "auto"})
    file.records[-1]["parentUuid"] = None
    file.add("user", boundary, isCompactSummary=True, message={"role": "user", "content": "So."})
    file.records.append({**kept, "parentUuid": file.last})
    file.last = kept["uuid"]
    file.work(1)
    # A conversation that was cleared goes on without a parent.
    clear = "<command-name>/clear</command-name>"
    file.add("user", message={"role": "user", "content": clear}, isMeta=True)
    file.records[-1]["parentUuid"] = None
    file.work(1)
    old = list(file.records)
    target = maker.name()
    file.records.append(
        {"type": "continued-in", "sessionId": session, "continuedInSessionId": target}
    )
    maker.write(maker.root / f"{session}.jsonl", file.records)
    # The file that it goes on in.
    after = File(maker, target)
    after.work(2)
    maker.write(maker.root / f"{target}.jsonl", after.records)
    # A fork: copies under its own session id, which say where they come from.
    fork = File(maker, maker.name())
    fork.records = [
        {**it, "sessionId": fork.session,
         "forkedFrom": {"sessionId": session, "messageUuid": it["uuid"]}} for it in old
    ]  # fmt: skip
    fork.last = old[-1]["uuid"]
    fork.work(2)
    maker.write(maker.root / f"{fork.session}.jsonl", fork.records)
    # A resumed session: copies under the id of the old one.
    resumed = File(maker, maker.name())
    resumed.records, resumed.last = list(old), old[-1]["uuid"]
    resumed.work(2)
    maker.write(maker.root / f"{resumed.session}.jsonl", resumed.records)
    return [session, target, fork.session, resumed.session]


@pytest.mark.parametrize("seed", range(TREES))
def test_planted_calls_are_found_once(seed, tmp_path):
    """In subagents, workflows, forks, copies and continuations: each exactly once."""
    maker = Maker(tmp_path, seed)
    sessions = make_tree(maker)
    store = adp.convert([str(tmp_path / "projects")], str(tmp_path / "store"))
    manifest = store.manifest
    assert manifest.counts.used == manifest.counts.records
    rows = store.query(
        "SELECT c.arguments AS arguments FROM tool_calls c"
        " JOIN steps s ON s.seq = c.seq AND s.step = c.step"
        " WHERE s.is_copied_context IS NOT TRUE"
    )
    result_rows = sorted(json.loads(text)["command"] for text in rows["arguments"].to_pylist())
    assert result_rows == sorted(maker.planted)
    total = store.query("SELECT sum(tokens_out) AS total FROM steps")
    assert total["total"].to_pylist() == [maker.tokens]
    check_links(store, maker, sessions)
    # Only what was written or asked for anew leaves a line; parallel results do not.
    kinds = store.query("SELECT branch_kind AS kind FROM all_trajectories WHERE parent_id <> ''")
    lines = ["alternate"] * 3 + ["rewind"] * 3  # in the session, the fork and the copy
    assert sorted(kinds["kind"].to_pylist()) == lines + ["subagent"] * 9


def check_links(store: Any, maker: Maker, sessions: list[str]) -> None:
    """Every link leads to a trajectory, and every subagent has the call that started it."""
    links = store.query(
        "SELECT t.session_id AS session, l.kind AS kind, l.target_id AS target, c.call_id AS call,"
        " x.source_id AS found FROM links l JOIN all_trajectories t ON t.seq = l.seq"
        " LEFT JOIN tool_calls c ON c.seq = l.seq AND c.step = l.step AND c.call = l.call"
        " LEFT JOIN all_trajectories x ON x.source_id = l.target_id AND x.dataset = t.dataset"
    ).to_pylist()
    assert all(row["found"] for row in links)
    main, target, fork, resumed = sessions
    by_call = {(row["call"], row["target"]) for row in links if row["kind"] == "subagent"}
    assert {(call, name) for call, name in maker.agents} <= by_call
    others = {(row["session"], row["kind"], row["target"]) for row in links}
    assert (main, "continuation", target) in others
    assert (fork, "fork", main) in others
    assert (resumed, "continuation", main) in others


def test_copies_that_only_the_other_file_tells_of_have_equal_ids(tmp_path):
    """Old versions resumed so: the id of the session is the new one, all else is the same."""
    maker = Maker(tmp_path, 0)
    file = File(maker, "first")
    file.work(4)
    maker.write(maker.root / "first.jsonl", file.records)
    copies = [{**record, "sessionId": "second"} for record in file.records]
    maker.write(maker.root / "second.jsonl", copies)
    store = adp.convert([str(tmp_path / "projects")], str(tmp_path / "store"))
    (row,) = store.query(
        "SELECT count(*) AS calls, count(DISTINCT call_id) AS once FROM tool_calls"
    ).to_pylist()
    assert (row["calls"], row["once"]) == (2 * len(maker.planted), len(maker.planted))
    (row,) = store.query(
        "SELECT count(*) AS copies FROM steps s SEMI JOIN steps o"
        " ON o.native_id = s.native_id AND o.seq < s.seq"
    ).to_pylist()
    (total,) = store.query("SELECT count(*) AS steps FROM steps").to_pylist()
    assert 2 * row["copies"] == total["steps"]
