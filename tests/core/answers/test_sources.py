"""Which rule a data set has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.core.answers.sources import F1_SETS, RULES, has_f1, rule_of


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        *[(name, "math") for name in ("aime24", "aime25", "amc23", "math500", "math", "gsm8k")],
        *[(name, "math") for name in ("olympiadbench", "AIME_2024", "data/aime24.jsonl")],
        *[(name, "math") for name in ("numina-tir", "math_effi_rl", "gsm8k-test")],
        *[(name, "qa") for name in ("webwalker", "hotpotqa", "2wiki", "bamboogle", "musique")],
        *[(name, "qa") for name in ("hle", "gaia", "csbench", "gpqa", "HotpotQA/train.parquet")],
        *[(name, None) for name in ("", "mathematics of rain", "toolworld", "aime24b")],
    ],
)
def test_the_rule_of_a_name(name, rule):
    assert rule_of(name) == rule


def test_the_first_name_that_is_known_counts():
    assert rule_of(None, "", "runs", "gaia", "aime24") == "qa"
    assert has_f1("runs", "musique") is True
    assert has_f1("gaia") is False
    assert has_f1("runs", None) is None
    assert all(RULES[name] == "qa" for name in F1_SETS)


@given(st.text())
def test_any_name_has_a_rule_or_none(name):
    assert rule_of(name) in ("math", "qa", None)
