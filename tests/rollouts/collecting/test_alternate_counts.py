"""Stores of alternates that are followed to the end: counted, and killed in the middle of one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest

from adp.rollouts.collecting.alternate_counts import alternate_counts
from adp.rollouts.collecting.collect import collect_now
from adp.rollouts.collecting.settings import CollectSettings
from adp.rollouts.experts.modes import Assistance
from adp.rollouts.experts.settings import AssistSettings
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.turns import Usage
from adp_schema import growing
from adp_schema.journal_file import JournalFile
from adp_schema.store import Store
from tests.kill import ROOT
from tests.rollouts.collecting.worlds import TASK, Knowing
from tests.rollouts.experts.test_following import followed, script, tree

TASKS = [TASK.model_copy(update={"task_id": f"t{number}"}) for number in range(3)]


def priced(request):
    """The erring agent, whose turns cost tokens."""
    return replace(script(request), usage=Usage(tokens_in=len(request.messages), tokens_out=2))


def run(out, *, play=priced, depth=3, branches=32, **given):
    """Collect, with alternates followed; one episode after the other."""
    settings = AssistSettings(alternates="end", alternate_depth=depth, alternate_branches=branches)
    options = CollectSettings(concurrency=1, timed=False, dataset="d", **given)
    return collect_now(out, Knowing, Assistance(settings, Scripted(play)), TASKS, options)


def held(out):
    """All rows of a store."""
    return [
        (item.model_dump_json(exclude={"seq"}), [step.model_dump_json() for step in item.steps])
        for item in Store.open(str(out)).trajectories()
    ]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A store of one call, and its report."""
    out = tmp_path_factory.mktemp("whole") / "store"
    return out, run(out)


def test_the_counts_are_those_of_the_tree(whole):
    _, report = whole
    nodes = [node for node in tree(3) if node.depth]
    counts = report.alternates
    assert counts["branches"] == len(TASKS) * len(nodes)
    depths = Counter(node.depth for node in nodes)
    assert counts["by_depth"] == {depth: len(TASKS) * n for depth, n in depths.items()}
    assert counts["succeeded"] == len(TASKS) * sum(node.success for node in nodes)
    assert counts["branches"] == sum(
        counts[name] for name in ("succeeded", "failed", "unscored", "broken")
    )
    looks = sum("look" in act for node in nodes for act in node.acts)
    assert counts["calls"] == len(TASKS) * looks
    agents = sum(act.startswith("a:") for node in nodes for act in node.acts)
    assert counts["tokens_out"] == len(TASKS) * 2 * agents
    assert counts["beyond"] == 0
    assert report.plain()["alternates"] == counts


def test_alternates_are_no_attempts(whole):
    _, report = whole
    assert (report.whole.episodes, report.done_now, report.asked) == (3, 3, 3)


def test_a_sealed_store_says_the_same_again(whole):
    out, report = whole
    assert run(out).alternates == report.alternates


def test_a_store_without_them_has_no_counts(tmp_path):
    actors = Assistance(AssistSettings(), Scripted(script))
    settings = CollectSettings(dataset="d")
    report = collect_now(tmp_path / "s", Knowing, actors, TASKS[:1], settings)
    assert report.alternates is None
    assert alternate_counts(tmp_path / "s", "d") is None


def test_branches_beyond_the_limit_are_counted(tmp_path):
    report = run(tmp_path / "s", branches=4)
    assert (report.alternates["branches"], report.alternates["beyond"]) == (12, 9)


def test_the_tokens_of_branches_count_for_the_budget_of_the_run(tmp_path):
    first = run(tmp_path / "one", depth=1, n=1)
    spent = first.whole.tokens_in + first.whole.tokens_out
    limits = {"totals": {"tokens": spent // 3 + 1}}
    # The first episode alone would be within it; with its branches it is not.
    report = run(tmp_path / "two", depth=1, **limits)
    assert (report.done_now, report.left, report.stopped) == (1, 2, "total_tokens")
    again = run(tmp_path / "two", depth=1, **limits)
    assert (again.done_now, again.stopped) == (0, "total_tokens")


KILL = """
import os, sys
from tests.rollouts.collecting.test_alternate_counts import priced, run
turns = 0
def dies(request):
    global turns
    turns += 1
    if turns == int(sys.argv[2]):
        os._exit(9)
    return priced(request)
run(sys.argv[1], play=dies)
"""


def test_a_kill_in_the_middle_of_a_branch_leaves_nothing_half_or_twice(whole, tmp_path):
    out = tmp_path / "store"
    path = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    # The agent is asked some 15 times an episode: that is in a branch of the second one.
    done = subprocess.run([sys.executable, "-c", KILL, str(out), "27"], env=path, cwd=tmp_path)
    assert done.returncode == 9
    before = held(out)
    assert len(before) in (0, 9)
    report = run(out)
    assert report.done_before + report.done_now == 3
    assert held(out) == held(whole[0])


def test_a_run_and_its_branches_are_appended_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(growing, "_TOGETHER", 2)
    episode, other = followed(3), followed(3, attempt=1)
    with growing.GrowingStore(tmp_path / "s", seal_count=2) as store:
        appended = []
        written = JournalFile.write

        def write(journal, line):
            line = list(line)
            appended.append(len(line))
            return written(journal, line)

        monkeypatch.setattr(JournalFile, "write", write)
        assert store.extend([episode, other]) == 18
    # A kill may fall between two lines, but not into one.
    assert [count for count in appended if count] == [9, 9]
