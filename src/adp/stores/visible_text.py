"""Texts and sizes as a terminal may show them."""

from __future__ import annotations

_SHOWN = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\n\t"}
_SHOWN[127] = "␡"
_SHOWN |= {code: f"\\x{code:02x}" for code in range(0x80, 0xA0)}
# Marks that turn the direction of writing can make a text read as another one.
_TURNS = [0x200E, 0x200F, 0x061C, 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_SHOWN |= {code: f"\\u{code:04x}" for code in [*_TURNS, *range(0xD800, 0xE000)]}


def visible(text: str) -> str:
    """A text whose control characters are shown as signs: harmless on a terminal.

    Line ends and tabs stay. Escape becomes ``␛``, for example.
    """
    return text.replace("\r\n", "\n").translate(_SHOWN)


def human_size(size: int) -> str:
    """A number of bytes for people: ``12 kB``."""
    amount = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if amount >= 10 or unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"
