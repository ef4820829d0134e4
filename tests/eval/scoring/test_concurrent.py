"""Judges are asked about several trajectories at once; what comes out does not depend on it."""

from __future__ import annotations

import threading

import pytest

from adp.eval.scoring import ScoreOptions, choose, score_store
from adp_schema.store import Store
from tests.eval.scoring.small import grown, run
from tests.rollouts.policies.chat_server import serving

RUNS = 8


class Endpoint:
    """Grades by the words of the request; holds answers back until enough requests wait."""

    def __init__(self, wait_for, patience):
        self.wait_for, self.patience = wait_for, patience
        self.inside = self.most = 0
        self.lock = threading.Lock()
        self.enough = threading.Event()

    def __call__(self, handler, body):
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
            if self.inside >= self.wait_for:
                self.enough.set()
        self.enough.wait(self.patience)
        with self.lock:
            self.inside -= 1
        asked = body["messages"][0]["content"]
        if "answer 3" in asked:
            handler.send(400, {"error": {"message": "the model is gone"}})
            return
        grade = "CPI"[sum(asked.encode()) % 3]
        message = {"role": "assistant", "content": f"GRADE: {grade}"}
        handler.send(200, {"model": "m", "choices": [{"index": 0, "message": message,
                                                      "finish_reason": "stop"}]})  # fmt: skip


class Bars:
    def __init__(self):
        self.done = 0

    def note(self, message): ...

    def total(self, amount): ...

    def advance(self, amount):
        self.done += amount


def judged(folder, concurrency, votes, wait_for, patience=300.0):
    """Rows of a store that a judge scored, and the most requests that it had at once."""
    store = grown(folder, *(run(f"t{n}", final_answer=f"answer {n}") for n in range(RUNS)))
    endpoint, bars = Endpoint(wait_for, patience), Bars()
    with serving(endpoint) as server:
        spec = f"judge:votes={votes},policy='openai:model=m,base_url={server.url}'"
        report = score_store(
            store, [*choose(["outcome"]), *choose([spec])],
            ScoreOptions(concurrency=concurrency), bars,
        )  # fmt: skip
    assert bars.done == report.trajectories == RUNS
    names = "trajectory_id, scorer, metric, value, reason, infrastructure, evidence"
    rows = Store.open(store.root).query(f"SELECT {names} FROM score_history").to_pylist()
    return rows, endpoint.most


@pytest.mark.parametrize("votes", [1, 3])
def test_the_same_rows_in_the_same_order_whatever_the_concurrency(tmp_path, votes):
    # A second request would come while the first one is held, were it let through.
    alone, most = judged(tmp_path / "alone", 1, votes, wait_for=2, patience=0.03)
    assert most == 1
    together, most = judged(tmp_path / "together", 4, votes, wait_for=4)
    assert most == 4
    for row in [*alone, *together]:
        row["evidence"] = (row["evidence"] or "").split("failure")[0]
    assert together == alone
    grades = [row["value"] for row in alone if row["scorer"] == "judge"]
    assert len(set(grades)) > 2
    lost = [row for row in alone if row["scorer"] == "judge" and row["value"] is None]
    assert [row["trajectory_id"] for row in lost] == ["sums/t3/attempt-0"]
    assert lost[0]["infrastructure"]
    assert lost[0]["reason"] == f"the judge did not answer {votes} of {votes} times"
