"""Which settings are secrets, and that their values are seen however deep they stand."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.rollouts.endpoint.secret_names import is_secret, secrets_in


@pytest.mark.parametrize(
    "name",
    ["token", "api_key", "x-api-key", "accessToken", "Authorization", "client.secret", "key",
     "subscription-key", "auth", "Cookie", "PASSWORD"],
)  # fmt: skip
def test_names_of_secrets(name):
    assert is_secret(name, "v")
    assert not is_secret(name, None)
    assert not is_secret(name, True)


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_tokens", 64), ("tokenizer", "gpt2"), ("keyboard", "us"), ("author", "me"), ("url", "u")],
)
def test_names_of_other_settings(name, value):
    assert not is_secret(name, value)


plain = st.recursive(
    st.integers() | st.booleans() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["url", "headers", "retries"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    settings=st.dictionaries(st.sampled_from(["url", "headers"]), plain, min_size=1),
    path=st.lists(st.sampled_from(["extra", "headers", 0]), max_size=4),
    secret=st.sampled_from(["s3cret", ["s3cret"], {"a": ["s3cret"]}, {"b": {"c": "s3cret"}}]),
)
def test_a_secret_is_seen_wherever_it_stands(settings, path, secret):
    assert list(secrets_in(settings)) == []
    node = {"api_key": secret}
    for key in reversed(path):
        node = {"list": [7, node]} if key == 0 else {key: node}
    found_texts = list(secrets_in({**settings, "more": node}))
    assert found_texts == ["s3cret"]
    assert "s3cret" in json.dumps(node)


def test_numbers_and_switches_below_a_secret_name():
    assert list(secrets_in({"credentials": {"id": 7, "on": True, "none": None}})) == ["7"]
