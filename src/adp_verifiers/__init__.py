"""Any environment of adp as a taskset of verifiers (0.4): ``vf-eval adp_verifiers ...``.

    vf-eval adp_verifiers --env.taskset.environment toolworld --env.taskset.tasks test:20

It needs the package verifiers, which adp does not install; it is imported with the taskset.
"""

from __future__ import annotations

from typing import Any

__all__ = ["AdpTaskset"]


def __getattr__(name: str) -> Any:
    if name != "AdpTaskset":
        raise AttributeError(f"adp_verifiers has no {name!r}")
    from adp_verifiers.taskset import AdpTaskset

    return AdpTaskset
