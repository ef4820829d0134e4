"""Rewards of GRPO, the reading of calls in each template's form, and the prompts."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.core.progress import Silent
from adp.rendering.call_form import WrittenCall, call_form
from adp.rendering.chat import Chat, ChatCall, Message
from adp.rendering.options import RenderOptions
from adp.rendering.render import Renderer
from adp.rendering.tiny import tiny_tokenizer
from adp.trainers import grpo
from adp.trainers.config import TrainConfig
from adp.trainers.config_methods import GrpoSection
from adp.trainers.reward_scores import answer_score, calls_score, references, wanted_calls
from adp.trainers.rewards import check_python, make_rewards
from adp.trainers.rows import read_arrow
from adp_schema.builder import Origin, RowBuilder
from adp_schema.errors import EmptyResultError, TrainingError, UsageError
from tests.store_builders import write_store
from tests.trainers.pair_stores import call, run, say, write_pairs

TEMPLATES = (
    "qwen2_5", "qwen3", "qwen3_instruct_2507", "llama3_1", "deepseekv3", "gptoss",
)  # fmt: skip
"""Templates that write calls as JSON."""


def renderer(template: str | None = None) -> Renderer:
    options: dict[str, Any] = {}
    if template is not None:
        import importlib.util

        spec = importlib.util.find_spec("trl")
        assert spec is not None
        folder = Path(str(spec.submodule_search_locations[0])) / "chat_templates"
        options["chat_template"] = (folder / f"{template}.jinja").read_text(encoding="utf-8")
    return Renderer(tiny_tokenizer(), RenderOptions.model_validate(options))


def written(renderer: Renderer, calls: list[WrittenCall], text: str = "") -> str:
    """What the template writes for an answer, the oracle of the reader."""
    made = tuple(
        ChatCall(result.name, result.arguments, json.dumps(result.arguments), f"abcdef{n:03d}")
        for n, result in enumerate(calls)
    )
    ask = Message("user", "ask", 0)
    chat = Chat("", 0, 0, (ask, Message("assistant", text, 1, calls=made)))
    plain = renderer.template.plain(chat)
    prompt = renderer.template.render(plain[:1], None, prompt=True)
    return renderer.template.render(plain, None)[len(prompt) - 1 :]


values = st.one_of(st.text("ab \"'{}<>\\\n", max_size=8), st.integers(), st.booleans(), st.none())
objects = st.dictionaries(
    st.sampled_from(["a", "b", "key"]), values | st.lists(values, max_size=2), max_size=3
)
wanted = st.builds(WrittenCall, st.sampled_from(["search", "read_file", "x"]), objects)


@pytest.fixture(scope="module")
def forms() -> dict[str, Any]:
    named = {name: renderer(name) for name in TEMPLATES} | {"tiny": renderer()}
    return {name: (result, call_form(result)) for name, result in named.items()}


@pytest.mark.parametrize("name", [*TEMPLATES, "tiny"])
@given(calls=st.lists(wanted, max_size=3))
def test_calls_are_read_as_the_template_wrote_them(forms, name, calls):
    made, form = forms[name]
    # Those of Llama and gpt-oss write one call a message.
    if name in ("llama3_1", "gptoss"):
        calls = calls[:1]
    assert form.read(written(made, calls)) == calls


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "x", "arguments": {}',
        '<tool_call>{"name": "x"}</tool_call>',
        '<tool_call>{"name": "x", "arguments": "no object"}</tool_call>',
        '<tool_call>{"name": "x", "arguments": {}}',
        "<tool_call>x(1)</tool_call>",
        '<tool_call>{"name": "x", "arguments": {}}</tool_call><tool_call>',
    ],
)
def test_malformed_calls_are_told(forms, text):
    assert forms["tiny"][1].read(text) is None


def test_calls_that_are_only_thought_of_do_not_count(forms):
    text = 'I could <tool_call>{"name": </think>So the answer is 4.'
    assert forms["tiny"][1].read(text) == []


def test_templates_without_calls_or_with_another_form():
    assert call_form(renderer("gemma")) is None
    section = GrpoSection.model_validate({"rewards": ["calls"]})
    with pytest.raises(UsageError, match="cannot read the calls of this chat template"):
        make_rewards(section, renderer("gemma"), Path())


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_calls_written_as_tags_are_read_by_the_parser_of_transformers():
    tags = renderer("qwen3_5_nothink")
    assert call_form(tags) is None
    section = GrpoSection.model_validate({"rewards": ["calls"]})
    (reward,) = make_rewards(section, tags, Path())
    text = "<tool_call>\n<function=search>\n<parameter=query>\nx\n</parameter>\n</function>\n"
    result = reward(
        prompts=["<|im_start|>assistant\n"],
        completion_ids=[tags.tokenizer(text + "</tool_call>")["input_ids"]],
        expected_calls=[json.dumps([{"name": "search", "arguments": {"query": "x"}}])],
        tools=[None],
    )
    assert result == [1.0]


# ---- scores ----------------------------------------------------------------------------------


@given(st.lists(wanted, max_size=4), st.randoms())
def test_the_same_calls_in_any_order_score_one(calls, random):
    mixed = list(calls)
    random.shuffle(mixed)
    assert calls_score(mixed, calls) == 1.0


@given(st.lists(wanted, max_size=4), st.lists(wanted, max_size=4))
def test_scores_lie_between_0_and_1_and_tell_what_is_equal(value, other):
    score = calls_score(value, other)
    assert 0 <= score <= 1
    assert calls_score(other, value) == pytest.approx(score)
    if score == 1:
        assert Counter(map(_key, value)) == Counter(map(_key, other))


def _key(call: WrittenCall) -> str:
    return json.dumps([call.name, call.arguments], sort_keys=True)


@pytest.mark.parametrize(
    ("made", "score"),
    [
        ([("s", {"q": "x", "n": 1})], 1.0),
        ([("s", {"q": "x", "n": 2})], (1 + 1 + 1 / 2) / 3),
        ([("s", {"q": "x"})], (1 + 2 / 3 + 1 / 2) / 3),
        ([("s", {})], 1 / 3),
        ([("t", {"q": "x", "n": 1})], 0.0),
        ([], 0.0),
        ([("s", {"q": "x", "n": 1}), ("s", {})], 0.5),
        ([("s", {"q": "x", "n": True})], (1 + 1 + 1 / 2) / 3),
    ],
)
def test_a_third_each_for_name_argument_names_and_values(made, score):
    calls = [WrittenCall(*item) for item in made]
    assert calls_score(calls, [WrittenCall("s", {"q": "x", "n": 1})]) == pytest.approx(score)


def test_expected_calls_as_sources_write_them():
    assert wanted_calls('[{"name": "s", "arguments": {"q": 1}}]') == [WrittenCall("s", {"q": 1})]
    assert wanted_calls('{"function": {"name": "s", "arguments": "{}"}}') == [WrittenCall("s", {})]
    assert wanted_calls("[]") == []
    for unclear in (None, '["s"]', '[{"name": 1}]', '[{"name": "s", "arguments": "no"}]'):
        assert wanted_calls(unclear) is None


@pytest.mark.parametrize(
    ("text", "answers", "score"),
    [
        ("Paris", ["paris"], 1.0),
        ("<think>London</think> The Paris.", ["Paris"], 1.0),
        ("It is Paris", ["Paris"], 0.0),
        (r"so \boxed{\frac{1}{2}}", [r"\frac{1}{2}"], 1.0),
        ("<answer>so \\boxed{42}</answer> and more", ["42.0"], 1.0),
        ("<FINAL>1,234</FINAL>", ["1234", "x"], 1.0),
        ("1234.5", ["1234.4"], 0.0),
        ("", ["x"], 0.0),
        ("+", ["-"], 0.0),
        ("x", [], None),
    ],
)
def test_answers(text, answers, score):
    assert answer_score(text, answers) == score


def test_references_are_told_in_several_ways():
    assert references(None) == []
    assert references('"x"') == ["x"]
    assert references('["x", null, 4, {"a": 1}]') == ["x", "4", '{"a": 1}']


def ids_of(made: Renderer, *texts: str) -> list[list[int]]:
    return [made.tokenizer(text)["input_ids"] for text in texts]


def test_rewards_of_a_batch(forms):
    made, _ = forms["tiny"]
    names = ["answer", "calls_exact", "format", "json", "length"]
    section = GrpoSection.model_validate(
        {"rewards": names, "max_completion_length": 40, "length_buffer": 30}
    )
    good = '<tool_call>{"name": "search", "arguments": {"query": "x"}}</tool_call><|im_end|>'
    unknown = '<tool_call>{"name": "other", "arguments": {}}</tool_call><|im_end|>'
    texts = ["four<|im_end|>", good, unknown, '{"a": 1}<|im_end|>', "<tool_call>{<|im_end|>"]
    search = {"type": "function", "function": {"name": "search", "parameters": {}}}
    expected = json.dumps([{"name": "search", "arguments": {"query": "x"}}])
    columns = {
        "prompts": ["p"] * 5,
        "completion_ids": ids_of(made, *texts),
        "answers": ['"four"', None, None, None, None],
        "expected_calls": [None, expected, expected, None, expected],
        "tools": [json.dumps([search])] * 5,
        "trainer_state": None,
    }
    rewards = {
        make_reward.__name__: make_reward(**columns)
        for make_reward in make_rewards(section, made, Path())
    }
    assert rewards["answer"] == [1.0, None, None, None, None]
    assert rewards["calls_exact"] == [None, 1.0, 0.0, None, 0.0]
    assert rewards["format"] == [1.0, 1.0, 0.0, 1.0, 0.0]
    assert rewards["json"] == [0.0, 0.0, 0.0, 1.0, 0.0]
    assert rewards["soft_overlong_punishment_reward"][0] == 0.0


def test_python_only_when_it_is_allowed(forms, tmp_path):
    (tmp_path / "my_reward.py").write_text("def one(completion_ids, **_):\n    return [1.0]\n")
    section = GrpoSection.model_validate({"rewards": ["my_reward:one"]})
    with pytest.raises(UsageError, match="my_reward:one is Python code; add --allow-python"):
        check_python(section, False)
    check_python(section, True)
    (reward,) = make_rewards(section, forms["tiny"][0], tmp_path)
    assert reward(completion_ids=[[1]]) == [1.0]


@pytest.mark.parametrize(("body", "words"), [
    ("return [1.0]", "gave 1 numbers for 2 answers"),
    ("return [1e39, 0]", "gave 1e[+]39, which is no finite number"),
    ("raise OSError('gone')", "failed: OSError: gone; mend it"),
])  # fmt: skip
def test_numbers_of_a_function_are_checked(forms, tmp_path, body, words):
    name = f"checked_{abs(hash(body))}"
    (tmp_path / f"{name}.py").write_text(f"async def given(**_):\n    {body}\n")
    section = GrpoSection.model_validate({"rewards": [f"{name}:given"]})
    (reward,) = make_rewards(section, forms["tiny"][0], tmp_path)
    with pytest.raises(TrainingError, match=words):
        reward(completion_ids=[[1], [2]])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "grpo.rewards is empty; name some of answer, calls"),
        ({"rewards": ["answers"]}, "answer"),
        ({"rewards": ["no_such_module:f"]}, "cannot be loaded"),
        ({"rewards": ["json:no_such"]}, "cannot be loaded"),
        ({"rewards": ["json"], "reward_weights": [1, 2]}, "2 numbers for 1 rewards"),
    ],
)
def test_rewards_that_cannot_be(forms, values, words):
    section = GrpoSection.model_validate(values)
    with pytest.raises(UsageError, match=words):
        make_rewards(section, forms["tiny"][0], Path())


# ---- prompts ---------------------------------------------------------------------------------


def prepared(tmp_path: Path, **ours: Any) -> tuple[Any, list[dict[str, Any]]]:
    training = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 1}
    values = {
        "method": "grpo",
        "data": str(tmp_path / "s"),
        "training": training,
        "grpo": {"rewards": ["json"], "num_generations": 2, **ours},
    }
    plan = grpo.METHOD.prepare(TrainConfig.model_validate(values), tmp_path, Silent())
    rows = read_arrow(tmp_path / "train.arrow")
    return plan, list(rows)


def write_tasks(folder: Path) -> None:
    steps = [call("first", "RESULT"), say("done")]
    write_pairs(
        folder,
        [
            run("bad", "question one", [say("no")], task_id="t1", success=False),
            run("good", "question one", steps, task_id="t1", success=True),
            run("free", "question two", [say("yes", loss_weight=0.0)]),
            run("mute", "question three", []),
        ],
        tasks=[
            {"task_id": "t1", "answers": '["done"]', "expected_calls": '[{"name": "x"}]'},
            {"task_id": "t9", "instruction": "nobody tried", "answers": '"9"'},
        ],
    )


def test_first_prompts_are_what_the_model_sees(tmp_path):
    write_tasks(tmp_path / "s")
    plan, rows = prepared(tmp_path)
    assert (plan.rows, plan.sequences) == (4, 8)
    tiny = tiny_tokenizer()
    by_source = {row["source_id"]: row for row in rows}
    assert set(by_source) == {"d/good", "d/free", "d/mute", "t9"}
    for name, question in (("d/good", "question one"), ("d/free", "question two")):
        row = by_source[name]
        messages = [{"role": "user", "content": question}]
        expected = tiny.apply_chat_template(
            messages, tools=json.loads(row["tools"]), tokenize=False, add_generation_prompt=True
        )
        assert row["prompt"] == expected
    logged = json.loads(by_source["d/good"]["expected_calls"])
    assert logged == [{"name": "search", "arguments": {"query": "first"}}]
    assert by_source["d/good"]["answers"] == '["done"]'
    # A step that is not learnt from is no example of what to call.
    assert by_source["d/free"]["expected_calls"] is None
    assert by_source["t9"]["prompt"].endswith("nobody tried<|im_end|>\n<|im_start|>assistant\n")


def test_two_data_sets_may_number_their_tasks_alike(tmp_path):
    builder = RowBuilder()
    for seq, dataset in enumerate("ab"):
        builder.begin(Origin(seq=seq * 10, dataset=dataset))
        builder.trajectory({"source_id": "one", "task_id": "1", "success": True})
        builder.task({"task_id": "1", "instruction": dataset, "answers": f'["{dataset}"]'})
        builder.step({"source": "user", "kind": "message", "text": dataset})
        builder.step({"source": "agent", "kind": "llm_turn", "text": "done"})
        builder.finish()
    write_store(tmp_path / "s", builder)
    for prompts in ("first", "steps"):
        _, rows = prepared(tmp_path, prompts=prompts)
        assert {row["source_id"]: row["answers"] for row in rows} == {
            "a/one": '["a"]', "b/one": '["b"]'
        }  # fmt: skip


def test_a_prompt_for_each_step(tmp_path):
    write_tasks(tmp_path / "s")
    _, rows = prepared(tmp_path, prompts="steps", calls_from="logged")
    good = [row for row in rows if row["source_id"] == "d/good"]
    assert [row["answers"] for row in good] == [None, '["done"]']
    assert [json.loads(row["expected_calls"]) for row in good][1] == []
    assert "RESULT" in good[1]["prompt"]
    assert not [row for row in rows if row["source_id"] == "d/free"]
    _, rows = prepared(tmp_path, prompts="steps", calls_from="task")
    assert {row["expected_calls"] for row in rows} == {'[{"name": "x"}]'}


def test_long_prompts_and_too_few_of_them(tmp_path):
    write_tasks(tmp_path / "s")
    with pytest.raises(EmptyResultError, match="longer than max_prompt_length: 5"):
        prepared(tmp_path, max_prompt_length=8)
    with pytest.raises(UsageError, match="does not divide the 2 answers of a step"):
        prepared(tmp_path, num_generations=3)
