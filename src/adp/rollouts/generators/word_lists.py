"""Words that values are made of where a schema says no more than that it wants a text."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta
from random import Random

from adp.rollouts.environments.weather import CITIES

COUNTRIES = (
    *("Austria", "Brazil", "Canada", "Chile", "Denmark", "Egypt", "Finland", "France", "Ghana"),
    *("Greece", "India", "Ireland", "Italy", "Japan", "Kenya", "Mexico", "Norway", "Peru"),
    *("Poland", "Portugal", "Spain", "Sweden", "Turkey", "Vietnam"),
)
PEOPLE = (
    *("Ada", "Ben", "Carla", "David", "Elena", "Farid", "Grace", "Hugo", "Iris", "Jonas"),
    *("Kofi", "Lena", "Marta", "Nils", "Olga", "Pablo", "Rosa", "Samir", "Tara", "Yuki"),
)
FAMILIES = (
    *("Abbott", "Berg", "Costa", "Duarte", "Ekman", "Fischer", "Garcia", "Haddad", "Ito", "Jansen"),
    *("Kowalski", "Larsen", "Moreau", "Novak", "Okafor", "Patel", "Quist", "Rossi", "Silva"),
    *("Tanaka", "Ueda", "Virtanen", "Weber", "Young"),
)
SUBJECTS = (
    *("solar panels", "river deltas", "bee keeping", "jazz piano", "steel bridges", "bread baking"),
    *("coral reefs", "chess openings", "wind turbines", "language learning", "volcanoes"),
    *("urban planning", "machine learning", "ancient Rome", "electric cars", "tea ceremonies"),
    *("marathon training", "quantum computing", "water filters", "robot arms", "opera history"),
)
ASPECTS = (
    *("history of", "costs of", "news about", "beginner guide to", "risks of", "future of"),
    *("research on", "statistics on", "introduction to", "tutorials for", "facts about"),
)
WORDS = (
    *("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "harbor", "island", "juniper"),
    *("kettle", "lantern", "meadow", "north", "orchid", "pepper", "quartz", "ridge", "summit"),
    *("timber", "umber", "valley", "willow", "yarrow", "zephyr"),
)
LANGUAGES = ("English", "French", "German", "Hindi", "Italian", "Japanese", "Spanish", "Swahili")
CURRENCIES = ("AUD", "CAD", "CHF", "EUR", "GBP", "INR", "JPY", "USD")
COLOURS = ("black", "blue", "brown", "green", "grey", "red", "white", "yellow")

_FIRST_DAY = date(2026, 1, 1)


def expression(rng: Random) -> str:
    """Arithmetic of one to three operations, without a division by zero."""
    text = str(rng.randint(2, 99))
    for _ in range(rng.randint(1, 3)):
        text = f"{text} {rng.choice('+-*/')} {rng.randint(2, 99)}"
        if rng.random() < 0.2:
            text = f"({text})"
    return text


def day(rng: Random) -> str:
    """A day of 2026 or 2027, YYYY-MM-DD."""
    return (_FIRST_DAY + timedelta(days=rng.randrange(730))).isoformat()


def _time(rng: Random) -> str:
    return f"{rng.randrange(24):02}:{rng.randrange(12) * 5:02}:00"


def _person(rng: Random) -> str:
    return f"{rng.choice(PEOPLE)} {rng.choice(FAMILIES)}"


def _email(rng: Random) -> str:
    return f"{rng.choice(PEOPLE)}.{rng.choice(FAMILIES)}@example.com".lower()


def _address(rng: Random) -> str:
    return f"https://example.com/{rng.choice(WORDS)}/{rng.choice(WORDS)}"


def _uuid(rng: Random) -> str:
    text = f"{rng.getrandbits(128):032x}"
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"


def subject(rng: Random) -> str:
    """What one may look up."""
    return f"{rng.choice(ASPECTS)} {rng.choice(SUBJECTS)}"


def words(rng: Random) -> str:
    """Two words."""
    return f"{rng.choice(WORDS)} {rng.choice(WORDS)}"


def one_of(values: tuple[str, ...]) -> Callable[[Random], str]:
    """Draws one of some texts."""
    return lambda rng: rng.choice(values)


FORMATS: dict[str, Callable[[Random], str]] = {
    "date": day,
    "date-time": lambda rng: f"{day(rng)}T{_time(rng)}Z",
    "time": lambda rng: f"{_time(rng)}Z",
    "duration": lambda rng: f"PT{rng.randint(1, 90)}M",
    "email": _email,
    "hostname": lambda rng: f"{rng.choice(WORDS)}.example.com",
    "ipv4": lambda rng: f"192.0.2.{rng.randrange(256)}",
    "ipv6": lambda rng: f"2001:db8::{rng.randrange(1, 65536):x}",
    "uri": _address,
    "url": _address,
    "uuid": _uuid,
}
"""Formats of JSON Schema -> what draws a text of it."""

_BY_WORD: tuple[tuple[str, Callable[[Random], str]], ...] = (
    (r"expression|formula|equation", expression),
    (r"yyyy-mm-dd|dates?|day", day),
    (r"city|cities|location|place|town|destination|origin", one_of(CITIES)),
    (r"country|countries", one_of(COUNTRIES)),
    (r"e?mail", _email),
    (r"url|uri|link|website", _address),
    (r"uuid|guid", _uuid),
    (r"language", one_of(LANGUAGES)),
    (r"currency", one_of(CURRENCIES)),
    (r"colou?r", one_of(COLOURS)),
    (r"path|file|filename", lambda rng: f"{rng.choice(WORDS)}/{rng.choice(WORDS)}.txt"),
    (r"time|hour", lambda rng: _time(rng)[:5]),
    (r"query|topic|keywords?|question|search|subject", subject),
    (r"person|user|customer|author|name", _person),
    (r"id|code|number", lambda rng: f"{rng.choice('ABCDEFGH')}{rng.randint(1000, 9999)}"),
)
"""Words in the name of a parameter, and what draws a text of that sort; the first one holds."""


def maker_for(name: str, description: str) -> Callable[[Random], str]:
    """What draws texts for a parameter: by its name, else by its description, else two words."""
    parts = re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())
    for texts in (parts, [description.lower()]):
        for pattern, maker in _BY_WORD:
            if any(re.search(rf"(?<![a-z])(?:{pattern})(?![a-z])", text) for text in texts):
                return maker
    return words
