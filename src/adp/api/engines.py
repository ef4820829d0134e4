"""Who does the work of the functions of `adp`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


def use_engine(name: str | None = None, address: str | None = None) -> AbstractContextManager[None]:
    """Let an engine do the work that can be shared out, in a ``with`` block.

    What is made does not depend on it. ``ADP_ENGINE`` chooses one for a whole process.

    Args:
        name: ``processes`` of this machine, or ``ray``; None takes ``ray`` when there is an
            address, and leaves what was chosen before otherwise.
        address: ``HOST:PORT`` of a Ray cluster that runs, one of whose machines this is; None
            takes ``RAY_ADDRESS``, and without that begins one of this machine alone, which ends
            with the block.

    Raises:
        UsageError: there is no such engine, or processes have an address.
        EngineError: the cluster cannot be joined, or one of its machines cannot do the work.
        MissingExtraError: Ray is not installed.
    """
    from adp.stores.stage import use_engine as use

    return use(name, address)
