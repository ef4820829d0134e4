"""Every column of the schema is written, reported, or bookkeeping with a reason."""

import pytest

from adp.converters.registry import BUILTIN, formats
from adp.converters.unwritten_columns import BOOKKEEPING
from adp_schema.tables import TABLES
from tools.tables import column_table as tried
from tools.tables.column_table import NO_CONTENT, NO_LOSS, REPORTED, column_table
from tools.tables.field_table import SilentLossError

KNOWN = {name: formats.get(name) for name in BUILTIN}


@pytest.mark.slow  # `make check` makes the same table
def test_no_column_of_the_schema_is_lost_in_silence():
    result = column_table(KNOWN)
    tables = set(TABLES) - set(NO_CONTENT)
    assert set(result) == {
        f"{name}.{column}" for name in tables for column in TABLES[name].own_columns
    }
    free = {key.partition(".")[2] for key, row in result.items() if NO_LOSS in row.values()}
    assert free <= set(BOOKKEEPING)
    assert result["pairs.margin"]["m3"] == REPORTED
    assert "written" in result["steps.is_copied_context"]["openai_chat"]


class Silent:
    """A converter that reports one column less than it should."""

    def __init__(self, converter, column):
        self.converter, self.column = converter, column

    def __getattr__(self, name):
        return getattr(self.converter, name)

    def write(self, trajectory, losses):
        record = self.converter.write(trajectory, losses)
        losses.items = [item for item in losses.items if not item["path"].endswith(self.column)]
        return record


@pytest.mark.parametrize("column", ["steps[2].synthetic", "$.split", "$.task.answers"])
def test_a_writer_that_keeps_silent_is_caught(column, monkeypatch):
    table = {"s": "steps", "$.s": "trajectories", "$.t": "tasks"}[
        column[: 3 if "$" in column else 1]
    ]
    monkeypatch.setattr(tried, "TABLES", {table: TABLES[table]})
    with pytest.raises(SilentLossError, match=r"is not in sts, and no report says so"):
        column_table({"sts": Silent(KNOWN["sts"], column)})


def test_a_table_that_the_small_store_lacks_is_caught(monkeypatch):
    monkeypatch.delitem(tried.NO_CONTENT, "rejects")
    monkeypatch.setattr(tried, "TABLES", {"rejects": TABLES["rejects"]})
    with pytest.raises(SilentLossError, match="nothing accounts for the table rejects"):
        column_table(KNOWN)
