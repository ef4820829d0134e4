from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from adp.cli.main import main
from adp_schema.builder import Origin, RowBuilder
from adp_schema.media import media_of_bytes
from adp_schema.model import Media
from adp_schema.parts import Parts
from adp_schema.store import Store
from tests.store_builders import reject_row, write_store

LONG = "word " * 1000


@dataclass
class Result:
    """What a call of the command line left."""

    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Call the command line in this process."""
    monkeypatch.setenv("COLUMNS", "100")

    def call(*words: object) -> Result:
        code = main([str(word) for word in words])
        done = capsys.readouterr()
        assert "Traceback" not in done.err
        return Result(code, done.out, done.err)

    return call


def fill(builder: RowBuilder) -> None:
    """Three trajectories, a branch and three records that became none."""
    _mended_test(builder)
    _late_result(builder)
    _branch(builder)
    builder.begin(Origin(seq=300, dataset="chat", columns={"source_file": "chats.jsonl"}))
    builder.trajectory({"source_id": "hostile"})
    builder.step({"source": "user", "kind": "message", "text": "\x1b[2Jgone [bold]not bold[/]"})
    builder.finish()
    builder.reject(reject_row(b'{"role": \n"wizard"}', "unknown role", record=7, path="$.role"))
    builder.reject(reject_row(b"{", "not JSON", record=8))
    builder.reject(reject_row(b"{}", "empty", record=9, status="skipped"))


def _mended_test(builder: RowBuilder) -> None:
    columns = {"source_file": "logs.jsonl", "source_records": [1], "source_format": "openai_chat"}
    builder.begin(Origin(seq=100, dataset="swe", columns=columns))
    builder.trajectory(
        {
            "source_id": "django-11099",
            "agent_name": "hands",
            "agent_model": "m-1",
            "success": True,
            "reward": 1.0,
            "tools": json.dumps([{"type": "function", "function": {"name": "bash"}}]),
        }
    )
    builder.step({"source": "user", "kind": "message", "text": "Mend the test please"})
    builder.step(
        {
            "source": "agent", "kind": "llm_turn", "text": "I look.", "reasoning": "Think first.",
            "tokens_in": 100, "tokens_out": 20,
        }
    )  # fmt: skip
    call = {"call_id": "c1", "kind": "function", "name": "bash", "arguments_kind": "object"}
    builder.call({**call, "arguments": '{"command": "ls -l\\npwd"}'})
    builder.observation({"text": "no such file", "is_error": True, "exit_code": 2}, answers="c1")
    builder.step({"source": "agent", "kind": "llm_turn", "text": LONG})
    builder.finish()


def _late_result(builder: RowBuilder) -> None:
    builder.begin(Origin(seq=200, dataset="swe", columns={"source_file": "logs.jsonl"}))
    builder.trajectory({"source_id": "django-22", "agent_name": "hands", "success": False})
    blob: Media = media_of_bytes(b"x" * 12_000, "image/png")
    parts = Parts()
    parts.text("Look at this")
    parts.media(builder.media(blob))
    builder.step({"source": "user", "kind": "message", **parts.columns()})
    builder.step({"source": "agent", "kind": "llm_turn"})
    builder.call({"call_id": "slow", "kind": "function", "name": "build", "arguments": "{}"})
    builder.step({"source": "user", "kind": "message", "text": "still there?"})
    builder.observation({"text": "built", "is_error": False}, answers="slow")
    builder.finish()


def _branch(builder: RowBuilder) -> None:
    builder.begin(Origin(seq=250, dataset="swe", columns={"source_file": "logs.jsonl"}))
    builder.trajectory(
        {"source_id": "branch-1", "parent_id": "swe/django-22", "parent_step": 1,
         "branch_kind": "rewind"}
    )  # fmt: skip
    builder.step({"source": "agent", "kind": "llm_turn", "text": "Another way."})
    builder.finish()


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A small store."""
    builder = RowBuilder()
    fill(builder)
    folder: Path = tmp_path_factory.mktemp("stores") / "small"
    return write_store(folder, builder, losses={"$.messages[*].weight: no place": 3})
