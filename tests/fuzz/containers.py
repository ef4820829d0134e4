"""Mutations of what holds the records: bytes of archives, compressed logs, protobuf and databases.

A file of these is converted whole. It must end in a store or in a sentence, in bounded time, and a
trajectory that is gone must have a reject, a skipped record or a loss that says so.
"""

from __future__ import annotations

import gzip
import json
import random
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

from adp.converters.files.archives import ZSTANDARD
from adp.converters.run import ConvertOptions, convert
from adp_schema.errors import AdpError
from adp_schema.manifest import Counts
from tests.converters.containers import tarred, zipped, zst
from tests.converters.readers.test_databases import ROWS, make_database, tables_of
from tests.converters.readers.test_torn_databases import sessions_of
from tests.converters.test_inputs import patched
from tests.converters.test_otlp_protobuf import encoded, fixed
from tests.fuzz.check import SECONDS, Outcome
from tests.fuzz.readers import EXAMPLES

PAGE = 4096
SESSIONS = 4
_SCRATCH = "/dev/shm" if Path("/dev/shm").is_dir() else None


def _example(*parts: str) -> bytes:
    return EXAMPLES.joinpath(*parts).read_bytes()


def _evaluation() -> dict[str, bytes]:
    """The members of a log of Inspect with two samples."""
    sample = json.loads(_example("inspect", "sum-1_epoch_1.json"))
    about = {"eval_id": "e", "task": "sums", "model": "m", "dataset": {"sample_ids": [5, 6]}}
    members = {"_journal/start.json": {"version": 2, "eval": about}}
    members |= {f"samples/{n}_epoch_1.json": {**sample, "id": n} for n in (5, 6)}
    return {name: json.dumps(it).encode() for name, it in members.items()}


def _zstandard(members: dict[str, bytes]) -> bytes:
    """A zip archive with members in zstd, which Python's zipfile cannot write."""
    data = zipped({name: zst(it) for name, it in members.items()}, zipfile.ZIP_STORED)
    for name, it in members.items():
        data = patched(data, name, method=ZSTANDARD, crc=zlib.crc32(it))
    return data


def _members() -> dict[str, bytes]:
    """Sessions of three agents; the last one is longer than what a case makes zeros of."""
    return {
        "droid/session.jsonl": _example("droid", "session.jsonl"),
        "pi/session.jsonl": _example("pi", "session.jsonl"),
        "codex/classic.jsonl": _example("codex", "classic.jsonl"),
    }


def _spans() -> bytes:
    lines = _example("otlp", "conversation.jsonl").splitlines()
    return fixed(*(encoded(json.loads(line)) for line in lines if line))


def _database(name: str, file: str) -> bytes:
    """A database with the sessions of an example, and with copies of them."""
    with tempfile.TemporaryDirectory(dir=_SCRATCH) as folder:
        path = Path(folder) / "agent.db"
        make_database(path, tables_of(sessions_of(name, file, SESSIONS)))
        return path.read_bytes()


CONTAINERS: dict[str, Callable[[], bytes]] = {
    "inspect.eval": lambda: zipped(_evaluation()),
    "inspect_stored.eval": lambda: zipped(_evaluation(), zipfile.ZIP_STORED),
    "inspect_zstandard.eval": lambda: _zstandard(_evaluation()),
    "codex.jsonl.zst": lambda: zst(_example("codex", "classic.jsonl")),
    "claude_code.jsonl.gz": lambda: gzip.compress(_example("claude_code", "old.jsonl")),
    "sessions.tar": lambda: tarred(_members()),
    "sessions.tar.gz": lambda: gzip.compress(tarred(_members())),
    "sessions.zip": lambda: zipped(_members()),
    "otlp.binpb": _spans,
    **{f"{name}.{file.split('.')[0]}.db": (lambda n=name, f=file: _database(n, f))
       for name, file in ROWS},
}  # fmt: skip

MERGED = frozenset({"otlp.binpb", "sessions.tar"})
"""What has no checksum: a changed id or parent may join two trajectories, and nothing can tell."""


@cache
def sound(name: str) -> tuple[bytes, Counts]:
    """A container, and what is in it."""
    data = CONTAINERS[name]()
    outcome, counts = _converted(name, data, Counts())
    assert outcome.read
    assert counts.trajectories
    return data, counts


def make(name: str, seed: int, case: int) -> bytes:
    """The bytes of a case."""
    chance = random.Random(f"{name} {seed} {case}")
    data = bytearray(sound(name)[0])
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        _change(data, chance)
    return bytes(data)


def _change(data: bytearray, chance: random.Random) -> None:
    place = chance.randrange(len(data) + 1)
    size = chance.choice([1, 4, 16, 512, PAGE])
    other = chance.randrange(len(data) + 1)
    match chance.randrange(8):
        case 0 | 1:  # a bit
            if place < len(data):
                data[place] ^= 1 << chance.randrange(8)
        case 2:  # a byte
            data[place : place + 1] = bytes([chance.randrange(256)])
        case 3:  # cut
            del data[max(place, 1) :]
        case 4:  # a hole
            del data[place : place + size]
        case 5:  # zeros
            size = len(data[place : place + size])
            data[place : place + size] = bytes(size)
        case 6:  # two ranges swapped
            first, last = data[place : place + size], data[other : other + size]
            size = min(len(first), len(last))
            data[place : place + size], data[other : other + size] = last[:size], first[:size]
        case _:  # a range twice
            data[place:place] = data[place : place + size]


def check_container(name: str, data: bytes) -> Outcome:
    """Convert a container and look whether what is gone is reported."""
    return _converted(name, data, sound(name)[1])[0]


def _converted(name: str, data: bytes, expected: Counts) -> tuple[Outcome, Counts]:
    started = time.process_time()
    with tempfile.TemporaryDirectory(dir=_SCRATCH) as folder:
        path, out = Path(folder, "in", name), Path(folder, "out")
        path.parent.mkdir()
        path.write_bytes(data)
        try:
            manifest = convert([str(path)], str(out), options=ConvertOptions(workers=1))
        except AdpError:
            return Outcome(read=False), Counts()
        except Exception as error:
            return Outcome(read=False, wrong=f"raised {error!r}"), Counts()
    counts = manifest.counts
    wrong = None if counts.balanced() else f"the sum is wrong: {counts}"
    took = time.process_time() - started
    if took > SECONDS:
        wrong = f"took {took:.1f} s"
    for what in ("records",) if name in MERGED else ("records", "trajectories"):
        there, all_of_them = getattr(counts, what), getattr(expected, what)
        if there < all_of_them and not (manifest.reasons or manifest.losses):
            wrong = f"{there} of {all_of_them} {what}, and no word of it"
    return Outcome(read=not counts.rejected, wrong=wrong), counts
