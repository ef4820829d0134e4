"""Random numbers that belong to a name: they stay the same when other rows come or go."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np


def draws(seed: int, names: Iterable[str], salt: str = "") -> np.ndarray[Any, np.dtype[np.uint64]]:
    """One random number a name: the first 8 bytes of the blake2b of seed, salt and name.

    Taking the rows with the smallest numbers is a random sample without replacement. It changes
    little when rows are added, and not at all when they come in another order.

    Args:
        seed: the seed.
        names: names of the rows, such as their ids.
        salt: tells draws for several purposes apart.

    Returns:
        Whole numbers, even over 0 to 2**64 - 1.
    """
    head = hashlib.blake2b(f"{seed}\0{salt}\0".encode(), digest_size=8)
    result = bytearray()
    for name in names:
        hasher = head.copy()
        hasher.update(name.encode("utf-8", "surrogatepass"))
        result += hasher.digest()
    return np.frombuffer(bytes(result), dtype=">u8").astype(np.uint64)
