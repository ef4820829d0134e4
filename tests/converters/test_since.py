"""Only what an earlier store does not hold is read."""

import gzip

import pytest

import adp
from adp.converters.files.limits import ConvertLimits
from adp.converters.inputs import collect
from adp.converters.plan import choose
from adp.converters.registry import formats
from adp.converters.run import ConvertOptions, convert
from adp.converters.since import fingerprint_of
from adp_schema.errors import NothingNewError, StoreError
from adp_schema.ids import digest
from adp_schema.store import Store
from tests.converters.containers import OPENAI, chat, converted, lines, rejections, write_all, zst


def files_of(store):
    return set(store.scan("sources").collect()["source_file"])


def test_the_fingerprint_is_known_without_converting(tmp_path):
    (tmp_path / "in").mkdir()
    write_all(tmp_path / "in", [chat(1), chat(2, "é")])
    (tmp_path / "in" / "odd.json").write_text('{"what": 1}')
    (tmp_path / "in" / "unnamed").rename(tmp_path / "in" / "unnamed.json")
    limits = ConvertLimits()
    files = choose(collect([str(tmp_path / "in")]), None, None, limits)
    store = converted(tmp_path / "in", tmp_path / "s", ConvertOptions())
    noted = {r["source_file"]: r["fingerprint"] for r in store.scan("sources").collect().to_dicts()}
    assert noted == {file.source_file: fingerprint_of(file, limits) for file in files}


def test_new_and_changed_inputs_only(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("same", "edited", "moved"):
        (folder / f"{name}.jsonl").write_bytes(lines([chat(1, name)]))
    (folder / "odd.json").write_text('{"what": 1}')
    old = converted(folder, tmp_path / "old", ConvertOptions())
    (folder / "edited.jsonl").write_bytes(lines([chat(1, "EDITED"[: len("edited")])]))
    (folder / "moved.jsonl").rename(folder / "other.jsonl")
    (folder / "new.jsonl").write_bytes(lines([chat(1, "new")]))
    new = adp.convert(folder, tmp_path / "new", since=tmp_path / "old")
    assert files_of(new) == {"edited.jsonl", "new.jsonl"}
    assert [steps[0][1] for _, steps in rejections(new)] == ["EDITED", "new"]
    (act,) = new.manifest.lineage
    manifest = (tmp_path / "old" / "adp.json").read_bytes()
    assert act.parents == [digest(manifest)]
    assert act.options["unchanged"] == 3
    assert "since" not in act.options
    assert old.manifest.counts.records == 4


def test_nothing_new_writes_no_store(tmp_path):
    (tmp_path / "x.jsonl").write_bytes(lines([chat(1)]))
    convert([str(tmp_path / "x.jsonl")], str(tmp_path / "old"))
    with pytest.raises(NothingNewError, match="the input is in"):
        adp.convert(tmp_path / "x.jsonl", tmp_path / "new", since=tmp_path / "old")
    assert not (tmp_path / "new").exists()
    with pytest.raises(StoreError):
        adp.convert(tmp_path / "x.jsonl", tmp_path / "new", since=tmp_path / "nowhere")


def test_another_format_makes_an_input_new(tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.json").write_text('{"fake": 1}')
    (tmp_path / "in" / "y.jsonl").write_bytes(lines([chat(1)]))
    convert([str(tmp_path / "in")], str(tmp_path / "old"))
    monkeypatch.setitem(formats._table(), "fake", "tests.converters.fake_format:CONVERTER")
    new = adp.convert(tmp_path / "in", tmp_path / "new", since=tmp_path / "old")
    assert files_of(new) == {"x.json"}


def test_a_file_is_new_when_one_that_belongs_to_it_is(tmp_path, monkeypatch):
    monkeypatch.setitem(formats._table(), "fake", "tests.converters.fake_format:CONVERTER")
    for name in "ab":
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / "run.json").write_text(f'{{"fake": "{name}"}}')
        (tmp_path / "in" / name / "result.json").write_text("1")
    convert([str(tmp_path / "in")], str(tmp_path / "old"))
    (tmp_path / "in" / "b" / "result.json").write_text("2")
    new = adp.convert(tmp_path / "in", tmp_path / "new", since=tmp_path / "old")
    assert files_of(new) == {"b/run.json", "b/result.json"}


def test_a_run_that_was_stopped_goes_on(tmp_path, monkeypatch):
    from adp.converters import run

    work = run.convert_shard
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_bytes(lines([chat(1, name)]))
    convert([str(tmp_path / "a.jsonl")], str(tmp_path / "old"), options=OPENAI)
    sources = [str(tmp_path / f"{name}.jsonl") for name in "ab"]
    options = ConvertOptions(since=str(tmp_path / "old"))

    def stop(job):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "convert_shard", stop)
    with pytest.raises(KeyboardInterrupt):
        convert(sources, str(tmp_path / "s"), options=options)
    monkeypatch.setattr(run, "convert_shard", work)
    convert(sources, str(tmp_path / "s"), options=options)
    assert files_of(Store.open(str(tmp_path / "s"))) == {"b.jsonl"}


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_compressed_sessions_are_known_again(tmp_path, suffix):
    pack = {".gz": lambda data: gzip.compress(data, mtime=0), ".zst": zst}[suffix]
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        data = lines([{"type": "session", "harness": "h", "id": name}, *chat(1)["messages"]])
        (tmp_path / "in" / f"{name}.jsonl{suffix}").write_bytes(pack(data))
    old = converted(tmp_path / "in", tmp_path / "old", ConvertOptions())
    rows = old.scan("sources").collect().to_dicts()
    assert {(row["framing"], row["used"], row["rejected"]) for row in rows} == {("session", 1, 0)}
    with pytest.raises(NothingNewError):
        adp.convert(tmp_path / "in", tmp_path / "none", since=tmp_path / "old")
    data = lines([{"type": "session", "harness": "h", "id": "c"}])
    (tmp_path / "in" / f"c.jsonl{suffix}").write_bytes(pack(data))
    new = adp.convert(tmp_path / "in", tmp_path / "new", since=tmp_path / "old")
    assert files_of(new) == {f"c.jsonl{suffix}"}
    assert [t.source_id for t in new.trajectories()] == ["c"]


def test_a_compressed_session_that_is_cut_is_one_reject(tmp_path):
    session = [{"type": "session", "harness": "h", "id": "a"}, *chat(1)["messages"] * 50]
    data = gzip.compress(lines(session), mtime=0)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl.gz").write_bytes(data[: len(data) // 2])
    (tmp_path / "in" / "b.jsonl.gz").write_bytes(data)
    counts = converted(tmp_path / "in", tmp_path / "s", ConvertOptions()).manifest.counts
    assert (counts.records, counts.used, counts.rejected) == (2, 1, 1)
