"""The wire forms of M3, against a second writing of them from its table, and read back."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from adp.converters.run import convert
from adp.rendering.chat import Chat, ChatCall, Message
from adp.rendering.m3_answers import read_action
from adp.rendering.m3_forms import FORMS, NO_THOUGHT, WORDS_THOUGHT, written
from adp.rendering.options import RenderOptions
from adp.rendering.policies import Policies
from adp.rendering.render import Renderer
from adp_schema.store import Store
from tests.rendering.families import tokenizer_of

RUNS = Path(__file__).parents[2].parent / "shared" / "data" / "m3" / "bird-dev-old"
STUDENTS = ("m3_mistral", "m3_qwen3", "m3_granite3")
EVERY = (*STUDENTS, "m3_teacher")
TEXT = "{system}{tool_text}\nKeep to it.{tool_use_constraints}"
MARKS = (
    "<|im_start|><|im_end|><tool_call></tool_call><think></think><tool_response></tool_response>"
    "<|start_of_role|><|end_of_role|><|end_of_text|><|tool_call|>[INST][/INST][TOOL_CALLS]"
    "[AVAILABLE_TOOLS][/AVAILABLE_TOOLS][TOOL_RESULTS][/TOOL_RESULTS]"
)
CHATML = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"


# ---- the second writing, from the raw files of M3 -------------------------------------------


def oracle_call(form, content):
    """A stored call (a thought, then an object) as the student writes it."""
    thought = re.search(r"<think>(.*)</think>", content, re.DOTALL)
    head = thought.group(0) if thought else ""
    call = json.loads(content.replace(head, ""))
    value = {"name": call["name"], "arguments": call["arguments"]}
    if form == "m3_qwen3":
        return f"{head}<tool_call>\n{json.dumps(value, ensure_ascii=False)}\n</tool_call>"
    if form == "m3_teacher":
        value["arguments"] = json.dumps(call["arguments"], ensure_ascii=False)
        return f"{head}<Action>{json.dumps(value, ensure_ascii=False)}</Action>"
    mark = "[TOOL_CALLS]" if form == "m3_mistral" else "<|tool_call|>"
    return f"{head}{mark} {json.dumps([value], ensure_ascii=False)}"


def oracle_turn(form, role, content):
    """What the model writes, the end of its turn included: the target of the training."""
    text = oracle_call(form, content) if role == "function" else content
    if form == "m3_mistral":
        return f" {text}</s>"
    if form == "m3_qwen3":
        empty = "" if "<think>" in text or "</think>" in text else "<think>\n\n</think>\n\n"
        return f"{empty}{text}<|im_end|>\n"
    return f"{text}<|end_of_text|>\n"


def oracle_asked(form, role, content):
    if form == "m3_mistral":
        if role == "observation":
            return f'[TOOL_RESULTS] {{"content": {content}}}[/TOOL_RESULTS]'
        return f"[INST] {content}[/INST]"
    if form == "m3_qwen3":
        if role == "observation":
            content = f"<tool_response>\n{content}\n</tool_response>"
        return f"<|im_start|>user\n{content}<|im_end|>\n<|im_start|>assistant\n"
    head, end = "<|start_of_role|>{}<|end_of_role|>", "<|end_of_text|>\n"
    return head.format("user") + content + end + head.format("assistant")


def oracle_prompt(form, run, messages):
    """All that stands before what the model writes."""
    tools = json.loads(run["tools"])
    policy = run.get("tool_availability_policy")
    if policy == "only_api":
        tools = [tool for tool in tools if tool["function"]["name"] != "retrieve_documents"]
    shown = json.dumps(tools, ensure_ascii=False)
    if form == "m3_qwen3":
        shown = "".join("\n" + json.dumps(tool, ensure_ascii=False) for tool in tools)
    usage = run.get("tool_usage_policy")
    usage = f"\n\n            Tool Usage Constraint: {usage}" if usage else ""
    system = f"{run['system']}{shown}\nKeep to it.{usage}"
    text = {
        "m3_mistral": "<s>",
        "m3_qwen3": f"<|im_start|>system\n{system}<|im_end|>\n",
        "m3_granite3": f"<|start_of_role|>system<|end_of_role|>{system}<|end_of_text|>\n",
    }[form]
    for place, message in enumerate(messages):
        role, content = message["role"], message["content"]
        if form == "m3_mistral" and place == 0:
            content = f"{system}\n\n{content}"
        writes = oracle_turn if role in ("assistant", "function") else oracle_asked
        text += writes(form, role, content)
    return text


def call(name, thought="I look.", **arguments):
    content = f"<think>{thought}</think>{json.dumps({'name': name, 'arguments': arguments})}"
    return {"role": "function", "content": content}


def say(role, content):
    return {"role": role, "content": content}


def own_run(policy="both_api_rag"):
    """A run of our own in M3's layout: a result, an unreadable turn, a second question."""
    tool = {"description": "d", "parameters": {"type": "object", "properties": {}, "required": []}}
    tools = [
        {"type": "function", "function": {"name": name, **tool}}
        for name in ("count", "retrieve_documents")
    ]
    first = [say("user", "How many trees “here”?")]
    done = [*first, call("count", garden="Mühle"), say("observation", "ToolCallSuccessful: [[12]]")]
    broken = say("assistant", "Twelve, I guess.")
    answered = [*done, broken, say("user", "NoThoughtError: think first")]
    golden = [*first, say("assistant", "<FINAL>Twelve.</FINAL>"), say("user", "Whose?")]
    final = say("assistant", "<think>done</think><FINAL>Twelve.</FINAL>")
    steps = [
        (first, done[1], "ToolCallSuccessful: [[12]]"),
        (done, broken, "NoThoughtError: think first"),
        (answered, final, "Whose?"),
        (golden, say("assistant", "<think>\nread\n</think><FINAL>Ada's.</FINAL>"), "Done!"),
    ]
    interactions = {}
    for number, (shown, output, seen) in enumerate(steps):
        action = "API" if output["role"] == "function" else "FINAL"
        meta = {"thought": None, "action": action, "action_arguments": None, "observation": seen}
        interactions[str(number)] = {
            "input": shown, "metadata": meta, "actor": "expert", "output": output,
            "reward": "{REWARD_SUCCESS_TOOL_CALL}", "alternate_trace": [],
        }  # fmt: skip
    return {
        "system": "Answer.\n\n", "tools": json.dumps(tools), "interactions": interactions,
        "tool_availability_policy": policy, "tool_usage_policy": "Be quick.",
    }  # fmt: skip


def files_of(tmp_path):
    for number, policy in enumerate(("both_api_rag", "only_api")):
        (tmp_path / f"trajectory_{number}.json").write_text(json.dumps(own_run(policy)))
    return tmp_path


def renderer(form, **options):
    options = RenderOptions(wire_form=form, system_text=TEXT, **options)
    return Renderer(tokenizer_of(MARKS), options)


def check(form, folder, tmp_path):
    """Each trained step: the prompt and the target of M3, and nothing else under the loss."""
    convert([str(folder)], str(tmp_path / "store"))
    store, shown = Store.open(str(tmp_path / "store")), renderer(form)
    seen = 0
    for name in store.scan("trajectories").select("trajectory_id").collect()["trajectory_id"]:
        trajectory = store.get(name, resolve=True)
        run = json.loads((folder / trajectory.source_file).read_text())
        rendered = shown.trajectory(trajectory)
        assert rendered.rejected is None
        assert not rendered.lost
        turns = [step.step for step in trajectory.steps if step.kind == "llm_turn"]
        for row in rendered.rows:
            for step, start, end in row.spans:
                value = run["interactions"][str(turns.index(step))]
                output = value["output"]
                assert row.text[:start] == oracle_prompt(form, run, value["input"])
                assert row.text[start:end] == oracle_turn(form, output["role"], output["content"])
                labels = row.labels[row.step_index == step]
                assert shown.tokenizer.decode(labels) == row.text[start:end]
                seen += 1
            trained = shown.tokenizer.decode(row.labels[row.labels != -100])
            assert len(trained) == sum(end - start for _, start, end in row.spans)
    return seen


@pytest.mark.parametrize("form", STUDENTS)
def test_rows_are_those_of_m3(form, tmp_path):
    (tmp_path / "runs").mkdir()
    assert check(form, files_of(tmp_path / "runs"), tmp_path) == 8


@pytest.mark.skipif(not RUNS.exists(), reason="the reference data are not here")
@pytest.mark.parametrize("form", STUDENTS)
def test_rows_of_real_runs_are_those_of_m3(form, tmp_path):
    folder = RUNS / "sft_expert"
    runs = [json.loads(path.read_text()) for path in sorted(folder.rglob("trajectory_*.json"))]
    assert check(form, folder, tmp_path) == sum(len(run["interactions"]) for run in runs) > 20


@pytest.mark.parametrize("form", EVERY)
def test_a_row_is_the_prompt_of_the_policy_with_its_answer(form):
    messages = (
        Message("system", "Answer.", 0),
        Message("user", "How many?", 1),
        Message("assistant", "", 2, reasoning="I look.", calls=(COUNT,), weight=1.0),
        Message("tool", "[[12]]", 2, call_id="c", name="count"),
        Message("assistant", "Twelve.", 3, reasoning="done", weight=1.0),
    )
    shown = Renderer(
        tokenizer_of(MARKS if form in STUDENTS else CHATML), RenderOptions(wire_form=form)
    )
    (row,) = shown.chat(Chat("t", 0, 0, messages, TOOLS)).rows
    assert [step for step, _, _ in row.spans] == [2, 3]
    turns = [row.text[start:end] for _, start, end in row.spans]
    words, thought, calls, why = read_action(turns[0], form)
    assert (words, thought, why) == ("", "I look.", None)
    assert [(call.name, call.arguments) for call in calls] == [("count", {"garden": "Mühle"})]
    assert read_action(turns[1], form) == ("Twelve.", "done", (), None)
    assert row.text.count('"name": "count"') >= 1


COUNT = ChatCall("count", {"garden": "Mühle"}, '{"garden":"Mühle"}', "c")
TOOLS = ({"type": "function", "function": {"name": "count", "parameters": {}}},)
OPEN = {"m3_teacher": "<Action>{}</Action>", "m3_qwen3": "<tool_call>\n{}\n</tool_call>",
        "m3_mistral": "[TOOL_CALLS] [{}]", "m3_granite3": "<|tool_call|> [{}]"}  # fmt: skip
CALL = '{"name": "f", "arguments": {"a": 1}}'


@pytest.mark.parametrize("form", EVERY)
@pytest.mark.parametrize(
    ("text", "error"),
    [
        (f"{CALL}", "NoThoughtError"),
        ("<think>a</think><think>b</think><FINAL>x</FINAL>", "MultipleThoughtsError"),
        ("<think>a</think>" + "<FORM>{", "JSONDecodeError"),
        ('<think>a</think><FORM>{"name": "f"}', "MissingKeyError(arguments)"),
        ('<think>a</think><FORM>{"arguments": {}}', "MissingKeyError(name)"),
        ("<think>a</think><FORM>{}", "MissingKeysError(name,arguments)"),
        ('<think>a</think><FORM>{"name": 1, "arguments": {}}', "ParsingError"),
        ('<think>a</think><FORM>{"name": "f", "arguments": [1]}', "ParsingError"),
        ('<think>a</think><FORM>{"name": "f", "arguments": {"a": NaN}}', "JSONDecodeError"),
        ("<think>a</think><FORM>" + "[" * 100_000, "JSONDecodeError"),
        ("<think>a</think>", None),
        ("<think>a", "NoThoughtError"),
        ("", "NoThoughtError"),
    ],
)
def test_what_cannot_be_read_has_the_name_of_m3(form, text, error):
    head, sign, value = text.partition("<FORM>")
    text = head + OPEN[form].format(value) if sign else text
    words, _, calls, why = read_action(text, form)
    assert (words, calls) == (text, ())
    assert why is not None
    assert why.startswith(error or ("ParsingError", "JSONDecodeError"))


@pytest.mark.parametrize("form", EVERY)
def test_several_calls_are_an_error_between_tags_and_the_first_of_a_list(form):
    other = CALL.replace('"f"', '"g"')
    two = f"{CALL}, {other}"
    text = OPEN[form].format(two) if FORMS[form].listed else OPEN[form].format(CALL) * 2
    _, _, calls, why = read_action(f"<think>a</think>{text}", form)
    if FORMS[form].listed:
        assert [call.name for call in calls] == ["f"]
        assert why is None
    else:
        assert why is not None
        assert why.startswith("ParallelToolCallingError")
        assert not calls


def test_lists_are_read_without_their_mark_and_arguments_as_text():
    for form in ("m3_mistral", "m3_granite3"):
        assert read_action(f"<think>a</think>[{CALL}]", form)[2][0].arguments == {"a": 1}
        assert read_action(f"<think>a</think>{CALL}", form)[2][0].arguments == {"a": 1}
    text = '<think>a</think><Action>{"name": "f", "arguments": "{\\"a\\": 1}"}</Action>'
    assert read_action(text, "m3_teacher")[2][0].arguments == {"a": 1}


def test_a_turn_ends_where_the_model_begins_to_write_a_result():
    text = f"<think>a</think><tool_call>{CALL}</tool_call><tool_response>made up"
    assert read_action(text, "m3_qwen3")[2][0].name == "f"
    assert read_action("<think>a<Observation></think>", "m3_teacher")[3].startswith("NoThought")


NAMES = st.text(min_size=1, max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(NAMES, st.dictionaries(st.text(max_size=8), VALUES, max_size=4), st.text(max_size=30))
def test_what_is_written_is_read_as_the_same_call(name, arguments, thought):
    arguments = json.loads(json.dumps(arguments))
    plain = json.dumps([name, arguments, thought], ensure_ascii=False)
    if any(mark in plain for mark in ("<", "[T")):
        return  # a text may hold the marks of a form
    made = ChatCall(name, arguments, json.dumps(arguments), "c")
    for form in EVERY:
        chat = Chat("", 0, 0, (Message("assistant", "", 0, reasoning=thought, calls=(made,)),))
        text = written(chat, form, None, Counter()).messages[1].text
        _, known, calls, why = read_action(text, form)
        assert why is None
        assert known == thought.strip()
        assert (calls[0].name, calls[0].arguments) == (name, arguments)


def texts(form, *messages, policies=None, tools=TOOLS, system_text=None):
    chat = Chat("", 0, 0, messages, tools, policies=policies or Policies())
    notes = Counter()
    return [item.text for item in written(chat, form, system_text, notes).messages], notes


def test_the_system_has_tools_and_protocol_and_each_policy_once():
    user = Message("user", "q", 1)
    policies = Policies("only_api", "Be quick.", "Say no.")
    rag = {"type": "function", "function": {"name": "retrieve_documents"}}
    (text, _), _ = texts("m3_qwen3", user, policies=policies, tools=(*TOOLS, rag))
    assert text.count("Be quick.") == text.count("Say no.") == 1
    assert '"count"' in text
    assert "retrieve_documents" not in text
    assert "<tool_call>{" in text
    assert "<FINAL>" in text
    (text, _), _ = texts(
        "m3_qwen3", Message("system", "Be quick. Say no.", 0), user, policies=policies
    )
    assert text.count("Be quick.") == text.count("Say no.") == 1
    (text, _), _ = texts("m3_teacher", user, policies=Policies("neither_api_rag"))
    assert "tools: []" in text


def test_a_system_text_of_ones_own_has_slots_and_keeps_other_braces():
    user = Message("user", "q", 1)
    given_text = '{system}|{tool_text}|{"name": {x}} {tool_use_constraints}'
    (text, _), _ = texts(
        "m3_granite3", Message("system", "A {tool_text}", 0), user, system_text=given_text
    )
    shown = json.dumps(list(TOOLS))
    assert text == "A {tool_text}\n\n|" + shown + '|{"name": {x}} '


def test_words_beside_a_call_are_a_thought_and_missing_ones_are_counted():
    user = Message("user", "q", 1)
    step = Message("assistant", "I look.", 2, calls=(COUNT,), weight=1.0)
    turns, notes = texts("m3_qwen3", user, step)
    assert turns[2].startswith("<think>I look.</think><tool_call>")
    assert notes == {WORDS_THOUGHT: 1}
    turns, notes = texts("m3_mistral", user, Message("assistant", "x", 2, weight=1.0))
    assert turns[2] == "<FINAL>x</FINAL>"
    assert notes == {NO_THOUGHT: 1}


def test_options_that_do_not_fit():
    for options in (
        {"system_text": "x"},
        {"wire_form": "m3_qwen3", "tools": "text"},
        {"wire_form": "m3_qwen3", "chat_template": CHATML},
        {"wire_form": "student_qwen3"},
    ):
        with pytest.raises(ValidationError):
            RenderOptions(**options)
    assert RenderOptions(wire_form="m3_teacher", chat_template=CHATML)


def test_several_calls_are_refused_or_split():
    user = Message("user", "q", 1)
    step = Message("assistant", "", 2, reasoning="r", calls=(COUNT, COUNT), weight=1.0)
    chat = Chat("", 0, 0, (user, step), TOOLS)
    assert "parallel_calls: split" in renderer("m3_qwen3").chat(chat).rejected
    assert renderer("m3_qwen3", parallel_calls="split").chat(chat).trained == 1


@pytest.mark.parametrize("kind", ["sentencepiece", "metaspace_first"])
def test_the_space_before_a_turn_of_mistral_is_trained_in_other_tokenizers(kind):
    options = RenderOptions(wire_form="m3_mistral")
    messages = (Message("user", "q", 1), Message("assistant", "x", 2, reasoning="r", weight=1.0))
    (row,) = Renderer(tokenizer_of(MARKS, kind), options).chat(Chat("", 0, 0, messages)).rows
    _, start, end = row.spans[0]
    assert row.text[start:end] == " <think>r</think><FINAL>x</FINAL></s>"
    assert row.labels[-1] != -100
