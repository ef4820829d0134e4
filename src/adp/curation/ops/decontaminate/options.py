"""Options of `decontaminate`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from adp.curation.op import OpOptions

Action = Literal["drop", "flag", "off"]
View = Literal["system", "task", "user", "agent", "actions", "observations"]


class Against(OpOptions):
    """A benchmark; a path alone stands for ``{file: PATH}``."""

    file: str
    """File with the items (.jsonl, .json, .csv, .tsv, .parquet, .txt with one item a line; also
    .gz), a pattern such as test-*.parquet, or a store."""
    name: str | None = None
    """Name of the benchmark; by default, of the file."""
    id: str | None = None
    """Field with the item's id; by default guessed, as all fields here."""
    text: str | list[str] | None = None
    """Field, or fields, with the text of the task; a.b is b inside a."""
    repo: str | None = None
    """Field with the repository, as owner/name."""
    commit: str | None = None
    """Field with the commit that the task starts at."""
    patch: str | None = None
    """Field with the reference patch, a unified diff."""
    answer: str | None = None
    """Field with the answer; whether a trajectory holds it goes to evidence."""


class Decontaminate(OpOptions):
    """Options of `decontaminate`."""

    against: list[Against] = Field(min_length=1)
    """The benchmarks."""
    on_instance: Action = "drop"
    """What to do about the id, the issue or the commit of an item."""
    on_repository: Action = "flag"
    """What to do when only the repository is that of an item."""
    on_text: Action = "drop"
    """What to do about the text of an item."""
    on_patch: Action = "drop"
    """What to do about the reference patch."""
    views: list[View] = Field(["task", "user"], min_length=1)
    """Texts of a trajectory that are compared with the texts of the items: system, task (of the
    user before the agent's first step), user (after it), agent, actions, observations."""
    n: int = Field(13, ge=2, le=100)
    """Words of an n-gram."""
    min_words: int = Field(8, ge=1)
    """A text of fewer than n words is compared as a whole; one of fewer than these never is,
    since it may stand anywhere by chance."""
    threshold: float = Field(0.5, gt=0, le=1)
    """Share of an item's text from which on a trajectory holds it."""
    measure: Literal["words", "ngrams"] = "words"
    """What the share counts: the words of the item that stand in a common n-gram, or the n-grams
    themselves (half of a short item holds far fewer than half of these)."""
    patch_threshold: float = Field(0.5, gt=0, le=1)
    """The same for the added lines of the reference patch."""
    patch_lines: int = Field(3, ge=1)
    """A patch with fewer lines that say something is not compared."""
    line_words: int = Field(3, ge=1)
    """A line says something when it has at least so many words."""
    frequent: float = Field(0.01, gt=0, le=1)
    """An n-gram or line is ignored, on both sides, when it stands in more than this share of the
    pool's different tasks, or of the items."""
    frequent_at_least: int = Field(10, ge=1)
    """What stands in so many tasks or items, or fewer, is never ignored."""

    @field_validator("against", mode="before")
    @classmethod
    def _paths(cls, value: Any) -> Any:
        values = value if isinstance(value, list) else [value]
        return [{"file": item} if isinstance(item, str) else item for item in values]

    @field_validator("views")
    @classmethod
    def _once(cls, value: list[View]) -> list[View]:
        return sorted(set(value))
