"""Chat files of three shapes, for the speed of conversion: seeded, the same bytes every time.

``long`` is the chat file of `generate`: long texts, calls, tools. ``short`` has short messages,
a call in every second one, whose arguments are an object in one case of two and a string in
the other. ``plain`` has chats of user and assistant without any tool.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from generate import TOOLS, ChatMaker

SHAPES = ("long", "short", "plain")
_KEYS = ("path", "limit", "query", "recursive")


class ShortMaker(ChatMaker):
    """Makes chat records of about 20 KB and 100 messages."""

    def record(self, index: int) -> dict[str, Any]:
        """One trajectory."""
        draw, words = self._random, self._words
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": words.text(200)},
            {"role": "user", "content": words.text(80)},
        ]
        for turn in range(draw.randint(30, 70)):
            call = self._short_call(f"call_{index}_{turn}")
            messages += [
                {"role": "assistant", "content": words.text(40), "tool_calls": [call]},
                {"role": "tool", "tool_call_id": call["id"], "content": words.text(60)},
            ]
        messages.append({"role": "assistant", "content": words.text(60)})
        return {"id": f"short-{index:08d}", "messages": messages, "tools": self._tools[:3]}

    def _short_call(self, call_id: str) -> dict[str, Any]:
        draw = self._random
        values = (self._words.text(20), draw.randint(0, 99), self._words.text(12), True)
        arguments: Any = dict(zip(_KEYS[: draw.randint(1, 4)], values, strict=False))
        if draw.random() < 0.5:
            arguments = msgspec.json.encode(arguments).decode()
        function = {"name": draw.choice(TOOLS), "arguments": arguments}
        return {"id": call_id, "type": "function", "function": function}


class PlainMaker(ChatMaker):
    """Makes chat records of about 4 KB and 9 messages, without tools."""

    def record(self, index: int) -> dict[str, Any]:
        """One trajectory."""
        draw, words = self._random, self._words
        messages = [{"role": "system", "content": words.text(150)}]
        for _ in range(draw.randint(2, 6)):
            messages.append({"role": "user", "content": words.text(draw.randint(50, 500))})
            messages.append({"role": "assistant", "content": words.text(draw.randint(100, 1200))})
        return {"id": f"plain-{index:08d}", "messages": messages}


_MAKERS: dict[str, Callable[[int], ChatMaker]] = {
    "long": ChatMaker,
    "short": ShortMaker,
    "plain": PlainMaker,
}


def write_shape(shape: str, path: Path, megabytes: float, seed: int = 1) -> int:
    """Write chat records of a shape until the file has so many megabytes; returns their number."""
    maker = _MAKERS[shape](seed)
    limit = int(megabytes * 1_000_000)
    size = count = 0
    with path.open("wb", buffering=1 << 20) as file:
        while size < limit:
            size += file.write(msgspec.json.encode(maker.record(count)) + b"\n")
            count += 1
    return count
