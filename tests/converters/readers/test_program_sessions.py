"""Sessions that go to programs: what is none, the names of files, and how to go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import adp
from adp.cli.main import main
from adp.converters.programs import PROGRAMS
from adp.converters.records import NOTHING, RecordWriter
from adp.converters.registry import formats
from adp_schema.losses import Losses
from adp_schema.model import Observation, Step, Trajectory
from tests.fuzz.readers import EXAMPLES

EVENT = Step(step=0, source="environment", kind="event", visibility="none")


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_a_run_of_events_makes_no_session(name):
    losses = Losses()
    writer = RecordWriter(formats.get(name), losses)
    runs = [
        Trajectory(trajectory_id="d/events", source_format="atif", steps=[EVENT]),
        Trajectory(trajectory_id="d/empty", source_format="atif", steps=[]),
    ]
    assert [record for _, record in writer.records(runs)] == [None, None]
    assert writer.left_out == 0
    assert [f"{item['path']}: {item['reason']}" for item in losses.items] == [NOTHING, NOTHING]


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_a_run_in_which_anything_is_there_to_say_makes_one(name):
    answer = Observation(source="environment", text="late", step=0, order=0)
    early = Observation(source="environment", text="early", step=None, order=0)
    runs = [
        Trajectory(
            trajectory_id="d/result", source_format="atif",
            steps=[EVENT.model_copy(update={"observations": [answer]})],
        ),
        Trajectory(trajectory_id="d/early", source_format="atif", early_observations=[early]),
        Trajectory(trajectory_id="d/own", source_format=name, source_id="s", steps=[EVENT]),
    ]  # fmt: skip
    written = list(RecordWriter(formats.get(name), Losses()).records(runs))
    assert all(record for _, record in written)


# ---- names of files ----------------------------------------------------------------------------

CLAUDE = "-home-ann-orchard/11111111-aaaa-4bbb-8ccc-222222222222.jsonl"
SESSION = "11111111-aaaa-4bbb-8ccc-222222222222"
LINES = [
    {
        "type": "user", "uuid": "a1", "parentUuid": None, "sessionId": SESSION,
        "cwd": "/home/ann/orchard", "timestamp": "2026-03-01T10:00:00.000Z",
        "isSidechain": False, "version": "2.1.0", "message": {"role": "user", "content": "Count."},
    },
]  # fmt: skip
AGENT = [{**LINES[0], "isSidechain": True, "agentId": "a7"}]


def lay(path: Path, lines: list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


def back(tmp_path: Path, name: str) -> dict[str, bytes]:
    """Files of a folder that were read and written again."""
    store = adp.convert([str(tmp_path / "in")], str(tmp_path / "store"))
    adp.export(store, name, str(tmp_path / "out"))
    paths = (path for path in (tmp_path / "out").rglob("*") if path.is_file())
    return {path.relative_to(tmp_path / "out").as_posix(): path.read_bytes() for path in paths}


@pytest.mark.parametrize("name", ["export.jsonl", "sessions/export.jsonl", f"{SESSION}.jsonl"])
def test_a_session_goes_back_under_the_name_that_its_program_looks_for(tmp_path, name):
    lay(tmp_path / "in" / name, LINES)
    files = back(tmp_path, "claude_code")
    assert list(files) == [CLAUDE]
    assert files[CLAUDE].startswith(b'{"parentUuid":null,'), "the layout of the source"


@pytest.mark.parametrize("folder", ["-home-ann", "projects/-home-ann"])
def test_a_name_of_the_program_stays(tmp_path, folder):
    lay(tmp_path / "in" / folder / f"{SESSION}.jsonl", LINES)
    assert list(back(tmp_path, "claude_code")) == [f"{folder}/{SESSION}.jsonl"]


def test_files_of_subagents_go_with_their_session(tmp_path):
    lay(tmp_path / "in" / f"{SESSION}.jsonl", LINES)
    lay(tmp_path / "in" / SESSION / "subagents" / "agent-a7.jsonl", AGENT)
    meta = tmp_path / "in" / SESSION / "subagents" / "agent-a7.meta.json"
    meta.write_text('{"agentType": "counter"}')
    folder = f"-home-ann-orchard/{SESSION}/subagents"
    files = back(tmp_path, "claude_code")
    assert sorted(files) == [
        CLAUDE,
        f"{folder}/agent-a7.jsonl",
        f"{folder}/agent-a7.meta.json",
    ]
    assert files[f"{folder}/agent-a7.meta.json"] == meta.read_bytes()


def test_two_copies_of_a_session_get_a_file_each(tmp_path):
    lay(tmp_path / "in" / "-home-ann-orchard" / f"{SESSION}.jsonl", LINES)
    lay(tmp_path / "in" / "copy.jsonl", LINES)
    files = back(tmp_path, "claude_code")
    assert len(files) == 2
    assert CLAUDE in files
    assert all(name.endswith(CLAUDE) for name in files)


@pytest.mark.parametrize("name", ["codex", "pi"])
def test_a_log_with_another_name_is_found_by_its_program(tmp_path, name):
    (tmp_path / "in").mkdir()
    example = next(path for path in sorted((EXAMPLES / name).rglob("*.jsonl")))
    (tmp_path / "in" / "log.jsonl").write_bytes(example.read_bytes())
    files = back(tmp_path, name)
    assert all(PROGRAMS[name].finds(file, "session") for file in files)


def test_opencode_gets_a_document_a_session(tmp_path):
    (tmp_path / "in").mkdir()
    source = EXAMPLES / "opencode" / "export.json"
    (tmp_path / "in" / "export.json").write_bytes(source.read_bytes())
    ((name, data),) = back(tmp_path, "opencode").items()
    document = json.loads(data)
    assert name == f"{document['info']['id']}.json"


# ---- how to go on ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("claude_code", f"~/.claude/projects, then, in the folder of the session: claude --resume "
         f"{SESSION}"),
        ("codex", f"~/.codex, then: codex resume {SESSION}"),
        ("opencode", "opencode import '{out}/ses_"),
        ("pi", "pi --session '{out}/sessions/--home-ann-orchard--/2026-03-01T"),
        ("openai_chat", None),
    ],
)  # fmt: skip
def test_an_export_ends_with_the_next_call(tmp_path, capsys, name, words):
    lay(tmp_path / "in" / "export.jsonl", LINES)
    store = adp.convert([str(tmp_path / "in")], str(tmp_path / "store"))
    out = tmp_path / "my out"
    assert main(["export", str(store.root), "--to", name, "-o", str(out)]) == 0
    last = capsys.readouterr().out.strip().splitlines()[-1]
    if words is None:
        assert not last.startswith("next:")
    else:
        assert last.startswith("next: ")
        assert words.format(out=out) in last
