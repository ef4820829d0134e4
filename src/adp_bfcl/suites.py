"""The suites of BFCL."""

from __future__ import annotations

from adp.eval.suite import Suite
from adp.rollouts.collecting.limits import Limits

SINGLE_TURN = Suite(
    name="bfcl",
    about="Single-turn questions of the Berkeley Function Calling Leaderboard.",
    environment="bfcl:category=single_turn",
    tasks="test",
    scorers=("bfcl",),
    limits=Limits(max_turns=1),
)

MULTI_TURN = Suite(
    name="bfcl_multi_turn",
    about="Multi-turn questions of the Berkeley Function Calling Leaderboard.",
    environment="bfcl:category=multi_turn",
    tasks="test",
    scorers=("bfcl",),
    limits=Limits(max_turns=200),
)
