"""The rows of one table before they become Arrow: added one by one as dicts, or many as columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

from adp_schema.model import Columns

_BLOCK = 256


class TableRows(Sequence[Columns]):
    """Rows in their order.

    What was added as a dict is that dict as long as no columns were added behind it; a row that
    was added with others as columns is a copy.

    Attributes:
        size: number of rows; cheaper than ``len``, which is asked of each table at each record.
    """

    def __init__(self) -> None:
        # The rows are those of the columns, then the dicts. A column that is shorter than the
        # others goes on with nulls.
        self._columns: dict[str, list[Any]] = {}
        self._in_columns = 0
        self._dicts: list[Columns] = []
        self.size = 0

    def append(self, row: Columns) -> None:
        """Add a row; columns that it does not have are null."""
        self._dicts.append(row)
        self.size += 1

    def extend_columns(self, columns: Mapping[str, list[Any]], count: int) -> None:
        """Add rows as columns.

        Args:
            columns: a value for each of the rows; columns that are missing are null.
            count: number of the rows.
        """
        self.settle()
        for name, values in columns.items():
            column = self._columns.get(name)
            if column is None or len(column) < self._in_columns:
                column = self._column(name)
            column += values
        self._in_columns += count
        self.size += count

    def truncate(self, length: int) -> None:
        """Forget all rows but the first ones."""
        del self._dicts[max(0, length - self._in_columns) :]
        if length < self._in_columns:
            for values in self._columns.values():
                del values[length:]
            self._in_columns = length
        self.size = min(self.size, length)

    def clear(self) -> None:
        """Forget all rows."""
        self._columns = {}
        self._in_columns = self.size = 0
        self._dicts = []

    def names(self) -> set[str]:
        """The columns that some row has."""
        return set(self._columns).union(*self._dicts)

    def columns(self, names: Iterable[str]) -> dict[str, list[Any]]:
        """The values of some columns, one a row."""
        columns = {name: self._column(name) for name in names}
        if not self._dicts:
            return columns
        columns = {name: list(values) for name, values in columns.items()}
        # By blocks: the rows of one are still in the processor's cache for its next column.
        for start in range(0, len(self._dicts), _BLOCK):
            block = self._dicts[start : start + _BLOCK]
            for name, values in columns.items():
                values += column_of(name, block)
        return columns

    def _column(self, name: str) -> list[Any]:
        """The column of the rows that are kept as columns, filled up with nulls."""
        values = self._columns.setdefault(name, [])
        if len(values) < self._in_columns:
            values.extend([None] * (self._in_columns - len(values)))
        return values

    def settle(self) -> None:
        """Keep the rows so far as columns: nobody changes the dicts of them any more."""
        if not self._dicts:
            return
        for name in set().union(*self._dicts):
            self._column(name).extend(column_of(name, self._dicts))
        self._in_columns += len(self._dicts)
        self._dicts = []

    def _row(self, index: int) -> Columns:
        """A row that is kept in columns."""
        return {
            name: values[index]
            for name, values in self._columns.items()
            if index < len(values) and values[index] is not None
        }

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Columns]:
        yield from map(self._row, range(self._in_columns))
        yield from self._dicts

    def __reversed__(self) -> Iterator[Columns]:
        yield from reversed(self._dicts)
        yield from map(self._row, range(self._in_columns - 1, -1, -1))

    @overload
    def __getitem__(self, index: int) -> Columns: ...

    @overload
    def __getitem__(self, index: slice) -> list[Columns]: ...

    def __getitem__(self, index: int | slice) -> Columns | list[Columns]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        if place >= self._in_columns:
            return self._dicts[place - self._in_columns]
        return self._row(place)

    def __setitem__(self, index: int, row: Columns) -> None:
        place = range(len(self))[index]
        if place >= self._in_columns:
            self._dicts[place - self._in_columns] = row
            return
        for name in self._columns.keys() | row.keys():
            self._column(name)[place] = row.get(name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableRows) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


def column_of(name: str, rows: list[Columns]) -> list[Any]:
    """One column of some rows; most columns that are used are in every row."""
    try:
        return [row[name] for row in rows]
    except KeyError:
        return [row.get(name) for row in rows]
