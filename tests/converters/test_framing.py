"""How files are cut into records: every container gives the same, and nothing is lost uncounted."""

import gzip
import json
import zlib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adp.converters.export import export
from adp.converters.file_pieces import pieces_of
from adp.converters.files.detect import detect
from adp.converters.files.limits import ConvertLimits
from adp.converters.files.streams import InputPlace
from adp.converters.framing import frames
from tests.converters.containers import chat, converted, lines, reasons, rejections, write_all, zst
from tests.effort import examples

LIMITS = ConvertLimits()


def place_of(path):
    stat = path.stat()
    return InputPlace(str(path), stat.st_size, stat.st_mtime_ns, packed=stat.st_size)


def read(path, limits=LIMITS):
    """Framing and records of a file."""
    place, framing, why = detect(place_of(path), path.name, limits)
    if framing is None:
        return why, []
    pieces = pieces_of(place, path.name, framing, limits)
    return framing, [frame for piece in pieces for frame in frames(piece, limits)]


@settings(max_examples=4)
@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), min_size=2))
def test_every_container_gives_the_same(tmp_path_factory, texts):
    folder = tmp_path_factory.mktemp("in")
    records = [chat(number, text) for number, text in enumerate(texts)]
    written = write_all(folder, records)
    stores = {name: converted(path, folder / f"{name}.store") for name, path in written.items()}
    wanted = rejections(stores["lines.jsonl"])
    assert len(wanted) == len(records)
    for name, store in stores.items():
        assert rejections(store) == wanted, name
        assert store.manifest.counts.records == len(records), name


def test_framings_are_told_apart(tmp_path):
    records = [chat(1), chat(2)]
    results = {name: read(path)[0] for name, path in write_all(tmp_path, records).items()}
    assert {name for name, framing in results.items() if framing == "documents"} == {
        "documents.json", "glued.json", "documents.json.zst",
    }  # fmt: skip
    assert {name for name, framing in results.items() if framing == "json_array"} == {
        "array.json", "array.json.gz",
    }  # fmt: skip
    result, two = (json.dumps(record) for record in records)
    long = json.dumps(chat(1, "x" * 100_000))
    cases = {
        "jsonl": [f"{result}\n{two}", f"{long}\n{result}", f"[1]\n{result}\n", f'{{"cut\n{result}',
                  f"5\n{result}"],
        "json": [result, f"{result}\n\n", json.dumps(chat(1), indent=1), long, '{"cut'],
        "json_array": [f"[{result}, {two}]", f"[{result}] tail", "[]", f"[{result}][{two}]",
                       f"[{long}, {result}]", "["],
        "documents": [f"{result}{two}", f"{result} {two}", f"{result} tail",
                      json.dumps(chat(1), indent=1) + "\n" + result, f"{long}{result}"],
    }  # fmt: skip
    for wanted, texts in cases.items():
        for text in texts:
            (tmp_path / "x.json").write_text(text)
            assert read(tmp_path / "x.json")[0] == wanted, text[:200]
    lying = {
        "json_array": [json.dumps(records, indent=2)],
        "documents": [f"{json.dumps(chat(1), indent=1)}\n{two}", f"{result}{two}"],
        "json": [json.dumps(chat(1), indent=1)],
        "jsonl": ['{"cut\n{"id": 1}', "[1]\n[2]", "", '{"a": "b\n{"c": "d"}\n'],
    }
    for wanted, texts in lying.items():
        for text in filter(None, texts):
            (tmp_path / "x.jsonl").write_text(text)
            assert read(tmp_path / "x.jsonl")[0] == wanted, text[:200]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "the file is empty"),
        (b" \n", "the file is empty"),
        (b"words", "not JSON"),
        (gzip.compress(b"", mtime=0), "the file is empty"),
        (gzip.compress(gzip.compress(b"{}", mtime=0), mtime=0), "compressed twice"),
        (gzip.compress(b"{}", mtime=0)[:11], "ends too early"),
        (b"\x1f\x8bnot gzip", "damaged"),
        ('{"a": 1}'.encode("utf-16"), "UTF-16"),
        (gzip.compress(b"PAR1 and more", mtime=0), "Parquet in a compressed file"),
        (zst(b"PK\x03\x04"), "zip archive inside"),
    ],
)
def test_what_is_not_read_says_why(tmp_path, data, why):
    (tmp_path / "x.json").write_bytes(data)
    assert why in read(tmp_path / "x.json")[0]


def test_offsets_are_those_of_the_decompressed_bytes(tmp_path):
    records = [chat(number, "é") for number in range(3)]
    for name, path in write_all(tmp_path, records).items():
        if name.endswith((".zip", ".parquet")):
            continue
        data = path.read_bytes()
        if name.endswith(".gz"):
            data = gzip.decompress(data)
        elif data[:4] == zst(b"")[:4]:
            data = lines(records) if "documents" not in name else (
                tmp_path / "documents.json").read_bytes()  # fmt: skip
        result = read(path)[1]
        assert [frame.number for frame in result] == [1, 2, 3]
        for frame in result:
            assert data[frame.offset :].startswith(frame.data), name
            assert frame.size in (len(frame.data), len(frame.data) + 1)


RECORDS = [chat(number, "text " * number) for number in range(4)]
PLAIN = {
    "x.jsonl": lines(RECORDS),
    "x.json": json.dumps(RECORDS, indent=2).encode(),
    "d.json": "".join(json.dumps(record, indent=1) for record in RECORDS).encode(),
}


@settings(max_examples=examples(60))
@given(st.sampled_from(sorted(PLAIN)), st.sampled_from(["", ".gz", ".zst"]), st.floats(0, 1))
@example("x.json", "", 1.0)
@example("x.jsonl", ".gz", 0.999)
def test_a_file_that_is_cut_keeps_the_records_before_the_cut(tmp_path_factory, name, packing, at):
    data = {"": bytes, ".gz": gzip.compress, ".zst": zst}[packing](PLAIN[name])
    cut = data[: round(len(data) * at)]
    folder = tmp_path_factory.mktemp("cut")
    path = folder / f"{name}{packing}"
    path.write_bytes(cut)
    plain = cut
    if packing == ".gz":
        plain = zlib.decompressobj(31).decompress(cut)
    framing, result = read(path)
    whole = [frame for frame in result if not frame.error and is_record(frame.data)]
    assert [json.loads(frame.data) for frame in whole] == RECORDS[: len(whole)]
    if packing != ".zst" and framing in ("jsonl", "json_array", "documents"):
        ends = [PLAIN[name].index(frame.data) + len(frame.data) for frame in read_all(folder, name)]
        assert len(whole) == sum(end <= len(plain) for end in ends)
    if not result:
        return
    store = converted(path, folder / "store")
    counts = store.manifest.counts
    assert (counts.used, counts.records) == (len(whole), len(result))
    assert counts.rejected <= 1
    if packing and 4 <= len(cut) < len(data):
        assert "the compressed data ends too early" in reasons(store)


def is_record(data):
    try:
        return isinstance(json.loads(data), dict)
    except ValueError:
        return False


def read_all(folder, name):
    (folder / f"whole.{name}").write_bytes(PLAIN[name])
    return read(folder / f"whole.{name}")[1]


@settings(max_examples=30)
@given(st.sampled_from([".gz", ".zst"]), st.floats(0, 0.999), st.integers(1, 255))
def test_a_damaged_stream_never_crashes_and_counts(tmp_path_factory, packing, at, flip):
    data = bytearray({".gz": gzip.compress, ".zst": zst}[packing](PLAIN["x.jsonl"]))
    data[int(len(data) * at)] ^= flip
    path = tmp_path_factory.mktemp("damaged") / f"x.jsonl{packing}"
    path.write_bytes(data)
    framing, result = read(path)
    if result:
        converted(path, path.parent / "store")
    else:
        assert framing


def test_what_follows_an_array_is_one_reject(tmp_path):
    result = json.dumps(chat(1))
    for tail in ("and more", f"{result}\n" * 3, f"[{result}]"):
        (tmp_path / "z.json").write_text(f"[\n{result}, odd\n] {tail}")
        framing, entry = read(tmp_path / "z.json")
        assert framing == "json_array"
        reason = "there is more text after the end of the array"
        assert [frame.error for frame in entry] == ["", "", reason]
        assert [frame.data for frame in entry] == [result.encode(), b"odd", tail.encode()]


@pytest.mark.parametrize("packing", [".gz", ".zst"])
@pytest.mark.parametrize("name", sorted(PLAIN))
def test_compressed_files_come_back(tmp_path, name, packing):
    path = tmp_path / f"{name}{packing}"
    path.write_bytes({".gz": gzip.compress, ".zst": zst}[packing](PLAIN[name]))
    store = converted(path, tmp_path / "store")
    for out in ("one", "two"):
        export(store, "openai_chat", str(tmp_path / out))
    written = (tmp_path / "one" / path.name).read_bytes()
    assert written == (tmp_path / "two" / path.name).read_bytes()
    plain = tmp_path / "plain"
    plain.write_bytes(written)
    assert read(plain)[0] == read(path)[0]
    if packing == ".gz":
        assert gzip.decompress(written) == PLAIN[name]
    assert [frame.data for frame in read(plain)[1]] == [frame.data for frame in read(path)[1]]
    export(store, "adp_v1", str(tmp_path / "other"))
    assert [item.name for item in (tmp_path / "other").iterdir()] == [f"{name[0]}.json"]


def test_a_name_may_ask_for_compression(tmp_path):
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(lines([chat(1), chat(2)])))
    export(
        converted(path, tmp_path / "store"),
        "openai_chat",
        str(tmp_path / "out"),
        single="y.jsonl.gz",
    )
    assert gzip.decompress((tmp_path / "out" / "y.jsonl.gz").read_bytes()) == lines(
        [chat(1), chat(2)]
    )


def test_parquet_that_fills_in_nulls_says_the_same(tmp_path):
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1e5}'}}
    records = [
        chat(1),
        {
            "id": "t2",
            "messages": [
                {"role": "user", "content": "q"},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "content": "r", "tool_call_id": "c"},
            ],
        },
    ]
    paths = write_all(tmp_path, records)
    results = []
    for name in ("lines.jsonl", "nested.parquet", "text.parquet"):
        store = converted(paths[name], tmp_path / f"{name}.s")
        rows = store.query("SELECT name, arguments, result FROM calls_with_results").to_pylist()
        results.append((rejections(store), rows))
    assert results[0] == results[1] == results[2]
    assert results[0][1] == [{"name": "f", "arguments": '{"a": 1e5}', "result": "r"}]
