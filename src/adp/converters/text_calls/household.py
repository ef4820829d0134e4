"""Actions of household games in plain words (``take mug 1 from shelf 2``) as calls."""

from __future__ import annotations

import re

from adp.converters.text_calls.labels import object_text, string_members

_THING = r"(\w[\w'#./-]*+(?: [\w'#./-]++){0,7}?)"
_FORMS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("go", "go to {}", ("location",)),
    ("take", "take {} from {}", ("item", "source")),
    ("put", "put {} in/on {}", ("item", "target")),
    ("put", "put {} on {}", ("item", "target")),
    ("put", "put {} in {}", ("item", "target")),
    ("move", "move {} to {}", ("item", "target")),
    ("open", "open {}", ("obj",)),
    ("close", "close {}", ("obj",)),
    ("heat", "heat {} with {}", ("item", "appliance")),
    ("cool", "cool {} with {}", ("item", "appliance")),
    ("clean", "clean {} with {}", ("item", "appliance")),
    ("slice", "slice {} with {}", ("item", "appliance")),
    ("look_at_under", "look at {} under {}", ("item", "reference")),
    ("examine", "examine {}", ("obj",)),
    ("use", "use {}", ("obj",)),
    ("toggle", "toggle {}", ("obj",)),
    ("report_problem", "report problem with {}", ("obj",)),
    ("inventory", "inventory", ()),
    ("look", "look", ()),
)
"""Name, words and arguments of each action, as the Agent Data Protocol names them."""

_PATTERNS = [
    (re.compile(words.replace("{}", _THING), re.IGNORECASE), name, arguments)
    for name, words, arguments in _FORMS
]
_LONGEST = 200


def household_action(words: str) -> tuple[str, str] | None:
    """Name and JSON text of the arguments of an action in plain words; None when it is none.

    Args:
        words: all words of the action, without a label.
    """
    if len(words) > _LONGEST or "\n" in words:
        return None
    for pattern, name, arguments in _PATTERNS:
        match = pattern.fullmatch(words)
        if match is not None:
            return name, object_text(**dict(zip(arguments, match.groups(), strict=True)))
    return None


def household_words(name: str, arguments: str | None) -> str | None:
    """The words of an action; None when there are none for it.

    Args:
        name: its name.
        arguments: JSON text of its arguments.
    """
    members = string_members(arguments)
    for form, words, names in _FORMS:
        if form == name and members is not None and set(names) == set(members):
            written = words.format(*(members[key] for key in names))
            is_same = household_action(written) == (name, object_text(**_sorted(members, names)))
            return written if is_same else None
    return None


def _sorted(members: dict[str, str], names: tuple[str, ...]) -> dict[str, str]:
    return {name: members[name] for name in names}
