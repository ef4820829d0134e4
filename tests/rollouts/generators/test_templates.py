"""Sentences, values and paraphrases."""

import json

import pytest

from adp.rollouts.generators.templates import CANONICAL, REPLACEMENTS, read_templates
from adp_schema.errors import AdpError
from tests.rollouts.generators.made import calls_of, main_lines, make

TOOLS = """
tools:
  - {name: calculator, type: function, function: calculator, parameters:
      {type: object, properties: {expression: {type: string}}, required: [expression]}}
  - {name: weather, type: function, function: weather, parameters:
      {type: object, properties: {location: {type: string}}, required: [location]}}
"""


@pytest.fixture
def env(tmp_path):
    (tmp_path / "tools.yaml").write_text(TOOLS)
    return f"configured:file={tmp_path}/tools.yaml"


def test_ten_canonical_sentences_and_their_paraphrases(tmp_path, env):
    make(tmp_path / "made", "templates", env)
    groups = {}
    for run in main_lines(tmp_path / "made"):
        members = json.loads(run.extra)["generator"]
        group = groups.setdefault((members["stream"], members["canonical"]), {})
        group[members["paraphrase"]] = run
    assert len(groups) == 2 * CANONICAL
    changed = 0
    for group in groups.values():
        first = group.pop(0)
        assert len(group) <= 3
        for other in group.values():
            changed += 1
            assert calls_of(other)[0][:2] == calls_of(first)[0][:2]
            text = other.task.instruction.lower()
            assert any(new.lower() in text for _, new in REPLACEMENTS)
    assert changed > 10


def test_templates_of_ones_own(tmp_path, env):
    file = tmp_path / "mine.yaml"
    file.write_text(
        "templates: {weather: [{text: 'Sky over {location}!', answer: 'It is {temperature}.'}]}\n"
        "values: {weather: {location: [Blue Sky Town, Paris]}}\n"
        "paraphrases: [[Sky, Air]]\n"
    )
    make(tmp_path / "made", "templates", env, templates=file, tools=("weather",))
    runs = main_lines(tmp_path / "made")
    assert {run.task.instruction for run in runs} == {
        "Sky over Blue Sky Town!", "Air over Blue Sky Town!", "Sky over Paris!", "Air over Paris!",
    }  # fmt: skip
    assert all(run.final_answer.startswith("It is ") for run in runs)


@pytest.mark.parametrize(
    "text",
    ["[", "templates: 3", "templates: {weather: [{txt: a}]}", "templates: {weather: {a: b}}",
     "values: {weather: {location: Paris}}", "other: 1"],
)  # fmt: skip
def test_a_file_that_is_none(tmp_path, text):
    (tmp_path / "wrong.yaml").write_text(text)
    with pytest.raises(AdpError, match=r"wrong\.yaml"):
        read_templates(tmp_path / "wrong.yaml")


def test_a_parameter_that_is_not_there(tmp_path, env):
    (tmp_path / "mine.yaml").write_text("templates: {weather: ['In {city}?']}\n")
    with pytest.raises(AdpError, match="names city; its parameters: location"):
        make(tmp_path / "made", "templates", env, templates=tmp_path / "mine.yaml")
