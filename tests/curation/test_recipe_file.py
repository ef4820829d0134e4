"""Reading a recipe: what is wrong is said in one sentence with its place."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import jsonschema
import pytest
import yaml

from adp.curation.recipe import json_schema
from adp.curation.recipe_file import read_recipe
from adp_schema.errors import RecipeError

GOOD = """\
recipe: 1
seed: 5
inputs: {runs: runs}
ops:
  - annotate: {expressions: {n: rows}}
  - annotate: {expressions: {m: n}}
    as: second
    where: "n > 1"
"""


def write(folder: Path, text: str, name: str = "recipe.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_it_reads_what_stands_there(tmp_path):
    recipe = read_recipe(write(tmp_path, GOOD))
    assert recipe.seed == 5
    assert recipe.inputs["runs"].store == str(tmp_path / "runs")
    assert [(s.name, s.op, s.where) for s in recipe.ops] == [
        ("annotate", "annotate", None),
        ("second", "annotate", "n > 1"),
    ]
    assert recipe.ops[1].column("m") == "second_m"


def test_the_resolved_recipe_is_a_recipe_with_the_same_hash(tmp_path):
    recipe = read_recipe(write(tmp_path, GOOD))
    again = read_recipe(write(tmp_path, yaml.safe_dump(recipe.plain()), "again.yaml"))
    assert again.hash() == recipe.hash()


EACH_OP = """\
recipe: 1
inputs: {runs: runs, buffer: {store: b, reserve: true}}
ops:
  - filter: {sql: "rows > 1"}
  - filter: {preset: sage, min_reward: 0.2}
    as: sage
  - coreset: {method: top, by: reward, size: 5}
  - dedup_exact: {}
  - mix: {compat: sage, weights: {a: 1}, total: 5}
  - mix: {method: balanced}
    as: again
  - mask: {policy: [errors]}
  - pairs: {rule: m3_step}
  - replay: {}
  - split: {}
"""


def test_every_option_may_be_spelled_out(tmp_path):
    """The recipe of a record does that, and has to mean the same as the one that was written."""
    recipe = read_recipe(write(tmp_path, EACH_OP))
    again = read_recipe(write(tmp_path, yaml.safe_dump(recipe.plain()), "again.yaml"))
    assert again.hash() == recipe.hash()
    for first, second in zip(recipe.ops, again.ops, strict=True):
        assert first.options == second.options
        assert first.options.given() == second.options.given()


def test_the_hash_does_not_depend_on_where_the_inputs_lie(tmp_path):
    first = read_recipe(write(tmp_path, GOOD))
    (tmp_path / "other").mkdir()
    second = read_recipe(write(tmp_path / "other", GOOD))
    assert first.hash() == second.hash()
    assert read_recipe(write(tmp_path, GOOD), ["seed=6"]).hash() != first.hash()


WRONG = {
    "recipe: 1\n": "inputs is missing",
    "[1, 2]": "is no recipe",
    "recipe: 1\ninputs: {a: b}\nsede: 3": "sede is not known; did you mean seed?",
    "recipe: 1\ninputs: {a: b}\nseed: '3'": "seed: input should be a valid integer, not '3'",
    "recipe: 1\ninputs: {a: b}\nseed: 1.5": "seed: input should be a valid integer, not 1.5",
    "recipe: 1\ninputs: {a: b}\nseed: -1": "seed: input should be greater than or equal to 0",
    "recipe: 2\ninputs: {a: b}": "recipe: input should be 1, not 2",
    "recipe: 1\ninputs: {}": "inputs: dictionary should have at least 1 item",
    "recipe: 1\ninputs: {a: {path: b}}": "inputs.a.store is missing",
    "recipe: 1\ninputs: {a: no}": "inputs: a takes the path of a store, not False",
    "recipe: 1\ninputs: {'a b': c}": "the name 'a b' has to be letters",
    "recipe: 1\ninputs: {a: b}\nops: [{anotate: {}}]": "ops[0]: unknown op 'anotate'; did you",
    "recipe: 1\ninputs: {a: b}\nops: [{annotate: {sqll: x}}]": "sqll is not known; did you mean",
    "recipe: 1\ninputs: {a: b}\nops: [{annotate: {}}]": "give exactly one of sql, expressions",
    "recipe: 1\ninputs: {a: b}\nops: [{mask: {policy: errors}}]": "policy: input should be a list",
    "recipe: 1\ninputs: {a: b}\nops: [3]": "ops[0]: an op is written as NAME: {options}",
    "recipe: 1\ninputs: {a: b}\nops: [{annotate: {}, python: {}}]": "not annotate and python",
    "recipe: 1\ninputs: {a: b}\nops: [{annotate: {sql: x}, as: A}]": "as: A has to be lower-case",
    "recipe: 1\ninputs: {a: b}\noutputs: {curation: {}}": "cannot be called curation",
    "recipe: 1\ninputs: {a: b}\noutputs: {x: {take: all}}": "outputs.x.take: input should be",
    "recipe: 1\ninputs: {a: b}\noutputs: {x: {take: pairs, where: y}}": "takes no where",
    "recipe: 1\nrecipe: 1\n": "line 2: the key 'recipe' is given twice",
    "recipe: [": "is not valid YAML at line 1",
    "recipe: " + "[" * 5_000: "stand more than 64 deep in one another",
    "recipe: " + "[" * 70 + "]" * 70: "stand more than 64 deep in one another",
    "recipe: &a [*a]": "stand more than 64 deep in one another",
    "a: &a [1,1,1,1,1,1,1,1]\n"
    + "".join(f"{b}: &{b} [{(f'*{a},' * 8)[:-1]}]\n" for a, b in pairwise("abcdefghijklm")): (
        "it holds more than 100,000 values"
    ),
    "recipe: 1\nseed: " + "9" * 5_000: "holds a value that cannot be read: Exceeds the limit",
    "recipe: 1\nname: 2020-99-01": "holds a value that cannot be read: month must be in 1..12",
    'recipe: 1\nname: "\\ud800"': "a text holds half a character",
    "recipe: 1\ninclude: &a [*a, *a]": "stand more than 64 deep in one another",
    'recipe: 1\ninclude: "a\\0"': "cannot read the recipe",
    "recipe: 1\ninputs: {a: b}\nops: [{dedup_exact: false}]": "input should be a valid dictionary",
    "recipe: 1\ninputs: {a: b}\noutputs: {'': {}, steps: {}}": "one of several outputs has no name",
    "include: recipe.yaml": "includes itself",
    "include: nothing.yaml": "cannot read the recipe",
    "include: 3": "include takes the name of a file",
    "!!python/object/apply:os.system [ls]": "is not valid YAML",
}


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_said_with_its_place(text, tmp_path):
    with pytest.raises(RecipeError) as error:
        read_recipe(write(tmp_path, text))
    output = str(error.value)
    assert WRONG[text] in output
    assert all(line.startswith("- ") for line in output.splitlines()[1:])


def test_an_included_recipe_comes_first(tmp_path):
    (tmp_path / "base").mkdir()
    write(tmp_path / "base", GOOD)
    top = "include: base/recipe.yaml\nseed: 9\ninputs: {more: more}\nops: [{annotate: {sql: x}}]"
    recipe = read_recipe(write(tmp_path, top))
    assert recipe.seed == 9
    # Each path is relative to the file that it stands in.
    assert {k: v.store for k, v in recipe.inputs.items()} == {
        "runs": str(tmp_path / "base" / "runs"),
        "more": str(tmp_path / "more"),
    }
    assert [s.name for s in recipe.ops] == ["annotate", "second", "annotate"]


@pytest.mark.parametrize(
    ("setting", "look", "value"),
    [
        ("seed=7", lambda r: r.seed, 7),
        ("inputs.runs=there", lambda r: r.inputs["runs"].store, "there"),
        ("inputs.runs.reserve=true", lambda r: r.inputs["runs"].reserve, True),
        ("inputs.b=c", lambda r: list(r.inputs), ["runs", "b"]),
        ("ops.second.expressions.m=n+1", lambda r: r.ops[1].options.expressions, {"m": "n+1"}),
        ("ops.0.annotate.key=seq", lambda r: r.ops[0].options.key, "seq"),
        ("ops.second={expressions: {q: n}}", lambda r: r.ops[1].options.expressions, {"q": "n"}),
        ("ops.second={expressions: {q: n}}", lambda r: r.ops[1].where, "n > 1"),
        ("ops.0={annotate: {sql: x}}", lambda r: r.ops[0].options.sql, "x"),
        ("ops.1.where=m > 2", lambda r: r.ops[1].where, "m > 2"),
        ("outputs.x.where=n > 1", lambda r: r.outputs["x"].where, "n > 1"),
        ("name=abc", lambda r: r.name, "abc"),
    ],
)
def test_set_changes_one_place(setting, look, value, tmp_path):
    assert look(read_recipe(write(tmp_path, GOOD), [setting])) == value


def test_keys_that_are_merged_in_do_not_count_as_given_twice(tmp_path):
    text = (
        "inputs: {a: b}\nops:\n- dedup_exact: &x {of: task}\n- dedup_exact: {<<: *x, drop: false}\n"
    )
    recipe = read_recipe(write(tmp_path, f"recipe: 1\n{text}  as: other\n"))
    assert recipe.ops[1].options.model_dump() == {
        **recipe.ops[0].options.model_dump(),
        "drop": False,
    }


def test_files_that_include_one_another_often_are_refused(tmp_path):
    for number in range(12):
        write(tmp_path, f"include: [{number + 1}.yaml, {number + 1}.yaml]", f"{number}.yaml")
    write(tmp_path, GOOD, "12.yaml")
    with pytest.raises(RecipeError, match="include 100 at most"):
        read_recipe(tmp_path / "0.yaml")


def test_a_stage_that_is_no_op_cannot_be_set(tmp_path):
    with pytest.raises(RecipeError, match="stage 0 is no op with options"):
        read_recipe(write(tmp_path, "recipe: 1\nops: [5]"), ["ops.0.x=1"])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("seed", "--set takes path=value"),
        ("ops.annotate.key=seq", "2 stages are called annotate; use its number"),
        ("ops.seconds.key=seq", "unknown stage 'seconds'; did you mean second?"),
        ("ops.9.key=seq", "unknown stage"),
        ("seed.x=1", "nothing to set x in"),
        ("seed=[", "--set seed is not valid YAML at line 1"),
        ("ops.².key=seq", "unknown stage '²'"),
        ("ops.1000000000000000000000.key=seq", "unknown stage '1000"),
        ("ops.second.expresions={}", "expresions is not known; did you mean expressions?"),
    ],
)
def test_a_wrong_set_is_said(setting, message, tmp_path):
    with pytest.raises(RecipeError, match=r".") as error:
        read_recipe(write(tmp_path, GOOD), [setting])
    assert message in str(error.value)


def test_the_json_schema_takes_what_is_read_and_refuses_the_rest(tmp_path):
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    assert not list(validator.iter_errors(yaml.safe_load(GOOD)))
    for text in WRONG:
        if any(word in text for word in ("sede", "anotate", "sqll", "recipe: 2", "path: b")):
            assert list(validator.iter_errors(yaml.safe_load(text))), text
