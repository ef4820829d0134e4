"""Replies of OpenAI's chat completions, alone or with the request, as logs and batches hold them.

Requests alone are rows of messages: the format ``openai_chat`` reads those, unless a wrapper is
around them. Sources: the reference of the API; files of batches; logs of LiteLLM.
"""

from __future__ import annotations

from typing import ClassVar

from adp.converters.exchanges.reader import ExchangeReader


class ChatCompletions(ExchangeReader):
    """The format ``chat_completions``."""

    name = "chat_completions"
    title = "Chat completions with their requests, as logs and batches hold them"
    recognised = "a list choices, alone or under response, or messages in the body of a request"
    versions = "reads replies, requests in wrappers, both together, and lines of batches"
    api: ClassVar[str] = "chat"


CONVERTER = ChatCompletions()
