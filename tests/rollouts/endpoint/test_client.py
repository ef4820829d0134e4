"""How long the client of an endpoint waits between its tries."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.rollouts.endpoint.client import Endpoint
from adp.rollouts.endpoint.errors import EndpointError, asked, reason_of
from adp.rollouts.endpoint.settings import EndpointSettings
from tests.rollouts.policies.chat_server import answer, say, serving


def waits(steps, seed=0, **options):
    """The seconds that are waited between the tries of one request."""
    results = []

    async def sleep(seconds):
        results.append(seconds)

    async def run(url):
        endpoint = Endpoint(EndpointSettings(base_url=url, **options), sleep=sleep)
        try:
            return await endpoint.chat({"messages": []}, seed)
        finally:
            await endpoint.close()

    with serving(*steps) as server:
        try:
            asyncio.run(run(server.url))
        except EndpointError as error:
            return results, error
    return results, None


BUSY = answer(b"busy", 503)


def test_waits_grow_with_full_jitter_and_are_the_same_for_the_same_seed():
    options = {"retries": 6, "first_wait": 2.0, "longest_wait": 10.0}
    result, error = waits([BUSY], seed=3, **options)
    assert waits([BUSY], seed=3, **options)[0] == result
    assert waits([BUSY], seed=4, **options)[0] != result
    assert error.kind == "http_503"
    assert len(result) == 6
    assert all(0 <= wait <= most for wait, most in zip(result, [2, 4, 8, 10, 10, 10], strict=True))


def test_the_server_says_how_long():
    def limited(seconds):
        return answer(b"", 429, retry_after=seconds)

    options = {"first_wait": 0.5, "longest_wait": 20.0}
    (first, second), error = waits([limited("7"), limited("900"), say("5")], **options)
    assert error is None
    assert 7 <= first <= 7.5
    assert 20 <= second <= 20.5


@given(st.floats(allow_nan=True) | st.text(max_size=20))
def test_whatever_a_server_asks_is_no_time_below_zero(value):
    result = asked({"retry-after": str(value)})
    assert result is None or result >= 0


def test_a_date_and_milliseconds_are_read():
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    date = format_datetime(now + timedelta(seconds=90), usegmt=True)
    assert asked({"retry-after": date}, now) == 90
    assert asked({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    assert asked({}) is None


@pytest.mark.parametrize(
    ("body", "messages"),
    [
        (b'{"error": {"message": "no", "code": "x"}}', "x no"),
        (b'{"error": "no"}', "no"),
        (b'{"detail": [{"loc": ["body"]}]}', '[{"loc": ["body"]}]'),
        (b"<html><h1>502</h1>\n Bad Gateway</html>", "502 Bad Gateway"),
        (b"\xff" * 1000, "\ufffd" * 297 + "..."),
        (b"[" * 50_000, "[" * 297 + "..."),
    ],
)
def test_what_a_server_says_is_a_short_line(body, messages):
    assert reason_of(body) == messages
