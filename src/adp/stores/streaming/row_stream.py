"""Rows streamed in batches of Arrow: in order or shuffled, cut into parts, and gone on with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from adp.stores.streaming.order import RowOrder, RowWindow
from adp.stores.streaming.row_sources import RowSource
from adp_schema.errors import UsageError

if TYPE_CHECKING:
    from adp.stores.streaming.torch_rows import TorchRows

STATE_VERSION = 1


class RowStream:
    """An iterable of `pyarrow.RecordBatch`. Each iteration begins anew, or where a state says.

    A part is a run of the whole stream: the parts of all ranks, one after another, are the stream
    of a single one, whatever their number, and the sizes of two parts differ by one row at most.

    Args:
        source: where the rows come from.
        order: in which order.
        batch_size: rows a batch; the last one of a part may have fewer.

    Attributes:
        schema: the schema of the batches.
    """

    def __init__(self, source: RowSource, order: RowOrder, batch_size: int) -> None:
        if batch_size < 1:
            raise UsageError(f"batch_size is {batch_size}; give 1 or more")
        if order.buffer < 0:
            raise UsageError(f"shuffle is {order.buffer}; give a number of rows, or False")
        self._source, self._order, self._batch_size = source, order, batch_size
        self._part, self._parts = 0, 1
        self._begin = self._given = 0
        self.schema: pa.Schema = source.schema

    def __len__(self) -> int:
        """Number of rows of the part."""
        first, end = self._bounds()
        return end - first

    def __bool__(self) -> bool:
        return True

    def part(self, index: int, count: int) -> RowStream:
        """One of several parts of this stream, as `split_dataset_by_node` of ``datasets`` gives.

        Args:
            index: number of the part from 0, such as the rank of a process.
            count: number of parts, such as ``world_size``.

        Raises:
            UsageError: there is no such part.
        """
        if not 0 <= index < count:
            raise UsageError(f"there is no part {index} of {count}; they count from 0")
        result = RowStream(self._source, self._order, self._batch_size)
        result._part, result._parts = self._part * count + index, self._parts * count
        return result

    def set_epoch(self, epoch: int) -> None:
        """Say which pass comes next; each one has an order of its own, where rows are shuffled."""
        self._order = replace(self._order, epoch=epoch)

    def state_dict(self) -> dict[str, Any]:
        """Where the last iteration stands: small, and of plain values."""
        return {
            "version": STATE_VERSION,
            "rows": self._given,
            "epoch": self._order.epoch,
            "order": [self._source.name, self._order.buffer, self._order.seed],
            "part": [self._part, self._parts],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Let the next iteration begin where a state says. The size of batches may differ.

        Raises:
            UsageError: the state is of other rows, of another order, or of another part.
        """
        words = {
            "version": "another version of adp",
            "order": "other rows or another order (store, where, shuffle, seed)",
            "part": "another part (rank, world_size, workers)",
        }
        for name, value in self.state_dict().items():
            if name in words and state.get(name) != value:
                raise UsageError(f"the state is of {words[name]}; begin without it")
        self.set_epoch(state["epoch"])
        self._begin = self._given = state["rows"]

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        begin, self._begin = self._begin, 0
        self._given = begin
        for batch in self._batches(begin):
            self._given += batch.num_rows
            yield batch

    def torch(self) -> TorchRows:
        """The stream as a `torch.utils.data.IterableDataset` of dicts, one a row.

        Workers of a `DataLoader` share the part between them. It keeps a state as
        ``torchdata``'s ``StatefulDataLoader`` and ``datasets`` do.
        """
        from adp.stores.streaming.torch_rows import TorchRows

        return TorchRows(self)

    def _bounds(self) -> tuple[int, int]:
        total = sum(self._source.rows)
        first, end = (total * edge // self._parts for edge in (self._part, self._part + 1))
        return first, end

    def _batches(self, begin: int) -> Iterator[pa.RecordBatch]:
        """The rows of the part from a place on, in batches."""
        first, end = self._bounds()
        waiting: list[pa.RecordBatch] = []
        count = 0
        for window in self._order.windows(self._source.rows):
            if window.end <= first + begin or window.begin >= end:
                continue
            for piece in self._pieces(window, first + begin, end, self._batch_size - count):
                waiting.append(piece)
                count += piece.num_rows
                if count == self._batch_size:
                    yield _joined(waiting)
                    waiting, count = [], 0
        if waiting:
            yield _joined(waiting)

    def _pieces(
        self, window: RowWindow, first: int, end: int, room: int
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a window between two places, as long as a batch each.

        Args:
            window: the window.
            first: the first place.
            end: the place after the last one.
            room: rows of the first piece; the others are batches.
        """
        places = self._order.inside(window)[max(first - window.begin, 0) : end - window.begin]
        rows = _joined([self._source.read(group) for group in window.groups])
        at = 0
        while at < len(places):
            chosen = places[at : at + room]
            if self._order.buffer:
                yield rows.take(pa.array(chosen))
            else:
                yield rows.slice(int(chosen[0]), len(chosen))
            at, room = at + len(chosen), self._batch_size


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
