"""Which inputs are found, and what becomes of those that cannot be read."""

import gzip
import io
import json
import os
import re
import sys
import zipfile
import zlib
from pathlib import Path

import pytest

from adp.converters.export import export
from adp.converters.inputs import collect
from adp.converters.registry import formats
from adp.converters.run import ConvertOptions, convert
from adp.converters.session_folders import AGENTS, resolve
from adp_schema.errors import InputError, OutputExistsError, UsageError
from adp_schema.store import Store
from tests.converters.containers import chat, converted, lines, reasons, rejections, zipped, zst
from tests.converters.known_examples import LINES

ONE_CHAT = lines([chat(1)])


def names(*sources):
    return [item.source_file for item in collect([str(source) for source in sources]).files]


def put(path, data=ONE_CHAT):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_a_folder_is_walked_for_data_files(tmp_path):
    results = [
        "a.json",
        "a.jsonl.gz",
        "b/c.NDJSON",
        "b/d.parquet",
        "b/e.json.zst",
        "other.index/z.db",
        "z.eval",
    ]
    passed_over = ["notes.txt", "app.log.gz", "x.gz", ".hidden.json", ".git/a.json", "json"]
    for name in [*results, *passed_over]:
        put(tmp_path / name)
    put(tmp_path / "old" / "steps" / "part.parquet")
    put(tmp_path / "old" / "adp.json")
    put(tmp_path / "old.index" / "0.db")
    put(tmp_path / "other.index" / "z.db")
    put(tmp_path / "stopped" / ".run" / "plan.json")
    put(tmp_path / "stopped" / "part.parquet")
    assert names(tmp_path) == results
    with pytest.raises(InputError, match="is a store already"):
        names(tmp_path / "old")


def test_circles_of_links_end_and_folders_count_once(tmp_path):
    put(tmp_path / "b" / "x.json")
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b" / "up").symlink_to(tmp_path)
    (tmp_path / "b" / "self").symlink_to(tmp_path / "b")
    assert names(tmp_path) == ["b/x.json"]
    assert names(tmp_path / "**" / "*.json") == ["x.json"]


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        ("**/*.jsonl", ["a.jsonl", "b/c.jsonl", "b/d/e.jsonl"]),
        ("*.jsonl", ["a.jsonl"]),
        ("b/**", ["b/c.jsonl", "b/d/e.jsonl", "b/f.json"]),
        ("**/[c-e].jsonl", ["b/c.jsonl", "b/d/e.jsonl"]),
        ("**/[!e].jsonl", ["a.jsonl", "b/c.jsonl"]),
        ("?/?.json", ["b/f.json"]),
        ("b*", ["b/c.jsonl", "b/d/e.jsonl", "b/f.json"]),
        ("b/**/e.*", ["b/d/e.jsonl"]),
    ],
)
def test_patterns_are_expanded(tmp_path, pattern, value):
    for name in ["a.jsonl", "b/c.jsonl", "b/d/e.jsonl", "b/f.json", "b/.h/g.jsonl"]:
        put(tmp_path / "in" / name)
    inputs = collect([f"{tmp_path}/in/{pattern}"])
    paths = [Path(item.place.path).relative_to(tmp_path / "in") for item in inputs.files]
    assert [path.as_posix() for path in paths] == value


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(tmp_path):
    put(tmp_path / "x[1].jsonl")
    assert names(tmp_path / "x[1].jsonl") == ["x[1].jsonl"]
    for pattern, output in {"*.yaml": "no file matches", "[z-a]": "no pattern"}.items():
        with pytest.raises(InputError, match=output):
            names(tmp_path / pattern)


def test_names_stay_inside_and_different_files_stay_apart(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home" / "someone"))
    ours = put(tmp_path / "home" / "someone" / "logs" / "x.jsonl")
    other = put(tmp_path / "disk" / "logs" / "x.jsonl")
    assert names(ours.parent, other.parent) == ["logs/x.jsonl", "logs/x.jsonl#2"]
    assert names(ours, other) == ["x.jsonl", "x.jsonl#2"]
    assert names(ours, ours) == ["x.jsonl"]


def test_found_files_that_cannot_be_read_are_one_reject_each(tmp_path, monkeypatch):
    put(tmp_path / "in" / "a.jsonl")
    (tmp_path / "in" / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    put(tmp_path / "in" / "locked.jsonl")
    (tmp_path / "in" / "shut").mkdir()
    opened, listed = os.open, os.scandir

    def guarded(path, *arguments, **options):
        if str(path).endswith("locked.jsonl"):
            raise PermissionError(13, "Permission denied")
        return opened(path, *arguments, **options)

    def guarded_list(path):
        if str(path).endswith("shut"):
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(os, "open", guarded)
    monkeypatch.setattr(os, "scandir", guarded_list)
    store = converted(tmp_path / "in", tmp_path / "s", ConvertOptions())
    assert store.manifest.counts.rejected == 3
    assert reasons(store) == [
        "it is a link to nothing",
        "it cannot be read: Permission denied",
        "the folder cannot be read: Permission denied",
    ]
    for name in ("locked.jsonl", "shut"):
        with pytest.raises(InputError, match="Permission denied"):
            convert([str(tmp_path / "in" / name)], str(tmp_path / "s2"))
    assert not (tmp_path / "s2").exists()


def test_members_of_archives(tmp_path):
    data = zipped({
        "b/x.jsonl": ONE_CHAT, "a.json.gz": gzip.compress(ONE_CHAT),
        "../up.json": ONE_CHAT, "/top.json": ONE_CHAT,
        "notes.txt": b"x", "__MACOSX/a.json": b"x", ".h/a.json": b"x", "empty.json": b"",
        "t.parquet": b"PAR1", "in.zip": zipped({"a.json": ONE_CHAT}),
    })  # fmt: skip
    put(tmp_path / "in" / "logs.zip", data)
    store = converted(tmp_path / "in", tmp_path / "s", ConvertOptions())
    assert {t.source_file for t in store.trajectories()} == {
        "logs.zip/../up.json", "logs.zip//top.json", "logs.zip/a.json.gz", "logs.zip/b/x.jsonl",
    }  # fmt: skip
    assert store.manifest.datasets == {"logs": 4}
    assert sorted(reasons(store)) == [
        "Parquet in a compressed file or an archive is not read; unpack it",
        "it is a zip archive inside another file; unpack it first",
        "the file is empty",
    ]
    export(store, "openai_chat", str(tmp_path / "out"))
    written = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
    assert {name for name in written if name.startswith("out/")} == {
        "out/logs.zip/up.json", "out/logs.zip/top.json", "out/logs.zip/a.json.gz",
        "out/logs.zip/b/x.jsonl",
    }  # fmt: skip


def patched(data, name, **fields):
    """An archive with some fields of a member's headers changed, in both places."""
    out = bytearray(data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        start = archive.getinfo(name).header_offset
        central = data.index(b"PK\x01\x02")
        while name.encode() != data[central + 46 : central + 46 + len(name)]:
            central = data.index(b"PK\x01\x02", central + 1)
    for field, value in fields.items():
        local, place, size = {"flags": (6, 8, 2), "method": (8, 10, 2), "crc": (14, 16, 4)}[field]
        out[start + local : start + local + size] = value.to_bytes(size, "little")
        out[central + place : central + place + size] = value.to_bytes(size, "little")
    return bytes(out)


def split_twice(data):
    """An archive before and after the magic bytes of its second member."""
    at = data.index(b"PK\x03\x04", 1)
    return data[:at], data[at + 4 :]


def test_members_that_cannot_be_read_are_one_reject_each(tmp_path):
    good = {"a.jsonl": ONE_CHAT, "b.jsonl": ONE_CHAT}
    cases = {
        "encrypted": (patched(zipped(good), "a.jsonl", flags=1), "encrypted"),
        "method": (patched(zipped(good), "a.jsonl", method=9), "method 9"),
        "checksum": (patched(zipped(good), "a.jsonl", crc=7), "checksum"),
        "header": (b"PK\x03\x05".join(split_twice(zipped(good))), "not where it should be"),
    }
    for name, (data, why) in cases.items():
        store = converted(put(tmp_path / f"{name}.zip", data), tmp_path / name, ConvertOptions())
        (reason,) = reasons(store)
        assert why in reason
        assert store.manifest.counts.used == (2 if name == "checksum" else 1)
    zstandard = zipped({"a.jsonl": zst(ONE_CHAT)}, zipfile.ZIP_STORED)
    path = put(
        tmp_path / "z.zip", patched(zstandard, "a.jsonl", method=93, crc=zlib.crc32(ONE_CHAT))
    )
    assert converted(path, tmp_path / "zs").manifest.counts.used == 1


DIRECTORY = b"PK\x01\x02"


def in_directory(data, place, new):
    """An archive whose directory has other bytes at a place of its first entry."""
    at = data.index(DIRECTORY) + place
    return data[:at] + new + data[at + len(new) :]


@pytest.mark.parametrize(
    ("place", "new", "why", "used"),
    [
        (46 + 2, b"gsonl", "another name of a member", 1),
        (28, b"\0\0", "another name of a member|damaged", 0),
        (32, (46 + 7).to_bytes(2, "little"), "it lists 1 of 2 members", 1),
    ],
)
def test_a_member_that_is_missing_from_the_directory_is_a_reject(tmp_path, place, new, why, used):
    """Its ending differs, its name is empty, or it stands in the comment of another one."""
    data = in_directory(zipped({"a.jsonl": ONE_CHAT, "b.jsonl": ONE_CHAT}), place, new)
    put(tmp_path / "in" / "logs.zip", data)
    put(tmp_path / "in" / "good.jsonl")
    store = converted(tmp_path / "in", tmp_path / "s", ConvertOptions())
    assert store.manifest.counts.used == used + 1
    assert any(re.search(why, reason) for reason in reasons(store))


def test_bytes_that_are_no_text_in_the_first_record_end_no_conversion(tmp_path):
    """Formats look at its type; a record that is no UTF-8 is rejected, and the others are read."""
    put(tmp_path / "in" / "a.jsonl", b'{"type": "ses\xdbsion", "id": "x"}\n' + ONE_CHAT)
    put(tmp_path / "in" / "b.jsonl", b'{"ty\xdbpe": "session", "role": "\xff"}\n')
    put(tmp_path / "in" / "good.jsonl")
    store = converted(tmp_path / "in", tmp_path / "s", ConvertOptions())
    counts = store.manifest.counts
    assert (counts.used, counts.rejected) == (2, 2)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (zipped({"a.jsonl": ONE_CHAT})[:-30], "damaged"),
        (zipped({"readme.txt": b"x"}), "holds no data file"),
        (zipped({}), "holds no data file"),
    ],
)
def test_archives_that_are_not_read_say_why(tmp_path, data, why):
    path = put(tmp_path / "in" / "logs.eval", data)
    with pytest.raises(InputError, match=why):
        convert([str(path)], str(tmp_path / "s"))
    put(tmp_path / "in" / "good.jsonl")
    store = converted(tmp_path / "in", tmp_path / "s2", ConvertOptions())
    assert store.manifest.counts.records == 2
    assert why in reasons(store)[0]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zst, lambda data: zipped({"a.json": data})])
def test_standard_input(tmp_path, monkeypatch, pack):
    data = pack(lines([chat(1), chat(2)]))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    convert(["-"], str(tmp_path / "s"))
    store = Store.open(str(tmp_path / "s"))
    assert store.manifest.datasets == {"stdin": 2}
    assert [path.name for path in (tmp_path / "s").iterdir() if path.name.startswith(".")] == []
    assert "/" not in (next(store.trajectories()).source_file or "").removeprefix("stdin/")


def test_standard_input_goes_on_where_it_stopped(tmp_path, monkeypatch):
    from adp.converters import run

    def pipe(data):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    def stop(job):
        raise KeyboardInterrupt

    work = run.convert_shard
    pipe(ONE_CHAT)
    monkeypatch.setattr(run, "convert_shard", stop)
    with pytest.raises(KeyboardInterrupt):
        convert(["-"], str(tmp_path / "s"))
    monkeypatch.setattr(run, "convert_shard", work)
    pipe(lines([chat(2)]))
    with pytest.raises(OutputExistsError, match="other inputs"):
        convert(["-"], str(tmp_path / "s"))
    pipe(b"")
    with pytest.raises(InputError, match="empty"):
        convert(["-"], str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()
    pipe(b"no json")
    with pytest.raises(InputError, match="standard input: it is not JSON"):
        convert(["-"], str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()


def test_a_stopped_pipe_with_the_same_bytes_goes_on(tmp_path, monkeypatch):
    from adp.converters import run

    def stop(job):
        raise KeyboardInterrupt

    work = run.convert_shard
    for worker in (stop, work):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(ONE_CHAT)))
        monkeypatch.setattr(run, "convert_shard", worker)
        if worker is stop:
            with pytest.raises(KeyboardInterrupt):
                convert(["-"], str(tmp_path / "s"))
    convert(["-"], str(tmp_path / "s"))
    assert Store.open(str(tmp_path / "s")).manifest.counts.used == 1


def test_odd_names_are_kept_as_text(tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/odd\xe9.jsonl")
    try:
        Path(path).write_bytes(ONE_CHAT)
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    store = converted(path, tmp_path / "s")
    assert next(store.trajectories()).source_file == "odd\\xe9.jsonl"


def test_parquet_that_is_damaged(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"messages": [json.dumps(chat(n)["messages"]) + " " * n for n in range(400)]})
    whole = tmp_path / "x.parquet"
    pq.write_table(table, whole, row_group_size=100, compression="none", use_dictionary=False)
    data = bytearray(whole.read_bytes())
    metadata = pq.ParquetFile(whole).metadata
    start = metadata.row_group(2).column(0).data_page_offset
    data[start : start + 40] = b"\xff" * 40
    put(tmp_path / "in" / "page.parquet", bytes(data))
    put(tmp_path / "in" / "end.parquet", bytes(data[:-20]))
    store = converted(tmp_path / "in", tmp_path / "s", ConvertOptions(format="openai_chat"))
    assert store.manifest.counts.used == 200
    assert [reason.split(" (")[0].split(":")[0] for reason in reasons(store)] == [
        "it cannot be read", "the Parquet file is damaged from here on",
    ]  # fmt: skip
    with pytest.raises(InputError, match="cannot be read"):
        convert([str(tmp_path / "in" / "end.parquet")], str(tmp_path / "s2"))


def test_parquet_rows_with_wrong_text_are_one_reject_each(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = [json.dumps(chat(n)["messages"]).encode() for n in range(3)]
    texts[1] = b"\xff" + texts[1]
    column = pa.array(texts, pa.binary()).view(pa.string())
    pq.write_table(pa.table({"messages": column}), tmp_path / "x.parquet")
    store = converted(tmp_path / "x.parquet", tmp_path / "s")
    assert reasons(store) == ["a text in this row is not valid UTF-8"]
    assert len(rejections(store)) == 2


def test_sessions_of_agents_by_name(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    with pytest.raises(UsageError, match="did you mean claude-code"):
        convert(["claud-code:"], str(tmp_path / "s"))
    with pytest.raises(InputError, match="no sessions of pi were found"):
        convert(["pi:"], str(tmp_path / "s"))
    put(tmp_path / ".gemini" / "tmp" / "abc" / "chats" / "x.json")
    assert convert(["gemini-cli:"], str(tmp_path / "s")).counts.used == 1


def test_folders_of_an_agent_that_are_empty_hold_no_sessions(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    live, archived = (tmp_path / ".codex" / name for name in ("sessions", "archived_sessions"))
    live.mkdir(parents=True)
    put(archived / "notes.txt")
    with pytest.raises(InputError, match=r"no sessions of codex were found in .*; name their"):
        convert(["codex:"], str(tmp_path / "s"))
    put(archived / "x.json")
    assert resolve(["codex:"]) == [str(archived)]


def test_sessions_of_each_agent_have_a_format():
    assert {agent.format for agent in AGENTS.values()} <= set(formats)


def test_a_member_is_not_misread_either(tmp_path):
    """A row that sharegpt would claim by its shape, in a folder and in an archive."""
    data = json.dumps(LINES["action_studio"][0]).encode()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_bytes(data)
    (tmp_path / "in" / "good.jsonl").write_bytes(ONE_CHAT)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c.zip").write_bytes(zipped({"a.jsonl": data, "good.jsonl": ONE_CHAT}))
    for folder in ("in", "b"):
        store = convert([str(tmp_path / folder)], str(tmp_path / f"{folder}-out"))
        assert (store.counts.used, store.counts.rejected) == (1, 1)
        assert "ActionStudio" in " ".join(store.reasons)
