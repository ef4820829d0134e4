"""What is too large, too deep or a bomb is one reject; what follows it is kept."""

import gzip
import json
import tracemalloc
import zlib

import pytest

from adp.converters import framing
from adp.converters.file_pieces import pieces_of
from adp.converters.files import streams
from adp.converters.files.limits import KEPT_BYTES, ConvertLimits
from adp.converters.files.streams import InputPlace
from adp.converters.framing import frames
from adp.converters.run import ConvertOptions, convert
from adp_schema.errors import InputError, RecordError, UsageError
from tests.converters.containers import (
    chat,
    converted,
    lines,
    reasons,
    rejections,
    write_all,
    zipped,
)
from tests.converters.test_framing import read

SMALL = ConvertLimits(record_bytes=1000)
OPTIONS = ConvertOptions(format="openai_chat", limits=SMALL)
BIG = chat(7, "word " * 5000)


@pytest.mark.parametrize("name", ["lines.jsonl", "array.json", "documents.json", "glued.json",
                                  "lines.jsonl.gz", "lines.jsonl.zst", "nested.parquet",
                                  "deflated.zip", "array.json.gz"])  # fmt: skip
def test_a_large_record_is_a_reject_and_the_others_stay(tmp_path, name):
    path = write_all(tmp_path, [chat(1), BIG, chat(2)])[name]
    store = converted(path, tmp_path / "s", OPTIONS)
    assert [name for name, _ in rejections(store)] == ["t1", "t2"]
    assert reasons(store) == ["the record is larger than the limit of 1,000 bytes"]
    (row,) = store.scan("rejects").collect().to_dicts()
    assert row["record"] == 2
    assert row["length"] >= 25_000


def test_one_large_document_is_one_reject(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(BIG, indent=1))
    _, (frame,) = read(path, SMALL)
    assert frame.size > 25_000
    with pytest.raises(RecordError, match="larger than the limit"):
        frame.check(SMALL)
    with pytest.raises(InputError, match="larger than the limit"):
        convert([str(path)], str(tmp_path / "s"), options=ConvertOptions(limits=SMALL))
    assert converted(path, tmp_path / "s2", OPTIONS).manifest.counts.rejected == 1


@pytest.mark.parametrize("layout", ["lines", "array", "document", "documents", "packed"])
def test_a_large_record_is_not_held(tmp_path, layout):
    limits = ConvertLimits(record_bytes=4 << 20)
    large = b'{"messages": "' + b"x\\\\" * (12 << 20) + b'"}'
    texts = {
        "lines": large + b"\n" + lines([chat(1)]),
        "array": b"[" + large + b", " + lines([chat(1)]) + b"]",
        "document": large,
        "documents": large + b"\n\n" + json.dumps(chat(1), indent=1).encode(),
        "packed": gzip.compress(large + b"\n" + lines([chat(1)]), 1),
    }
    path = tmp_path / ("x.jsonl" if layout in ("lines", "packed") else "x.json")
    path.write_bytes(texts[layout])
    del texts
    tracemalloc.start()
    try:
        _, result = read(path, limits)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 24 << 20
    assert result[0].size in (len(large), len(large) + 1)
    assert len(result[0].data) <= KEPT_BYTES
    assert len(result) == (1 if layout == "document" else 2)


def test_the_hash_of_a_large_record_is_of_all_of_it(tmp_path):
    path = tmp_path / "x.json"
    hashes = set()
    for last in "ab":
        for text in (json.dumps("x" * 2000 + last), "[" + json.dumps("x" * 2000 + last) + "]"):
            path.write_text(text)
            hashes |= {frame.source_hash() for frame in read(path, SMALL)[1]}
    assert len(hashes) == 2


@pytest.mark.parametrize("depth", [10, 11, 499, 500, 501, 10_000])
@pytest.mark.parametrize("string", ["", "]" * 700, "[" * 700])
def test_deep_records_are_rejects(tmp_path, depth, string):
    record = json.dumps({"id": string}).encode()[:-1]
    deep = record + b', "messages": ' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"
    for limit in (10, 500):
        limits = ConvertLimits(depth=limit)
        frame = framing.Frame(deep, 1, 0, len(deep))
        if depth > limit and (string[:1] != "]" or depth == 10_000):
            with pytest.raises(RecordError, match="nested deeper"):
                frame.check(limits)
        elif depth <= limit:
            frame.check(limits)


def test_deep_records_among_others(tmp_path):
    deep = b'{"messages": ' + b"[" * 10_000 + b"]" * 10_000 + b"}\n"
    for name, data in {
        "x.jsonl": lines([chat(1)]) + deep + lines([chat(2)]),
        "x.json": b"[" + lines([chat(1)]) + b"," + deep + b"," + lines([chat(2)]) + b"]",
    }.items():
        (tmp_path / name).write_bytes(data)
        store = converted(tmp_path / name, tmp_path / f"{name}.s", ConvertOptions())
        assert reasons(store) == ["nested deeper than 500 levels"]
        assert len(rejections(store)) == 2


@pytest.mark.parametrize("pack", ["gz", "zip"])
def test_no_more_is_decompressed_than_the_limit(tmp_path, pack):
    data = lines([chat(number) for number in range(50)])
    path = tmp_path / {"gz": "x.jsonl.gz", "zip": "x.zip"}[pack]
    path.write_bytes(gzip.compress(data) if pack == "gz" else zipped({"x.jsonl": data}))
    options = ConvertOptions(limits=ConvertLimits(file_bytes=1000))
    store = converted(path, tmp_path / "s", options)
    counts = store.manifest.counts
    assert counts.used == data[:1000].count(b"\n")
    assert counts.rejected == 1
    assert "more than 1,000 bytes" in reasons(store)[0]
    assert store.manifest.lineage[0].options["max_decompressed_bytes"] == 1000


def test_a_bomb_ends_early(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "BOMB_BYTES", 1 << 20)
    monkeypatch.setattr(streams, "BOMB_RATIO", 100)
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(lines([chat(1)]) + b" " * (8 << 20)))
    store = converted(path, tmp_path / "s", ConvertOptions())
    assert store.manifest.counts.used == 1
    assert "looks like a bomb" in reasons(store)[0]


def test_positions_do_not_overlap_whatever_is_decompressed(tmp_path):
    for name in ("a", "b"):
        data = lines([chat(number) for number in range(500)])
        (tmp_path / f"{name}.jsonl.gz").write_bytes(gzip.compress(data))
    sources = [str(tmp_path / f"{name}.jsonl.gz") for name in "ab"]
    convert(sources, str(tmp_path / "s"))
    from adp_schema.store import Store

    frame = Store.open(str(tmp_path / "s")).scan("trajectories").select("seq", "source_file")
    rows = frame.collect().to_dicts()
    assert len({row["seq"] for row in rows}) == 1000
    ends = {name: [r["seq"] for r in rows if r["source_file"][0] == name] for name in "ab"}
    assert max(ends["a"]) < min(ends["b"])


@pytest.mark.parametrize("limits", [ConvertLimits(depth=501), ConvertLimits(record_bytes=0)])
def test_limits_that_make_no_sense(tmp_path, limits):
    (tmp_path / "x.jsonl").write_bytes(lines([chat(1)]))
    with pytest.raises(UsageError):
        convert([str(tmp_path)], str(tmp_path / "s"), options=ConvertOptions(limits=limits))


def test_scanning_is_linear(tmp_path, monkeypatch):
    """Each byte is looked at a fixed number of times, however small the reads are."""
    from adp.converters.files import json_values

    monkeypatch.setattr(json_values, "_CHUNK", 1000)
    text = json.dumps([{"a": 'x"\\' * 40_000, "b": [[]] * 1000}, "é" * 30_000, 12, None])
    path = tmp_path / "x.json"
    path.write_text(text)
    stat = path.stat()
    place = InputPlace(str(path), stat.st_size, stat.st_mtime_ns, packed=stat.st_size)
    fed = []
    feed = json_values._Nesting.feed

    def counted(self, chunk, at):
        fed.append(len(chunk) - at)
        return feed(self, chunk, at)

    monkeypatch.setattr(json_values._Nesting, "feed", counted)
    (piece,) = pieces_of(place, "x.json", "json_array")
    results = [json.loads(frame.data) for frame in frames(piece)]
    assert results == json.loads(text)
    assert sum(fed) < 1.1 * len(text)
    assert zlib.crc32(text.encode()) == zlib.crc32(path.read_bytes())
