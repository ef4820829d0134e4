"""Workflows of Claude Code: the journal and the record of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import adp
from tests import samples

EXAMPLES = Path(__file__).parent / "examples" / "claude_workflow"
SESSION = "3a3a0000-0000-4000-8000-000000000001"
REAL = samples.ROOT / "formats_new/claude_code/ccl__workflow_basic"


def read(folder: Path, out: Path):
    store = adp.convert([str(folder)], str(out))
    runs = store.query("SELECT * FROM trajectories ORDER BY source_id").to_pylist()
    links = store.query("SELECT * FROM links ORDER BY seq").to_pylist()
    return store, {it["source_id"]: it for it in runs}, links


def test_a_run_and_its_journal(tmp_path):
    store, runs, links = read(EXAMPLES, tmp_path / "store")
    assert list(runs) == [f"{SESSION}/workflow-wf_loom", f"{SESSION}/workflow-wf_loom/journal"]
    run = runs[f"{SESSION}/workflow-wf_loom"]
    assert (run["session_id"], run["stop_reason"]) == (SESSION, "completed")
    assert run["agent_model"] == "claude-opus-9"
    assert json.loads(run["extra"])["result"] == {"cloth": "done"}
    steps = store.query("SELECT text FROM steps WHERE kind = 'event' ORDER BY seq, step")
    texts = [text for text in steps["text"].to_pylist() if text]
    assert sorted(texts) == ["All warps are tight.", "Warp", "warp:left", "warp:right"]
    targets = [f"{SESSION}/agent-e1", f"{SESSION}/agent-e2"] * 2
    assert [it["target_id"] for it in links] == targets
    assert {it["target_path"] for it in links} >= {
        "agent-e1.jsonl",
        "../subagents/workflows/wf_loom/agent-e1.jsonl",
    }


@pytest.mark.skipif(not REAL.is_dir(), reason="the real workflow is not on this machine")
def test_a_real_workflow_is_one_tree(tmp_path):
    """The session leads to the run, and the run to each agent; all of them are found."""
    _, runs, links = read(REAL, tmp_path / "store")
    raw = next(REAL.rglob("wf_demo01.json"))
    agents = {it["agentId"] for it in json.loads(raw.read_text())["workflowProgress"]
              if "agentId" in it}  # fmt: skip
    targets = [it["target_id"] for it in links]
    assert set(targets) <= set(runs)
    for name in agents:
        assert sum(it.endswith(f"/agent-{name}") for it in targets) == 2  # journal and run
    assert any(it.endswith("/workflow-wf_demo01") for it in targets)
