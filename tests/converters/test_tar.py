"""Tar archives, compressed or not: their members are inputs; Python's tarfile is the oracle."""

import gzip
import os
import tarfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adp.converters.conformance import conformance
from adp.converters.export import export
from adp.converters.files import members, streams
from adp.converters.files.limits import ConvertLimits
from adp.converters.files.tar import tar_members
from adp.converters.inputs import collect
from adp.converters.run import ConvertOptions, convert
from adp_schema.errors import InputError, NothingNewError
from tests.converters.containers import (
    chat,
    converted,
    lines,
    reasons,
    rejections,
    tarred,
    zipped,
    zst,
)
from tests.converters.test_run import hashes

ANY = ConvertOptions()
PACKERS = {".tar": bytes, ".tar.gz": gzip.compress, ".tgz": gzip.compress, ".tar.zst": zst}


def put(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("named", [False, True])
def test_members_are_inputs(tmp_path, suffix, named):
    data = tarred({
        "./b/x.jsonl": lines([chat(1), chat(2)]), "a.json.gz": gzip.compress(lines([chat(3)])),
        "../up.json": lines([chat(4)]), "/top.json": lines([chat(5)]), "notes.txt": b"x",
        "__MACOSX/a.json": b"x", ".h/a.json": b"x", "empty.json": b"", "t.parquet": b"PAR1",
        "in.zip": zipped({"a.json": b"{}"}), "in.tar": tarred({"a.json": b"{}"}),
        "../up.json ": b"",
    })  # fmt: skip
    path = put(tmp_path / "in" / f"logs{suffix}", PACKERS[suffix](data))
    store = converted(path if named else tmp_path / "in", tmp_path / "s", ANY)
    name = path.name
    assert [t.source_file for t in store.trajectories()] == [
        f"{name}/../up.json", f"{name}//top.json", f"{name}/a.json.gz",
        f"{name}/b/x.jsonl", f"{name}/b/x.jsonl",
    ]  # fmt: skip
    assert store.manifest.datasets == {"logs": 5}
    assert sorted(reasons(store)) == [
        "Parquet in a compressed file or an archive is not read; unpack it",
        "it is a tar archive inside another file; unpack it first",
        "it is a zip archive inside another file; unpack it first",
        "the file is empty",
    ]
    assert not (tmp_path / "s" / ".run").exists()
    export(store, "openai_chat", str(tmp_path / "out"))
    written = {p.relative_to(tmp_path / "out").as_posix() for p in tmp_path.rglob("out/**/*.*")}
    assert f"{name}/up.json" in written


def test_an_archive_without_a_name_for_it_is_read_when_it_is_named(tmp_path):
    for number, suffix in enumerate(PACKERS):
        data = PACKERS[suffix](tarred({"x.jsonl": lines([chat(1)])}))
        path = put(tmp_path / f"blob{number}", data)
        assert len(rejections(converted(path, tmp_path / f"s{number}", ANY))) == 1


def test_links_devices_and_holes_are_refused(tmp_path):
    links = [
        ("a.json", tarfile.SYMTYPE, "/etc/passwd"), ("b.json", tarfile.LNKTYPE, "x.jsonl"),
        ("c.json", tarfile.CHRTYPE, ""), ("d.json", tarfile.FIFOTYPE, ""), ("e", b"2", "/"),
        ("f.json", b"V", ""),
    ]  # fmt: skip
    data = tarred({"x.jsonl": lines([chat(1)])}, links=links)
    store = converted(put(tmp_path / "a.tar", data), tmp_path / "s", ANY)
    assert reasons(store) == [
        "the member is a link; links in archives are not followed",
        "the member is a link; links in archives are not followed",
        "the member is a device, and no file",
        "the member is a pipe, and no file",
        "the member is of the kind b'V', which is not read",
    ]
    assert len(rejections(store)) == 1


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0/"), min_size=1, max_size=150)


@settings(deadline=None, max_examples=60)
@given(
    names=st.lists(st.lists(NAMES, min_size=1, max_size=3), min_size=1, max_size=5),
    form=st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]),
    data=st.binary(max_size=1500),
)
def test_what_tarfile_writes_is_listed_as_tarfile_lists_it(names, form, data, tmp_path_factory):
    members = {"/".join(parts): data[: len(parts[0]) * 7] for parts in names}
    path = tmp_path_factory.mktemp("tar") / "a.tar"
    path.write_bytes(tarred(members, form))
    status = path.stat()
    listed, fault = tar_members(str(path), status.st_size, status.st_mtime_ns)
    with tarfile.open(path) as archive:
        expected = [(i.name, i.offset_data, i.size) for i in archive if not i.isdir()]
    result = [(member.name, member.start, member.size) for member in listed]
    assert fault == ""
    # tarfile takes the slash from the end of a name; here it is a label.
    assert [(name.rstrip("/"), *rest) for name, *rest in result] == [
        (name.rstrip("/"), *rest) for name, *rest in expected
    ]


def test_a_ustar_name_in_two_parts_and_a_size_in_binary(tmp_path):
    name = f"{'d' * 90}/{'f' * 80}.json"
    data = bytearray(tarred({name: lines([chat(1)])}, tarfile.USTAR_FORMAT))
    size = len(lines([chat(1)]))
    data[124:136] = b"\x80" + size.to_bytes(11, "big")
    data[148:156] = b" " * 8
    data[148:156] = f"{sum(data[:512]):06o}\0 ".encode()
    store = converted(put(tmp_path / "a.tar", bytes(data)), tmp_path / "s", ANY)
    assert [t.source_file for t in store.trajectories()] == [f"a.tar/{name}"]


@pytest.fixture(scope="module")
def sound():
    members = {f"{number:03}.jsonl": lines([chat(number)] * 3) for number in range(20)}
    return tarred(members)


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_cut_archive_keeps_what_is_before_the_cut(tmp_path, sound, suffix):
    data = PACKERS[suffix](sound if suffix == ".tar" else sound + os.urandom(1 << 20))
    cut = data[: len(data) // 2]
    store = converted(put(tmp_path / f"a{suffix}", cut), tmp_path / "s", ANY)
    counts = store.manifest.counts
    assert counts.used >= 20
    assert counts.rejected in ((1, 2) if suffix == ".tar" else (1,))
    assert any("damaged" in why or "ends too early" in why for why in reasons(store))


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_damage_never_crashes(sound, data, tmp_path_factory):
    content = bytearray(sound)
    for _ in range(data.draw(st.integers(0, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(0, len(content)))]
    path = tmp_path_factory.mktemp("cut") / "a.tar"
    path.write_bytes(content)
    started = time.monotonic()
    listed, fault = tar_members(str(path), len(content), path.stat().st_mtime_ns)
    assert time.monotonic() - started < 5
    assert all(member.start > 0 and member.size >= 0 for member in listed)
    if fault:
        assert fault.startswith("the tar archive is damaged (")


def test_what_follows_the_end_of_an_archive_is_reported(tmp_path):
    """Two archives in one file, or a header whose block was lost."""
    first, last = (tarred({f"{name}.jsonl": lines([chat(name)])}) for name in "ab")
    path = tmp_path / "logs.tar"
    for number, data in enumerate((first + last, first[:1024] + bytes(512) + last)):
        path.write_bytes(data)
        listed, damage = tar_members(str(path), len(data), number)
        assert [member.name for member in listed] == ["a.jsonl"]
        assert "more follows" in damage
    path.write_bytes(first + bytes(100_000))
    assert tar_members(str(path), len(first) + 100_000, 0)[1] == ""


def test_a_name_that_is_larger_than_memory_is_not_read(tmp_path):
    info = tarfile.TarInfo("x")
    info.type, info.size = b"x", 1 << 40
    data = info.tobuf(tarfile.GNU_FORMAT)
    with pytest.raises(InputError, match="a name takes more than"):
        convert([str(put(tmp_path / "a.tar", data))], str(tmp_path / "s"))


def test_a_bomb_ends_early(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "BOMB_BYTES", 1 << 20)
    monkeypatch.setattr(streams, "BOMB_RATIO", 100)
    data = tarred({"a.jsonl": lines([chat(1)]), "b.jsonl": b" " * (32 << 20)})
    path = put(tmp_path / "in" / "a.tar.gz", gzip.compress(data))
    store = converted(path.parent, tmp_path / "s", ANY)
    assert store.manifest.counts.used == 1
    assert any("looks like a bomb" in reason for reason in reasons(store))
    options = ConvertOptions(limits=ConvertLimits(file_bytes=3000))
    small = converted(path.parent, tmp_path / "s2", options)
    assert any("more than 3,000 bytes" in reason for reason in reasons(small))


def test_the_same_bytes_with_any_workers_and_known_again(tmp_path, sound):
    put(tmp_path / "in" / "a.tar.gz", gzip.compress(sound, mtime=0))
    put(tmp_path / "in" / "b.tar", sound)
    for out, workers in (("s1", 1), ("s2", 2)):
        options = ConvertOptions(workers=workers)
        convert([str(tmp_path / "in")], str(tmp_path / out), options=options)
    assert hashes(tmp_path / "s1") == hashes(tmp_path / "s2")
    options = ConvertOptions(since=tmp_path / "s1")
    with pytest.raises(NothingNewError):
        convert([str(tmp_path / "in")], str(tmp_path / "s3"), options=options)
    assert not (tmp_path / "s3").exists()


def test_a_stopped_run_goes_on(tmp_path, sound, monkeypatch):
    path = put(tmp_path / "in" / "a.tar.gz", gzip.compress(sound, mtime=0))
    convert([str(path)], str(tmp_path / "whole"))
    with monkeypatch.context() as patch:
        patch.setattr("adp.converters.run.renumber_repeats", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            convert([str(path)], str(tmp_path / "s"))
    assert list((tmp_path / "s" / ".run" / "unpacked").glob("*.tar"))
    convert([str(path)], str(tmp_path / "s"))
    assert hashes(tmp_path / "s") == hashes(tmp_path / "whole")


def test_where_nothing_can_be_unpacked_it_says_so_and_conformance_unpacks(tmp_path):
    path = put(tmp_path / "a.tar.gz", gzip.compress(tarred({"x.jsonl": lines([chat(1)])})))
    (item,) = collect([str(path)]).files
    assert "unpack it first" in item.fault
    assert conformance("openai_chat", [str(path)]).used == 1


def test_side_files_in_a_tar_archive(tmp_path, monkeypatch):
    from adp.converters.registry import formats

    monkeypatch.setitem(formats._table(), "fake", "tests.converters.fake_format:CONVERTER")
    members = {"a/run.json": b'{"fake": 1}', "a/result.json": b"1", "b/run.json": b'{"fake": 2}'}
    path = put(Path(tmp_path) / "a.tar.zst", zst(tarred(members)))
    store = converted(path, tmp_path / "s", ANY)
    rows = store.query("SELECT name FROM observations").to_pylist()
    assert [row["name"] for row in rows] == ["a.tar.zst/a/result.json"]


@pytest.mark.parametrize("gone", [False, True])
def test_an_archive_that_changes_while_it_is_unpacked_is_one_rejected_record(
    tmp_path, monkeypatch, gone
):
    """Others of the run are read; a run of nothing else says what happened."""
    data = gzip.compress(tarred({"x.jsonl": lines([chat(1)])}))
    path = put(tmp_path / "in" / "logs.tar.gz", data)
    put(tmp_path / "in" / "other.jsonl", lines([chat(2)]))
    chunks = members._chunks

    def changing(source):
        yield from chunks(source)
        path.unlink() if gone else os.utime(path, ns=(1, 1))

    monkeypatch.setattr(members, "_chunks", changing)
    store = converted(tmp_path / "in", tmp_path / "s", ANY)
    assert [t.source_file for t in store.trajectories()] == ["other.jsonl"]
    what = "it is gone" if gone else "it changed while it was read; convert it again"
    (reason,) = reasons(store)
    assert what in reason
    path.write_bytes(data)
    with pytest.raises(InputError, match="it is gone" if gone else "it changed while"):
        converted(path, tmp_path / "alone", ANY)
