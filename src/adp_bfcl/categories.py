"""The categories of BFCL, their groups and languages, and the ids of entries."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from adp_schema.errors import UsageError, unknown_name


class Language(StrEnum):
    """Language whose types and call syntax an entry uses."""

    PYTHON = "python"
    JAVA = "java"
    JAVASCRIPT = "javascript"


NON_LIVE = (
    "simple_python",
    "simple_java",
    "simple_javascript",
    "multiple",
    "parallel",
    "parallel_multiple",
    "irrelevance",
)
LIVE = (
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
    "live_irrelevance",
    "live_relevance",
)
MULTI_TURN = (
    "multi_turn_base",
    "multi_turn_miss_func",
    "multi_turn_miss_param",
    "multi_turn_long_context",
)
MEMORY = ("memory_kv", "memory_vector", "memory_rec_sum")
WEB_SEARCH = ("web_search_base", "web_search_no_snippet")
AGENTIC = MEMORY + WEB_SEARCH
"""These need services of the network or further models; they are not evaluated here."""

SINGLE_TURN = NON_LIVE + LIVE
SUPPORTED = SINGLE_TURN + MULTI_TURN

GROUPS = {
    "all": SUPPORTED,
    "single_turn": SINGLE_TURN,
    "non_live": NON_LIVE,
    "live": LIVE,
    "multi_turn": MULTI_TURN,
    "python": tuple(
        name for name in SINGLE_TURN if name not in ("simple_java", "simple_javascript")
    ),
    "non_python": ("simple_java", "simple_javascript"),
}
"""Names that stand for several categories, those of the ``bfcl`` command."""

RENAMED = {"simple": "simple_python", "java": "simple_java", "javascript": "simple_javascript"}
"""Names of BFCL v1 to v3, and what they are called since v4."""

SUPPLEMENTARY = ("multi_turn_composite",)
"""Categories of older versions that later ones left out; their files are still read."""


def canonical(category: str) -> str:
    """The name of a category since BFCL v4."""
    return RENAMED.get(category, category)


def select(names: str | tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """The categories that names of categories and of groups stand for, in BFCL's order.

    Args:
        names: names, or one text with names between commas.

    Raises:
        UsageError: a name is unknown, or it is a category that cannot be evaluated here.
    """
    given = names.split(",") if isinstance(names, str) else names
    wanted: set[str] = set()
    for name in (canonical(part.strip()) for part in given):
        if name in GROUPS:
            wanted.update(GROUPS[name])
        elif name in SUPPORTED or name in SUPPLEMENTARY:
            wanted.add(name)
        elif name in AGENTIC or name in ("memory", "web_search", "agentic"):
            raise UsageError(
                f"the BFCL category '{name}' needs a search service or an embedding model and "
                "is not evaluated here; leave it out"
            )
        else:
            known = (*GROUPS, *SUPPORTED)
            raise UsageError(unknown_name("BFCL category", name, known))
    return tuple(name for name in SUPPORTED + SUPPLEMENTARY if name in wanted)


def in_short(categories: Iterable[str]) -> str:
    """Names of categories in a sentence; a group of which all are there is one word."""
    left = list(categories)
    groups = {"multi_turn": MULTI_TURN, "agentic": AGENTIC, "live": LIVE, "non_live": NON_LIVE}
    results = []
    for name, members in groups.items():
        scored = [member for member in members if member != "live_relevance"]
        if set(scored) <= set(left):
            left = [item for item in left if item not in members]
            results.append(name)
    return ", ".join(left + results)


def of_id(entry_id: str) -> str:
    """The category that an id names: ``live_simple_0-0-0`` is of ``live_simple``."""
    return canonical(entry_id.split(":")[0].rpartition("_")[0])


def order_of(entry_id: str) -> tuple[str, int, str]:
    """What entries are sorted by: the category, then the number."""
    category, _, number = entry_id.split(":")[0].rpartition("_")
    first = number.split("-")[0]
    return canonical(category), int(first) if first.isdecimal() else -1, entry_id


def group_of(category: str) -> str:
    """The folder of results that a category lies in."""
    if category in AGENTIC:
        return "agentic"
    if "multi_turn" in category:
        return "multi_turn"
    return "live" if category.startswith("live_") else "non_live"


def language_of(category: str) -> Language:
    """The language of a category."""
    if "javascript" in category:
        return Language.JAVASCRIPT
    return Language.JAVA if "java" in category else Language.PYTHON


def is_multi_turn(category: str) -> bool:
    """Whether the entries have several turns and simulated services."""
    return "multi_turn" in category


def is_relevance(category: str) -> bool:
    """Whether what counts is that there is a call, or that there is none."""
    return "relevance" in category


def wants_no_call(category: str) -> bool:
    """Whether the right answer is to call nothing."""
    return "irrelevance" in category
