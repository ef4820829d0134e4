"""Environments for TRL, and TRL's for us."""

from __future__ import annotations

import asyncio
import inspect
import json

import pytest

from adp.rollouts.collecting.actor import Alone
from adp.rollouts.collecting.episode import run_episode
from adp.rollouts.collecting.recorder import About
from adp.rollouts.environments.calculator import KIND as CALCULATOR
from adp.rollouts.environments.calculator import Calculator
from adp.rollouts.environments.from_object import from_object
from adp.rollouts.environments.search import SearchEnvironment
from adp.rollouts.environments.toolworld import Toolworld, ToolworldSettings, make_tasks
from adp.rollouts.environments.trl import answer_reward, from_trl, to_trl, trl_rows
from adp.rollouts.environments.weather import Weather
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.tool_environment import ToolEnvironment
from adp.rollouts.tools import FunctionTool
from adp.rollouts.turns import Call, Turn
from adp_schema.errors import UsageError
from adp_schema.model import Task
from tests.rollouts.environments.test_from_object import Shop, Waits


def methods_of(instance):
    """The tools that TRL finds, in its own manner (GRPOTrainer.__init__ of 1.16)."""
    return {
        getattr(instance, name).__name__: getattr(instance, name)
        for name, _ in inspect.getmembers(type(instance), predicate=inspect.isfunction)
        if name not in ("reset", "get_reward") and not name.startswith("_")
    }


def test_an_episode_as_trl_plays_it():
    (task,) = CALCULATOR.tasks(CALCULATOR.settings(), "train", 1, 0)
    (row,) = trl_rows([task])
    instance = to_trl("calculator", answer="tool")()
    assert instance.reset(**row) is None  # the prompt says it all
    tools = methods_of(instance)
    assert set(tools) == {"calculator", "submit_answer"}
    expression = task.instruction.removeprefix("What is ").partition("?")[0]
    answer = tools["calculator"](expression=expression)
    # What went wrong is told in the words of adp collect; TRL would write {'error': ...}.
    for expression in ({"expression": "1/0"}, {}):
        environment = Calculator()
        environment.reset(task)
        call = Call("calculator", json.dumps(expression))
        (wanted,) = environment.step(Turn(calls=(call,))).results
        assert wanted.error
        assert tools["calculator"](**expression) == wanted.text
    assert (instance._calls, instance._failed) == (3, 2)
    assert tools["submit_answer"](answer=answer) == "The answer was taken."
    assert instance.get_reward() == 1.0
    assert tools["calculator"](expression="1") == "Error: the episode is over"
    assert tools["submit_answer"](answer="1") == "Error: the episode is over"
    instance.reset(**row)
    tools["submit_answer"](answer="wrong")
    assert instance.get_reward() == 0.0
    instance.reset(**row)
    assert instance.get_reward() == 0.0  # no answer is a failure


def test_rows_hold_what_the_environment_says_first():
    """The messages of adp collect, that of the system included; nothing is glued to them."""
    settings = ToolworldSettings(kinds=("c1",))
    tasks = make_tasks(settings, "train", 2, 0)
    for task, row in zip(tasks, trl_rows(tasks, "toolworld:kinds=[c1]"), strict=True):
        start = Toolworld(settings).reset(task)
        assert [message["role"] for message in row["prompt"]] == ["system", "user"]
        assert row["prompt"] == list(start.messages)
        assert to_trl("toolworld:kinds=[c1]", first=task)().reset(**row) is None
    (row,) = trl_rows(tasks[:1], "toolworld", answer="tool")
    assert row["prompt"][-1]["content"].endswith(
        "\n\n" + "Give the answer by calling submit_answer; nothing else counts as one."
    )
    assert to_trl("toolworld", first=tasks[0], answer="tool")().reset(**row) is None
    # A row of another data set lacks the words of the system: they stand apart.
    observation = to_trl("toolworld", first=tasks[0])().reset(**trl_rows(tasks[:1])[0])
    assert observation is not None
    assert observation.startswith("\n\nCall tools to find the answer.")


def test_the_share_of_failed_calls_is_logged():
    instance = to_trl("calculator")()
    instance.reset(**trl_rows(CALCULATOR.tasks(CALCULATOR.settings(), "train", 1, 0))[0])
    tools = methods_of(instance)
    tools["calculator"](expression="1/0")
    tools["calculator"](expression="1")
    logged = {}
    answer_reward(["no"], [instance], log_metric=lambda name, value: logged.update({name: value}))
    assert logged == {"failed_calls": 0.5}


def test_the_last_text_may_be_the_answer():
    (task,) = CALCULATOR.tasks(CALCULATOR.settings(), "train", 1, 0)
    kind = to_trl(Calculator)
    assert not hasattr(kind, "get_reward")
    entry, other, third = kind(), kind(), kind()
    for item in (entry, other):
        item.reset(**trl_rows([task])[0])
    third.reset(prompt=[{"role": "user", "content": "Hello"}])
    (right,) = json.loads(task.answers)
    output = [{"role": "assistant", "content": f"Answer: {right}"}]
    result = answer_reward(
        [output, [{"role": "tool", "content": "x"}], output], [entry, other, third]
    )
    assert result == [1.0, 0.0, None]


def test_rows_of_other_data_sets_become_tasks():
    instance = to_trl(lambda: from_object(Shop), answer="tool")()
    reset = instance.reset(prompt=[{"role": "user", "content": "Buy."}], answers=["5"], other=3)
    assert reset == " You have 10 coins."
    assert instance.reset(prompt=[{"role": "user", "content": ""}]) == " You have 10 coins."
    assert methods_of(instance)["buy"](item="x", price=4) == "6 coins are left"
    assert instance.get_reward() == 0.5


def test_asynchronous_environments_work_in_a_thread():
    instance = to_trl(lambda: from_object(Waits), answer="tool")()
    assert instance.reset(prompt="Add.") == "Hello."
    assert methods_of(instance)["sum"](a=2, b=3) == "5"
    assert instance.get_reward() is None


SCHEMA = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["a", "b"], "description": "Which. Returns: one of (choices: [1])"},
        "count": {"type": ["integer", "null"], "default": 3},
        "items": {"type": "array", "items": {"type": "number"}, "description": "All of\nthem."},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "point": {"$ref": "#/$defs/Point"},
        "any": {},
    },
    "required": ["kind"],
    "$defs": {"Point": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Point"}}}},
}


class Odd(ToolEnvironment):
    """Tools with names and schemas that Python does not write like this."""

    def offered(self):
        names = ("a.b", "class", "reset", "submit_answer", "_hidden", "good")
        return [FunctionTool(name, "Args: none.", SCHEMA, lambda **given: given) for name in names]


def test_odd_names_are_still_called():
    instance = to_trl(Odd)()
    instance.reset(prompt="x")
    tools = [
        getattr(instance, name)
        for name, _ in inspect.getmembers(type(instance), predicate=inspect.isfunction)
        if name.startswith("tool_")
    ]
    assert [tool.__name__ for tool in tools] == [
        "a.b",
        "class",
        "reset",
        "submit_answer",
        "_hidden",
    ]
    assert tools[0](kind="a", items=[1]) == '{"kind": "a", "items": [1]}'


def test_names_of_arguments_that_are_not_pythons_are_refused():
    class Wrong(ToolEnvironment):
        def offered(self):
            schema = {"type": "object", "properties": {"from": {"type": "string"}}}
            return [FunctionTool("go", "Goes.", schema, print)]

    with pytest.raises(UsageError, match="'go'"):
        to_trl(Wrong)

    class Empty(ToolEnvironment):
        def offered(self):
            return [FunctionTool("go", "Goes.", {"type": "object"}, print)] if self.task else []

    with pytest.raises(UsageError, match="first="):
        to_trl(Empty)
    assert "go" in methods_of(to_trl(Empty, first=Task(instruction="x"))())


def test_a_class_for_trl_is_an_environment():
    script = [Turn(calls=(Call("buy", '{"item": "x"}'),)), Turn(text="ok")]
    about = About(dataset="d", task=Task(task_id="t", instruction="Buy."), timed=False)
    environment = from_trl(Shop, solved_at=0.5)
    assert [tool["function"]["name"] for tool in environment.tools()] == ["buy", "leave", "close"]
    result = asyncio.run(run_episode(about, environment, Alone(Scripted(script))))
    assert (result.reward, result.success) == (0.5, True)
    assert not environment.subject.closed

    class Unset:
        def act(self) -> None:
            """Acts."""

    with pytest.raises(UsageError, match="no method reset"):
        from_trl(Unset)


def test_back_and_forth_brings_the_same_tools():
    there = to_trl(Weather)
    back = from_trl(there)
    (weather,) = (tool for tool in back.tools() if tool["function"]["name"] == "weather")
    (ours,) = Weather().tools()
    assert weather["function"]["description"] == ours["function"]["description"]
    parameters = weather["function"]["parameters"]
    assert parameters["required"] == ours["function"]["parameters"]["required"]
    assert set(parameters["properties"]) == set(ours["function"]["parameters"]["properties"])


@pytest.mark.train
@pytest.mark.parametrize(
    "make", [Calculator, Weather, SearchEnvironment, Odd, lambda: from_object(Shop)]
)
def test_the_schema_that_transformers_reads_is_ours(make):
    chat = pytest.importorskip("transformers.utils.chat_template_utils")
    instance = to_trl(make, answer="text")()
    ours = {tool["function"]["name"]: tool["function"] for tool in make().tools()}
    results = {name: chat.get_json_schema(method) for name, method in methods_of(instance).items()}
    assert set(results) == set(ours)
    for name, our in ours.items():
        function = results[name]["function"]
        if "Args:" not in our["description"]:
            assert " ".join(function["description"].split()) == " ".join(our["description"].split())
        read, given = function["parameters"], our["parameters"]
        assert read.get("required", []) == given.get("required", [])
        assert set(read["properties"]) == set(given["properties"])
        for key, schema in given["properties"].items():
            assert read["properties"][key].get("enum") == schema.get("enum")
            if isinstance(schema.get("type"), str):
                assert read["properties"][key]["type"] == schema["type"]


@pytest.mark.train
def test_the_schema_of_a_function_is_the_one_that_transformers_reads():
    """The other direction: our reading of types and docstrings against theirs."""
    chat = pytest.importorskip("transformers.utils.chat_template_utils")
    theirs = chat.get_json_schema(Shop().buy)["function"]
    ours = from_object(Shop).tools()[0]["function"]
    assert ours["description"] == theirs["description"]
    for key, schema in theirs["parameters"]["properties"].items():
        assert schema.items() <= ours["parameters"]["properties"][key].items()


@pytest.mark.train
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("answer", ["tool", "text"])
def test_trl_trains_with_it(tmp_path, monkeypatch, answer):
    pytest.importorskip("trl")
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer, chat_template_utils

    from adp.rendering.tiny import tiny_tokenizer
    from adp.trainers.config import TrainConfig
    from adp.trainers.model import build_tiny

    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    seen = []
    kind = to_trl(Calculator, answer=answer)
    reset = kind.reset

    def counted(self, **row):
        seen.append(row["task"])
        return reset(self, **row)

    monkeypatch.setattr(kind, "reset", counted)
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = chat_template_utils.qwen3_chat_template
    config = TrainConfig.model_validate({"model": {"model_name_or_path": "tiny"}})
    build_tiny(tmp_path / "base", config.model.tiny)
    tasks = CALCULATOR.tasks(CALCULATOR.settings(), "train", 4, 0)
    trainer = GRPOTrainer(
        model=str(tmp_path / "base"),
        processing_class=tokenizer,
        args=GRPOConfig(
            output_dir=str(tmp_path / "out"),
            max_steps=2,
            per_device_train_batch_size=2,
            num_generations=2,
            max_completion_length=8,
            report_to=[],
            use_cpu=True,
            logging_steps=1,
        ),
        train_dataset=Dataset.from_list(trl_rows(tasks)),
        environment_factory=kind,
        reward_funcs=[] if answer == "tool" else [answer_reward],
    )
    trainer.train()
    assert len(seen) == 4
    assert set(seen) <= {row["task"] for row in trl_rows(tasks)}
    rewards = [entry["reward"] for entry in trainer.state.log_history if "reward" in entry]
    assert rewards == [0.0, 0.0]
