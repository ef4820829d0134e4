"""SAGE's agent_benchmark from a file to a report, against its metrics written out."""

from __future__ import annotations

import json
import random

import pytest

import adp
from adp.eval.evaluate import evaluate
from adp.eval.suite import Suite
from adp.workflows.report import Report
from adp.workflows.report_eval import evaluation
from adp_schema.store import Store

TOOLS = [f"tool_{letter}_{number:03d}" for number, letter in enumerate("abcdef", 1)]


def record(number, drawn):
    """A task, and the tools that the agent calls."""
    kind = ("tool_selection", "task_planning", "timing_judgment")[number % 3]
    right, called = drawn.sample(TOOLS, 2), drawn.sample(TOOLS, 3)
    if kind == "task_planning":
        called = drawn.choice([right, right[::-1], called])
    truth = {
        "tool_selection": {"top_k": right, "explanation": "it fits"},
        "task_planning": {"plan_steps": ["x"], "tool_sequence": right, "success_criteria": "y"},
        "timing_judgment": {"should_call_tool": drawn.random() < 0.5, "direct_answer": "4"},
    }[kind]
    if kind == "timing_judgment":
        called = called[: drawn.randrange(2)]
    task = {"sample_id": f"s{number:03d}", "task_type": kind, "instruction": f"Task {number}",
            "context": {}, "candidate_tools": TOOLS, "ground_truth": truth,
            "metadata": {"difficulty": "easy"}, "split": "test"}  # fmt: skip
    return task, called


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmark")
    drawn = random.Random(7)
    records = [record(number, drawn) for number in range(30)]
    tasks, script = folder / "agent_benchmark.jsonl", folder / "script.jsonl"
    tasks.write_text("\n".join(json.dumps(task) for task, _ in records), encoding="utf-8")
    lines = [
        {"task_id": task["sample_id"],
         "turns": [*({"calls": [{"name": name}]} for name in called), {"text": "done"}]}
        for task, called in records
    ]  # fmt: skip
    script.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return folder, records


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def sages(records, k):
    """The metrics of SAGE's registry over the tasks of their kind."""
    kinds = {}
    for task, called in records:
        kinds.setdefault(task["task_type"], []).append((called, task["ground_truth"]))
    chosen = [(called, set(truth["top_k"])) for called, truth in kinds["tool_selection"]]
    plans = [(called, truth["tool_sequence"]) for called, truth in kinds["task_planning"]]
    timing = [
        (bool(called), truth["should_call_tool"]) for called, truth in kinds["timing_judgment"]
    ]
    both = sum(a and b for a, b in timing)
    precision, recall = both / sum(a for a, _ in timing), both / sum(b for _, b in timing)
    ranks = [[1 / (n + 1) for n, name in enumerate(c) if name in w] for c, w in chosen]
    in_place = [sum(a == b for a, b in zip(c, w, strict=False)) for c, w in plans]
    return {
        "top_k_accuracy": mean(bool(set(c[:k]) & w) for c, w in chosen),
        "precision_at_k": mean(len(set(c[:k]) & w) / len(c[:k]) for c, w in chosen),
        "recall_at_k": mean(len(set(c[:k]) & w) / len(w) for c, w in chosen),
        "mrr": mean(max(rank, default=0) for rank in ranks),
        "plan_exact": mean(c == w for c, w in plans),
        "plan_partial": mean(n / len(w) for n, (_, w) in zip(in_place, plans, strict=True)),
        "plan_partial:steps": sum(in_place) / sum(len(w) for _, w in plans),
        "timing_correct": mean(a == b for a, b in timing),
        "timing_precision": precision,
        "timing_recall": recall,
        "timing_f1": 2 * precision * recall / (precision + recall),
    }


@pytest.mark.parametrize("converted", [False, True])
def test_figures_are_sages(files, tmp_path, converted):
    folder, records = files
    tasks = str(folder / "agent_benchmark.jsonl")
    if converted:
        adp.convert([tasks], tmp_path / "tasks")
        tasks = str(tmp_path / "tasks")
    suite = Suite(name="benchmark", environment="candidate_tools", tasks=tasks,
                  scorers=("planning:k=2", "capability", "agent_reward"))  # fmt: skip
    out = str(tmp_path / "runs")
    scores = evaluate(suite, f"scripted:file={folder / 'script.jsonl'}", out).scores
    planning, capability, reward = scores.scorers
    values = {figure.name: figure.value for figure in planning.figures}
    for name, value in sages(records, 2).items():
        assert values[name] == pytest.approx(value), name
    able = {figure.name: figure for figure in capability.figures}
    assert (able["tool_use"].count, able["planning"].count) == (20, 10)
    assert able["assigned"].value == 1
    assert able["planning"].value == values["plan_similarity"]
    assert 0 < reward.figures[0].value < 1
    if converted:
        text = Report(evaluation([Store.open(out)])).markdown()
        assert "| planning |" in text.partition("## Capabilities")[2]
