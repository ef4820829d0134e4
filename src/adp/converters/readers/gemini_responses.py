"""Requests to Gemini's API, and its replies, whole or as the pieces of a stream.

Either alone, or both in the wrappers of logs and batches; the lines ``{method, response}`` that
tests of Gemini CLI replay are replies. Source: the reference of the API.
"""

from __future__ import annotations

from typing import ClassVar

from adp.converters.exchanges.reader import ExchangeReader


class GeminiResponses(ExchangeReader):
    """The format ``gemini_responses``."""

    name = "gemini_responses"
    title = "Requests to Gemini's API, and replies"
    recognised = "a list candidates, alone or under response, or a list contents"
    versions = "reads requests, replies, both together, streams as lists, and lines of batches"
    api: ClassVar[str] = "gemini"


CONVERTER = GeminiResponses()
