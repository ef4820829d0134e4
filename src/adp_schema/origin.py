"""Where a trajectory comes from."""

from __future__ import annotations

from dataclasses import dataclass, field

from adp_schema.model import Columns


@dataclass
class Origin:
    """Where a trajectory comes from: the columns that the runner knows and a converter does not.

    Attributes:
        seq: byte position of the record in the whole input.
        dataset: data set that it is put in.
        columns: further columns of the trajectory, such as ``source_file`` and ``source_hash``.
        marked: True when the record went through `jsontext.sanitise`.
        size: length of the raw records in bytes.
    """

    seq: int
    dataset: str
    columns: Columns = field(default_factory=dict)
    marked: bool = False
    size: int = 0
