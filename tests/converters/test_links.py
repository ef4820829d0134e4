"""Links, pipes and devices in the input: nothing outside of what was named is read, nothing hangs.

What could hang runs in a process of its own, which is killed after a time that no run needs.
"""

import json
import os
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import adp
from adp.converters.files.streams import InputPlace, InputStream
from adp.converters.run import ConvertOptions, convert
from adp.core.input_files import OUTSIDE, Roots, open_file
from adp_schema.errors import InputError
from adp_schema.store import Store
from tests.converters.containers import chat, lines

GUARD = 240
SECRET = "the private words"
SWAPPED = """
import os, sys
from adp.converters import plan, run
planned, path, to = plan._plan_file, sys.argv[3], sys.argv[4]

def swapping(item, choice):
    if item.source_file == "x.jsonl":
        os.unlink(path)
        os.mkfifo(path) if to == "pipe" else os.symlink(to, path)
    return planned(item, choice)

plan._plan_file = swapping
counts = run.convert([sys.argv[1]], sys.argv[2], options=run.ConvertOptions(workers=1)).counts
print(counts.used, counts.rejected)
"""


def put(path, *messages):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lines([chat(1, *messages)]) if messages else lines([chat(1)]))
    return path


@pytest.fixture
def folder(tmp_path):
    """An input folder with a good file, and a private file beside the folder."""
    put(tmp_path / "in" / "ok.jsonl")
    private = tmp_path / "private.jsonl"
    row = {"messages": [{"role": "user", "content": SECRET}]}
    private.write_text(json.dumps(row) + "\n", "utf-8")
    return tmp_path / "in"


def command(*words):
    """Run the command; a run that hangs is killed, and fails the test."""
    return subprocess.run(
        [sys.executable, "-m", "adp.cli.main", *map(str, words)],
        capture_output=True, text=True, timeout=GUARD, check=False,
    )  # fmt: skip


def read(source, out, **options):
    manifest = convert([str(source)], str(out), options=ConvertOptions(workers=1, **options))
    counts = manifest.counts
    assert counts.records == counts.used + counts.skipped + counts.rejected
    return Store.open(str(out))


def rejects(store):
    return {row["source_file"]: row for row in store.scan("rejects").collect().to_dicts()}


def holds(store, text):
    """Whether any file of a store has a text, in any column."""
    tables = [store.scan(name).collect() for name in store.manifest.tables]
    return any(text in str(table.to_dicts()) for table in tables)


def test_links_out_of_the_folder_are_refused_each_with_a_reason(folder, tmp_path):
    (folder / "l.jsonl").symlink_to("../private.jsonl")
    (folder / "absolute.jsonl").symlink_to(tmp_path / "private.jsonl")
    (folder / "twice.jsonl").symlink_to("l.jsonl")
    (folder / "passwd.json").symlink_to("/etc/passwd")
    (folder / "environ.json").symlink_to("/proc/self/environ")
    (folder / "up").symlink_to("..")
    put(tmp_path / "other" / "v1.0" / "x.jsonl")
    (folder / "data.v1").symlink_to(tmp_path / "other")
    (folder / "python").symlink_to(sys.executable)
    store = read(folder, tmp_path / "s")
    result = rejects(store)
    links = {"l.jsonl", "absolute.jsonl", "twice.jsonl", "passwd.json", "environ.json"}
    assert set(result) == links | {"up", "data.v1"}
    assert {row["reason"] for row in result.values()} == {OUTSIDE}
    assert {row["data"] for row in result.values()} == {b""}
    assert store.manifest.counts.used == 1
    assert not holds(store, SECRET)
    assert not holds(store, "root:")
    assert not holds(store, str(tmp_path))


def test_links_are_followed_when_that_is_asked_for(folder, tmp_path):
    (folder / "l.jsonl").symlink_to("../private.jsonl")
    put(tmp_path / "other" / "x.jsonl")
    (folder / "more").symlink_to(tmp_path / "other")
    store = read(folder, tmp_path / "s", follow_links=True)
    assert (store.manifest.counts.used, store.manifest.counts.rejected) == (3, 0)
    assert store.manifest.lineage[0].options["follow_links"] is True
    assert holds(store, SECRET)
    assert adp.convert(folder, tmp_path / "s2", follow_links=True).manifest.counts.used == 3
    report = adp.validate(folder, follow_links=True)
    assert report.counts.used == 3
    assert adp.validate(folder).counts.rejected == 2


def test_links_inside_and_named_links_are_followed(folder, tmp_path):
    put(folder / "deep" / "x.jsonl")
    (folder / "again.jsonl").symlink_to("deep/../ok.jsonl")
    (folder / "deep" / "top").symlink_to("..")
    store = read(folder, tmp_path / "s")
    assert (store.manifest.counts.used, store.manifest.counts.rejected) == (3, 0)
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "file.jsonl").symlink_to(tmp_path / "private.jsonl")
    assert read(tmp_path / "link", tmp_path / "s2").manifest.counts.used == 3
    assert holds(read(tmp_path / "file.jsonl", tmp_path / "s3"), SECRET)


def test_a_link_to_another_named_source_is_followed(folder, tmp_path):
    (folder / "l.jsonl").symlink_to("../private.jsonl")
    sources = [str(folder), str(tmp_path / "private.jsonl")]
    counts = convert(sources, str(tmp_path / "s")).counts
    assert (counts.used, counts.rejected) == (3, 0)


def test_patterns_begin_in_a_named_folder(folder, tmp_path):
    (folder / "l.jsonl").symlink_to("../private.jsonl")
    (folder / "up").symlink_to("..")
    store = read(f"{folder}/*", tmp_path / "s")
    assert {name: row["reason"] for name, row in rejects(store).items()} == {
        "l.jsonl": OUTSIDE,
        "up": OUTSIDE,
    }
    assert not holds(store, SECRET)
    assert holds(read(f"{folder}/*.jsonl", tmp_path / "s2", follow_links=True), SECRET)


def test_sessions_of_an_agent_stay_in_their_folder(tmp_path, monkeypatch):
    from adp.converters import session_folders

    monkeypatch.setenv("HOME", str(tmp_path))
    put(tmp_path / "private" / "x.jsonl")
    (tmp_path / ".gemini" / "tmp").mkdir(parents=True)
    (tmp_path / ".gemini" / "tmp" / "a").symlink_to(tmp_path / "private")
    put(tmp_path / "private" / "chats" / "x.json")
    assert session_folders.folders_of("gemini-cli") == []


def test_a_side_file_that_is_a_link_out_is_refused(tmp_path):
    folder = tmp_path / "in" / "d"
    folder.mkdir(parents=True)
    run = {"schema_version": "ATIF-v1.7", "agent": {"name": "a", "version": "1"}, "steps": [
        {"step_id": 1, "source": "user", "message": "q"},
    ]}  # fmt: skip
    (folder / "agent").mkdir()
    (folder / "agent" / "trajectory.json").write_text(json.dumps(run), "utf-8")
    (tmp_path / "private.json").write_text(json.dumps({"reward": SECRET}), "utf-8")
    (tmp_path / "reward.txt").write_text(SECRET, "utf-8")
    (folder / "result.json").symlink_to(tmp_path / "private.json")
    (folder / "verifier").mkdir()
    (folder / "verifier" / "reward.txt").symlink_to(tmp_path / "reward.txt")
    store = read(tmp_path / "in", tmp_path / "s", keep_raw=True)
    assert not holds(store, SECRET)
    assert {row["reason"] for row in rejects(store).values()} == {OUTSIDE}
    assert "d/result.json" in rejects(store)


def test_links_in_an_archive_are_not_followed(folder, tmp_path):
    link = zipfile.ZipInfo("l.jsonl")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        archive.writestr(link, str(tmp_path / "private.jsonl"))
    store = read(folder, tmp_path / "s")
    assert rejects(store)["a.zip/l.jsonl"]["reason"].startswith("the member is a link")
    assert not holds(store, SECRET)


@pytest.mark.parametrize("words", [[], ["--follow-links"]])
def test_links_to_what_is_no_file_are_rejected_and_hang_nothing(folder, tmp_path, words):
    os.mkfifo(tmp_path / "pipe")
    (folder / "pipe.jsonl").symlink_to(tmp_path / "pipe")
    (folder / "zero.json").symlink_to("/dev/zero")
    (folder / "loop.jsonl").symlink_to("loop.jsonl")
    (folder / "gone.jsonl").symlink_to("nothing")
    os.mkfifo(folder / "direct.jsonl")
    plug = socket.socket(socket.AF_UNIX)
    plug.bind(str(Path(os.path.relpath(tmp_path / "plug"))))
    (folder / "plug.jsonl").symlink_to(tmp_path / "plug")
    done = command("convert", folder, "-o", tmp_path / "s", *words)
    plug.close()
    assert done.returncode == 0, done.stderr
    result = rejects(Store.open(str(tmp_path / "s")))
    assert {name: row["reason"] for name, row in result.items()} == {
        "pipe.jsonl": "it is a link to a pipe, and no file",
        "zero.json": "it is a link to a device, and no file",
        "plug.jsonl": "it is a link to a socket, and no file",
        "loop.jsonl": "it is a link that leads back to itself",
        "gone.jsonl": "it is a link to nothing",
    }
    assert {row["data"] for row in result.values()} == {b""}


def test_the_command_names_the_way_out(folder, tmp_path):
    (folder / "l.jsonl").symlink_to("../private.jsonl")
    done = command("convert", folder, "-o", tmp_path / "s")
    assert done.returncode == 0
    assert f"rejected: 1 file: l.jsonl: {OUTSIDE}" in done.stderr + done.stdout
    assert command("validate", folder, "--follow-links", "--fail-on", "never").returncode == 0
    only = tmp_path / "only"
    only.mkdir()
    (only / "l.jsonl").symlink_to("../private.jsonl")
    done = command("convert", only, "-o", tmp_path / "s2")
    assert done.returncode == 3
    assert "--follow-links" in done.stderr
    assert command("convert", only, "-o", tmp_path / "s2", "--follow-links").returncode == 0


@pytest.mark.parametrize("to", ["pipe", "link"])
def test_a_file_that_is_swapped_after_it_was_found(folder, tmp_path, to):
    path = put(folder / "x.jsonl")
    target = "pipe" if to == "pipe" else str(tmp_path / "private.jsonl")
    words = [str(folder), str(tmp_path / "s"), str(path), target]
    done = subprocess.run(
        [sys.executable, "-c", SWAPPED, *words],
        capture_output=True, text=True, timeout=GUARD, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["1", "1"], done.stderr
    store = Store.open(str(tmp_path / "s"))
    assert "it cannot be read" in rejects(store)["x.jsonl"]["reason"]
    assert not holds(store, SECRET)


def test_a_link_that_changes_its_target_is_read_where_it_led(folder, tmp_path):
    (folder / "l.jsonl").symlink_to("ok.jsonl")
    place = Roots([folder]).locate(folder / "l.jsonl")
    (folder / "l.jsonl").unlink()
    (folder / "l.jsonl").symlink_to("../private.jsonl")
    with open_file(place.path) as file:
        assert SECRET.encode() not in file.read()


def test_a_folder_that_becomes_a_link_is_not_read_through(folder, tmp_path):
    put(folder / "deep" / "private.jsonl")
    place = Roots([folder]).locate(folder / "deep" / "private.jsonl")
    (folder / "deep").rename(folder / "before")
    (folder / "deep").symlink_to(tmp_path)
    with pytest.raises(OSError, match="link leads there"):
        open_file(place.path)
    with pytest.raises(OSError, match="link leads there"):
        InputStream(InputPlace(place.path, 1, 0), ConvertOptions().limits)


def test_a_pipe_that_is_named_is_an_error(tmp_path):
    os.mkfifo(tmp_path / "p.jsonl")
    (tmp_path / "l.jsonl").symlink_to("p.jsonl")
    for name in ("p.jsonl", "l.jsonl"):
        with pytest.raises(InputError, match="pipe it in"):
            convert([str(tmp_path / name)], str(tmp_path / "s"))


@pytest.mark.parametrize("link", ["../..", "../in/../private.jsonl", "./../private.jsonl", "/"])
def test_dots_lead_nowhere_else(folder, tmp_path, link):
    (folder / "l.jsonl").symlink_to(link)
    assert Roots([folder / ".." / "in"]).locate(folder / "l.jsonl").fault == OUTSIDE
    assert Roots(["/"]).locate(folder / "l.jsonl").path
    assert not holds(read(folder, tmp_path / "s"), SECRET)


def test_a_folder_with_the_beginning_of_another_name_is_outside(tmp_path):
    put(tmp_path / "in" / "ok.jsonl")
    put(tmp_path / "in-private" / "x.jsonl")
    (tmp_path / "in" / "l.jsonl").symlink_to(tmp_path / "in-private" / "x.jsonl")
    assert Roots([tmp_path / "in"]).locate(tmp_path / "in" / "l.jsonl").fault == OUTSIDE
