"""Every column of the store comes back through ATIF, or something says why it does not."""

import pytest

from adp.converters.registry import formats
from adp.converters.unwritten_columns import BOOKKEEPING
from adp_schema.tables import TABLES
from tools.tables import via_atif_table as tried
from tools.tables.column_table import NO_CONTENT
from tools.tables.field_table import SilentLossError
from tools.tables.via_atif_table import BACK, OTHERWISE, REPORTED, hop_table

ATIF = formats.get("atif")


@pytest.mark.slow  # `make check` makes the same table
def test_every_column_comes_back_through_atif_or_is_accounted_for():
    result = hop_table(ATIF)
    assert set(result) == {
        f"{table}.{column}"
        for table in set(TABLES) - set(NO_CONTENT)
        for column in set(TABLES[table].own_columns) - set(BOOKKEEPING)
    }
    assert result["steps.token_mask"] == result["pairs.margin"] == BACK
    assert result["tasks.instruction"] == REPORTED
    words = {word for line in result.values() for word in line.split("; ")}
    assert {BACK, REPORTED} < words
    for reason in OTHERWISE.values():
        assert any(reason in line for line in result.values()), reason


@pytest.mark.slow
def test_every_row_of_every_kind_comes_back_too():
    assert hop_table(ATIF, thorough=True) == hop_table(ATIF)


class Forgetful:
    """ATIF whose records lose a key on the way."""

    def __init__(self, key):
        self.key = key

    def __getattr__(self, name):
        return getattr(ATIF, name)

    def write(self, trajectory, losses):
        record = ATIF.write(trajectory, losses)
        for step in record["steps"]:
            step.get("extra", {}).get("adp", {}).pop(self.key, None)
        return record


@pytest.mark.parametrize("column", ["labels", "synthetic"])
def test_a_column_that_does_not_come_back_is_caught(column, monkeypatch):
    monkeypatch.setattr(tried, "TABLES", {"steps": TABLES["steps"]})
    with pytest.raises(SilentLossError, match=rf"steps\.\d\.{column} does not come back"):
        hop_table(Forgetful(column))


def test_a_column_without_a_reason_is_caught(monkeypatch):
    monkeypatch.setattr(tried, "TABLES", {"tool_calls": TABLES["tool_calls"]})
    monkeypatch.delitem(tried.OTHERWISE, "tool_calls.native_id")
    with pytest.raises(SilentLossError, match="native_id does not come back through atif"):
        hop_table(ATIF)
