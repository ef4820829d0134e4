"""What a writer left behind is reported; what is no loss has a reason."""

import json

import pytest

import adp
from adp.converters.registry import BUILTIN
from adp.converters.unwritten_columns import BOOKKEEPING, DEFAULTS
from adp_schema.tables import TABLES

RUN = {
    "schema_version": "ATIF-v1.7",
    "agent": {"name": "a", "version": "1"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "q", "timestamp": "2026-01-02T03:04:05"},
        {"step_id": 2, "source": "agent", "message": "old", "is_copied_context": True},
        {"step_id": 3, "source": "user", "message": "q2", "is_copied_context": True},
        {"step_id": 4, "source": "agent", "message": "new"},
    ],
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("atif")
    (folder / "run.json").write_text(json.dumps(RUN))
    return adp.convert(folder / "run.json", folder / "store")


def test_what_is_no_loss_is_a_column_with_a_reason():
    columns = {name for table in TABLES.values() for name in table.schema.names}
    assert set(BOOKKEEPING) <= columns
    assert set(DEFAULTS) <= columns
    assert all(reason.strip() for reason in BOOKKEEPING.values())


@pytest.mark.parametrize("name", sorted(set(BUILTIN) - {"atif"}))
def test_copied_context_is_written_or_reported(store, tmp_path, name):
    report = adp.export(store, name, tmp_path / "out")
    paths = (path for path in (tmp_path / "out").rglob("*") if path.is_file())
    (file,) = (path for path in paths if not path.name.startswith("metadata_"))
    reported = sum(n for loss, n in report.losses.items() if ".is_copied_context: " in loss)
    if name == "openai_chat":
        weights = [message.get("weight") for message in json.loads(file.read_text())["messages"]]
        assert weights == [None, 0, None, None]
    if name == "adp_v1":
        items = json.loads(file.read_text())[0]["content"]
        assert [item["class_"] for item in items][1::2] == ["text_observation", "message_action"]
    # The one of the user has no place in any of them.
    assert reported == (1 if name in ("openai_chat", "adp_v1", "preference") else 2)
    assert any(".timestamp_zone_known: " in loss for loss in report.losses)


def test_its_own_format_says_all_of_it(store, tmp_path):
    report = adp.export(store, "atif", tmp_path / "out", flavour="as-read", strict=True)
    assert report.losses == {}
    assert json.loads((tmp_path / "out" / "run.json").read_text()) == RUN
