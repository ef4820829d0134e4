"""A loop of its own, in a thread, so that coroutines can be called from everywhere."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from functools import lru_cache
from typing import Any, TypeVar

_T = TypeVar("_T")


@lru_cache(maxsize=1)
def background_loop() -> asyncio.AbstractEventLoop:
    """The loop; it is made once."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="adp-background", daemon=True).start()
    return loop


def run_in_background(work: Coroutine[Any, Any, _T]) -> _T:
    """Carry out a coroutine in that loop, and wait for it. Never call it from the loop itself."""
    return asyncio.run_coroutine_threadsafe(work, background_loop()).result()
