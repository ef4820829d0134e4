"""Looking ids up by scans, against a dict of all of them and the rules for parts of ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp_schema import id_index
from adp_schema.errors import StoreError, UsageError
from adp_schema.find_id import find_id
from adp_schema.id_index import IdIndex

names = st.text("ab/é", max_size=3)
shards = st.lists(st.lists(names, max_size=5), min_size=1, max_size=3)


def written(folder: Path, described: list[list[str]]) -> list[str]:
    """Files of ids with a seq each, in row groups of two."""
    files, seq = [], 0
    for index, ids in enumerate(described):
        rows = {"trajectory_id": pa.array(ids, pa.string())}
        rows["seq"] = pa.array(range(seq, seq + len(ids)), pa.int64())
        seq += len(ids)
        files.append(str(folder / f"{index}.parquet"))
        pq.write_table(pa.table(rows), files[-1], row_group_size=2)
    return files


def outcome(call: Any) -> Any:
    try:
        return call()
    except (StoreError, UsageError) as error:
        return str(error)


@given(shards, names)
def test_it_answers_as_a_dict_does(
    tmp_path_factory: pytest.TempPathFactory, described: list[list[str]], text: str
) -> None:
    files = written(tmp_path_factory.mktemp("s"), described)
    places, seq = {}, 0
    for shard, ids in enumerate(described):
        for name in ids:
            places[name] = (shard, seq)
            seq += 1
    index = IdIndex(files)
    assert index.place(text) == places.get(text)
    if len(places) == seq:  # ids are unique in a store
        assert outcome(lambda: index.find(text)) == outcome(lambda: find_id(list(places), text))
    assert index._places is None
    for _ in range(id_index._SCANS):
        assert index.place(text) == places.get(text)
    assert index._places == places


def test_half_a_character_is_no_id(tmp_path: Path) -> None:
    index = IdIndex(written(tmp_path, [["a", "b"]]))
    assert index.place("\ud800") is None
    with pytest.raises(StoreError, match="no trajectory"):
        index.find("\ud800")


def test_only_row_groups_that_may_have_it_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from adp_schema.location import ShardFile

    index = IdIndex(written(tmp_path, [[f"n{number:02}" for number in range(20)]]))
    reads: list[int] = []
    plain = ShardFile.read_row_group

    def counted(file: Any, group: int, **options: Any) -> Any:
        reads.append(group)
        return plain(file, group, **options)

    monkeypatch.setattr(ShardFile, "read_row_group", counted)
    assert index.place("n07") == (0, 7)
    assert set(reads) == {3}
