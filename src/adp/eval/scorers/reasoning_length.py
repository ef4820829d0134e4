"""How much the agent wrote: its reasoning and texts, without calls and results.

ET-Agent counts the tokens of the output without what stands in ``<result>`` tags, and divides
correctness by it (ET-Agent, arXiv 2601.06860, ``radar/run.py``). The unit is part of the metric's
name, because lengths in different units cannot be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import model_validator

from adp.eval.scorer import Item, Score, ScorerKind
from adp.eval.scorers.base import PerTrajectory
from adp.eval.scorers.correctness import WithCorrectness, correctness
from adp.eval.scorers.usage import written_tokens
from adp.rollouts.trajectory_reading import agent_texts
from adp_schema.errors import InputError, MissingExtraError


class LengthSettings(WithCorrectness):
    """Settings of the scorer ``reasoning_length``."""

    unit: Literal["words", "chars", "tokens", "recorded"] = "words"
    """What is counted: words between spaces, characters, tokens of the tokenizer, or the tokens
    that the source recorded as written (calls included)."""
    tokenizer: Path | None = None
    """A tokenizer.json, or the folder that holds it; for unit=tokens."""

    @model_validator(mode="after")
    def _complete(self) -> LengthSettings:
        if self.unit == "tokens" and self.tokenizer is None:
            raise ValueError("unit=tokens needs tokenizer=, the path of a tokenizer.json")
        return self


class LengthScorer(PerTrajectory):
    """Counts what the agent wrote.

    Args:
        settings: its settings.

    Raises:
        InputError: the tokenizer cannot be read.
        MissingExtraError: the package ``tokenizers`` is not installed.
    """

    name = "reasoning_length"

    def __init__(self, settings: LengthSettings) -> None:
        self.settings = settings
        kind = "recorded_tokens" if settings.unit == "recorded" else settings.unit
        self.metrics = (f"reasoning_{kind}", f"correct_per_{kind}")
        self.amounts = frozenset(self.metrics)
        self._tokenizer = load_tokenizer(settings.tokenizer) if settings.tokenizer else None

    def measure(self, item: Item) -> Sequence[Score]:
        """Score a trajectory that ran as it should."""
        length_name, correct_name = self.metrics
        length = self._length(item)
        if length is None:
            reason = "the source does not record how many tokens were written"
            return [Score(length_name, None, reason), Score(correct_name, None, reason)]
        right = correctness(item, self.settings.correct)
        value = None if right.value is None else right.value / max(length, 1)
        return [
            Score(length_name, float(length)),
            Score(correct_name, value, right.reason, {"from": right.source}),
        ]

    def _length(self, item: Item) -> float | None:
        if self.settings.unit == "recorded":
            return written_tokens(item.trajectory)
        texts = [without_results(text) for text in agent_texts(item.trajectory)]
        if self.settings.unit == "chars":
            return sum(map(len, texts))
        if self._tokenizer is None:
            return sum(len(text.split()) for text in texts)
        encodable_texts = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        return sum(
            len(self._tokenizer.encode(text, add_special_tokens=False).ids)
            for text in encodable_texts
        )


def without_results(text: str) -> str:
    """A text without what stands in ``<result>`` tags."""
    parts = text.split("<result>")
    kept = [parts[0]]
    for part in parts[1:]:
        _, end, rest = part.partition("</result>")
        kept.append(rest if end else part)
    return "".join(kept)


@lru_cache(maxsize=4)
def load_tokenizer(path: Path) -> Any:
    """A tokenizer of the package ``tokenizers``.

    Raises:
        InputError: the file cannot be read.
        MissingExtraError: the package is not installed.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtraError("tokenizers", "tokenizers") from error
    file = path / "tokenizer.json" if path.is_dir() else path
    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:
        raise InputError(f"{file} cannot be read as a tokenizer: {error}") from error


KIND = ScorerKind(
    name="reasoning_length",
    about="Length of what the agent wrote without calls and results, and correctness for each unit "
    "of it (ET-Agent).",
    settings=LengthSettings,
    make=LengthScorer,
)
