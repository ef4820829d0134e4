"""Codex: threads of several files, with planted calls that must each be found once."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tests.converters.containers import zst
from tests.converters.readers.planted import Planter, links_of, write_lines
from tests.effort import examples

TREES = examples(12)


def thread(number: int) -> str:
    """An id that begins with its time."""
    return f"0196{number:04x}-0000-7000-8000-{number:012x}"


class Rollout:
    """A rollout while it is written.

    Args:
        planter: makes up the calls.
        number: of its thread; later ones are greater.
        paged: whether its lines have ordinals.
    """

    def __init__(self, planter: Planter, number: int, *, paged: bool, **meta: Any) -> None:
        self.planter, self.number, self.paged = planter, number, paged
        self.lines: list[dict[str, Any]] = []
        self.ordinal = meta.pop("ordinal", 0)
        self.calls = self.total = 0
        header = {"id": thread(number), "timestamp": self.time(0), "cwd": "/x",
                  "originator": "codex", "cli_version": "0.158.0", "source": "cli"}  # fmt: skip
        self.add("session_meta", {**header, **meta})

    def time(self, seconds: int) -> str:
        return f"2026-01-{1 + self.number:02}T10:{seconds // 60:02}:{seconds % 60:02}.000Z"

    def add(self, kind: str, payload: dict[str, Any]) -> None:
        line = {"timestamp": self.time(10 * len(self.lines)), "type": kind, "payload": payload}
        if self.paged:
            line["ordinal"] = self.ordinal
            self.ordinal += 1
        self.lines.append(line)

    def message(self, role: str, text: str) -> None:
        kind = "output_text" if role == "assistant" else "input_text"
        content = [{"type": kind, "text": text}]
        self.add("response_item", {"type": "message", "role": role, "content": content})

    def begin(self) -> None:
        turn = f"{thread(self.number)[:-1]}f"
        self.add("turn_context", {"turn_id": turn, "cwd": "/x", "model": "gpt-x"})
        self.message("user", f"Do {len(self.lines)} of it.")

    def usage(self) -> None:
        self.total += 5
        self.planter.tokens += 5
        used = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        total = {"input_tokens": 2 * self.total, "output_tokens": self.total}
        info = {"total_token_usage": total, "last_token_usage": used}
        self.add("event_msg", {"type": "token_count", "info": info})

    def call(self, name: str = "exec_command", **more: Any) -> str:
        word = self.planter.word()
        call_id = f"call_{self.number}_{len(self.lines)}"
        arguments = json.dumps({"cmd": f"echo {word}", **more})
        self.add("response_item", {"type": "function_call", "name": name, "arguments": arguments,
                                   "call_id": call_id})  # fmt: skip
        self.calls += 1
        return f"{call_id} {word}"

    def result(self, call: str, **more: Any) -> None:
        call_id, word = call.split()
        if more:
            self.add("event_msg", {"call_id": call_id, **more})
        output = {"type": "function_call_output", "call_id": call_id, "output": f"done {word}"}
        self.add("response_item", output)

    def work(self, turns: int = 2) -> None:
        """Turns with parallel calls, and events that say the same again."""
        self.begin()
        for _ in range(turns):
            calls = [self.call() for _ in range(self.planter.chance.randrange(0, 3))]
            if not calls:
                self.message("assistant", f"Well, {len(self.lines)}.")
            self.usage()
            self.planter.chance.shuffle(calls)
            for call in calls:
                end = {"type": "exec_command_end", "command": ["bash", "-lc", "x"], "exit_code": 0}
                self.result(call, **(end if self.planter.chance.random() < 0.5 else {}))

    def spawn(self, child: int) -> None:
        """A call that starts another thread."""
        call = self.call("spawn_agent")
        self.usage()
        event = {"type": "collab_agent_spawn_end", "sender_thread_id": thread(self.number),
                 "new_thread_id": thread(child), "prompt": "x", "status": "running"}  # fmt: skip
        self.result(call, **event)

    def compact(self) -> None:
        """The history so far, or what is left of it, is written again."""
        items = [line["payload"] for line in self.lines if line["type"] == "response_item"]
        self.add("compacted", {"message": "So far.", "replacement_history": items})

    def copy(self, parent: Rollout, until: int) -> None:
        """Begin with the lines of another thread, as they were written at once."""
        for line in parent.lines[:until]:
            self.add(line["type"], line["payload"])
            self.lines[-1]["timestamp"] = self.time(0)


def counted(lines: list[dict[str, Any]]) -> int:
    return sum(line["payload"].get("type") == "function_call" for line in lines)


@pytest.mark.parametrize("seed", range(TREES))
def test_planted_calls_are_found_once(seed, tmp_path):
    """In forks with and without copies, subagents of two kinds, compactions and resumed files."""
    planter = Planter()
    planter.chance = random.Random(seed)
    main = Rollout(planter, 1, paged=True)
    main.work()
    main.compact()
    main.work()
    until = len(main.lines)
    main.spawn(4)
    main.spawn(5)
    main.add("session_meta", dict(main.lines[0]["payload"]))  # it was resumed
    main.work()
    plain = Rollout(planter, 2, paged=False)
    plain.work(3)
    plain.compact()
    plain.work(1)
    # A fork that copies, and one that only says where its history is.
    copying = Rollout(planter, 3, paged=False, forked_from_id=thread(2))
    copying.copy(plain, len(plain.lines))
    copying.work()
    base = {"thread_id": thread(1), "end_ordinal_exclusive": until, "end_byte_offset": 999}
    paged = Rollout(planter, 6, paged=True, forked_from_id=thread(1), history_mode="paginated",
                    history_base=base, ordinal=until)  # fmt: skip
    paged.work()
    # Subagents: one with the history of its parent, one with a history of its own.
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": thread(1), "depth": 1}}}
    heir = Rollout(planter, 4, paged=True, parent_thread_id=thread(1), forked_from_id=thread(1),
                   source=spawn, subagent_history_start_ordinal=until + 1)  # fmt: skip
    heir.copy(main, until)
    heir.work()
    fresh = Rollout(planter, 5, paged=True, parent_thread_id=thread(1), source=spawn)
    fresh.work()
    fresh.spawn(7)
    source = {"subagent": {"thread_spawn": {"parent_thread_id": thread(5)}}}
    nested = Rollout(planter, 7, paged=True, parent_thread_id=thread(5), source=source)
    nested.work()
    folder = tmp_path / "sessions"
    for rollout in (main, plain, copying, paged, heir, fresh, nested):
        name = f"rollout-2026-01-{rollout.number:02}T10-00-00-{thread(rollout.number)}.jsonl"
        write_lines(folder / "2026" / name, rollout.lines)
    last = folder / "2026" / name
    last.with_name(f"{name}.zst").write_bytes(zst(last.read_bytes()))
    last.unlink()
    copies = counted(plain.lines) + counted(main.lines[:until])
    store = planter.check(folder, tmp_path / "store", copies)
    links = links_of(store)
    assert (thread(1), "subagent", thread(4)) in links
    assert (thread(1), "subagent", thread(5)) in links
    assert (thread(5), "subagent", thread(7)) in links
    assert (thread(3), "fork", thread(2)) in links
    assert (thread(6), "continuation", thread(1)) in links
