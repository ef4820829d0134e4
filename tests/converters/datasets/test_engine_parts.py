"""Parts of the engine by themselves: paths, tools, transcripts, values, whole recipes."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

import adp
from adp.converters.datasets.families.steps import missing_numbers
from adp.converters.datasets.families.transcript import cut
from adp.converters.datasets.literals import literal
from adp.converters.datasets.paths import look, parse_path, take
from adp.converters.datasets.reader_specs import TranscriptSpec
from adp.converters.datasets.recipe import ToolsSpec
from adp.converters.datasets.tools import inferred_tools, normal_schema, normal_tool, tools_in
from adp.converters.kit.source_object import SourceObject
from adp_schema.losses import Losses


def source(value) -> SourceObject:
    return SourceObject(Raw(json.dumps(value).encode()), "$", Losses())


# ---- paths ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a", '{"b":[1,{"c":2}]}'),
        ("a.b[0]", "1"),
        ("a.b[-1].c", "2"),
        ("*.b[1].c", "2"),
        ("a.*[0]", "1"),
        ("s.x", "7"),  # JSON in a string
        ("s.y", None),
        ("a.b[9]", None),
        ("a.b.c", None),
    ],
)
def test_look(path, expected):
    value = source({"a": {"b": [1, {"c": 2}]}, "s": '{"x": 7}'})
    raw = look(value, path)
    assert (None if raw is None else json.dumps(json.loads(bytes(raw)), separators=(",", ":"))) == (
        expected
    )
    assert value.rest().keys() == {"a", "s"}  # looking takes nothing


def test_take_leaves_the_rest():
    value = source({"a": {"b": 1, "c": 2}, "d": [3]})
    assert bytes(take(value, "a.b")) == b"1"
    assert take(value, "d[0]") is None  # an item of a list stays there
    rest = value.rest()
    assert {key: bytes(it) for key, it in rest["a"].items()} == {"c": b"2"}
    assert bytes(rest["d"]) == b"[3]"


@pytest.mark.parametrize("path", ["", "a..b", "a[", "a[x]", "[", "a]"])
def test_what_is_no_path(path):
    with pytest.raises(ValueError, match="path"):
        parse_path(path)


# ---- transcripts ---------------------------------------------------------------------------------

SPEC = TranscriptSpec(
    marks={"user": ("USER:",), "agent": ("ASSISTANT:", "^A:"), "result": ("RESULT:",)}, ends="<end>"
)
_WORDS = st.sampled_from(["USER:", "ASSISTANT:", "A:", "RESULT:", "<end>", "\n", " ", "x", "a: "])


@given(st.lists(_WORDS, max_size=30).map("".join))
def test_the_turns_of_a_transcript_are_all_of_its_characters(text):
    turns = list(cut(text, SPEC))
    assert "".join(it.before + it.words + it.after for it in turns) == text or not text.strip()
    assert all(it.words == it.words.strip() for it in turns)


def test_marks_count_where_words_begin():
    turns = cut("USER: what is a RA: or FAQ:\nA: this\nQ&A: no RESULT: 1", SPEC)
    assert [(it.source, it.words) for it in turns] == [
        ("user", "what is a RA: or FAQ:"),
        ("agent", "this\nQ&A: no"),
        ("result", "1"),
    ]


# ---- tools ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_parameters", "expected"),
    [
        (None, {"type": "object", "properties": {}}),
        ({}, {"type": "object", "properties": {}}),
        ({"type": "dict", "properties": {"a": {"type": "float"}}, "required": ["a"]},
         {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}),
        # Flat, with types of Python; a parameter that is itself called type.
        ({"type": {"type": "str", "description": "d"}, "n": {"type": "int, optional"},
          "k": {"type": "List[int]", "default": [1]}},
         {"type": "object", "properties": {
             "type": {"type": "string", "description": "d"}, "n": {"type": "integer"},
             "k": {"type": "array", "items": {"type": "integer"}, "default": [1]}},
          "required": ["type"]}),
        ({"a": "str", "b": "Optional[float]"},
         {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "number"}},
          "required": ["a"]}),
        # Padded with nulls, as Arrow pads.
        ({"type": "object", "properties": {"a": {"type": "string", "enum": None}, "b": None},
          "required": None},
         {"type": "object", "properties": {"a": {"type": "string"}}}),
        ({"x": {"type": "Tuple[Point]", "required": True}},
         {"type": "object", "properties": {"x": {"type": "array"}}, "required": ["x"]}),
        ({"x": {"type": "MyClass"}},
         {"type": "object", "properties": {"x": {"description": "MyClass"}}, "required": ["x"]}),
    ],
)  # fmt: skip
def test_schemas(given_parameters, expected):
    assert normal_schema(given_parameters) == expected


@pytest.mark.parametrize("key", ["parameters", "arguments", "input_schema", "params", "kwargs"])
def test_parameters_by_other_names(key):
    tool = normal_tool({"name": "f", "description": "d", key: {"a": "int"}})
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    assert tool == {
        "type": "function",
        "function": {"name": "f", "description": "d", "parameters": schema},
    }


def test_a_tool_that_is_right_stays_as_it_is():
    tool = {"type": "function", "strict": True, "function": {
        "name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}},
                                    "required": ["a"]}}}  # fmt: skip
    assert normal_tool(tool) is tool


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ('Use: [{"name": "f"}, {"name": "g"}]. Should you', {"after": "Use:"}),
        ('{"name": "f",\n "x": 1}\n\n{"name": "g"} and', {"form": "objects"}),
        ('{"name": "f"}\n{"name": "g"}\n', {"form": "lines"}),
        ("APIs: [{'name': 'f', 'a': None}, {'name': 'g', 'b': True}]", {"form": "python"}),
        ('<tools>[{"name": "f"}, {"name": "g"}]</tools>[1]',
         {"after": "<tools>", "before": "</tools>"}),
    ],
)  # fmt: skip
def test_tools_in_texts(text, spec):
    assert [it["name"] for it in tools_in(text, ToolsSpec(**spec))] == ["f", "g"]


@pytest.mark.parametrize(
    "text", ["", "no list", "[broken", "{'a': open('x')}", '["a", 1]', "[" * 9999]
)
def test_texts_without_tools(text):
    for form in ("auto", "objects", "lines", "python"):
        assert tools_in(text, ToolsSpec(form=form)) == []


def test_tools_that_are_made_of_calls():
    calls = [
        {"name": "f", "kind": "function", "arguments": '{"a": 1, "b": [2]}'},
        {"name": "f", "kind": "function", "arguments": '{"c": true}'},
        {"name": "bash", "kind": "code", "arguments": None},
        {"name": "g", "kind": "function", "arguments": None},
    ]
    tools = json.loads(inferred_tools(calls) or "")
    properties = {"a": {"type": "integer"}, "b": {"type": "array"}, "c": {"type": "boolean"}}
    assert [it["function"]["name"] for it in tools] == ["f", "g"]
    assert tools[0]["function"]["parameters"]["properties"] == properties
    assert inferred_tools([]) is None


# ---- literals, numbers ---------------------------------------------------------------------------


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
))  # fmt: skip
def test_literals_are_those_of_python(value):
    assert literal(repr([value])) == [value]


@pytest.mark.parametrize(
    "text",
    ["__import__('os')", "[x for x in y]", "{1: 2}", "[1e999]", "{'a'}", "[b'x']", "[" * 5000],
)  # fmt: skip
def test_what_is_no_literal(text):
    assert literal(text) is None


@pytest.mark.parametrize(
    ("numbers", "missing"),
    [([0, 1, 2], []), ([1, 2, 3], []), ([2, 5], [0, 1, 3, 4]), ([1, 4], [2, 3]), ([None], [])],
)
def test_gaps_between_steps(numbers, missing):
    assert missing_numbers(numbers) == missing


# ---- whole recipes -------------------------------------------------------------------------------


def convert(folder, recipe: str, *rows):
    (folder / "r.yaml").write_text(f"name: mine\ntitle: t\nrows: seen\n{recipe}", "utf-8")
    (folder / "rows.jsonl").write_text("".join(json.dumps(it) + "\n" for it in rows), "utf-8")
    return adp.convert(
        str(folder / "rows.jsonl"), str(folder / "store"), recipes=[str(folder / "r.yaml")]
    )


def test_steps_are_grouped_in_order_and_gaps_are_noted(tmp_path):
    recipe = """\
unit: file
reader: steps
steps:
  group: run
  order: n
  task: goal
  observation: {axtree: tree, url: url, image: shot}
  action: {call: act, name: kind}
"""
    rows = [
        {"run": run, "n": n, "goal": "Buy.", "tree": f"tree {run}{n}", "url": f"http://x/{n}",
         "shot": "gone/{b64_img}.png", "act": {"kind": "click", "id": n}, "more": run + str(n)}
        for run, n in (("b", 3), ("a", 0), ("b", 1), ("a", 1))
    ]  # fmt: skip
    store = convert(tmp_path, recipe, *rows)
    runs = {run.source_id: run for run in store}
    assert list(runs) == ["b", "a"]
    for name, numbers in (("a", [0, 1]), ("b", [1, 3])):
        run = runs[name]
        calls = [call for step in run.steps for call in step.calls]
        assert [json.loads(it.arguments) for it in calls] == [{"id": n} for n in numbers]
        seen = [it for step in run.steps for it in step.observations]
        assert [it.axtree for it in seen] == [f"tree {name}{n}" for n in numbers]
        assert [it.call_step is not None for it in seen] == [False, True]
        assert [step.text for step in run.steps if step.source == "user"] == ["Buy."]
    assert '"missing_steps":[2]' in (runs["b"].extra or "")
    assert "missing_steps" not in (runs["a"].extra or "")


def test_runs_of_equal_values(tmp_path):
    recipe = "unit: file\nreader: steps\nsteps:\n  group: task\n  runs: true\n  action: {text: a}\n"
    rows = [{"task": task, "a": str(n)} for n, task in enumerate("xxyx")]
    store = convert(tmp_path, recipe, *rows)
    assert [len(run.steps) for run in store] == [2, 1, 1]


def test_a_better_and_a_worse_answer_are_a_pair(tmp_path):
    recipe = "reader: columns\ncolumns: {user: [ask, more], chosen: good, rejected: bad}\n"
    store = convert(
        tmp_path, recipe, {"ask": "Why?", "more": "Really?", "good": "So.", "bad": {"value": "No."}}
    )
    main, worse = store
    assert [step.text for step in main.steps] == ["Why?\n\nReally?", "So."]
    assert (worse.parent_id, worse.parent_step) == (main.trajectory_id, 1)
    assert [step.text for step in worse.steps] == ["No."]
    (pair,) = store.scan("pairs").collect().to_dicts()
    assert (pair["chosen_id"], pair["rejected_id"]) == (main.trajectory_id, worse.trajectory_id)
    assert (pair["chosen_from"], pair["rejected_from"], pair["rejected_to"]) == (1, 1, 2)


def test_several_answers_are_branches(tmp_path):
    recipe = "reader: columns\ncolumns: {user: ask, completions: all}\n"
    store = convert(
        tmp_path, recipe, {"ask": "Why?", "all": ["a", "b", {"role": "ai", "content": "c"}]}
    )
    assert [run.steps[-1].text for run in store] == ["a", "b", "c"]
    assert [run.parent_step for run in store] == [None, 1, 1]


def test_turns_in_all_their_spellings(tmp_path):
    recipe = "reader: messages\nmessages: {path: talk, drop_nulls: true}\n"
    talk = [
        {"role": "developer", "content": "Be kind."},
        {"role": "User", "content": [{"type": "text", "text": "Tides?"}]},
        {"role": "AI", "content": "I look."},
        {"role": "ai", "content": "", "function_call": {
            "name": "f", "arguments": "{'a': None, 'b': 'it'}"}},
        {"role": "tool call", "content": {"name": "g", "arguments": {"c": None, "d": 1}}},
        {"role": "tool response", "content": {"ok": True}},
        {"role": "environment", "content": "12:00"},
        {"role": "agent", "content": None, "tool_calls": [
            {"id": "c9", "type": "function", "function": {"name": "h", "arguments": '{"x": 1}'}}]},
        {"role": "tool", "tool_call_id": "c9", "content": "done"},
        {"role": "stranger", "content": "hm"},
    ]  # fmt: skip
    (run,) = convert(tmp_path, recipe, {"talk": json.dumps(talk)})
    assert [step.source for step in run.steps] == [
        "system", "user", "agent", "agent", "environment"
    ]  # fmt: skip
    calls = [call for step in run.steps for call in step.calls]
    assert [(it.name, json.loads(it.arguments)) for it in calls] == [
        ("f", {"a": None, "b": "it"}), ("g", {"d": 1}), ("h", {"x": 1})
    ]  # fmt: skip
    assert calls[0].arguments_kind == "python_literal"
    assert re.search(r'"null_arguments":\["c"\]', calls[1].extra or "")
    answered = [(it.text, it.call) for step in run.steps for it in step.observations]
    assert answered == [('{"ok": true}', 0), ("12:00", 1), ("done", 0)]


def test_values_by_map_regex_and_format(tmp_path):
    recipe = """\
reader: columns
columns: {user: q, agent: a}
fields:
  success: {path: [no.such, state], map: {won: true}, otherwise: false}
  reward: {path: $last_text, regex: 'reward = (\\S+)'}
  source_id: {path: id, format: 'set_{}_{part.n}'}
  task_id: {path: $file, regex: '(\\w+)\\.jsonl'}
  attempt: tries
constants: {agent_name: a-bot, tags: [x]}
purpose: test
license: mit
drop:
- {path: state, equals: void, reason: nobody played}
- {path: q, regex: '^test', reason: a test row}
"""
    row = {
        "id": 4,
        "part": {"n": 2},
        "state": "lost",
        "q": "Go",
        "a": "x reward = False",
        "tries": 3,
    }
    store = convert(
        tmp_path,
        recipe,
        row,
        {**row, "state": "void"},
        {**row, "q": "test"},
        {**row, "tries": "3x"},
    )
    first, second = store
    assert (first.success, first.reward, first.source_id) == (False, 0.0, "set_4_2")
    assert (first.task_id, first.attempt, first.agent_name) == ("rows", 3, "a-bot")
    assert (first.tags, first.license) == (["x", "do-not-train"], "mit")
    assert second.attempt is None
    assert '"tries":"3x"' in (second.extra or "")
    assert store.manifest.reasons == {
        "skipped: nobody played - at $": 1, "skipped: a test row - at $": 1
    }  # fmt: skip
