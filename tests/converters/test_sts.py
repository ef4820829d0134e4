"""Session traces: files as the Hub's page describes them, and what is wrong with others.

No file of another program was at hand: these are written by hand after that page.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adp.converters.export import export
from adp.converters.run import convert
from adp.converters.sts import CONVERTER
from adp_schema.errors import UsageError
from adp_schema.losses import Losses
from adp_schema.protocols import Match
from adp_schema.store import Store
from tests.converters.containers import zst
from tests.roundtrip import read_one, write_one

CLOCK = Path(__file__).parent / "examples" / "clock.jsonl"
HEADER = {"type": "session", "harness": "my-agent", "id": "abc123", "name": "what time is it"}
DOCUMENTED = [
    HEADER,
    {"type": "message", "message": {"role": "user", "content": "what time is it?"}},
    {
        "type": "message",
        "message": {
            "role": "assistant",
            "content": "",
            "toolCalls": [{"id": "t1", "function": {"name": "get_time", "arguments": "{}"}}],
        },
    },
    {"type": "message", "message": {"role": "tool", "toolCallId": "t1", "content": "15:00 UTC"}},
    {"type": "message", "message": {"role": "assistant", "content": "it is 15:00 UTC"}},
]


def lines_of(*lines: object) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def converted(folder: Path, name: str, data: bytes) -> Store:
    (folder / name).write_bytes(data)
    convert([str(folder / name)], str(folder / "store"))
    return Store.open(str(folder / "store"))


def test_the_documented_session(tmp_path):
    store = converted(tmp_path, "a.jsonl", lines_of(*DOCUMENTED))
    (run,) = store.trajectories()
    assert (run.trajectory_id, run.agent_name) == ("a/abc123", "my-agent")
    assert [step.source for step in run.steps] == ["user", "agent", "agent"]
    (call,) = run.steps[1].calls
    (result,) = run.steps[1].observations
    assert (call.call_id, call.name, call.arguments) == ("t1", "get_time", "{}")
    assert (result.call_step, result.call, result.text) == (1, 0, "15:00 UTC")
    (source,) = store.scan("sources").collect().to_dicts()
    assert (source["framing"], source["records"], source["used"]) == ("session", 1, 1)
    assert run.source_lengths == [(tmp_path / "a.jsonl").stat().st_size]


@pytest.mark.parametrize("name", ["x.jsonl", "x.sts.jsonl", "x.json", "x.jsonl.zst"])
@pytest.mark.parametrize("layout", ["spaced", "compact", "crlf", "blank lines", "no end"])
def test_a_file_comes_back_byte_for_byte(tmp_path, name, layout):
    data = CLOCK.read_bytes()
    if layout == "compact":
        rows = [json.loads(line) for line in data.decode().split("\n")[:-1]]
        lines = [json.dumps(row, separators=(",", ":"), ensure_ascii=False) for row in rows]
        data = "".join(f"{line}\n" for line in lines).encode()
    odd = {"crlf": (b"\n", b"\r\n"), "blank lines": (b"\n", b"\n\n")}.get(layout)
    given = data.replace(*odd) if odd else data.rstrip(b"\n") if layout == "no end" else data
    store = converted(tmp_path, name, zst(given) if name.endswith("zst") else given)
    report = export(store, "sts", str(tmp_path / "out"))
    assert (report.files, report.records, report.losses) == (1, 1, {})
    if not name.endswith("zst"):
        wanted = given if layout == "no end" else data
        assert (tmp_path / "out" / name).read_bytes() == wanted


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([HEADER, "text"], "expected an object - at $[1]"),
        ([HEADER, {"type": "message", "message": {}}], "expected a role - at $[1].message.role"),
        ([HEADER, DOCUMENTED[1], HEADER], "another session begins here"),
        ([DOCUMENTED[1], HEADER], "the first line is no header of a session - at $[0].type"),
    ],
)
def test_what_is_wrong_is_rejected_with_its_place(tmp_path, lines, reason):
    store = converted(tmp_path, "a.jsonl", lines_of(*lines))
    assert store.manifest.counts.rejected == 1
    (row,) = store.scan("rejects").collect().to_dicts()
    assert reason in f"{row['reason']} - at {row['path']}"


def test_a_torn_line_rejects_the_file(tmp_path):
    data = lines_of(*DOCUMENTED)
    store = converted(tmp_path, "a.jsonl", data[:-20])
    assert (store.manifest.counts.records, store.manifest.counts.rejected) == (1, 1)
    (row,) = store.scan("rejects").collect().to_dicts()
    assert (row["offset"], row["length"]) == (0, len(data) - 20)


def test_only_its_own_header_is_recognised():
    from adp_schema import jsontext

    def sniffed(line: object) -> Match:
        return CONVERTER.sniff(jsontext.decode_object(json.dumps(line).encode()))

    assert sniffed(HEADER) == Match.STAMP
    assert sniffed({**HEADER, "version": 3, "cwd": "/h"}) == Match.NO  # a session of Pi
    assert [sniffed(line) for line in DOCUMENTED[1:]] == [Match.NO] * 4
    assert sniffed({**HEADER, "harness": 1}) == Match.NO


def test_other_formats_become_a_file_a_trajectory(tmp_path):
    rows = [{"id": name, "messages": [{"role": "user", "content": "x"}]} for name in ("a/b", "c")]
    store = converted(tmp_path, "chat.jsonl.gz", lines_of(*rows))
    report = export(store, "sts", str(tmp_path / "out"))
    names = sorted(path.name for path in (tmp_path / "out" / "chat").iterdir())
    assert (report.files, report.records, len(names)) == (2, 2, 2)
    assert names[1] == "c.jsonl"
    convert([str(tmp_path / "out")], str(tmp_path / "back"))
    back = [run.source_id for run in Store.open(str(tmp_path / "back")).trajectories()]
    assert sorted(back) == ["a/b", "c"]
    with pytest.raises(UsageError, match="leave out --single"):
        export(store, "sts", str(tmp_path / "one"), single="one.jsonl")


def test_times_keep_their_digits_until_they_are_edited():
    for digits in ("1767225600000", "1767225600000.0", "1.7672256e12", "-5", "0.5"):
        data = json.dumps([HEADER, DOCUMENTED[1]]).replace('?"', f'?", "timestamp": {digits}')
        (run,) = read_one(CONVERTER, data.encode())
        assert f'"timestamp":{digits}'.encode() in write_one(CONVERTER, run)
        assert run.steps[0].timestamp is not None
        run.steps[0].timestamp = run.steps[0].timestamp.replace(year=2001)
        losses = Losses()
        assert digits.encode() not in write_one(CONVERTER, run, losses)
        assert bool(losses.items) == (digits == "0.5")
