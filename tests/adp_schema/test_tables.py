"""Every column is documented and storable everywhere."""

import pyarrow as pa
import pytest

from adp_schema.model import Step
from adp_schema.tables import ENUMS, TABLES, columns_of


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_every_column_has_a_description(table):
    for field in table.schema:
        description = field.metadata[b"description"].decode()
        assert description.endswith("."), field.name
        assert "\n" not in description


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_no_type_that_readers_stumble_on(table):
    for field in table.schema:
        kinds = [field.type, getattr(field.type, "value_type", field.type)]
        for kind in kinds:
            assert not pa.types.is_struct(kind)
            assert not pa.types.is_map(kind)
            assert not pa.types.is_dictionary(kind)
            assert not pa.types.is_union(kind)


def test_enums_and_blooms_name_columns():
    for table, column in ENUMS:
        assert column in TABLES[table].schema.names
    for table in TABLES.values():
        for column in (*table.bloom, *table.sort):
            assert column in table.schema.names


def test_child_rows_are_no_columns():
    assert "calls" not in columns_of(Step)
    assert "observations" not in columns_of(Step)
