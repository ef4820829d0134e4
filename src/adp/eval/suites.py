"""The suites that come with this package."""

from __future__ import annotations

from adp.eval.rollout.limits import Limits
from adp.eval.suite import Suite

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

BFCL = Suite(
    name="bfcl",
    about="Single-turn questions of the Berkeley Function Calling Leaderboard.",
    environment="bfcl:category=single_turn",
    tasks="test",
    scorers=("bfcl",),
    limits=Limits(max_turns=1),
)

BFCL_MULTI_TURN = Suite(
    name="bfcl_multi_turn",
    about="Multi-turn questions of the Berkeley Function Calling Leaderboard.",
    environment="bfcl:category=multi_turn",
    tasks="test",
    scorers=("bfcl",),
    limits=Limits(max_turns=200),
)
