"""The suites that come with this package."""

from __future__ import annotations

from adp.eval.suite import Suite
from adp.rollouts.collecting.limits import Limits

_CALLS = ("outcome", "schema_validity", "execution", "conciseness", "efficiency", "format")

TOOLWORLD = Suite(
    name="toolworld",
    about="Questions over several hops and tools in made-up worlds, with names never seen before.",
    environment="toolworld",
    tasks="test:200",
    scorers=_CALLS,
    limits=Limits(max_turns=20),
)

CALCULATOR = Suite(
    name="calculator",
    about="Arithmetic with a calculator.",
    environment="calculator",
    tasks="test:100",
    scorers=("outcome", "schema_validity", "execution", "efficiency"),
    limits=Limits(max_turns=10),
)

WEATHER = Suite(
    name="weather",
    about="Questions about made-up weather.",
    environment="weather",
    tasks="test:100",
    scorers=("outcome", "schema_validity", "execution", "efficiency"),
    limits=Limits(max_turns=10),
)
