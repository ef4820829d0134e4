"""Hashes and ids. Every hash in a store is blake2b-128 of bytes, in hexadecimal."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any


def digest(data: bytes) -> str:
    """blake2b-128 of bytes, as 32 hexadecimal characters."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def digest_file(path: str) -> str:
    """blake2b-128 of a file's bytes, read in pieces of one MiB."""
    hasher = hashlib.blake2b(digest_size=16)
    with Path(path).open("rb") as file:
        while piece := file.read(1 << 20):
            hasher.update(piece)
    return hasher.hexdigest()


def fingerprint(size: int, record_hashes: Iterable[str]) -> str:
    """Fingerprint of an input file: its size and the hashes of its records, in order.

    It needs no second reading of the bytes, and nothing but white space and separators can
    change without changing it.
    """
    hasher = hashlib.blake2b(str(size).encode(), digest_size=16)
    for record_hash in record_hashes:
        hasher.update(bytes.fromhex(record_hash))
    return hasher.hexdigest()


def task_digest(task: Mapping[str, Any]) -> str:
    """Hash of what a row of the table tasks says, wherever it hangs."""
    values = {name: value for name, value in task.items() if name not in ("seq", "trajectory_id")}
    return digest(repr(sorted(values.items())).encode())


def base_id(dataset: str, source_id: str | None, source_hash: str) -> str:
    """The trajectory id before repeats are numbered: ``dataset/source_id``.

    Without a source id the hash of the record stands for it.
    """
    return f"{dataset}/{source_id if source_id is not None else source_hash}"


def numbered(base: str, occurrence: int) -> str:
    """The id of the n-th occurrence (from 1) of a base id: the first stays bare."""
    return base if occurrence == 1 else f"{base}#{occurrence}"


def renamed_ids(names: Sequence[str], taken: Set[str]) -> dict[str, str]:
    """New ids for those that an earlier store has too: the next number, ``#2``, ``#3``."""
    results: dict[str, str] = {}
    used = set(names) if taken else set()
    for name in names:
        if name in taken:
            number = 2
            while (new := numbered(name, number)) in taken or new in used:
                number += 1
            results[name] = new
            used.add(new)
    return results
