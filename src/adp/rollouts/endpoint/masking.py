"""Masking what a server repeats of the secrets that it was sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from adp.rollouts.endpoint.secret_names import is_secret

_HIDDEN = "***"
_SHORTEST = 4
"""Shorter texts are no secrets, and stand in many words."""

_SCHEMES = frozenset({"bearer", "basic", "token", "apikey"})


class SecretMask:
    """Hides some texts.

    Args:
        texts: the texts. Of ``Bearer abc`` the second word is hidden, too.
    """

    def __init__(self, texts: Iterable[str | None]) -> None:
        result: set[str] = set()
        for text in texts:
            words = (text or "").split()
            result.add((text or "").strip())
            if len(words) == 2 and words[0].lower() in _SCHEMES:
                result.add(words[1])
        result |= {quote(text, safe="") for text in result}
        kept = (text for text in result if len(text) >= _SHORTEST)
        # A text may stand in a longer one.
        self._texts = sorted(kept, key=lambda text: (-len(text), text))

    def text(self, text: str) -> str:
        """The text without them."""
        for hidden in self._texts:
            text = text.replace(hidden, _HIDDEN)
        return text

    def data(self, data: bytes) -> bytes:
        """The same for bytes."""
        for hidden in self._texts:
            data = data.replace(hidden.encode("utf-8", "surrogatepass"), _HIDDEN.encode())
        return data

    def value(self, value: Any) -> Any:
        """The same for JSON."""
        if not self._texts:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self.value(child) for key, child in value.items()}
        return [self.value(child) for child in value] if isinstance(value, list) else value


def secret_headers(headers: Mapping[str, str]) -> list[str]:
    """Values of the headers whose names say that they are secrets."""
    return [value for name, value in headers.items() if is_secret(name, value)]


def secret_parameters(url: str) -> list[str]:
    """Values of the parameters of a URL whose names say that they are secrets."""
    return [value for name, value in parse_qsl(urlsplit(url).query) if is_secret(name, value)]
