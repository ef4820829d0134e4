"""What examples of data sets hold, counted by hand: runs, calls, and results that are linked."""

from __future__ import annotations

from pathlib import Path

import pytest

import adp
from tests.converters.datasets.stores import table

EXAMPLES = Path(__file__).parent / "examples"
COUNTS = {
    "afm_sft/rows.json": (1, 1, 1),
    "agent_flan/rows.json": (2, 2, 1),
    "agentbank/agentbank_alfworld.json": (1, 1, 1),
    "agentnet/rows.jsonl": (1, 2, 1),
    "agentnet_bench/rows.json": (1, 1, 0),
    "agentrefine/agentrefine_rows.json": (1, 2, 2),
    "agenttraj_l/webshop_train.json": (2, 2, 1),
    "autowebbench/rows.jsonl": (1, 1, 0),
    "bitagent/rows.jsonl": (1, 1, 1),
    "candidate_answers/rows.jsonl": (2, 0, 0),
    "coalm_it/coalm_rows.jsonl": (1, 1, 0),
    "eto/sciworld.json": (1, 1, 1),
    "eto/webshop.json": (1, 2, 1),
    "eto_preference/pairs.json": (2, 2, 0),
    "fireact/rows.jsonl": (2, 3, 3),
    "fireact_alpaca/rows.json": (1, 2, 2),
    "fireact_trajs/trajs.json": (2, 2, 2),
    "gui_critic/rows.jsonl": (1, 0, 0),
    "hammer_sft/rows.json": (2, 1, 0),
    "hermes_function_calling/rows.json": (2, 2, 2),
    "lumos_ground/rows.jsonl": (1, 3, 0),
    "lumos_plan/rows.jsonl": (1, 0, 0),
    "mind2web_blocks/rows.jsonl": (1, 2, 0),
    "mmat_1m/mmat_rows.jsonl": (1, 0, 0),
    "mobileiar/data.json": (3, 5, 2),
    "nemotron_agentic/rows.jsonl": (1, 2, 2),
    "nemotron_agentic/v2.jsonl": (1, 1, 1),
    "pc_agent_events/session_1.jsonl": (1, 3, 2),
    "pythonic_function_calling/rows.jsonl": (1, 1, 1),
    "react_prompts/alfworld.json": (1, 2, 2),
    "react_prompts/prompts.json": (3, 3, 1),
    "rlla/rows.json": (2, 2, 0),
    "synthetic_preference_requests/rows.jsonl": (2, 0, 0),
    "tau_bench_few_shot/rows.jsonl": (1, 0, 0),
    "toolalpaca/train_data.json": (2, 3, 3),
    "toolalpaca_judged/outputs.json": (2, 2, 2),
    "toolbench_answers/1_answer.json": (1, 2, 2),
    "toolllama/rows.json": (2, 4, 2),
    "toucan/sft.jsonl": (1, 1, 1),
    "ui_s1_android_control/rows.jsonl": (2, 4, 2),
    "ui_tars/example.json": (1, 3, 1),
    "uground_android_control/rows.jsonl": (3, 3, 0),
    "uground_omniact/rows.jsonl": (1, 1, 0),
    "webdancer/rows.jsonl": (1, 1, 1),
    "webvoyager/taskHarbour--3.json": (1, 1, 1),
    "xlam_irrelevance/rows.json": (2, 0, 0),
}


@pytest.mark.parametrize("path", COUNTS)
def test_examples_give_what_they_hold(tmp_path, path):
    store = adp.convert([str(EXAMPLES / path)], str(tmp_path / "store"))
    linked = sum(row["call"] is not None for row in table(store, "observations"))
    runs, calls = (store.manifest.rows(name) for name in ("trajectories", "tool_calls"))
    assert (runs, calls, linked) == COUNTS[path]
