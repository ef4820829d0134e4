"""A streamed answer of a chat endpoint, put together as if it had come in one piece."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from adp.rollouts.endpoint.errors import FailedTry, check_status, error_in

_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")


class StreamedAnswer:
    """Collects the events of a stream (server-sent events, one JSON object each).

    Attributes:
        done: whether the stream said that it is at its end.
    """

    def __init__(self, place: str = "") -> None:
        self.done = False
        self._place = place
        self._top: dict[str, Any] = {}
        self._message: dict[str, Any] = {"role": "assistant", "content": None}
        self._choice: dict[str, Any] = {"index": 0, "finish_reason": None}
        self._calls: dict[int, dict[str, Any]] = {}
        self._moved: dict[int, int] = {}
        self._begun = False

    def line(self, line: str) -> None:
        """Take a line of the stream.

        Raises:
            Failure: it holds no JSON object, or an error that may pass.
        """
        if not line.startswith("data:"):
            return
        data = line[5:].strip()
        if data == "[DONE]":
            self.done = True
            return
        try:
            event = json.loads(data)
        except (ValueError, RecursionError) as error:
            if data.startswith('{"error"'):
                # transformers serve puts the words of an exception between quotes as they are.
                raise FailedTry("http_500", f"an error in the stream: {data[:200]}") from error
            raise FailedTry("bad_answer", f"an event of the stream is no JSON: {error}") from error
        if not isinstance(event, dict):
            raise FailedTry("bad_answer", "an event of the stream is no object")
        fault = error_in(event)
        if fault is not None:
            check_status(fault[0] or 500, {}, data.encode("utf-8", "replace"), self._place)
        self._event(event)

    def body(self) -> dict[str, Any]:
        """The whole answer, in the shape of one that is not streamed.

        Raises:
            Failure: the stream was cut.
        """
        ended = self._choice["finish_reason"] is not None
        if not self._begun or not (self.done or ended):
            raise FailedTry("cut_answer", "the stream ended before the answer did")
        message = self._message
        if self._calls:
            message = {**message, "tool_calls": [self._calls[key] for key in sorted(self._calls)]}
        return {**self._top, "choices": [{**self._choice, "message": message}]}

    def _event(self, event: Mapping[str, Any]) -> None:
        for key, value in event.items():
            if key != "choices" and value is not None:
                self._top[key] = value
        choices = event.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            if isinstance(choice, dict) and choice.get("index", 0) in (0, None):
                self._begun = True
                self._take(choice)

    def _take(self, choice: Mapping[str, Any]) -> None:
        if choice.get("finish_reason") is not None:
            self._choice["finish_reason"] = choice["finish_reason"]
        if isinstance(choice.get("token_ids"), list):
            self._choice["token_ids"] = [*self._choice.get("token_ids", ()), *choice["token_ids"]]
        logprobs = choice.get("logprobs")
        content = logprobs.get("content") if isinstance(logprobs, dict) else None
        if isinstance(content, list):
            known = self._choice.setdefault("logprobs", {"content": []})
            known["content"] += content
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return
        for key in _TEXTS:
            if isinstance(delta.get(key), str):
                self._message[key] = (self._message.get(key) or "") + delta[key]
        calls = delta.get("tool_calls")
        for place, call in enumerate(calls if isinstance(calls, list) else []):
            if isinstance(call, dict):
                self._call(call, place)

    def _call(self, piece: Mapping[str, Any], place: int) -> None:
        index = self._place_of(piece, place)
        empty = {"id": None, "type": "function", "function": {"name": None, "arguments": None}}
        call = self._calls.setdefault(index, empty)
        call["id"] = piece.get("id") or call["id"]
        function = piece.get("function")
        if not isinstance(function, dict):
            return
        known = call["function"]
        if isinstance(function.get("name"), str) and function["name"]:
            known["name"] = function["name"]
        given = function.get("arguments")
        if isinstance(given, dict):
            given = json.dumps(given, ensure_ascii=False)
        if isinstance(given, str):
            known["arguments"] = (known["arguments"] or "") + given

    def _place_of(self, piece: Mapping[str, Any], place: int) -> int:
        """Which call a piece belongs to.

        Some servers leave the index out, or send several calls with the same one. There a piece
        with another id and a name begins a call, and one with neither goes on with the last.
        """
        given = piece.get("index")
        index = given if isinstance(given, int) else place
        function = piece.get("function")
        named = isinstance(function, dict) and bool(function.get("name"))
        known = self._calls.get(self._moved.get(index, index), {}).get("id")
        if named and known and piece.get("id") and piece["id"] != known:
            self._moved[index] = max(self._calls) + 1
        return self._moved.get(index, index)
