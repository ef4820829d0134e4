"""What must hold for any bytes at all: they are rejected in a sentence, or nothing gets lost."""

from __future__ import annotations

import time
from dataclasses import dataclass

import msgspec

from adp.converters.registry import formats
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.protocols import SkipRecordError
from tests.conservation import missing, tokens, write_back
from tests.roundtrip import read_one

SECONDS = 5.0
"""A record of a few kilobytes that takes longer, in time of the CPU, is a finding."""


@dataclass
class Outcome:
    """What became of a record: rejected, or read; and what is wrong, if something is."""

    read: bool
    wrong: str | None = None


def check(name: str, target: str, data: bytes) -> Outcome:
    """Read a record, write it in its own format and in another one, and compare.

    Args:
        name: format of the record.
        target: another format.
        data: the record.
    """
    started = time.process_time()
    try:
        runs = read_one(formats.get(name), data)
    except (RecordError, SkipRecordError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Outcome(read=False, wrong=_slow(started))
    except ValueError as error:
        known = "uses characters from" in str(error)
        return Outcome(read=False, wrong=None if known else f"raised {error!r}")
    except Exception as error:
        return Outcome(read=False, wrong=f"raised {error!r}")
    try:
        wrong = _round_trip_fault(name, runs, data) or _other(target, runs)
    except Exception as error:
        wrong = f"raised {error!r} at {_place(error)}"
    return Outcome(read=True, wrong=wrong or _slow(started))


def _slow(started: float) -> str | None:
    took = time.process_time() - started
    return f"took {took:.1f} s" if took > SECONDS else None


def _place(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"


def _round_trip_fault(name: str, runs: list, data: bytes) -> str | None:
    """The same format gives the same tokens, unless the reader or the writer reports a loss."""
    losses = Losses()
    written, back = write_back(name, runs, losses)
    if len(written) != 1:
        return f"one record became {len(written)} of the same format"
    reported = losses.items or any(run.losses for run in runs)
    if not reported and tokens(written[0]) != tokens(data):
        return f"comes back as {written[0][:2000]!r}"
    if len(back) != len(runs):
        return f"{len(runs)} trajectories came back as {len(back)}"
    return None


def _other(target: str, runs: list) -> str | None:
    """Every text, name and argument is in the other format, or in the report of losses."""
    losses = Losses()
    written, back = write_back(target, runs, losses)
    for record in written:
        if not jsontext.is_valid(record):
            jsontext.sanitise(record)
    gone = missing(runs, back, losses)
    return f"lost in {target} without a word: {gone[:3]!r}" if gone else None
