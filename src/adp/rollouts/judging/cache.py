"""Answers of judges, kept by the hash of what was asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adp.rendering.run import cache_folder
from adp.rollouts.searching.cache import TextCache
from adp_schema.errors import OutputExistsError, UsageError
from adp_schema.ids import digest


@dataclass(frozen=True)
class JudgeAnswer:
    """What a model answered.

    Attributes:
        text: its words; None when there is no answer.
        failure: why there is none.
        model: model that answered.
        tokens_in: tokens of the question; None where the server does not say.
        tokens_out: tokens of the answer.
        cost_usd: what it cost, where the provider says so.
        misuse: the error of a wrong call: key, model, option.
    """

    text: str | None
    failure: str | None = None
    model: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    misuse: UsageError | None = None


_KEPT = ("text", "model", "tokens_in", "tokens_out", "cost_usd")


class AnswerCache:
    """Answers of all judges, in ``$ADP_CACHE`` or the user's cache.

    Processes share it. One that is killed leaves all that it was answered.

    Raises:
        OutputExistsError: nothing can be written there.
    """

    def __init__(self) -> None:
        folder = cache_folder().with_name("verdicts")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputExistsError(f"cannot write to {folder}: {error.strerror}") from error
        self._texts = TextCache(folder / "answers.sqlite")

    def get(self, asked: Mapping[str, Any]) -> JudgeAnswer | None:
        """The answer to a question; None when there is none.

        Args:
            asked: all that the answer depends on, JSON: model, settings, messages, seed.
        """
        text = self._texts.get(_key(asked))
        return None if text is None else JudgeAnswer(**json.loads(text))

    def put(self, asked: Mapping[str, Any], answer: JudgeAnswer) -> JudgeAnswer:
        """Keep an answer.

        Returns:
            The answer that counts: the first one, which may be another.
        """
        kept = {name: getattr(answer, name) for name in _KEPT}
        text = self._texts.put(_key(asked), json.dumps(kept))
        return JudgeAnswer(**json.loads(text))


def _key(asked: Mapping[str, Any]) -> str:
    return digest(json.dumps(asked, sort_keys=True).encode())
