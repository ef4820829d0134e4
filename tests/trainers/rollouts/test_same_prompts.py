"""A model sees the same in `adp collect`, `adp eval` and GRPO: prompts, tools, results and errors.

The same turns are written in the place of a model's in all three, and what was recorded is compared
token by token.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from adp.eval.evaluate import EvaluateOptions, evaluate
from adp.eval.suite import Suite
from adp.rendering.tiny import tiny_tokenizer
from adp.rollouts.collecting.collect import alone, collect_now
from adp.rollouts.collecting.plan import episode_seed
from adp.rollouts.collecting.settings import CollectSettings
from adp.rollouts.collecting.tasks import read_tasks
from adp.rollouts.policies.transformers import TransformersPolicy, TransformersSettings
from adp.rollouts.spec import load_environment
from adp.trainers.run import train
from adp_schema.model import Task, Trajectory
from adp_schema.store import Store
from tests.rollouts.environments.test_m3 import TASK
from tests.trainers.rollouts.acting_runs import ScriptedWriter, acting_config, call_text, sums

pytestmark = [
    pytest.mark.train,
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

HALF = '<tool_call>{"name": "half'


def by_turn(*turns: Any) -> Any:
    """A script that follows from the prompt alone: its turn is the answers that stand there."""

    def writes(prompt: str, seen: int) -> str:
        number = prompt.count("<|im_start|>assistant") - 1
        turn = turns[min(number, len(turns) - 1)]
        return str(turn(prompt) if callable(turn) else turn)

    return writes


def looked_up(prompt: str) -> str:
    """Two calls at once: a right one, and one of a tool that is not there."""
    asked = re.findall(r"the ([a-z]+) of ([A-Z][A-Za-z]+)\?", prompt)[-1]
    right = call_text("lookup", entity=asked[1], attribute=asked[0])
    return right + "\n" + call_text("no_such_tool", x=1)


def toolworld(folder: Path) -> tuple[str, str, Any]:
    turns = by_turn(call_text("lookup"), looked_up, HALF, "I wonder", "answer: 7")
    return "toolworld:kinds=[c1],failures=0.5", "train:2", turns


def calculator(folder: Path) -> tuple[str, str, Any]:
    good, bad = (call_text("calculator", expression=text) for text in ("3 * 7", "1 / 0"))
    return "calculator", str(sums(folder, 2)), by_turn(good, f"So.\n{bad}", HALF, "answer: 21")


def sql(folder: Path) -> tuple[str, str, Any]:
    people = folder / "people"
    people.mkdir()
    pl.DataFrame({"name": ["Ada", "Bo"], "age": [36, 71]}).write_parquet(people / "p.parquet")
    tasks = folder / "tasks.jsonl"
    rows = [{"task_id": n, "question": f"Who is {n}?", "answer": "Bo"} for n in ("a", "b")]
    tasks.write_text("".join(json.dumps(row) + "\n" for row in rows))
    queries = ("SELECT name FROM p ORDER BY age DESC", "SELECT nothing FROM nowhere")
    first, second = (call_text("run_sql", query=text) for text in queries)
    return f"sql:tables={people},seconds=600", str(tasks), by_turn(first, second, HALF, "Bo")


def m3(folder: Path) -> tuple[str, str, Any]:
    tasks = folder / "tasks.jsonl"
    rows = [TASK.model_copy(update={"task_id": name}) for name in ("a", "b")]
    tasks.write_text("".join(row.model_dump_json(exclude_none=True) + "\n" for row in rows))
    count, owner = call_text("count", garden="mill"), call_text("owner", garden="mill")
    # The golden answer of the first question takes the place of what was done there.
    turns = {"How many": [call_text("count", a=1), count, "Twelve."], "And the": [owner, "Ada"]}

    def writes(prompt: str, seen: int) -> str:
        question = max(turns, key=prompt.rfind)
        behind = prompt[prompt.rfind(question) :]
        place = behind.count("<|im_start|>assistant") - 1
        return turns[question][min(place, len(turns[question]) - 1)]

    return "m3", str(tasks), writes


def recorded(root: Path) -> dict[str, Any]:
    """What the first attempt at each task saw, wrote and was answered, and its tools."""
    results = {}
    for row in Store.open(str(root)).trajectories():
        if row.source_id and row.source_id.endswith("attempt-0"):
            assert row.error_type is None, row.error_message
            turns = [turn_of(step) for step in row.steps if step.source == "agent"]
            results[str(row.task_id)] = (row.tools, [turn for turn in turns if turn[0]])
    return results


def turn_of(step: Any) -> Any:
    answers = [(seen.text, seen.error_type) for seen in step.observations]
    return step.prompt_token_ids, step.completion_token_ids, answers


def collected(environment: str, tasks: str, out: Path) -> None:
    kind, settings = load_environment(environment)
    policy = TransformersPolicy(TransformersSettings(model="tiny", max_tokens=64))
    collect_now(
        out,
        lambda: kind.make(settings),
        alone(policy),
        read_tasks(tasks, kind, settings).tasks,
        CollectSettings(policy="tiny", environment=kind.name),
        policies=[policy],
    )


def evaluated(environment: str, tasks: str, out: Path) -> None:
    suite = Suite(name="s", environment=environment, tasks=tasks, scorers=("outcome",))
    evaluate(suite, "transformers:model=tiny,max_tokens=64", str(out), EvaluateOptions())


def trained(environment: str, tasks: str, out: Path, monkeypatch: Any) -> None:
    # The same world as the first attempt of the others.
    def seed_of_collect(seed: int, place: str, attempt: int) -> int:
        return episode_seed(0, place.split("/")[1], 0)

    monkeypatch.setattr("adp.trainers.rollouts.batch.episode_seed", seed_of_collect)
    config = acting_config(
        tasks,
        {"name": environment},
        {"per_device_train_batch_size": 4, "max_steps": 1},
        num_generations=2,
        max_completion_length=64,
    )
    train(config, out)


@pytest.mark.parametrize(
    "world", [toolworld, calculator, *(pytest.param(w, marks=pytest.mark.slow) for w in (sql, m3))]
)
def test_collect_eval_and_grpo_show_a_model_the_same(tmp_path, monkeypatch, world):
    environment, tasks, writes = world(tmp_path)
    ScriptedWriter(writes).install(monkeypatch)
    collected(environment, tasks, tmp_path / "collect")
    evaluated(environment, tasks, tmp_path / "eval")
    trained(environment, tasks, tmp_path / "grpo", monkeypatch)
    first, *others = (recorded(tmp_path / name) for name in ("collect", "eval", "grpo/rollouts"))
    assert len(first) == 2
    for name, (tools, turns) in first.items():
        assert tools is not None
        assert len(turns) >= 4
        assert {error for _, _, answers in turns for _, error in answers} > {None}
        for other in others:
            assert other[name] == (tools, turns)


def test_the_first_prompt_is_what_the_template_writes(tmp_path, monkeypatch):
    environment, tasks, writes = toolworld(tmp_path)
    ScriptedWriter(writes).install(monkeypatch)
    trained(environment, tasks, tmp_path / "grpo", monkeypatch)
    for row in Store.open(str(tmp_path / "grpo" / "rollouts")).trajectories():
        assert first_ids(row) == templated(row)


def first_ids(row: Trajectory) -> list[int]:
    return list(next(step.prompt_token_ids for step in row.steps if step.prompt_token_ids))


def templated(row: Trajectory) -> list[int]:
    """The prompt as the tokenizer's own method writes it."""
    kind, settings = load_environment("toolworld:kinds=[c1]")
    environment: Any = kind.make(settings)
    task: Task | None = row.task
    start = environment.reset(task, seed=0)
    assert [message["role"] for message in start.messages] == ["system", "user"]
    result = tiny_tokenizer().apply_chat_template(
        list(start.messages),
        tools=list(environment.tools()),
        add_generation_prompt=True,
        return_dict=False,
    )
    return list(result)
