"""What code of others raises: what stops the run, and how the rest is said."""

from __future__ import annotations

import asyncio
import threading


def stops(error: BaseException) -> bool:
    """Whether an exception is for the run and not for what raised it.

    Code of others raises more than `Exception`: a panic of a library in Rust (polars, tokenizers)
    and an exception group are only `BaseException`, and so is what ``sys.exit`` raises. None of
    them may end a run. What does end it is Ctrl-C, which comes in the main thread alone, and the
    cancellation of a coroutine.
    """
    if isinstance(error, KeyboardInterrupt):
        return threading.current_thread() is threading.main_thread()
    return isinstance(error, GeneratorExit | asyncio.CancelledError)


def error_text(error: BaseException) -> str:
    """Kind and words of an exception; its kind alone when it cannot say more."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # its __str__ is foreign code, too
        return type(error).__name__
