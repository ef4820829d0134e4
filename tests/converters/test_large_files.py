"""Large arrays and compressed files are cut while they are read, and nothing of it is seen."""

import gzip
import json
import random
import shutil

import pytest

from adp.converters import file_pieces, large_files, run
from adp.converters.files.limits import ConvertLimits
from adp.converters.files.streams import InputPlace
from adp.converters.framing import frames
from adp.converters.run import ConvertOptions, convert
from adp.converters.shard import convert_shard
from adp.converters.since import fingerprint_of
from adp.core.progress import Silent
from adp_schema.errors import ChangedInputError
from adp_schema.store import Store
from tests.converters.containers import chat, lines, zipped, zst
from tests.converters.test_run import hashes

SIZE = 12_000
CHANCE = random.Random(3)
RECORDS = [
    chat(n % 30, "".join(CHANCE.choices('abcdefgh"\\{[ é', k=CHANCE.randrange(900))))
    for n in range(80)
]
ARRAY = json.dumps(RECORDS, indent=1).encode()
DOCUMENTS = "\n".join(json.dumps(record, indent=1) for record in RECORDS).encode()
LINES = b"\n\r\n".join(lines([record]).rstrip() for record in RECORDS)
GZ = gzip.compress(LINES, 1, mtime=0)
CASES = {
    "array.json": ARRAY,
    "array.json.gz": gzip.compress(ARRAY, mtime=0),
    "documents.json": DOCUMENTS,
    "documents.json.zst": zst(DOCUMENTS),
    "lines.jsonl": LINES,
    "lines.jsonl.gz": GZ,
    "lines.jsonl.zst": zst(LINES + b"\n"),
    "in.zip": zipped({"a.jsonl": LINES, "b.json": ARRAY, "c.jsonl": b"{}"}),
    "tail.json": ARRAY + b" more\n",
    "open.json": ARRAY[:-1],
    "half.json": ARRAY[: len(ARRAY) * 3 // 4],
    "words.json": ARRAY[:-1] + b", nothing, {\"a\": 1}{\\\"}, \"text\"]",
    "bom.json": b"\xef\xbb\xbf" + ARRAY,
    "cut.jsonl.gz": GZ[: len(GZ) // 2],
    "broken.jsonl.gz": GZ[: len(GZ) // 2] + b"??????" + GZ[len(GZ) // 2 + 6 :],
    "cut.json.zst": zst(ARRAY[:30_000]) + zst(ARRAY[30_000:])[:-9],
}  # fmt: skip
COLUMNS = """
    SELECT seq, trajectory_id, source_records, source_offsets, source_lengths, source_hash
    FROM trajectories ORDER BY seq"""


@pytest.fixture
def _small(monkeypatch):
    """Pieces of a few kB, read a few bytes at a time."""
    monkeypatch.setattr(file_pieces, "SHARD_BYTES", SIZE)
    monkeypatch.setattr(file_pieces, "RANGE_BYTES", 3 * SIZE)
    monkeypatch.setattr("adp.stores.stage.SMALL", 0)
    monkeypatch.setattr(large_files, "_CHUNK", 501)
    monkeypatch.setattr("adp.converters.files.json_values._CHUNK", 701)


def facts(path):
    """What a store says of its records, wherever they were cut."""
    store = Store.open(str(path))
    rejects = store.scan("rejects").collect().to_dicts() if store.files("rejects") else []
    sources = store.scan("sources").collect().to_dicts()
    return store.query(COLUMNS).to_pylist(), rejects, sources, store.manifest.counts


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The same files, each read as one piece."""
    folder = tmp_path_factory.mktemp("whole")
    results = {}
    for name, data in CASES.items():
        (folder / name).write_bytes(data)
        convert([str(folder / name)], str(folder / f"{name}.store"))
        results[name] = facts(folder / f"{name}.store")
    return results


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("name", CASES)
def test_pieces_have_the_records_of_the_whole_file(tmp_path, monkeypatch, whole, name):
    (tmp_path / name).write_bytes(CASES[name])
    if name == "lines.jsonl":  # one range of two whose records are hashed together is one file
        monkeypatch.setattr(file_pieces, "RANGE_BYTES", 1 << 20)
    convert([str(tmp_path / name)], str(tmp_path / "store"), options=ConvertOptions(workers=1))
    assert facts(tmp_path / "store") == whole[name]
    assert len(Store.open(str(tmp_path / "store")).files("steps")) > 2
    assert not (tmp_path / "store" / ".run").exists()


def mixed(folder):
    """A folder with large and small files."""
    folder.mkdir()
    for name in ("array.json", "cut.json.zst", "cut.jsonl.gz"):
        (folder / name).write_bytes(CASES[name])
    for name in ("a.jsonl", "b.jsonl", "m.jsonl"):
        (folder / name).write_bytes(lines(RECORDS[:2]))
    return str(folder)


@pytest.mark.usefixtures("_small")
def test_any_number_of_workers_writes_the_same_bytes(tmp_path):
    source = mixed(tmp_path / "in")
    for workers in (1, 3):
        options = ConvertOptions(workers=workers)
        convert([source], str(tmp_path / f"s{workers}"), options=options)
    assert hashes(tmp_path / "s1") == hashes(tmp_path / "s3")


class ProgressSums(Silent):
    """Adds up what it is given."""

    def __init__(self):
        self.whole = self.come = 0

    def total(self, size):
        self.whole += size

    def advance(self, size):
        assert size >= 0
        self.come += size


@pytest.mark.usefixtures("_small")
def test_a_run_that_was_stopped_anywhere_goes_on(tmp_path, monkeypatch):
    source = mixed(tmp_path / "in")
    sums = ProgressSums()
    convert([source], str(tmp_path / "whole"), progress=sums)
    size = sum(path.stat().st_size for path in (tmp_path / "in").iterdir())
    assert sums.come == sums.whole == size
    wanted = hashes(tmp_path / "whole")
    for count in (2, 7):
        done = []

        def stop(job, count=count, done=done):
            done.append(job.index)
            if len(done) == count:
                raise KeyboardInterrupt
            return convert_shard(job)

        monkeypatch.setattr(run, "convert_shard", stop)
        out = tmp_path / "store"
        with pytest.raises(KeyboardInterrupt):
            convert([source], str(out), options=ConvertOptions(workers=1))
        monkeypatch.setattr(run, "convert_shard", convert_shard)
        again = ProgressSums()
        convert([source], str(out), options=ConvertOptions(workers=1), progress=again)
        assert again.come == again.whole
        assert hashes(out) == wanted
        shutil.rmtree(out)


def place_of(path):
    stat = path.stat()
    packing = {".gz": "gz", ".zst": "zst"}.get(path.suffix, "")
    size = stat.st_size
    return InputPlace(str(path), size, stat.st_mtime_ns, packed=size, compression=packing)


def cut(path, kind, folder, limits=None, is_done=None):
    limits = limits or ConvertLimits()
    (piece,) = file_pieces.pieces_of(place_of(path), path.name, kind, limits)
    assert file_pieces.is_cut_later(piece)
    return large_files.large_pieces(piece, limits, folder, 5, is_done or (lambda _: False), SIZE)


@pytest.mark.usefixtures("_small")
def test_what_is_done_is_neither_kept_nor_written_again(tmp_path):
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(GZ)
    folder, done = tmp_path / "pieces", {6, 7}
    for number, (piece, _) in enumerate(cut(path, "jsonl", folder, is_done=done.__contains__), 5):
        there = {int(item.name) for item in folder.iterdir()}
        assert there == ({number} - {6, 7})
        assert (piece.unpacked is None) == (number in (6, 7))
        done.add(number)


@pytest.mark.usefixtures("_small")
def test_a_file_that_changes_is_one_piece_from_there_on(tmp_path):
    for name, kind in (("x.jsonl.gz", "jsonl"), ("x.json", "json_array")):
        path = tmp_path / name
        path.write_bytes(GZ if kind == "jsonl" else ARRAY)
        pieces = cut(path, kind, tmp_path / "pieces")
        first, share = next(pieces)
        path.write_bytes(path.read_bytes() + b" ")
        (rest, left), *none = pieces
        assert (first.more, rest.more, rest.unpacked, none) == (True, False, None, [])
        assert (rest.start, share + left) == (first.end, first.place.size)


@pytest.mark.usefixtures("_small")
def test_a_changed_file_is_rejected_and_ends_the_run_when_it_is_alone(tmp_path, monkeypatch):
    for others in (0, 1):
        folder = tmp_path / f"in{others}"
        folder.mkdir()
        (folder / "x.json").write_bytes(ARRAY)
        for number in range(others):
            (folder / f"{number}.jsonl").write_bytes(lines(RECORDS[:3]))
        done = []

        def change(job, folder=folder, done=done):
            if len(done) == 2:
                (folder / "x.json").write_bytes(ARRAY[:-5])
            done.append(job)
            return convert_shard(job)

        monkeypatch.setattr(run, "convert_shard", change)
        options, out = ConvertOptions(workers=1), tmp_path / f"s{others}"
        if not others:
            with pytest.raises(ChangedInputError):
                convert([str(folder)], str(out), options=options)
            continue
        counts = convert([str(folder)], str(out), options=options).counts
        assert counts.rejected in (1, 2)  # the piece at hand, and the rest
        assert len(RECORDS) // 9 < counts.used < len(RECORDS)


@pytest.mark.usefixtures("_small")
def test_a_record_that_is_far_too_large_is_not_unpacked(tmp_path):
    limits = ConvertLimits(record_bytes=2 * SIZE)
    data = lines(RECORDS[:30]) + b'{"a": "' + b"x" * 9 * SIZE + b'"}\n\n' + lines(RECORDS[:3])
    path = tmp_path / "x.jsonl.zst"
    path.write_bytes(zst(data))
    pieces = [piece for piece, _ in cut(path, "jsonl", tmp_path / "pieces", limits)]
    assert [bool(piece.unpacked) for piece in pieces] == [True] * (len(pieces) - 1) + [False]
    (whole,) = file_pieces.pieces_of(place_of(path), path.name, "jsonl", limits)
    assert [frame for piece in pieces for frame in frames(piece, limits)] == list(
        frames(whole, limits)
    )
    written = sorted(int(item.name) for item in (tmp_path / "pieces").iterdir())
    assert written == [5 + number for number in range(len(pieces) - 1)]


@pytest.mark.usefixtures("_small")
def test_the_limit_of_unpacked_bytes_holds_over_all_pieces(tmp_path):
    limits = ConvertLimits(file_bytes=len(LINES) - 700)
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(GZ)
    got = [frame for piece, _ in cut(path, "jsonl", tmp_path / "p", limits)
           for frame in frames(piece, limits)]  # fmt: skip
    assert "decompressed; see --max-decompressed-bytes" in got[-1].error
    assert not any(frame.error for frame in got[:-1])


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("name", ["array.json", "lines.jsonl.gz", "lines.jsonl"])
def test_the_fingerprint_is_that_of_a_reading_without_cuts(tmp_path, name):
    (tmp_path / name).write_bytes(CASES[name])
    options = ConvertOptions()
    out = tmp_path / "store"
    convert([str(tmp_path / name)], str(out), options=options)
    plan = run._plan([str(tmp_path / name)], tmp_path / "none", options, Silent())
    noted = Store.open(str(out)).scan("sources").collect().to_dicts()[0]["fingerprint"]
    assert noted == fingerprint_of(plan.files[0], options.limits)
    assert noted == fingerprint_of(by_ranges(plan.files[0]), options.limits)


def by_ranges(file):
    """A file of lines in ranges, as earlier versions cut them; others as they are."""
    if len(file.pieces) > 1:
        ranges = file_pieces.line_ranges(file.place.path, file.place.size)
        first = file.pieces[0]
        file.pieces = [
            type(first)(first.place, first.source_file, first.framing, start, end)
            for start, end in ranges
        ]
    return file


def test_each_piece_of_lines_knows_its_first_line(tmp_path, monkeypatch):
    monkeypatch.setattr(file_pieces, "RANGE_BYTES", 90)
    monkeypatch.setattr(file_pieces, "SHARD_BYTES", 30)
    monkeypatch.setattr(file_pieces, "LEAST_BYTES", 30)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(b"%d\n" % (7**number) for number in range(60)))
    place = InputPlace(str(path), path.stat().st_size, 0)
    data, before, lines = path.read_bytes(), None, []
    for piece in file_pieces.pieces_of(place, "a.jsonl", "jsonl"):
        before = file_pieces.with_lines(piece, before)
        lines.append(before.first)
        assert before.first == data[: piece.start].count(b"\n") + 1
    assert len(lines) > 5
    path.unlink()
    with pytest.raises(ChangedInputError, match="cannot be read"):
        file_pieces.with_lines(piece, before)
