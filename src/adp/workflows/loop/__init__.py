"""Loops: rounds of collecting, scoring, selecting, training and evaluating, from one file.

plan = make_plan(read_loop("et_agent.yaml"), Path("."))
run_loop(plan, "runs/loop")
"""

from __future__ import annotations

from adp.workflows.loop.loop_file import LoopFile, read_loop
from adp.workflows.loop.plan import LoopPlan, make_plan
from adp.workflows.loop.run import LoopOptions, StageNews, run_loop

__all__ = ["LoopFile", "LoopOptions", "LoopPlan", "StageNews", "make_plan", "read_loop", "run_loop"]
