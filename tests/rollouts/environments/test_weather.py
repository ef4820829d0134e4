"""Weather that follows from place and day."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.rollouts.answer_match import same_answer
from adp.rollouts.environments.weather import CONDITIONS, KIND, Weather, weather_on
from adp.rollouts.turns import Call, ErrorType, Turn
from adp_schema.errors import UsageError

DAY = date(2026, 3, 4)


def ask(environment, **arguments):
    (result,) = environment.step(Turn(calls=(Call("weather", json.dumps(arguments)),))).results
    return result


@given(st.text(min_size=1, max_size=40), st.dates())
def test_the_same_place_and_day_have_the_same_weather(place, day):
    result = weather_on(place, day)
    other = weather_on(f"  {place} ", day, "fahrenheit")
    assert other["temperature"] == round(result["temperature"] * 9 / 5 + 32, 1)
    assert result["condition"] == other["condition"]
    shouted = weather_on(place.upper(), day)
    assert not place.isascii() or shouted["condition"] == result["condition"]
    assert -10 <= result["temperature"] <= 35
    assert 20 <= result["humidity_percent"] <= 90
    assert 0 <= result["wind_kmh"] <= 60


def test_weather_differs_between_days_places_and_worlds():
    days = [weather_on("Paris", DAY + timedelta(days=number)) for number in range(600)]
    assert set(Counter(day["condition"] for day in days)) == set(CONDITIONS)
    assert len({day["temperature"] for day in days}) == 46
    assert weather_on("Paris", DAY) != weather_on("Paris", DAY, world=1)


def test_a_call_without_a_day_means_today():
    environment = Weather(KIND.settings(today=DAY))
    assert ask(environment, location="Paris").structured == weather_on("Paris", DAY)
    assert "2026-03-04" in environment.tools()[0]["function"]["description"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"location": " "},
        {"location": ""},
        {"location": "x" * 101},
        {"location": "Paris", "day": "tomorrow"},
        {"location": "Paris", "unit": "kelvin"},
        {"location": 5},
        {"place": "Paris"},
    ],
)
def test_wrong_arguments_are_told(arguments):
    assert ask(Weather(), **arguments).error is ErrorType.INVALID_ARGS


def test_its_tasks_can_be_solved_with_the_tool():
    environment = Weather()
    for task in KIND.tasks(KIND.settings(), "train", 60, 0):
        environment.reset(task)
        (reference,) = json.loads(task.answers)
        (day,) = re.findall(r"\d{4}-\d\d-\d\d", task.instruction)
        unit = "fahrenheit" if "Fahrenheit" in task.instruction else "celsius"
        if task.difficulty == "two calls":
            entry, other = re.search(r", (.*) or (.*)\? Give", task.instruction).groups()
            warmth = {city: ask(environment, location=city, day=day) for city in (entry, other)}
            heat = {city: outcome.structured["temperature"] for city, outcome in warmth.items()}
            best = max(heat, key=heat.get)
            assert reference == ("equal" if len(set(heat.values())) == 1 else best)
            continue
        (city,) = re.findall(r"does (.*) have on", task.instruction)
        result = ask(environment, location=city, day=day, unit=unit).structured
        assert any(same_answer(str(value), reference) for value in result.values())


def test_a_split_that_is_not_there_is_refused():
    with pytest.raises(UsageError, match="no split 'dev'"):
        KIND.tasks(KIND.settings(), "dev", 3, 0)
