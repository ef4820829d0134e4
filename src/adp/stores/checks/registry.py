"""The checks by name, in the order of a report."""

from __future__ import annotations

from adp.stores.checks import (
    actions,
    arguments,
    calls,
    completeness,
    files,
    media,
    metadata,
    order,
    roles,
    rows,
    tasks,
    text,
)
from adp.stores.checks.model import Check

GROUPS: dict[str, tuple[Check, ...]] = {
    "The store": files.CHECKS,
    "Rows and ids": rows.CHECKS,
    "Calls and results": calls.CHECKS,
    "Order, begin and end": order.CHECKS,
    "Roles": roles.CHECKS,
    "How calls are written": actions.CHECKS,
    "Arguments": arguments.CHECKS,
    "Texts": text.CHECKS,
    "Media and pages": media.CHECKS,
    "Tasks": tasks.CHECKS,
    "What is known": metadata.CHECKS,
    "How complete it is": completeness.CHECKS,
}
"""Title of a group -> its checks."""

CHECKS: dict[str, Check] = {check.id: check for group in GROUPS.values() for check in group}
