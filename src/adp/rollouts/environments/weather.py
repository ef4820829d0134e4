"""The environment ``weather``: made-up weather that is the same every time.

The weather of a place on a day follows from a hash of both and of the setting ``world``. Names of
places are compared without regard to case and spaces; every name has weather.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

from adp.rollouts.environment import EnvironmentKind, Settings
from adp.rollouts.environments.generated import Question, generated
from adp.rollouts.tool_environment import ToolEnvironment
from adp.rollouts.tools import FunctionTool, ToolError, arguments_schema
from adp.rollouts.turns import ErrorType
from adp_schema.ids import digest
from adp_schema.model import Task

NAME = "weather"
TODAY = date(2026, 1, 15)
CONDITIONS = ("sunny", "cloudy", "rain", "snow", "fog", "windy")
UNITS = ("celsius", "fahrenheit")
CITIES = (
    *("Accra", "Amsterdam", "Athens", "Bangkok", "Berlin", "Bogota", "Boston", "Brussels"),
    *("Cairo", "Chicago", "Copenhagen", "Dakar", "Delhi", "Dublin", "Hanoi", "Helsinki"),
    *("Istanbul", "Jakarta", "Kyiv", "Lagos", "Lima", "Lisbon", "London", "Madrid"),
    *("Manila", "Mexico City", "Montreal", "Mumbai", "Nairobi", "New York", "Oslo", "Paris"),
    *("Prague", "Quito", "Rome", "Santiago", "Seoul", "Sydney", "Tokyo", "Vienna"),
)

_LOCATION = {
    "type": "string",
    "description": "Name of the place, such as Paris.",
    "minLength": 1,
    "maxLength": 100,
}
_DAY = {"type": "string", "description": "The day as YYYY-MM-DD; without it, today."}
_UNIT = {"type": "string", "enum": list(UNITS), "description": "Unit of the temperature."}
PARAMETERS = arguments_schema(
    {"location": _LOCATION, "day": _DAY, "unit": _UNIT}, optional=("day", "unit")
)


def weather_on(location: str, day: date, unit: str = "celsius", world: int = 0) -> dict[str, Any]:
    """The weather of a place on a day.

    Args:
        location: name of the place.
        day: the day.
        unit: ``celsius`` or ``fahrenheit``.
        world: another number is another world, with other weather.
    """
    place = " ".join(location.casefold().split())
    draw = int(digest(f"{world}/{place}/{day.isoformat()}".encode()), 16)
    draw, celsius = divmod(draw, 46)
    draw, condition = divmod(draw, len(CONDITIONS))
    draw, humidity = divmod(draw, 71)
    celsius -= 10
    return {
        "location": location,
        "day": day.isoformat(),
        "temperature": celsius if unit == "celsius" else round(celsius * 9 / 5 + 32, 1),
        "unit": unit,
        "condition": CONDITIONS[condition],
        "humidity_percent": 20 + humidity,
        "wind_kmh": draw % 61,
    }


def weather_tool(today: date = TODAY, world: int = 0) -> FunctionTool:
    """The tool ``weather``.

    Args:
        today: the day that is meant where a call names none.
        world: another number is another world, with other weather.
    """

    def weather(location: str, day: str | None = None, unit: str = "celsius") -> dict[str, Any]:
        if not location.strip():
            raise ToolError("the location is empty", ErrorType.INVALID_ARGS)
        return weather_on(location, _day(day, today), unit, world)

    about = f"Tells the weather of a place on a day. Today is {today.isoformat()}."
    return FunctionTool(NAME, about, PARAMETERS, weather, read_only=True)


def _day(text: str | None, today: date) -> date:
    if text is None:
        return today
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ToolError(
            f"'{text[:40]}' is no day; write it as YYYY-MM-DD", ErrorType.INVALID_ARGS
        ) from None


class WeatherSettings(Settings):
    """Settings of the environment ``weather``."""

    today: date = TODAY
    """The day that is today."""
    world: int = 0
    """Another number is a world with other weather."""


class Weather(ToolEnvironment):
    """One tool, ``weather``.

    Args:
        settings: which day is today, and which world it is.
    """

    def __init__(self, settings: WeatherSettings | None = None) -> None:
        chosen = settings or WeatherSettings()
        super().__init__([weather_tool(chosen.today, chosen.world)])


def _tasks(settings: WeatherSettings, split: str, count: int | None, seed: int) -> Sequence[Task]:
    def make(rng: random.Random) -> Question:
        day = settings.today + timedelta(days=rng.randrange(365))
        result, other = rng.sample(CITIES, 2)
        here, there = (weather_on(city, day, world=settings.world) for city in (result, other))
        kind = rng.randrange(4)
        if kind == 0:
            question = (
                f"How many degrees Celsius does {result} have on {day}? Give the number alone."
            )
            return question, [str(here["temperature"])], "one call"
        if kind == 1:
            hot = weather_on(result, day, "fahrenheit", settings.world)["temperature"]
            question = f"How many degrees Fahrenheit does {result} have on {day}? "
            return question + "Give the number alone.", [f"{hot:g}"], "one call"
        if kind == 2:
            choices = ", ".join(CONDITIONS)
            question = (
                f"Which weather does {result} have on {day}? Answer with one word of: {choices}"
            )
            return question, [here["condition"]], "one call"
        question = f"Which is warmer on {day}, {result} or {other}? Give the name, or 'equal'."
        warmer = "equal"
        if here["temperature"] != there["temperature"]:
            warmer = result if here["temperature"] > there["temperature"] else other
        return question, [warmer], "two calls"

    return generated(NAME, make, split, count, seed)


KIND = EnvironmentKind(
    name=NAME,
    about="Made-up weather that follows from place and day; it makes its own tasks.",
    settings=WeatherSettings,
    make=Weather,
    tasks=_tasks,
)
