"""Asking about many things at once; what comes out is in their order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from adp.rollouts.background import background_loop

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def in_order(
    work: Callable[[_Item], Coroutine[Any, Any, _Result]],
    items: Iterable[_Item],
    concurrency: int,
) -> Iterator[_Result]:
    """Do some work on each item, on a few of them at once.

    Args:
        work: what is done.
        items: the items; they are taken when their turn comes.
        concurrency: how many are in work at once.

    Returns:
        The results, in the order of the items.
    """
    begun: deque[Future[_Result]] = deque()
    try:
        for item in items:
            begun.append(asyncio.run_coroutine_threadsafe(work(item), background_loop()))
            if len(begun) >= concurrency:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
    finally:
        for future in begun:
            future.cancel()
