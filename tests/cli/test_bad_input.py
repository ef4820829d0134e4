"""Every row of docs/bad-input.md, tried with the command itself in a process of its own."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.cli import bad_input_driver
from tests.converters import folder_formats, sqlite_formats
from tests.converters.containers import tarred

DOCS = Path(__file__).parents[2] / "docs" / "bad-input.md"
FOLDER_FORMATS = folder_formats.__file__
NOBODY = 65534
GOOD = (
    b'{"id":"%d","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"ho"}]}'
)
ROWS: set[str] = set()


def row(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Say which row of the page a test is about."""
    ROWS.add(name)
    return lambda test: test


def good(number: int = 1) -> bytes:
    return GOOD % number


@dataclass
class Ran:
    """What a run of the command left."""

    code: int
    answer: Any
    err: str
    memory: int
    """Greatest memory of the process, in MB."""


class Place:
    """A folder that everybody may use, with ``in/`` for the input and ``out`` for the store."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.input = root / "in"
        self.out = root / "out"
        self.input.mkdir(mode=0o755)

    def put(self, name: str, data: bytes) -> Path:
        path = self.input / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def convert(self, *words: object, source: object = None, **plan: Any) -> Ran:
        """Run ``adp convert in -o out --json`` in a process of its own.

        Args:
            words: further words of the command.
            source: what to convert instead of the folder ``in``.
            plan: for the driver: ``ordinary`` user, ``file_bytes`` a file may have, ``meddle``.
        """
        named = self.input if source is None else source
        output = ["convert", str(named), "-o", str(self.out), "--json", *map(str, words)]
        plan = {"words": output, "good": good().decode(), "nobody": NOBODY, **plan}
        done = warm.call(bad_input_driver.follow, plan, env={"TMPDIR": str(self.root)})
        assert "Traceback" not in done.err, done.err
        last = done.out.splitlines()
        memory = int(last.pop()) if last else 0
        text = "\n".join(last)
        return Ran(done.code, json.loads(text) if text else None, done.err, memory)

    def counts(self, *words: object, **plan: Any) -> dict[str, int]:
        """Convert, and return the counts, which add up."""
        ran = self.convert(*words, **plan)
        assert ran.code == 0, ran.err
        counts: dict[str, int] = ran.answer["counts"]
        assert counts["records"] == counts["used"] + counts["skipped"] + counts["rejected"]
        self.reasons = " ".join(ran.answer["reasons"])
        self.memory = ran.memory
        return counts


@pytest.fixture
def place() -> Iterator[Place]:
    folder = Path(tempfile.mkdtemp(prefix="bad-input-"))
    folder.chmod(0o777)
    yield Place(folder)
    subprocess.run(["chmod", "-R", "u+rwx", str(folder)], check=False)
    shutil.rmtree(folder)


def call(*words: object) -> bytes:
    """Run another command, which works, and return what it prints."""
    command = [sys.executable, "-m", "adp.cli.main", *map(str, words)]
    return subprocess.run(command, check=True, capture_output=True).stdout


def used_rejected(place: Place, *words: object, **plan: Any) -> tuple[int, int]:
    counts = place.counts(*words, **plan)
    return counts["used"], counts["rejected"]


# ---- records -------------------------------------------------------------------------------------


@row("a truncated last line")
def test_truncated_last_line(place):
    place.put("a.jsonl", good(1) + b"\n" + good(2) + b"\n" + good(3)[:-20])
    assert used_rejected(place) == (2, 1)
    assert "not valid JSON" in place.reasons


@row("invalid UTF-8")
def test_invalid_utf8(place):
    place.put("a.jsonl", good(1) + b"\n" + good(2).replace(b"hi", b"\xff\xfe") + b"\n" + good(3))
    assert used_rejected(place) == (2, 1)
    assert "not valid UTF-8" in place.reasons


@row("a byte order mark")
def test_byte_order_mark(place):
    place.put("a.jsonl", b"\xef\xbb\xbf" + good(1) + b"\n" + good(2))
    place.put("b.json", b"\xef\xbb\xbf[" + good(3) + b"]")
    assert used_rejected(place) == (3, 0)


@row("lines that end in CRLF")
def test_crlf(place):
    place.put("a.jsonl", good(1) + b"\r\n" + good(2) + b"\r\n")
    assert used_rejected(place) == (2, 0)


@row("blank lines")
def test_blank_lines(place):
    place.put("a.jsonl", b"\n\n" + good(1) + b"\n  \n\t\r\n" + good(2) + b"\n\n")
    assert used_rejected(place) == (2, 0)


@row("`null`, a number, a string, `true` or a list instead of a record")
@pytest.mark.parametrize("word", [b"null", b"12", b'"text"', b"true", b"[1, 2]"])
def test_no_object(place, word):
    place.put("a.jsonl", good(1) + b"\n" + word + b"\n" + good(2) + b"\n")
    place.put("b.json", b"[" + good(3) + b", " + word + b"]")
    assert used_rejected(place) == (3, 2)
    assert "expected an object" in place.reasons


@row("a key with a value of the wrong type")
def test_wrong_types(place):
    wrong = [b'{"messages": 3}', b'{"messages": [1]}', b'{"messages": [{"role": 7}]}']
    place.put("a.jsonl", b"\n".join([good(1), *wrong, good(2)]))
    assert used_rejected(place) == (2, 3)
    assert "$.messages" in place.reasons


@row("`NaN` and `Infinity`")
def test_nan(place):
    odd = good(1).replace(b'"id":"1"', b'"id":"1","score":NaN,"more":[-Infinity,Infinity]')
    place.put("a.jsonl", odd + b"\n" + good(2))
    assert used_rejected(place) == (2, 0)
    back = place.root / "back"
    call("export", place.out, "--to", "openai_chat", "-o", back)
    assert (back / "a.jsonl").read_bytes() == place.input.joinpath("a.jsonl").read_bytes()


@row("lone surrogates and `\\u0000` in texts")
def test_lone_surrogates(place):
    odd = good(1).replace(b"hi", b"\\ud83d x \\u0000")
    place.put("a.jsonl", odd + b"\n")
    assert used_rejected(place) == (1, 0)


@row("a record larger than the limit")
@pytest.mark.parametrize("framing", ["lines", "array", "document"])
def test_large_record(place, framing):
    huge = place.input / ("a.jsonl" if framing == "lines" else "a.json")
    start = {"lines": good(1) + b"\n", "array": b"[" + good(1) + b",", "document": b""}[framing]
    end = {"lines": b"\n" + good(2), "array": b"," + good(2) + b"]", "document": b""}[framing]
    with huge.open("wb") as file:
        file.write(start + b'{"messages":[{"role":"user","content":"')
        for _ in range(300 if framing == "lines" else 100):
            file.write(b"x" * 1_000_000)
        file.write(b'"}]}' + end)
    place.put("b.jsonl", good(3))
    rest = {"lines": 2, "array": 2, "document": 0}[framing]
    lower = () if framing == "lines" else ("--max-record-bytes", 1_000_000)
    assert used_rejected(place, *lower) == (rest + 1, 1)
    assert "limit" in place.reasons
    assert place.memory < (1200 if framing == "lines" else 230)


@row("a record nested deeper than 500 levels")
def test_deep_record(place):
    deep = good(1)[:-1] + b',"deep":' + b"[" * 10_000 + b"]" * 10_000 + b"}"
    place.put("a.jsonl", deep + b"\n" + good(2))
    place.put("b.json", b"[" + deep + b"," + good(3) + b"]")
    assert used_rejected(place) == (2, 2)
    assert "nested deeper than 500 levels" in place.reasons


@row("ids that occur twice")
def test_duplicate_ids(place):
    place.put("a.jsonl", good(1) + b"\n" + good(1) + b"\n")
    place.put("b.jsonl", good(1))
    assert used_rejected(place, "--dataset", "d") == (3, 0)
    sql = "SELECT trajectory_id FROM trajectories ORDER BY seq"
    listed = call("query", place.out, "-c", sql, "--format", "json")
    ids = [row["trajectory_id"] for row in json.loads(listed)]
    assert ids == ["d/1", "d/1#2", "d/1#3"]


# ---- files ---------------------------------------------------------------------------------------


@row("an empty file")
def test_empty_file(place):
    empty = place.put("a.jsonl", b"")
    place.put("b.jsonl", good())
    assert used_rejected(place) == (1, 1)
    assert "empty" in place.reasons
    shutil.rmtree(place.out)
    ran = place.convert(source=empty)
    assert ran.code == 3
    assert "empty" in ran.err


@row("an empty folder")
def test_empty_folder(place):
    ran = place.convert()
    assert ran.code == 3
    assert "holds no data file" in ran.err


@row("a file that is no text and no known container")
def test_binary(place):
    place.put("a.json", bytes(range(256)) * 20)
    place.put("b.jsonl", good())
    assert used_rejected(place) == (1, 1)


@row("a Git LFS or git-annex pointer, or a web page, in place of the data")
def test_pointer(place):
    data = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 12345\n"
    pointer = place.put("a.parquet", data)
    place.put("b.jsonl", good())
    assert used_rejected(place) == (1, 1)
    assert "git lfs pull" in place.reasons
    shutil.rmtree(place.out)
    ran = place.convert(source=pointer)
    assert ran.code == 3
    assert "git lfs pull" in ran.err


@row("an empty list, or records that are lists")
def test_lists(place):
    place.put("a.json", b"[]")
    lists = place.put("b.json", b"[[1], [2]]")
    place.put("c.jsonl", good())
    assert used_rejected(place) == (1, 2)
    assert "an empty list" in place.reasons
    shutil.rmtree(place.out)
    ran = place.convert(source=lists)
    assert ran.code == 3
    assert "records are lists" in ran.err


@row("a file that may not be read")
def test_unreadable(place):
    secret = place.put("a.jsonl", good(1))
    place.put("b.jsonl", good(2))
    secret.chmod(0)
    assert used_rejected(place, ordinary=True) == (1, 1)
    assert "cannot be read" in place.reasons
    shutil.rmtree(place.out)
    ran = place.convert(source=secret, ordinary=True)
    assert ran.code == 3
    assert "ermission denied" in ran.err


@row("a folder that may not be read")
def test_unreadable_folder(place):
    place.put("closed/a.jsonl", good(1))
    place.put("b.jsonl", good(2))
    place.input.joinpath("closed").chmod(0)
    assert used_rejected(place, ordinary=True) == (1, 1)
    assert "cannot be read" in place.reasons


@row("a link that leads back to its folder, and one that leads nowhere")
def test_links(place):
    place.put("deep/a.jsonl", good())
    (place.input / "deep" / "again").symlink_to(place.input)
    (place.input / "gone.jsonl").symlink_to(place.input / "nothing")
    assert used_rejected(place) == (1, 1)


@row("a link that leads out of the folder")
def test_link_out(place):
    place.put("a.jsonl", good(1))
    (place.root / "private.jsonl").write_bytes(good(2))
    (place.input / "l.jsonl").symlink_to("../private.jsonl")
    assert used_rejected(place) == (1, 1)
    assert "--follow-links" in place.reasons
    shutil.rmtree(place.out)
    assert used_rejected(place, "--follow-links") == (2, 0)


@row("a link to a pipe, a socket or a device")
def test_link_to_a_pipe(place):
    place.put("a.jsonl", good())
    os.mkfifo(place.root / "pipe")
    (place.input / "l.jsonl").symlink_to(place.root / "pipe")
    (place.input / "zero.jsonl").symlink_to("/dev/zero")
    assert used_rejected(place) == (1, 2)
    assert "a link to a pipe" in place.reasons
    assert "a link to a device" in place.reasons


@row("a file that becomes a pipe or a link before it is read")
@pytest.mark.parametrize("become", ["pipe", "link"])
def test_file_becomes_a_pipe(place, become):
    path = place.put("a.jsonl", good(1))
    place.put("b.jsonl", good(2))
    (place.root / "private.jsonl").write_bytes(good(3))
    assert used_rejected(place, meddle={"path": str(path), "become": become}) == (1, 1)
    assert "convert it again" in place.reasons


@row("a pipe or a device in a folder")
def test_pipe(place):
    os.mkfifo(place.input / "pipe.jsonl")
    place.put("a.jsonl", good())
    assert used_rejected(place) == (1, 0)


@row("a zip or tar bomb, or a compressed file over the limit")
@pytest.mark.parametrize("kind", ["zip", "gz", "tar"])
def test_bomb(place, kind):
    lines = (good() + b"\n") * 100_000
    if kind == "gz":
        place.put("a.jsonl.gz", gzip.compress(lines, 6))
    elif kind == "tar":
        place.put("a.tar.gz", gzip.compress(tarred({"a.jsonl": lines}), 6))
    else:
        with zipfile.ZipFile(place.input / "a.zip", "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("a.jsonl", lines)
    place.put("b.jsonl", good(2))
    used, rejected = used_rejected(place, "--max-decompressed-bytes", 1_000_000)
    assert rejected == (2 if kind == "tar" else 1)  # the member that is cut, and the archive
    assert 1 < used < 1_000_000 // len(good()) + 10
    assert "decompressed" in place.reasons


@row("a compressed file that is cut or damaged")
def test_damaged_compression(place):
    packed = gzip.compress(b"".join(good(n) + b"\n" for n in range(10_000)), 6, mtime=0)
    place.put("cut.jsonl.gz", packed[: len(packed) // 2])
    damaged = bytearray(packed)
    damaged[len(packed) // 2 : len(packed) // 2 + 50] = bytes(50)
    place.put("damaged.jsonl.gz", bytes(damaged))
    used, rejected = used_rejected(place)
    assert rejected >= 2
    assert used > 1000


@row("a tar archive that is cut or damaged")
def test_cut_tar(place):
    data = tarred({f"{name}.jsonl": (good() + b"\n") * 100 for name in "abc"})
    place.put("a.tar", data[: len(data) // 2])
    used, rejected = used_rejected(place)
    assert 100 < used < 200
    assert 1 <= rejected <= 2
    assert "the tar archive is damaged" in place.reasons


@row("a link, a device, a pipe or a file with holes in a tar archive, called like a data file")
def test_links_in_tar(place):
    links = [("a.json", tarfile.SYMTYPE, "/etc/passwd"), ("b.json", tarfile.CHRTYPE, "")]
    place.put("a.tar", tarred({"x.jsonl": good()}, links=links))
    assert used_rejected(place) == (1, 2)
    assert "links in archives are not followed" in place.reasons


@row(
    "files that belong to a record and are larger than the limit of a record, each alone or all "
    "together"
)
def test_large_side_files(place):
    for folder, size in {"alone": 2000, "together": 600}.items():
        place.put(f"{folder}/base_state.json", b'{"conversation": 1}')
        for name in "ab":
            place.put(f"{folder}/events/{name}.json", b'"%s"' % (b"x" * size))
    form = f"{FOLDER_FORMATS}:CONVERSATIONS"
    counts = place.counts("--from", form, "--max-record-bytes", 1000)
    assert counts == {**counts, "trajectories": 1, "used": 3, "rejected": 3}
    assert "larger together than the limit" in place.reasons


@row("an SQLite database that is torn or damaged")
def test_damaged_database(place):
    path = sqlite_formats.made(place.input / "a.db", sessions=50, messages=50)
    data = bytearray(path.read_bytes())
    at = data.index(b"s40m7s40") // 4096 * 4096
    data[at : at + 4096] = bytes(4096)
    path.write_bytes(data)
    used, rejected = used_rejected(place, "--from", f"{sqlite_formats.__file__}:TABLES")
    assert used >= 30
    assert rejected >= 1
    assert "the SQLite database is damaged" in place.reasons


@row("an SQLite database with a change that was not finished (`-journal`)")
def test_unfinished_database(place):
    path = sqlite_formats.made(place.input / "a.db")
    place.put("a.db-journal", b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(600))
    sqlite_formats.made(place.input / "b.db")
    form = ("--from", f"{sqlite_formats.__file__}:TABLES")
    assert used_rejected(place, *form) == (3, 1)
    shutil.rmtree(place.out)
    ran = place.convert(*form, source=path)
    assert ran.code == 3
    assert "open it once with the program that wrote it" in ran.err


@row("an SQLite database that is made to keep a reader busy")
def test_busy_database(place):
    path = sqlite_formats.made(place.input / "a.db", more="DROP TABLE part;")
    with closing(sqlite3.connect(path)) as connection:
        endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
        connection.execute(f"CREATE VIEW part AS {endless} SELECT 's1' AS session_id, x FROM n")
        connection.commit()
    counts = place.counts("--from", f"{sqlite_formats.__file__}:TABLES")
    assert counts == {**counts, "used": 3, "skipped": 1, "rejected": 0}


@row("an SQLite database in an archive or a compressed file")
def test_packed_database(place):
    data = sqlite_formats.made(place.root / "a.db").read_bytes()
    place.put("a.tar", tarred({"a.db": data}))
    place.put("b.jsonl", good())
    assert used_rejected(place) == (1, 1)
    assert "unpack it first" in place.reasons
    shutil.rmtree(place.out)
    assert place.convert(source=place.put("c.json.gz", gzip.compress(data))).code == 3


# ---- the input changes ---------------------------------------------------------------------------


@row("a log that grows while it is read")
def test_file_grows(place):
    path = place.put("a.jsonl", b"".join(good(n) + b"\n" for n in range(1000)))
    place.put("b.jsonl", good())
    assert used_rejected(place, meddle={"path": str(path), "append": good().decode()}) == (1001, 0)


@row("a file that changes in another way, or vanishes, while it is read")
@pytest.mark.parametrize("change", [{"remove": True}, {"text": "{}"}])
def test_file_changes(place, change):
    place.put("a.jsonl", good(1))
    path = place.put("b.jsonl", good(2))
    assert used_rejected(place, meddle={"path": str(path), **change}) == (1, 1)
    assert "convert it again" in place.reasons


# ---- the output ----------------------------------------------------------------------------------


@row("an output that is there already")
def test_output_exists(place):
    place.put("a.jsonl", good())
    assert place.convert().code == 0
    before = (place.out / "adp.json").read_bytes()
    ran = place.convert()
    assert ran.code == 5
    assert "holds a store already" in ran.err
    assert (place.out / "adp.json").read_bytes() == before
    other = place.root / "other"
    other.mkdir()
    (other / "mine.txt").write_text("mine")
    place.out = other
    assert place.convert().code == 5
    assert [path.name for path in other.iterdir()] == ["mine.txt"]


@row("an output that cannot be written")
def test_output_read_only(place):
    place.put("a.jsonl", good())
    place.out = place.root / "closed" / "out"
    place.out.parent.mkdir(mode=0o555)
    ran = place.convert(ordinary=True)
    assert ran.code == 5
    assert "cannot write" in ran.err


@row("a full disk")
def test_disk_full(place):
    place.put(
        "a.jsonl",
        b"".join(
            os.urandom(40)
            .hex()
            .join(['{"messages":[{"role":"user","content":"', '"}]}\n'])
            .encode()
            for _ in range(20_000)
        ),
    )
    ran = place.convert(file_bytes=100_000)
    assert ran.code == 5, ran
    assert not (place.out / "adp.json").exists()
    assert used_rejected(place) == (20_000, 0)


def test_the_page_has_these_rows():
    text = DOCS.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| .* \| [0-9, or]+ \|$", text, re.MULTILINE)
    assert set(rows) == ROWS
    assert len(rows) == len(set(rows))
