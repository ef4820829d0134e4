"""Sessions in SQLite databases: what a format gets, what is counted, and what is refused."""

import base64
import json
import random
import shutil
import sqlite3
import subprocess
import sys
import time
import tracemalloc
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adp.converters import sqlite_records
from adp.converters.export import export
from adp.converters.files.limits import ConvertLimits
from adp.converters.files.sqlite import SqliteDatabase, SqliteShape
from adp.converters.registry import formats
from adp.converters.run import ConvertOptions, convert
from adp.converters.sqlite_records import database_frames
from adp_schema.errors import AmbiguousFormatError, InputError, NothingNewError, RecordError
from adp_schema.store import Store
from tests.converters.containers import converted, zipped
from tests.converters.sqlite_formats import KEYS, TABLES, fill, made, records_of
from tests.converters.test_run import hashes

ANY = ConvertOptions()
LIMITS = ConvertLimits()


@pytest.fixture(autouse=True)
def _formats(monkeypatch):
    table = formats._table()
    monkeypatch.setitem(table, "session_tables", "tests.converters.sqlite_formats:TABLES")
    monkeypatch.setitem(table, "keys_and_values", "tests.converters.sqlite_formats:KEYS")


def reasons(store):
    rows = store.scan("rejects").collect().sort("seq").to_dicts()
    return [(row["status"], row["reason"]) for row in rows]


def read(path, shape=TABLES.database, limits=LIMITS, log=None):
    return list(database_frames(str(path), log, shape, limits))


def texts(frames):
    return [json.loads(frame.data) for frame in frames if not frame.error and not frame.skip]


def test_a_record_is_a_session_with_its_rows(tmp_path):
    made(tmp_path / "in" / "agent.db")
    before = hashes(tmp_path / "in")
    store = converted(tmp_path / "in", tmp_path / "s", ANY)
    assert hashes(tmp_path / "in") == before
    records = records_of(store)
    assert list(records[1]) == ["session", "message", "part", "project"]
    assert records[1]["session"] == {"id": "s1", "project_id": "p1", "cost": 1.5, "title": None}
    assert [row["id"] for row in records[1]["message"]] == ["s1m3", "s1m2", "s1m1", "s1m0"]
    assert records[1]["message"][0]["data"] == '{"role": "user", "text": "é 3"}'
    part = {"id": "s1p", "session_id": "s1", "data": {"$base64": "AP8="}}
    assert records[1]["part"] == [part]
    assert records[1]["project"] == [{"id": "p1", "path": "/home/x"}]
    assert reasons(store) == [("skipped", "the table migration (2 rows) is not read")]
    (source,) = store.scan("sources").collect().to_dicts()
    assert (source["framing"], source["records"], source["used"]) == ("sqlite", 4, 3)
    runs = list(store.trajectories())
    assert [run.source_offsets for run in runs] == [[0], [1], [2]]
    assert runs[0].source_lengths == [len(runs[0].steps[0].text.encode())]


def test_the_same_bytes_with_any_workers_and_again(tmp_path):
    for name in "abc":
        made(tmp_path / "in" / f"{name}.sqlite3", sessions=5)
    for out, workers in (("s1", 1), ("s2", 2)):
        options = ConvertOptions(workers=workers)
        convert([str(tmp_path / "in")], str(tmp_path / out), options=options)
    assert hashes(tmp_path / "s1") == hashes(tmp_path / "s2")
    options = ConvertOptions(since=tmp_path / "s1")
    with pytest.raises(NothingNewError):
        convert([str(tmp_path / "in")], str(tmp_path / "s3"), options=options)
    made(tmp_path / "in" / "d.vscdb", sessions=1)
    store = converted(tmp_path / "in", tmp_path / "s4", options)
    assert len(records_of(store)) == 1


def test_what_belongs_to_no_session_is_counted(tmp_path):
    more = (
        "INSERT INTO message VALUES ('x1', 'gone', 1, '{}'), ('x2', NULL, 1, '{}');"
        "CREATE VIRTUAL TABLE words USING fts5(word);"
        'CREATE TABLE "odd name\'" (a);'
        'INSERT INTO "odd name\'" VALUES (1);'
    )
    store = converted(made(tmp_path / "a.db", more=more), tmp_path / "s", ANY)
    assert ("skipped", "2 rows of message belong to no row of session") in reasons(store)
    assert ("skipped", "the table odd name' (1 rows) is not read") in reasons(store)
    assert ("skipped", "the table words is virtual and is not read") in reasons(store)
    assert any("words_config" in reason for _, reason in reasons(store))
    assert len(records_of(store)) == 3


def test_values_of_every_kind(tmp_path):
    path = made(tmp_path / "a.db", sessions=1, messages=0)
    values = {
        "int": 2**63 - 1, "negative": -(2**63), "real": 0.1, "large": 1e300, "null": None,
        "blob": b"\x00\xfe", "empty": b"", "text": 'q"\\\n\x01é\U0001f600', "nul": "a\0b",
    }  # fmt: skip
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE plain (name, value)")
        connection.executemany("INSERT INTO plain VALUES (?, ?)", values.items())
        connection.execute("INSERT INTO plain VALUES ('broken', CAST(x'61ff62' AS TEXT))")
        connection.execute("INSERT INTO plain VALUES ('inf', 9e999), ('-inf', -9e999)")
        connection.commit()
    shape = SqliteShape(root="plain", key="name")
    results = {row["plain"]["name"]: row["plain"]["value"] for row in texts(read(path, shape))}
    assert results == {
        **values,
        "blob": {"$base64": base64.b64encode(b"\x00\xfe").decode()},
        "empty": {"$base64": ""},
        "broken": {"$base64": base64.b64encode(b"a\xffb").decode()},
        "inf": float("inf"),
        "-inf": float("-inf"),
    }


def test_children_are_found_by_keys_of_any_kind(tmp_path):
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE s (k); CREATE TABLE c (k, v); "
            "INSERT INTO s VALUES (1), ('1'), (x'31'), (CAST(x'ff' AS TEXT)), (NULL), (1.5);"
            "INSERT INTO c VALUES (1, 'i'), ('1', 't'), (x'31', 'b'), (CAST(x'ff' AS TEXT), 'x'), "
            "(NULL, 'n'), (1.5, 'r');"
        )
    shape = SqliteShape(root="s", key="k", children={"c": "k"})
    for index in ("", "CREATE INDEX i ON c (k)"):
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(index or "SELECT 1")
        frames = read(path, shape)
        children = [[row["v"] for row in record["c"]] for record in texts(frames)]
        assert children == [["i"], ["t"], ["b"], ["x"], [], ["r"]]
        assert frames[-1].skip == "1 rows of c belong to no row of s"


def test_tables_without_row_numbers_and_with_columns_called_so(tmp_path):
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE s (a, b, PRIMARY KEY (b, a)) WITHOUT ROWID;"
            "CREATE TABLE c (rowid, a, twice AS (a || a));"
            "INSERT INTO s VALUES ('z', 1), ('y', 1), ('x', 2);"
            "INSERT INTO c VALUES (2, 'z'), (1, 'z'), (0, 'y');"
        )
    shape = SqliteShape(root="s", key="a", children={"c": "a"})
    assert texts(read(path, shape)) == [
        {"s": {"a": "y", "b": 1}, "c": [{"rowid": 0, "a": "y"}]},
        {"s": {"a": "z", "b": 1}, "c": [{"rowid": 2, "a": "z"}, {"rowid": 1, "a": "z"}]},
        {"s": {"a": "x", "b": 2}, "c": []},
    ]


def keys_and_values(path, rows):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE ItemTable (key TEXT UNIQUE, value BLOB)")
        connection.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB)")
        connection.executemany("INSERT INTO cursorDiskKV VALUES (?, ?)", rows)
        connection.commit()
    return path


def test_keys_and_values(tmp_path):
    rows = [
        ("bubbleId:a:2", "{}"), ("composerData:a", '{"x": 1}'), ("bubbleId:a:1", b"\x01"),
        ("composerData:ab", None), ("bubbleId:ab:1", "1"), ("notes:a", "n"), ("notes:ab2", "n"),
        ("bubbleId:gone:1", "1"), ("bubbleId:odd", "1"), ("checkpointId:a:1", "1"),
        ("composerDataX", "1"), (None, "1"), (b"composerData:a", "1"),
    ]  # fmt: skip
    named = ConvertOptions(format="keys_and_values")  # Cursor has a table of this name, too.
    store = converted(keys_and_values(tmp_path / "state.vscdb", rows), tmp_path / "s", named)
    first, second = records_of(store)
    assert first == {
        "cursorDiskKV": {"key": "composerData:a", "value": '{"x": 1}'},
        "bubbleId": [
            {"key": "bubbleId:a:2", "value": "{}"},
            {"key": "bubbleId:a:1", "value": {"$base64": "AQ=="}},
        ],
        "notes": [{"key": "notes:a", "value": "n"}],
    }
    assert second["cursorDiskKV"]["value"] is None
    assert [row["key"] for row in second["bubbleId"]] == ["bubbleId:ab:1"]
    assert reasons(store) == [
        ("skipped", "2 rows of cursorDiskKV with keys of bubbleId belong to no session"),
        ("skipped", "1 rows of cursorDiskKV with keys of notes belong to no session"),
        ("skipped", "4 further rows of cursorDiskKV have keys that are not read"),
    ]


def test_keys_of_children_need_a_beginning():
    with pytest.raises(ValueError, match="need a beginning"):
        SqliteShape(root="t", key="k", prefix="a:", children={"b": "{id}:"})


# ---- the log of changes --------------------------------------------------------------------------


def hot(folder, checkpointed=1):
    """A database whose last session is in its log only, as a program that was killed leaves it."""
    source = folder / "live" / "agent.db"
    made(source, sessions=checkpointed)
    connection = sqlite3.connect(source)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("INSERT INTO session VALUES ('hot', 'p1', 1, 't')")
        connection.execute("INSERT INTO message VALUES ('hm', 'hot', 1, '{}')")
        connection.commit()
        (folder / "in").mkdir()
        for suffix in ("", "-wal", "-shm"):
            shutil.copy(f"{source}{suffix}", folder / "in" / f"agent.db{suffix}")
    finally:
        connection.close()
    return folder / "in"


@pytest.mark.parametrize("named", [False, True])
def test_a_hot_log_is_read_and_nothing_is_written(tmp_path, named):
    folder = hot(tmp_path)
    before = hashes(folder)
    store = converted(folder / "agent.db" if named else folder, tmp_path / "s", ANY)
    assert [record["session"]["id"] for record in records_of(store)] == ["s0", "hot"]
    assert hashes(folder) == before
    rows = store.scan("sources").collect().to_dicts()
    assert [(r["source_file"], r["framing"], r["used"], r["skipped"]) for r in rows] == [
        ("agent.db", "sqlite", 2, 1), ("agent.db-wal", "log", 1, 0),
        ("agent.db-shm", "index", 0, 1),
    ]  # fmt: skip
    assert store.manifest.counts.balanced()


def test_a_pattern_that_names_the_log_too(tmp_path):
    folder = hot(tmp_path)
    store = converted(f"{folder}/agent.db*", tmp_path / "s", ANY)
    rows = store.scan("sources").collect().to_dicts()
    assert [row["framing"] for row in rows] == ["sqlite", "log", "index"]


def test_a_log_is_read_from_a_folder_that_is_read_only_and_leaves_no_copy(tmp_path, monkeypatch):
    folder = hot(tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    for path in folder.iterdir():
        path.chmod(0o400)
    folder.chmod(0o500)
    try:
        store = converted(folder, tmp_path / "s", ConvertOptions(workers=1))
    finally:
        folder.chmod(0o700)
    assert len(records_of(store)) == 2
    assert list(scratch.iterdir()) == []


def test_a_larger_log_makes_the_database_new_but_its_index_alone_does_not(tmp_path):
    folder = hot(tmp_path)
    convert([str(folder)], str(tmp_path / "old"))
    index = folder / "agent.db-shm"
    index.write_bytes(bytes(reversed(index.read_bytes())))
    options = ConvertOptions(since=tmp_path / "old")
    with pytest.raises(NothingNewError):
        convert([str(folder)], str(tmp_path / "none"), options=options)
    log = folder / "agent.db-wal"
    log.write_bytes(log.read_bytes() + b"\0" * 100)
    store = converted(folder, tmp_path / "new", options)
    assert store.scan("sources").collect()["framing"].to_list() == ["sqlite", "log", "index"]


def test_a_database_that_is_new_in_its_log_only(tmp_path):
    """The tables are not in the file yet: what it is shows in the log."""
    source = tmp_path / "live.db"
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        from tests.converters.sqlite_formats import SCHEMA

        connection.executescript(SCHEMA)
        fill(connection)
        (tmp_path / "in").mkdir()
        for suffix in ("", "-wal"):
            shutil.copy(f"{source}{suffix}", tmp_path / "in" / f"a.db{suffix}")
    assert len(records_of(converted(tmp_path / "in", tmp_path / "s", ANY))) == 3


def test_a_log_that_is_a_link_and_an_unfinished_change_are_refused(tmp_path):
    made(tmp_path / "in" / "a.db")
    (tmp_path / "elsewhere").write_bytes(b"x" * 100)
    (tmp_path / "in" / "a.db-wal").symlink_to(tmp_path / "elsewhere")
    made(tmp_path / "in" / "b.db")
    journal = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + b"\0" * 600
    (tmp_path / "in" / "b.db-journal").write_bytes(journal)
    made(tmp_path / "in" / "c.db")
    (tmp_path / "in" / "c.db-journal").write_bytes(b"\0" * 600)
    store = converted(tmp_path / "in", tmp_path / "s", ANY)
    rejected = [reason for status, reason in reasons(store) if status == "rejected"]
    assert rejected[0] == "it cannot be read: its -wal file is a link or no file"
    assert rejected[1].startswith("a change of the SQLite database was not finished")
    assert len(records_of(store)) == 3


def grow(path):
    with path.open("ab") as file:
        file.write(b"\0")


def test_a_log_that_grows_after_it_was_copied_does_not_matter(tmp_path, monkeypatch):
    folder = hot(tmp_path)
    frames = sqlite_records._Reader.frames

    def changed(self):
        grow(folder / "agent.db-wal")
        yield from frames(self)

    monkeypatch.setattr(sqlite_records._Reader, "frames", changed)
    store = converted(folder, tmp_path / "s", ConvertOptions(workers=1))
    assert [record["session"]["id"] for record in records_of(store)] == ["s0", "hot"]


@pytest.mark.parametrize("times", [1, 1000])
def test_a_log_that_grows_while_it_is_copied(tmp_path, monkeypatch, times):
    """It is copied again; a database that never rests is rejected."""
    folder = hot(tmp_path)
    copy, copied = shutil.copyfileobj, []

    def changed(*arguments):
        copy(*arguments)
        copied.append(1)
        if len(copied) <= times:
            grow(folder / "agent.db-wal")

    monkeypatch.setattr("adp.converters.files.sqlite.shutil.copyfileobj", changed)
    store = converted(folder, tmp_path / "s", ConvertOptions(workers=1))
    rejected = [reason for status, reason in reasons(store) if status == "rejected"]
    assert len(records_of(store)) == (2 if times == 1 else 0)
    assert rejected == ([] if times == 1 else [
        "the SQLite database changes faster than it can be copied"
    ])  # fmt: skip


# ---- which format --------------------------------------------------------------------------------


def test_databases_that_no_format_reads(tmp_path):
    folder = tmp_path / "in"
    made(folder / "ours.db")
    with closing(sqlite3.connect(folder / "other.sqlite")) as connection:
        connection.execute("CREATE TABLE shop (a)")
    with closing(sqlite3.connect(folder / "crush.db")) as connection:
        connection.executescript("CREATE TABLE sessions (id); CREATE TABLE messages (parts);")
    (folder / "x.zip").write_bytes(zipped({"a.db": (folder / "ours.db").read_bytes()}))
    (folder / "text.db").write_text("hello")
    store = converted(folder, tmp_path / "s", ANY)
    rejected = {reason for status, reason in reasons(store) if status == "rejected"}
    assert rejected == {
        "no format recognises it (it is an SQLite database with shop)",
        "it looks like the database of Crush or an early opencode, "
        "but the reader crush does not recognise it",
        "an SQLite database in a compressed file or an archive is not read; unpack it first",
        "it is not JSON, JSON Lines or Parquet",
    }


def test_a_format_that_the_user_names(tmp_path):
    path = made(tmp_path / "a.db")
    named = ConvertOptions(format="session_tables")
    assert len(records_of(converted(path, tmp_path / "s", named))) == 3
    with pytest.raises(InputError, match="it has no cursorDiskKV"):
        convert([str(path)], str(tmp_path / "x"), options=ConvertOptions(format="keys_and_values"))
    with pytest.raises(InputError, match="and atif is not kept in one"):
        convert([str(path)], str(tmp_path / "x"), options=ConvertOptions(format="atif"))


def test_the_format_that_needs_more_is_the_one(tmp_path, monkeypatch):
    path = made(tmp_path / "a.db")
    part = SqliteShape(root="session", key="id")
    monkeypatch.setattr(KEYS, "database", part, raising=False)
    monkeypatch.setattr(type(KEYS), "database", part)
    assert len(records_of(converted(path, tmp_path / "s", ANY))) == 3
    monkeypatch.setattr(type(KEYS), "database", SqliteShape(root="part", key="id"))
    monkeypatch.setattr(KEYS, "database", SqliteShape(root="part", key="id"))
    with pytest.raises(AmbiguousFormatError, match="keys_and_values and session_tables"):
        convert([str(path)], str(tmp_path / "s2"))


def test_an_export_writes_lines_that_are_read_again(tmp_path):
    store = converted(made(tmp_path / "in" / "a.db"), tmp_path / "s", ANY)
    export(store, "session_tables", str(tmp_path / "out"))
    named = ConvertOptions(format="session_tables")  # Opencode has tables of these names, too.
    again = converted(tmp_path / "out", tmp_path / "s2", named)
    assert records_of(again) == records_of(store)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a.jsonl"]


# ---- limits, damage and malice -------------------------------------------------------------------


def test_a_session_over_the_limit_is_a_reject_and_its_rows_are_not_held(tmp_path):
    path = made(tmp_path / "a.db", messages=1)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO part VALUES ('large', 's1', zeroblob(20000000))")
        for at in range(40):
            row = (f"x{at}", "x" * 500_000)
            connection.execute("INSERT INTO message VALUES (?, 's2', 1, ?)", row)
        connection.commit()
    limits = ConvertLimits(record_bytes=1_000_000)
    tracemalloc.start()
    frames = read(path, limits=limits)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 << 20
    assert frames[0].error == ""
    assert frames[1].error == "the record is larger than the limit of 1,000,000 bytes"
    with pytest.raises(RecordError, match="larger than the limit of 1,000,000 bytes"):
        frames[2].check(limits)
    store = converted(path, tmp_path / "s", ConvertOptions(limits=limits))
    assert [record["session"]["id"] for record in records_of(store)] == ["s0"]


def test_a_shared_table_that_is_large_goes_with_no_session(tmp_path):
    more = "INSERT INTO project SELECT 'q' || value, hex(zeroblob(200)) FROM generate_series(1, 9);"
    more = more.replace("generate_series(1, 9)", "json_each('[1,2,3,4,5,6,7,8,9]')")
    path = made(tmp_path / "a.db", more=more)
    frames = read(path, limits=ConvertLimits(record_bytes=3000))
    assert [record["project"] for record in texts(frames)] == [[], [], []]
    assert "the table project (10 rows) is too large to go with every session" in [
        frame.skip for frame in frames
    ]


def test_more_than_a_sound_database_gives_is_a_bomb(tmp_path, monkeypatch):
    path = made(tmp_path / "a.db", sessions=9)
    size = read(path)[0].size
    frames = read(path, limits=ConvertLimits(file_bytes=3 * size + 50))
    assert len(texts(frames)) == 3
    assert "come out of the database" in frames[-1].error


def test_children_without_an_index_take_linear_time(tmp_path, monkeypatch):
    path = made(tmp_path / "a.db", sessions=3000, messages=1, more="DROP INDEX message_session;")
    started = time.monotonic()
    assert len(texts(read(path))) == 3000
    assert time.monotonic() - started < 20


def test_a_statement_that_takes_too_many_steps_is_stopped(tmp_path, monkeypatch):
    path = made(tmp_path / "a.db", sessions=300)
    monkeypatch.setattr("adp.converters.files.sqlite._STEPS", 30_000)
    monkeypatch.setattr("adp.converters.files.sqlite._STEPS_A_BYTE", 0)
    frames = read(path)
    assert 0 < len(texts(frames)) < 300
    assert "takes more steps than a sound one of its size" in frames[-1].error
    assert len([frame for frame in frames if frame.error]) <= 2


def test_views_triggers_and_computed_columns_are_not_run(tmp_path):
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE session (id TEXT, big AS (hex(zeroblob(100000000))));"
            "INSERT INTO session (id) VALUES ('a');"
            "CREATE VIEW message AS WITH RECURSIVE n(data) AS (SELECT 1 UNION ALL SELECT data + 1 "
            "FROM n) SELECT data, 'a' AS session_id FROM n;"
        )
    shape = SqliteShape(root="session", key="id", children={"message": "session_id"})
    assert texts(read(path, shape)) == [{"session": {"id": "a"}}]
    with pytest.raises(InputError, match="no format recognises it"):
        convert([str(path)], str(tmp_path / "s"))


def test_a_database_cannot_be_changed(tmp_path):
    path = made(tmp_path / "a.db")
    with SqliteDatabase(str(path), LIMITS) as database:
        database.protect()
        with pytest.raises(RecordError, match="readonly"):
            list(database.execute("DELETE FROM session"))
        with pytest.raises(RecordError, match="too many attached databases"):
            list(database.execute("ATTACH 'x.db' AS x"))


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    path = made(tmp_path_factory.mktemp("sound") / "a.db", sessions=12, messages=30)
    return path.read_bytes()


@settings(deadline=None, max_examples=120)
@given(data=st.data())
def test_damage_never_crashes_and_all_is_said(sound, tmp_path_factory, data):
    """Cut, and flip bytes: each record comes whole, or something says that it does not."""
    content = bytearray(sound)
    cut = data.draw(st.one_of(st.just(len(content)), st.integers(100, len(content))))
    for _ in range(data.draw(st.integers(0 if cut < len(content) else 1, 12))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("damaged") / "a.db"
    path.write_bytes(bytes(content[:cut]))
    started = time.monotonic()
    frames = read(path)
    assert time.monotonic() - started < 20
    for frame in frames:
        assert not (frame.error and frame.skip)
        assert frame.size == len(frame.data) or frame.hash
    assert [frame.number for frame in frames] == list(range(1, len(frames) + 1))
    if bytes(content[:cut]) == sound:
        assert len(texts(frames)) == 12
    assert frames or cut < len(sound)


def test_damaged_databases_in_a_run(tmp_path, sound):
    generator = random.Random(7)
    (tmp_path / "in").mkdir()
    for number in range(30):
        content = bytearray(sound)
        for _ in range(8):
            content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
        cut = generator.choice([len(content), generator.randrange(50, len(content))])
        (tmp_path / "in" / f"{number:02}.db").write_bytes(bytes(content[:cut]))
    store = converted(tmp_path / "in", tmp_path / "s", ANY)
    rows = store.scan("sources").collect().to_dicts()
    assert len(rows) == 30
    assert all(row["records"] == row["used"] + row["skipped"] + row["rejected"] for row in rows)
    assert store.manifest.counts.rejected > 10
    assert store.manifest.counts.used > 10


def test_a_torn_page_keeps_the_sessions_before_it(tmp_path):
    path = made(tmp_path / "a.db", sessions=200, messages=20)
    content = bytearray(path.read_bytes())
    at = content.index(b"s150m7s150")
    page = at // 4096 * 4096
    content[page : page + 4096] = b"\xff" * 4096
    path.write_bytes(bytes(content))
    store = converted(path, tmp_path / "s", ANY)
    assert len(records_of(store)) > 100
    rejected = [reason for status, reason in reasons(store) if status == "rejected"]
    assert any("the SQLite database is damaged" in reason for reason in rejected)
    assert Store.open(str(tmp_path / "s")).manifest.counts.balanced()


def test_rows_that_a_damaged_index_hides_are_said(tmp_path):
    path = made(tmp_path / "a.db", sessions=1, messages=3)
    with closing(sqlite3.connect(path)) as connection:
        # The index forgets a row: what SQLite finds by it, and what is there, differ.
        connection.execute("PRAGMA writable_schema = ON")
        sql = "SELECT sql FROM sqlite_master WHERE name = 'message_session'"
        (text,) = connection.execute(sql).fetchone()
        partial = f"{text} WHERE id <> 's0m1'"
        connection.execute("DROP INDEX message_session")
        connection.execute(partial)
        change = "UPDATE sqlite_master SET sql = ? WHERE name = 'message_session'"
        connection.execute(change, (text,))
        connection.commit()
    frames = read(path)
    assert [row["id"] for row in texts(frames)[0]["message"]] == ["s0m2", "s0m0"]
    assert [frame.error for frame in frames if frame.error] == [
        "1 rows of message were not found by their sessions: an index of the SQLite database is "
        "damaged"
    ]


_WRITER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("PRAGMA journal_mode = WAL")
for name in ("hot", "later"):
    connection.execute("INSERT INTO session VALUES (?, 'p1', 1, 't')", (name,))
    connection.commit()
    print(name, flush=True)
    sys.stdin.readline()
"""


def test_a_database_that_another_program_has_open(tmp_path):
    path = made(tmp_path / "in" / "agent.db", sessions=1)
    command = [sys.executable, "-c", _WRITER, str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as writer:
        for number, name in enumerate(("hot", "later")):
            assert writer.stdout.readline().strip() == name
            before = {p.name: p.read_bytes() for p in path.parent.iterdir()}
            assert set(before) == {"agent.db", "agent.db-wal", "agent.db-shm"}
            store = converted(tmp_path / "in", tmp_path / f"s{number}", ANY)
            names = [record["session"]["id"] for record in records_of(store)]
            assert names == ["s0", "hot", "later"][: number + 2]
            assert {p.name: p.read_bytes() for p in path.parent.iterdir()} == before
            writer.stdin.write("\n")
            writer.stdin.flush()
        assert writer.wait() == 0
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
