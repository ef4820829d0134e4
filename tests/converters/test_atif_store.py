"""ATIF through a store: files come back, branches too, and flavours are checked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from atif import Trajectory as Strict

from adp.converters.export import export
from adp.converters.run import ConvertOptions, convert
from adp_schema.errors import UsageError
from adp_schema.store import Store
from tests.converters.atif_records import record, step

DATA = Path(__file__).parents[2].parent / "shared" / "data"
SINGLE = sorted(DATA.glob("formats/atif/*.json"))
LISTS = sorted(DATA.glob("adp_atif/*/sample_*.json"))
NO_ATIF = ("sample_raw", "adp150", "phoenix_subagent_trajectories")
FILES = [path for path in [*SINGLE, *LISTS] if not any(word in path.name for word in NO_ATIF)]
ADP_FILES = sorted(DATA.glob("adp_v1/*/sample_std.json"))


def there_and_back(source: Path, folder: Path, *, to: str = "atif", **options) -> tuple[Path, dict]:
    convert([str(source)], str(folder / "s"), options=ConvertOptions(workers=1))
    report = export(Store.open(str(folder / "s")), to, str(folder / "out"), **options)
    (out,) = [path for path in (folder / "out").rglob("*") if path.is_file()]
    return out, report.losses


@pytest.mark.skipif(not DATA.exists(), reason="the reference data are not here")
def test_all_files_are_there():
    assert (len(FILES), len(ADP_FILES)) == (25, 17)


def is_regular(data: bytes) -> bool:
    """Whether a file is laid out as a program writes it."""
    whole = json.loads(data)
    return any(
        json.dumps(whole, indent=indent, ensure_ascii=ascii_only).encode() == data.strip()
        for indent in (None, 1, 2, 4)
        for ascii_only in (True, False)
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_real_file_comes_back(path, tmp_path):
    out, losses = there_and_back(path, tmp_path)
    before, after = path.read_bytes(), out.read_bytes()
    assert out.name == path.name
    assert losses == {}
    assert json.dumps(json.loads(after)) == json.dumps(json.loads(before))
    if is_regular(before):
        assert after == before


@pytest.mark.skipif(not DATA.exists(), reason="the reference data are not here")
def test_most_real_files_come_back_byte_for_byte():
    assert sum(is_regular(path.read_bytes()) for path in FILES) > 15


@pytest.mark.parametrize("path", [*FILES, *ADP_FILES], ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_harbor_takes_every_real_file(path, tmp_path):
    out, _ = there_and_back(path, tmp_path, flavour="harbor")
    whole = json.loads(out.read_bytes())
    for item in whole if isinstance(whole, list) else [whole]:
        Strict.model_validate(item)
        assert item["steps"]


@pytest.mark.skipif(not DATA.exists(), reason="the reference data are not here")
def test_versions_that_refer_by_session_are_read(tmp_path):
    both = json.loads((DATA / "formats/atif/phoenix_subagent_trajectories.json").read_bytes())
    source = tmp_path / "in.json"
    source.write_text(json.dumps(list(both.values())))
    convert([str(source)], str(tmp_path / "s"))
    store = Store.open(str(tmp_path / "s"))
    export(store, "atif", str(tmp_path / "same"))
    assert (tmp_path / "same/in.json").read_bytes() == source.read_bytes()
    export(store, "atif", str(tmp_path / "harbor"), flavour="harbor")
    parent, _ = json.loads((tmp_path / "harbor/in.json").read_bytes())
    (ref,) = Strict.model_validate(parent).steps[1].observation.results[0].subagent_trajectory_ref
    assert ref.trajectory_id == "sess-child-summary-001"


@pytest.mark.skipif(not DATA.exists(), reason="the reference data are not here")
def test_an_adp_record_is_not_claimed(tmp_path):
    source = DATA / "adp_atif/toucan_1_5m/sample_std.adp150_first_record.json"
    convert([str(source)], str(tmp_path / "s"))
    rows = Store.open(str(tmp_path / "s")).scan("sources").collect().to_dicts()
    assert [row["source_format"] for row in rows] == ["adp_v1"]


# ---- branches ------------------------------------------------------------------------------------


def family() -> dict:
    inner = record(step(), trajectory_id="grandchild")
    child = record(step(), trajectory_id="child", subagent_trajectories=[inner])
    return record(step(), subagent_trajectories=[child, record(step(), trajectory_id="child2")])


@pytest.fixture
def family_store(tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_text(f"{json.dumps(family())}\n{json.dumps(record(step(), trajectory_id='u'))}\n")
    convert([str(source)], str(tmp_path / "s"))
    return Store.open(str(tmp_path / "s"))


def test_embedded_trajectories_are_branches_of_their_parents(family_store, tmp_path):
    rows = family_store.scan("trajectories").collect().to_dicts()
    ids = [row["trajectory_id"].partition("/")[2] for row in rows]
    assert ids == ["t", "child", "grandchild", "child2", "u"]
    names = dict(zip([row["trajectory_id"] for row in rows], ids, strict=True))
    parents = [names.get(row["parent_id"]) for row in rows]
    assert parents == [None, "t", "child", "t", None]
    assert [row["branch_kind"] for row in rows] == [None, *["subagent"] * 3, None]
    report = export(family_store, "atif", str(tmp_path / "out"), strict=True)
    assert report.records == 2
    assert (tmp_path / "out/in.jsonl").read_bytes() == (tmp_path / "in.jsonl").read_bytes()


def test_branches_become_records_of_a_format_without_them(family_store, tmp_path):
    report = export(family_store, "openai_chat", str(tmp_path / "out"))
    assert report.records == 5
    reason = "a branch is written as a record of its own, without its parent"
    assert report.losses[f"$.parent_id: {reason}"] == 3


def test_one_document_a_file_or_an_array(family_store, tmp_path):
    source = tmp_path / "chat.jsonl"
    line = json.dumps({"id": "a", "messages": [{"role": "user", "content": "x"}]})
    for lines, kind in ((1, dict), (2, list)):
        source.write_text(f"{line}\n" * lines)
        convert([str(source)], str(tmp_path / f"s{lines}"))
        store = Store.open(str(tmp_path / f"s{lines}"))
        export(store, "atif", str(tmp_path / f"out{lines}"))
        written = json.loads((tmp_path / f"out{lines}/chat.json").read_text())
        assert isinstance(written, kind)


# ---- flavours ------------------------------------------------------------------------------------


def test_a_wrong_flavour_is_refused(family_store, tmp_path):
    with pytest.raises(UsageError, match="unknown flavour 'habor'; did you mean harbor"):
        export(family_store, "atif", str(tmp_path / "out"), flavour="habor")
    with pytest.raises(UsageError, match="adp_v1 has no flavours; leave out --flavour"):
        export(family_store, "adp_v1", str(tmp_path / "out"), flavour="harbor")
