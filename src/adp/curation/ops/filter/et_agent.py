"""ET-Agent's validators on the trajectories of a store.

The text of a trajectory is put together from the steps of the agent, in order, and what came back
after each. Where a text of the agent holds tags, all its texts stand as they are; so one step with
the whole trajectory, and steps with observations between them, both give ET-Agent's own text. What
a store keeps apart is put between tags: reasoning in ``<think>``; calls of Python and of searches,
which are recognised by kind and name, in ``<python>`` and ``<search>``, other calls in the name of
their tool; results in ``<result>``; and where no text has tags, the last text of the agent, or else
the final answer, in ``<answer>``.

The repair changes texts of the agent in trajectories whose texts hold tags, and nothing else.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl

from adp.core import tagged_run as tags
from adp.core.tagged_repair import TextPieces, repair
from adp.curation.ops.filter.options import Filter
from adp.curation.ops.filter.verdicts import Verdicts
from adp.curation.ops.measure.rows import PartitionRows
from adp.curation.partitions import Partition
from adp.curation.pool import Pool

_PYTHON = re.compile(r"python|code|interpreter|execute", re.I)
_SEARCH = re.compile(r"search|retrieve", re.I)
_FIRST = ("query", "q", "code", "command", "script")


@dataclass
class TextPiece:
    """A part of the text of a trajectory; ``step`` is where it may be edited."""

    text: str
    step: int | None = None


def judge(pool: Pool, options: Filter, verdicts: Verdicts) -> None:
    """Validate, and repair when asked to."""
    rows = pool.map(work, (options.preset, options.repair), "et-agent")
    repaired = 0
    for seq, wrong, steps, texts in rows.iter_rows():
        if steps:
            repaired += 1
            verdicts.event(seq, None, "repaired", wrong, steps=steps, preset=options.preset)
            verdicts.edits += [(seq, step, text) for step, text in zip(steps, texts, strict=True)]
        elif wrong:
            verdicts.drop(seq, wrong, preset=options.preset)
    if options.repair:
        verdicts.summary["repaired"] = repaired
        verdicts.lines.append(f"{repaired:,} trajectories were repaired")


def work(partition: Partition, options: tuple[str, bool]) -> pl.DataFrame:
    """``seq``, what is wrong, and the steps with their new texts when the repair helped."""
    preset, wanted = options
    invalid = tags.invalid_v1 if preset == "et_agent_v1" else tags.invalid_v2
    rows = []
    for seq, pieces in _pieces(PartitionRows(partition)).items():
        text_pieces = TextPieces([piece.text for piece in pieces])
        wrong = invalid(text_pieces.text)
        edits: dict[int, str] = {}
        if wrong and wanted and repair(text_pieces) and invalid(text_pieces.text) is None:
            edits = _edits(pieces, text_pieces.split())
        rows.append((seq, wrong, list(edits), list(edits.values())))
    schema: dict[str, Any] = {
        "seq": pl.Int64, "wrong": pl.String, "steps": pl.List(pl.Int32),
        "texts": pl.List(pl.String),
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


def _edits(pieces: list[TextPiece], texts: list[str]) -> dict[int, str]:
    """New texts of steps; empty when something changed that is no text of a step."""
    edits = {}
    for piece, text in zip(pieces, texts, strict=True):
        if text != piece.text:
            if piece.step is None:
                return {}
            edits[piece.step] = text
    return edits


def _pieces(rows: PartitionRows) -> dict[int, list[TextPiece]]:
    """The pieces of the text of each trajectory."""
    calls: dict[tuple[int, int], list[str]] = defaultdict(list)
    for row in rows.calls.filter(rows.calls["span_start"].is_null()).iter_rows(named=True):
        calls[row["seq"], row["step"]].append(_call(row))
    results: dict[tuple[int, int], list[str]] = defaultdict(list)
    for seq, step, text in rows.results.select("seq", "step", "text").iter_rows():
        text = text or ""
        inside = text if "<result>" in text else f"<result>{text}</result>"
        results[seq, step].append(inside)
    answers = dict(rows.trajectories.select("seq", "final_answer").iter_rows())
    pieces: dict[int, list[TextPiece]] = {seq: [] for seq in rows.seqs["seq"]}
    agent = rows.steps.filter(rows.steps["agent"]).select("seq", "step", "text", "reasoning")
    last = {seq: step for seq, step, *_ in agent.iter_rows()}
    tagged = {seq for seq, _, text, _ in agent.iter_rows() if text and tags.TAGS.search(text)}
    for seq, step, text, reasoning in agent.iter_rows():
        text_pieces = pieces[seq]
        text = text or ""
        if reasoning and "<think>" not in text:
            text_pieces.append(TextPiece(f"<think>{reasoning}</think>"))
        if seq in tagged:
            text_pieces.append(TextPiece(text, step))
        elif text.strip():
            ends = step == last[seq] and not calls[seq, step]
            text_pieces.append(TextPiece(f"<answer>{text}</answer>" if ends else text))
        text_pieces += [TextPiece(call) for call in calls[seq, step] + results[seq, step]]
    for seq, text_pieces in pieces.items():
        answer = answers.get(seq)
        if (
            answer
            and seq not in tagged
            and not any("<answer>" in piece.text for piece in text_pieces)
        ):
            text_pieces.append(TextPiece(f"<answer>{answer}</answer>"))
        pieces[seq] = _apart(text_pieces)
    return pieces


def _apart(pieces: list[TextPiece]) -> list[TextPiece]:
    """The pieces with a line end between each two."""
    text_pieces: list[TextPiece] = []
    for piece in pieces:
        text_pieces += [TextPiece("\n"), piece] if text_pieces else [piece]
    return text_pieces


def _call(row: dict[str, Any]) -> str:
    """A call between tags."""
    name = row["name"] or ""
    text = row["arguments_raw"] or ""
    try:
        value = msgspec.json.decode(row["arguments"] or "null")
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        value = row["arguments"]
    if isinstance(value, dict):
        strings = {key: result for key, result in value.items() if isinstance(result, str)}
        first = next((strings[key] for key in _FIRST if key in strings), None)
        text = first if first is not None else next(iter(strings.values()), str(row["arguments"]))
    elif isinstance(value, str):
        text = value
    if _SEARCH.search(name):
        tag = "search"
    else:
        tag = "python" if row["kind"] == "code" or _PYTHON.search(name) else name or "call"
    return f"<{tag}>{text}</{tag}>"
