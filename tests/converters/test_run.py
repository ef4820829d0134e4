"""Conversions as a whole: counts, the same bytes, stop and go on, ids over shards, bad input."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adp.converters import file_pieces, run
from adp.converters.export import export
from adp.converters.registry import formats
from adp.converters.run import ConvertOptions, convert
from adp.converters.shard import convert_shard
from adp_schema.errors import (
    AmbiguousFormatError,
    ConversionLossError,
    InputError,
    OutputExistsError,
    UsageError,
)
from adp_schema.ids import digest_file
from adp_schema.store import Store


def chat(number, text="hello"):
    call = {"id": f"c{number}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    return {
        "id": f"t{number}",
        "messages": [
            {"role": "user", "content": text},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": "x" * (number % 50)},
        ],
    }


def write_lines(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def hashes(root):
    """Hashes of everything that is part of a store's contents."""
    files = [path for path in sorted(root.rglob("*")) if path.is_file() and path.name != "run.json"]
    return {str(path.relative_to(root)): digest_file(str(path)) for path in files}


@pytest.fixture
def small_shards(monkeypatch):
    """Shards of a few kB, so that small inputs have several."""
    monkeypatch.setattr(file_pieces, "SHARD_BYTES", 20_000)


def test_counts_add_up_and_what_is_wrong_is_kept(tmp_path):
    source = tmp_path / "mixed.jsonl"
    lines = [
        json.dumps(chat(1)).encode(),
        b"",
        b'{"messages": [{"role": "user", "content": "cut',
        b"null",
        b"3",
        b'{"messages": [{"content": "no role"}]}',
        b'{"messages": "no list"}',
        b'{"id": 7, "other": 1}',
        b'\xff{"messages": []}',
        b"[" * 3000 + b"]" * 3000,
        b'{"messages": [{"role": "user", "content": NaN}]}',
        b'{"messages": [{"role": "user", "content": "\\ud83d"}]}',
    ]
    source.write_bytes(b"\n".join(lines))
    manifest = convert([str(source)], str(tmp_path / "s"))
    counts = manifest.counts
    assert counts.records == counts.used + counts.skipped + counts.rejected == 11
    assert counts.used == 3
    rejects = Store.open(str(tmp_path / "s")).scan("rejects").collect().to_dicts()
    assert [(row["record"], row["path"]) for row in rejects] == [
        (3, "$"), (4, "$"), (5, "$"), (6, "$.messages[0].role"), (7, "$.messages"),
        (8, "$.messages"), (9, "$"), (10, "$"),
    ]  # fmt: skip
    assert all(row["reason"] for row in rejects)
    whole = source.read_bytes()
    for row in rejects:
        assert whole[row["offset"] :].startswith(row["data"])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(["good", "null", "cut", "norole", "blank", "array"]), min_size=1))
def test_counts_always_add_up(tmp_path_factory, kinds):
    tmp_path = tmp_path_factory.mktemp("mixed")
    texts = {
        "good": json.dumps(chat(1)), "null": "null", "cut": '{"messages": [',
        "norole": '{"messages": [{}]}', "blank": "  ", "array": "[1]",
    }  # fmt: skip
    source = tmp_path / "x.jsonl"
    source.write_text("\n".join(texts[kind] for kind in kinds) + "\n")
    options = ConvertOptions(format="openai_chat")
    if not source.read_text().strip():
        return
    counts = convert([str(source)], str(tmp_path / "s"), options=options).counts
    assert counts.balanced()
    assert counts.records == sum(kind != "blank" for kind in kinds)
    assert counts.used == counts.trajectories == kinds.count("good")


def test_any_number_of_workers_gives_the_same_bytes(tmp_path, monkeypatch):
    size = 700_000
    monkeypatch.setattr(file_pieces, "SHARD_BYTES", size)
    monkeypatch.setattr(file_pieces, "RANGE_BYTES", 2 * size)
    monkeypatch.setattr("adp.stores.stage.SMALL", 0)
    filler = random.Random(0).choices("abcdefgh ", k=40_000)
    sources = [
        write_lines(tmp_path / f"{name}.jsonl", [chat(n % 30, "".join(filler)) for n in range(40)])
        for name in "ab"
    ]
    results = {}
    for workers in (1, 2, 4):
        out = tmp_path / f"s{workers}"
        convert(sources, str(out), options=ConvertOptions(workers=workers))
        results[workers] = hashes(out)
    assert results[1] == results[2] == results[4]
    assert len([name for name in results[1] if name.startswith("steps/")]) > 3


def test_repeated_ids_are_numbered_over_shards(tmp_path, small_shards):
    source = write_lines(tmp_path / "x.jsonl", [chat(n % 3, "y" * 900) for n in range(60)])
    convert([source], str(tmp_path / "s"))
    store = Store.open(str(tmp_path / "s"))
    assert len(store.files("steps")) > 1
    ids = [t.trajectory_id for t in store.trajectories()]
    wanted = [f"x/t{n % 3}" + (f"#{n // 3 + 1}" if n >= 3 else "") for n in range(60)]
    assert ids == wanted
    for table in ("steps", "tool_calls", "observations"):
        frame = store.scan(table).select("trajectory_id").collect()
        assert set(frame["trajectory_id"]) == set(wanted)
    for table, shards in store.manifest.tables.items():
        for shard in shards:
            assert digest_file(str(tmp_path / "s" / shard.path)) == shard.hash, table


def test_a_stopped_run_goes_on_and_ends_the_same(tmp_path, small_shards, monkeypatch):
    source = write_lines(tmp_path / "x.jsonl", [chat(n % 5, "y" * 900) for n in range(60)])
    convert([source], str(tmp_path / "whole"))
    done = []

    def stop_in_the_third(job):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(job.index)
        return convert_shard(job)

    monkeypatch.setattr(run, "convert_shard", stop_in_the_third)
    with pytest.raises(KeyboardInterrupt):
        convert([source], str(tmp_path / "s"))
    assert not (tmp_path / "s" / "adp.json").exists()
    with pytest.raises(OutputExistsError, match="other inputs or options"):
        convert([source], str(tmp_path / "s"), options=ConvertOptions(license="mit"))
    again = []
    monkeypatch.setattr(run, "convert_shard", lambda job: again.append(1) or convert_shard(job))
    convert([source], str(tmp_path / "s"))
    assert len(again) == len(Store.open(str(tmp_path / "s")).files("steps")) - 2
    assert hashes(tmp_path / "s") == hashes(tmp_path / "whole")
    assert not (tmp_path / "s" / ".run").exists()


def test_a_run_stopped_while_it_renumbers_ends_the_same(tmp_path, small_shards, monkeypatch):
    from adp.converters import renumber

    source = write_lines(tmp_path / "x.jsonl", [chat(n % 5, "y" * 900) for n in range(60)])
    convert([source], str(tmp_path / "whole"))
    rewrite, calls = renumber._rewrite, []

    def stop_after_some(*arguments):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        rewrite(*arguments)

    monkeypatch.setattr(renumber, "_rewrite", stop_after_some)
    with pytest.raises(KeyboardInterrupt):
        convert([source], str(tmp_path / "s"))
    monkeypatch.setattr(renumber, "_rewrite", rewrite)
    convert([source], str(tmp_path / "s"))
    assert hashes(tmp_path / "s") == hashes(tmp_path / "whole")


@pytest.mark.parametrize("layout", ["compact", "spaced", "pretty", "array", "one", "bom", "crlf"])
def test_layouts_come_back(tmp_path, layout):
    records = [chat(1, "é \U0001f600"), chat(2)]
    texts = {
        "compact": "\n".join(json.dumps(r, separators=(",", ":")) for r in records),
        "spaced": "\n".join(json.dumps(r, ensure_ascii=False) for r in records) + "\n",
        "pretty": json.dumps(records, indent=2) + "\n",
        "array": json.dumps(records, ensure_ascii=False, separators=(",", ":")),
        "one": json.dumps(records[0], indent=4),
        "bom": "\ufeff" + "\n".join(json.dumps(r) for r in records) + "\n",
        "crlf": "\r\n".join(json.dumps(r) for r in records) + "\r\n",
    }
    suffix = ".json" if layout in ("pretty", "array", "one") else ".jsonl"
    source = tmp_path / f"x{suffix}"
    source.write_bytes(texts[layout].encode())
    convert([str(source)], str(tmp_path / "s"))
    export(Store.open(str(tmp_path / "s")), "openai_chat", str(tmp_path / "out"))
    written = (tmp_path / "out" / source.name).read_bytes()
    expected = source.read_bytes()
    if layout == "crlf":
        expected = expected.replace(b"\r\n", b"\n")
    assert written == expected


def test_relative_paths_and_datasets(tmp_path):
    for name in ("a", "b"):
        (tmp_path / "in" / name).mkdir(parents=True)
        write_lines(tmp_path / "in" / name / "x.jsonl", [chat(1)])
    convert([str(tmp_path / "in")], str(tmp_path / "s"))
    store = Store.open(str(tmp_path / "s"))
    assert store.manifest.datasets == {"a": 1, "b": 1}
    report = export(store, "openai_chat", str(tmp_path / "out"))
    assert (report.files, report.records) == (2, 2)
    assert (tmp_path / "out" / "b" / "x.jsonl").exists()
    export(store, "openai_chat", str(tmp_path / "one"), single="all.jsonl")
    assert len((tmp_path / "one" / "all.jsonl").read_text().splitlines()) == 2


def test_unknown_files_of_a_folder_are_rejects(tmp_path):
    (tmp_path / "in").mkdir()
    write_lines(tmp_path / "in" / "x.jsonl", [chat(1)])
    (tmp_path / "in" / "y.json").write_text('{"what": "is this"}')
    (tmp_path / "in" / "z.json").write_text("")
    counts = convert([str(tmp_path / "in")], str(tmp_path / "s")).counts
    assert (counts.records, counts.used, counts.rejected) == (3, 1, 2)


def test_keep_raw_and_license(tmp_path):
    source = write_lines(tmp_path / "x.jsonl", [chat(1), chat(2)])
    options = ConvertOptions(keep_raw=True, license="mit", dataset="mine")
    convert([source], str(tmp_path / "s"), options=options)
    (first, second) = Store.open(str(tmp_path / "s")).trajectories()
    assert (first.license, first.dataset, second.trajectory_id) == ("mit", "mine", "mine/t2")
    assert json.loads(second.raw[0].data) == chat(2)
    assert second.source_records == [2]


def test_errors_say_what_to_do(tmp_path, monkeypatch):
    good = write_lines(tmp_path / "x.jsonl", [chat(1)])
    out = str(tmp_path / "s")
    with pytest.raises(InputError, match="does not exist"):
        convert([str(tmp_path / "nothing")], out)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no data file"):
        convert([str(tmp_path / "empty")], out)
    with pytest.raises(UsageError, match="did you mean openai_chat"):
        convert([good], out, options=ConvertOptions(format="openai_chats"))
    (tmp_path / "odd.json").write_text('{"what": 1}')
    with pytest.raises(InputError, match="the keys what"):
        convert([str(tmp_path / "odd.json")], out)
    (tmp_path / "text.txt").write_text("words")
    with pytest.raises(InputError, match="looks like a text"):
        convert([str(tmp_path / "text.txt")], out)
    convert([good], out)
    with pytest.raises(OutputExistsError, match="store already"):
        convert([good], out)
    with pytest.raises(OutputExistsError, match="not empty"):
        convert([good], str(tmp_path))
    monkeypatch.setattr(type(formats.get("hermes_agent")), "sniff", lambda *_: 1)
    with pytest.raises(AmbiguousFormatError, match="hermes_agent and openai_chat"):
        convert([good], str(tmp_path / "s2"))


def test_strict_stops_at_the_first_reject_or_loss(tmp_path):
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"messages": [{}]}\n' + json.dumps(chat(1)))
    options = ConvertOptions(format="openai_chat", strict=True)
    with pytest.raises(ConversionLossError, match=r"bad.jsonl#1: expected a role"):
        convert([str(bad)], str(tmp_path / "s"), options=options)
    twice = tmp_path / "twice.jsonl"
    twice.write_text('{"messages": [{"role": "user", "role": "user", "content": "x"}]}')
    with pytest.raises(ConversionLossError, match="occurs twice"):
        convert([str(twice)], str(tmp_path / "s2"), options=options)
