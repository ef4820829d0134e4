"""Buffers as ET-Agent's records: from its texts, through operators, and back."""

from __future__ import annotations

import json

import pytest

import adp
from adp.converters.systems.et_agent import FLYWHEEL
from adp.rollouts.environments.arithmetic import evaluate, written
from adp.rollouts.environments.search import library, search_tool
from adp.rollouts.evolving.recorded import agent_steps
from adp.rollouts.tool_environment import ToolEnvironment
from adp.rollouts.tools import FunctionTool, arguments_schema
from adp.workflows.flywheel_records import flywheel_records, write_flywheel
from adp_schema.errors import EmptyResultError, OutputExistsError
from adp_schema.store import Store
from tests.converters.systems.records import PROMPT, rollout
from tests.rollouts.evolving.worlds import Model, evolved, evolver_of, rolled_out

CODE = arguments_schema({"code": {"type": "string"}})
PYTHON = FunctionTool("python", "Computes.", CODE, lambda code: written(evaluate(code)))
QUESTIONS = {"What is a trajectory?": "record", "What is 12 squared?": "144"}


def world():
    """A search over the documents to try with, and a Python that only computes."""
    return ToolEnvironment([search_tool(library(None, None, 1.2, 0.75), 2), PYTHON])


def records():
    """What a flywheel begins with: a right text and a wrong one."""
    texts = [
        rollout("Look.", [("search", "trajectory agent", "late")], "record"),
        rollout("Compute.", [("python", "12 * 2", "24")], "24"),
    ]
    return [
        {
            "instruction": PROMPT, "input": question, "initial_output": text,
            "prediction": text[text.index("boxed{") + 6 :].split("}")[0], "answer": answer,
            "source": "aime", "initial_logs": [], "evolve_trajectories_buffer": [text],
            "evolve_trajectories_llm_judge_results": [n == 0], "evolve_judgements": [],
            "evolve_predictions": [text[text.index("boxed{") + 6 :].split("}")[0]],
        }
        for n, ((question, answer), text) in enumerate(zip(QUESTIONS.items(), texts, strict=True))
    ]  # fmt: skip


def answer(body):
    """Refiner, analyser and policy of these two questions, in ET-Agent's tags."""
    first = body["messages"][0]
    text = " ".join(str(item["content"]) for item in body["messages"])
    if first["role"] == "system":
        if "polish" in first["content"]:
            numbers = [n for n in (1, 2) if f"Step {n}\n<thought>" in text]
            blocks = (f'<step n="{n}"><thought>Shorter.</thought></step>' for n in numbers)
            return {"content": "".join(blocks)}
        if "waste" in first["content"]:
            return {"content": "Step: none"}
        if "that is flawed" in " ".join(first["content"].split()):
            return {"content": "Step: 1\nAnalysis: logic"}
        return {"content": "<thought>Square it.</thought><python>12 ** 2</python>"}
    results = [item["content"] for item in body["messages"] if item["role"] == "tool"]
    if "squared" in text:
        if results and results[-1] == "144":
            return {"content": "<think>Done.</think><answer>\\boxed{144}</answer>"}
        return {
            "content": "<think>So.</think> <python>12 ** 2"
        }  # the server stopped at the end tag
    if not results:
        return {"content": "<think>Look.</think> <search>trajectory</search>"}
    return {"content": "<answer>It is a \\boxed{record}.</answer>"}


@pytest.fixture(scope="module")
def buffers(tmp_path_factory):
    """A store that was made of ET-Agent's records, by a policy that writes tags."""
    folder = tmp_path_factory.mktemp("records")
    (folder / "in.json").write_text(json.dumps(records()))
    adp.convert(str(folder / "in.json"), str(folder / "texts"))
    evolver = evolver_of(Model(answer), world, tagged=True, correct="answer", rounds=2)
    report = evolved(folder / "out", Store.open(str(folder / "texts")), evolver)
    assert report.sealed
    assert not report.bad_answers
    return Store.open(str(folder / "out"))


def test_texts_are_carried_out_again(buffers):
    runs = [run for run in buffers.trajectories() if run.error_type is None]
    assert {run.success for run in runs} == {True, False}
    wrong = [run for run in runs if run.task.answers == '["144"]' and run.attempt]
    assert wrong
    for run in wrong:
        calls = [call for step in agent_steps(run) for call in step.calls]
        assert all(call.name == "python" for call in calls)
        results = [seen.text for step in agent_steps(run) for seen in step.observations]
        assert results == [written(evaluate(json.loads(call.arguments)["code"])) for call in calls]
        assert run.success is True
        assert run.final_answer == "144"


def test_the_record_says_what_the_buffer_holds(buffers):
    made = list(flywheel_records(buffers))
    assert [record["input"] for record in made] == list(QUESTIONS)
    for record in made:
        runs = [run for run in buffers.trajectories()
                if (run.error_type is None and run.steps[0].text == record["input"])
                or (run.error_type is None and run.steps[1].text == record["input"])]  # fmt: skip
        runs.sort(key=lambda run: run.attempt)
        listed = record["evolve_trajectories_buffer"]
        verdicts = record["evolve_trajectories_llm_judge_results"]
        assert len(listed) == len(verdicts) == len(record["evolve_predictions"]) == len(runs)
        assert verdicts == [run.success for run in runs]
        assert record["initial_output"] == listed[0]
        assert record["source"] == "aime"
        assert list(record) == [key for key in FLYWHEEL.keys.order if key in record]


def test_there_and_back(buffers, tmp_path):
    path = tmp_path / "records.json"
    assert write_flywheel(buffers, path) == 2
    with pytest.raises(OutputExistsError):
        write_flywheel(buffers, path)
    adp.convert(str(path), str(tmp_path / "again"))
    again = Store.open(str(tmp_path / "again"))

    def argument(call):
        return call.arguments_raw or next(iter(json.loads(call.arguments).values()))

    def contents(store):
        runs = [run for run in store.trajectories() if run.error_type is None]
        rows = []
        for run in runs:
            steps = agent_steps(run)
            calls = [(call.name, argument(call)) for step in steps for call in step.calls]
            results = [seen.text.strip() for step in steps for seen in step.observations]
            rows.append((run.task_id, run.success, run.final_answer, calls, results))
        return sorted(rows)

    assert contents(again) == contents(buffers)
    adp.export(again, "et_agent_flywheel", str(tmp_path / "out"))
    (written_again,) = (tmp_path / "out").rglob("*.json")
    assert json.loads(written_again.read_text()) == json.loads(path.read_text())


def test_a_store_without_buffers_is_refused(tmp_path):
    with pytest.raises(EmptyResultError, match="holds no buffer"):
        write_flywheel(rolled_out(tmp_path / "sums", 2), tmp_path / "x.json")
