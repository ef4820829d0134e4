"""adp: the data workbench for agent trajectories.

    store = adp.convert("logs/", "my_store")     # or adp.open("my_store")
    adp.query(store, "SELECT name, count(*) FROM calls GROUP BY name")
    adp.show(store, "booking-2")
    adp.export(store, "openai_chat", "chats")
    adp.train(store, "run", model="Qwen/Qwen3-8B")
    adp.collect("toolworld", "openai:model=m", "test:300", "rollouts", n=4)
    adp.score("rollouts", "outcome,tool_f1")
    adp.report("rollouts", "report.html", kind="eval")

``docs/python.md`` has all of it. Everything is imported when it is first used, so ``import adp``
costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adp.version import __version__

if TYPE_CHECKING:
    from adp.api import (
        collect,
        convert,
        curate,
        drop,
        export,
        grow,
        merge,
        open,  # noqa: A004
        parse,
        publish,
        query,
        render,
        report,
        score,
        seal,
        search,
        show,
        stream,
        train,
        use_engine,
        validate,
    )
    from adp_schema import (
        Link,
        Media,
        Observation,
        Pair,
        Row,
        Step,
        Store,
        Task,
        ToolCall,
        Trajectory,
    )

__all__ = [
    "Link",
    "Media",
    "Observation",
    "Pair",
    "Row",
    "Step",
    "Store",
    "Task",
    "ToolCall",
    "Trajectory",
    "__version__",
    "collect",
    "convert",
    "curate",
    "drop",
    "export",
    "grow",
    "merge",
    "open",
    "parse",
    "publish",
    "query",
    "render",
    "report",
    "score",
    "seal",
    "search",
    "show",
    "stream",
    "train",
    "use_engine",
    "validate",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module("adp_schema" if name[0].isupper() else "adp.api"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
