"""A store with something in every table, for tests of publishing; its words can be hostile."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass, replace
from pathlib import Path

from adp_schema.builder import Origin, RowBuilder
from adp_schema.media import media_of_bytes
from adp_schema.parts import Parts
from adp_schema.store import Store
from tests.store_builders import reject_row, write_store

SECRET = "a record that became no trajectory"
ARGUMENTS = '{"city":  "Ghent", "x": 1e-12, "n": 0.43771953278046694, "x": 2}'
"""Arguments whose characters a JSON library would change."""


@dataclass(frozen=True)
class Words:
    """Words that the store is filled with."""

    dataset: str = "trips"
    source_id: str = "one"
    text: str = "How is the weather?"
    tool: str = "get_weather"
    license: str = "mit"
    note: str = "for the tests"
    agent: str = "hands"
    split: str | None = None


MARKUP = "<script>alert(1)</script><svg onload=alert(2)> {{7*7}} {% raw %} ${x} [a](javascript:b)"
HOSTILE = Words(
    dataset=f"a|b`c` {MARKUP}\n---\n# head\n| x | y |\n|---|---|\n\u202egnp.exe\x1b[2J",
    source_id="![i](http://evil.example/x.png)\n\n```\n</td></tr> \u2066",
    text=(MARKUP + "\u202e\x00 ~~~ <img src=x onerror=alert(1)> ") * 12_000,
    tool="*bold*_x_|`|\n- [ ] item\n1. one\n> quote",
    license="mit](http://evil.example) | <b>x</b>",
    note="---\nlicense: mit\n---\n# note <iframe>",
    agent="@everyone www.evil.example a@b.example #1",
    split="../../etc/passwd\n---",
)


def write_published(folder: Path, words: Words | None = None) -> Store:
    """Write a store of two shards.

    The first has a run with a tool call, a run with an image and a task, a branch that shares
    the first step of that, and a subagent; the second one a run of the split ``test``.
    """
    words = words or Words()
    store = write_store(
        folder,
        _first(words),
        _second(words),
        sources=[{"source_file": "trips.jsonl", "dataset": words.dataset, "records": 6}],
        losses={f"$.{words.tool}: no place": 3},
    )
    manifest = store.manifest
    manifest.lineage[0].options["note"] = words.note
    manifest.lineage[0].versions["adp"] = "0.1.0"
    manifest.write(folder)
    return Store.open(str(folder))


def _begin(builder: RowBuilder, words: Words, seq: int, **columns: object) -> None:
    kept = {"source_file": "trips.jsonl", "source_format": "openai_chat", "license": words.license}
    builder.begin(Origin(seq=seq, dataset=words.dataset, columns=kept))
    builder.trajectory({"agent_name": words.agent, **columns})


def _first(words: Words) -> RowBuilder:
    builder = RowBuilder()
    tools = json.dumps([{"type": "function", "function": {"name": words.tool}}])
    _begin(
        builder, words, 10, source_id=words.source_id, success=True, reward=0.5, tools=tools,
        tags=["a", words.tool], split=words.split,
        started_at=datetime.datetime(2026, 5, 3, tzinfo=datetime.UTC),
    )  # fmt: skip
    builder.step({"source": "user", "kind": "message", "text": words.text})
    builder.step(
        {
            "source": "agent", "kind": "llm_turn", "reasoning": "Look.", "tokens_out": 7,
            "completion_token_ids": [1, 2], "logprobs": [-0.5, -0.25], "labels": ["good"],
        }
    )  # fmt: skip
    builder.call(
        {
            "call_id": "c1", "kind": "function", "name": words.tool, "arguments": ARGUMENTS,
            "arguments_kind": "json_string",
        }
    )  # fmt: skip
    builder.observation({"text": "rain", "is_error": False}, answers="c1")
    builder.finish()
    _begin(builder, words, 20, source_id="picture", success=False, task_id="t1", split=words.split)
    builder.task({"task_id": "t1", "instruction": words.text[:100]})
    parts = Parts()
    parts.text("What is this?")
    parts.media(builder.media(media_of_bytes(b"GIF89a" + b"x" * 3000, "image/gif")))
    builder.step({"source": "user", "kind": "message", **parts.columns()})
    builder.step({"source": "agent", "kind": "llm_turn", "text": "A picture."})
    builder.finish()
    parent = f"{words.dataset}/picture"
    _begin(
        builder, words, 21, source_id="other", split=words.split, parent_id=parent, parent_step=1,
        branch_kind="alternate",
    )  # fmt: skip
    builder.step({"source": "agent", "kind": "llm_turn", "text": "I cannot see it."})
    builder.finish()
    _begin(
        builder, words, 22, source_id="helper", split=words.split, parent_id=parent,
        branch_kind="subagent",
    )  # fmt: skip
    builder.step({"source": "user", "kind": "message", "text": "Help."})
    builder.step({"source": "agent", "kind": "llm_turn", "text": "Done."})
    builder.finish()
    builder.pair({"pair_id": "p1", "chosen_id": parent, "rejected_id": f"{words.dataset}/other"})
    builder.reject(reject_row(b"{", SECRET, record=7))
    return builder


def _second(words: Words) -> RowBuilder:
    builder = RowBuilder()
    test = replace(words, split="test")
    _begin(builder, test, 30, source_id="late", split=test.split)
    builder.step({"source": "system", "kind": "message", "text": "Be kind."})
    builder.step({"source": "user", "kind": "message", "text": "Hello"})
    builder.step({"source": "agent", "kind": "llm_turn", "text": "Hello!"})
    builder.finish()
    return builder
