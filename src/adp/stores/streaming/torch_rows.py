"""A stream of rows as a data set of torch. Only `RowStream.torch` imports this module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import pyarrow as pa
import torch  # noqa: TID253 - this module extends torch's data set


class PartedStream(Protocol):
    """What of `RowStream` is used here."""

    def part(self, index: int, count: int, /) -> PartedStream:
        """One of several parts of it."""
        ...

    def set_epoch(self, epoch: int) -> None:
        """Say which pass comes next."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Where it stands."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        ...

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...
    def __len__(self) -> int: ...


class TorchRows(torch.utils.data.IterableDataset[dict[str, Any]]):  # type: ignore[misc]
    """The rows of a stream, a dict each; the workers of a ``DataLoader`` share them.

    Each worker reads a run of the stream, so in which order a ``DataLoader`` gives the rows depends
    on the number of its workers; that it gives each once does not.

    Args:
        stream: the stream.
    """

    def __init__(self, stream: PartedStream) -> None:
        super().__init__()
        self._stream = self._active = stream
        self._state: Mapping[str, Any] | None = None
        self._ahead = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        worker = torch.utils.data.get_worker_info()
        stream = self._stream
        if worker is not None:
            stream = stream.part(worker.id, worker.num_workers)
        if self._state is not None:
            stream.load_state_dict(self._state)
        self._active, self._state = stream, None
        for batch in stream:
            self._ahead = batch.num_rows
            for row in batch.to_pylist():
                self._ahead -= 1
                yield row

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._stream)

    def set_epoch(self, epoch: int) -> None:
        """Say which pass comes next."""
        self._stream.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Where the last iteration of this process stands, to the row."""
        if self._state is not None:
            return dict(self._state)
        state = self._active.state_dict()
        return {**state, "rows": state["rows"] - self._ahead}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Let the next iteration begin where a state says; see `RowStream.load_state_dict`."""
        self._state, self._ahead = state, 0
