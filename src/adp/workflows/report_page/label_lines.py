"""A long name as lines of about the same length, broken behind its signs."""

from __future__ import annotations

import re

from adp.workflows.report_page.words import cut_middle

_PIECE = re.compile(r"[^\s._:=,/-]*[\s._:=,/-]|[^\s._:=,/-]+")


def label_lines(text: str, width: int, most: int) -> list[str]:
    """Break a name into as few lines as it needs, and these into about the same length.

    Args:
        text: the name; one that is too long for all lines is cut in its middle.
        width: characters of a line, 6 or more.
        most: lines, at most.
    """
    pieces = [
        piece[start : start + width]
        for piece in _PIECE.findall(text)
        for start in range(0, len(piece), width)
    ]
    count = len(_filled(pieces, width))
    if count > most:
        shorter = cut_middle(text, min(most * width, len(text) - 1))
        return label_lines(shorter, width, most)
    narrow = next(limit for limit in range(1, width + 1) if _fits(pieces, limit, count))
    return [line.strip() for line in _filled(pieces, narrow)]


def _fits(pieces: list[str], width: int, count: int) -> bool:
    lines = _filled(pieces, width)
    return len(lines) <= count and all(len(line) <= width for line in lines)


def _filled(pieces: list[str], width: int) -> list[str]:
    """Lines, each with as many pieces as it takes."""
    lines = [""]
    for piece in pieces:
        if lines[-1] and len(lines[-1]) + len(piece) > width:
            lines.append("")
        lines[-1] += piece
    return lines
