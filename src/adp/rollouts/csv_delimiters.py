"""What stands between the cells of a CSV file."""

from __future__ import annotations

import csv
import io
from itertools import islice

DELIMITERS = (",", ";", "\t", "|")
_LINES = 20


def delimiter_of(text: str) -> str:
    """The delimiter of a CSV text: the one by which the head has most cells.

    Among those by which every one of the first lines has as many cells as the head, the one with
    the most cells wins; a comma where none fits. `csv.Sniffer` is not used: it takes letters for
    delimiters when texts are long.

    Args:
        text: the beginning of the file, with its head; the last line may be cut.
    """
    best, most = ",", 1
    for delimiter in DELIMITERS:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        try:
            rows = list(islice((row for row in reader if row), _LINES))
        except csv.Error:
            continue
        # A row that the text ends in may be cut.
        full = rows[:-1] if 2 < len(rows) < _LINES else rows
        counts = {len(row) for row in full}
        if len(counts) == 1 and len(rows[0]) > most:
            best, most = delimiter, len(rows[0])
    if most == 1 and text:
        head = text.splitlines()[0]
        best = max(DELIMITERS, key=lambda item: head.count(item))
    return best
