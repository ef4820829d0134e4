"""Recipes of the user's: which files they take, and what is said about wrong ones."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

import adp
from adp.converters.datasets import catalogue
from adp.converters.datasets.recipe_file import check_recipe, json_schema
from adp_schema.errors import AdpError, AmbiguousFormatError, InputError, RecipeError, UsageError

GOOD = """\
name: mine
title: Mine
rows: seen
match:
  keys: [who, turns]
reader: messages
messages:
  path: turns
"""
ROW = {"who": "me", "turns": [{"role": "user", "content": "hi"}, {"role": "ai", "content": "ho"}]}


def write(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def rows_file(folder, *rows):
    return write(folder, "rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows or (ROW,)))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("reader: messages", "reder: messages"), "mine.yaml, line 1: reader is missing"),
        (("  path: turns", "  paths: turns"),
         "mine.yaml, line 8: messages.paths is not known; did you mean path?"),
        (("path: turns", "path: 'a[x'"),
         "mine.yaml, line 8: messages.path.0: 'a[x' is no path; write a.b[0].c"),
        (("keys: [who, turns]", "values: {who: '('}"),
         "mine.yaml, line 5: match.0.values.who: '(' is no regular expression: missing ), "
         "unterminated subpattern at position 0"),
        (("name: mine", "name: My Set"),
         "mine.yaml, line 1: name: 'My Set' is no name; use small letters, digits and underscores"),
        (("rows: seen", "rows: often"),
         "mine.yaml, line 3: rows: input should be 'seen', 'fixture' or 'described', not 'often'"),
        (("rows: seen", "rows: seen\nfields: {sucess: ok}"),
         "mine.yaml, line 4: fields: sucess is no column of a trajectory"),
        (("rows: seen", "rows: seen\nfields: {success: meta.answer}"),
         "mine.yaml, line 4: fields.success: a reference answer is no outcome"),
        (("rows: seen", "rows: seen\nrows: seen"),
         "mine.yaml: line 4: the key 'rows' is given twice"),
        (("reader: messages", "reader: [messages"), "mine.yaml is not valid YAML at line 7"),
        (("reader: messages", "reader: nonsense"),
         "mine.yaml, line 6: reader: unknown reader 'nonsense'; known: acp"),
        (("reader: messages", "reader: messages\nhook: os.system"),
         "mine.yaml, line 7: hook: unknown hook 'os.system'; known: "),
        (("reader: messages", "reader: messages\ndialect: klingon"),
         "mine.yaml, line 7: dialect: unknown dialect 'klingon'; known: "),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_sentence_with_its_line(change, sentence, tmp_path):
    recipe = write(tmp_path, "mine.yaml", GOOD.replace(*change))
    with pytest.raises(UsageError) as fault:
        adp.convert(rows_file(tmp_path), str(tmp_path / "store"), recipes=[recipe])
    assert str(fault.value).startswith(sentence)
    assert "\n" not in str(fault.value)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("text", ["", "- a\n", "just words\n"])
def test_what_is_no_recipe(text):
    with pytest.raises(RecipeError, match="is no recipe"):
        check_recipe(text, "x.yaml")


def test_a_recipe_that_is_not_there(tmp_path):
    with pytest.raises(AdpError, match=r"cannot read the recipe .*none\.yaml: No such file"):
        adp.convert(
            rows_file(tmp_path), str(tmp_path / "store"), recipes=[str(tmp_path / "none.yaml")]
        )


def test_a_recipe_takes_the_files_that_it_fits_and_no_others(tmp_path):
    recipe = write(tmp_path, "mine.yaml", GOOD)
    chat = write(tmp_path, "chat.jsonl", json.dumps({"messages": ROW["turns"][:1]}) + "\n")
    store = adp.convert([rows_file(tmp_path), chat], str(tmp_path / "s"), recipes=[recipe])
    formats = {run.source_file: run.source_format for run in store}
    assert formats == {"rows.jsonl": "mine", "chat.jsonl": "openai_chat"}
    assert store.manifest.lineage[0].options["recipes"] == ["mine"]
    assert str(tmp_path) not in store.manifest.text()


def test_a_recipe_without_match_takes_any_file(tmp_path):
    recipe = write(tmp_path, "mine.yaml", GOOD.replace("match:\n  keys: [who, turns]\n", ""))
    store = adp.convert(
        rows_file(tmp_path, {"turns": ROW["turns"]}), str(tmp_path / "s"), recipes=[recipe]
    )
    assert [run.source_format for run in store] == ["mine"]


def test_two_recipes_that_fit_are_an_error_that_names_both(tmp_path):
    first = write(tmp_path, "a.yaml", GOOD)
    second = write(tmp_path, "b.yaml", GOOD.replace("name: mine", "name: other"))
    with pytest.raises(InputError, match=r"a\.yaml and .*b\.yaml fit"):
        adp.convert(rows_file(tmp_path), str(tmp_path / "s"), recipes=[first, second])


def test_a_recipe_of_the_user_goes_before_those_of_the_package(tmp_path):
    row = {"system": "s", "chat": "USER: hi ASSISTANT: ho"}
    text = GOOD.replace("[who, turns]", "[system, chat]").replace(
        "reader: messages\nmessages:\n  path: turns", "reader: columns\ncolumns: {user: chat}"
    )
    recipe = write(tmp_path, "mine.yaml", text)
    store = adp.convert(rows_file(tmp_path, row), str(tmp_path / "s"), recipes=[recipe])
    assert [run.source_format for run in store] == ["mine"]


def test_shipped_recipes_that_fit_equally_are_named(monkeypatch, tmp_path):
    (signature,) = [it for it in catalogue.signatures() if it.name == "xlam_function_calling_60k"]
    twin = catalogue.RecipeSignature("its_twin", signature.tests)
    monkeypatch.setattr(catalogue, "_with_keys", lambda keys: (signature, twin))
    row = {"id": 1, "query": "q", "answers": "[]", "tools": "[]"}
    with pytest.raises(AmbiguousFormatError, match="xlam_function_calling_60k and its_twin"):
        adp.convert(rows_file(tmp_path, row), str(tmp_path / "s"))


def test_a_format_that_is_named_goes_before_recipes(tmp_path):
    row = {"id": 1, "query": "q", "answers": "[]", "tools": "[]"}
    store = adp.convert(rows_file(tmp_path, row), str(tmp_path / "s"), format="xlam")
    assert [run.license for run in store] == [None]


def test_a_data_set_may_be_named_and_a_slip_is_mended(tmp_path):
    rows = rows_file(tmp_path, {"id": 1, "query": "q", "answers": "[]", "tools": "[]"})
    store = adp.convert(rows, str(tmp_path / "a"), format="xlam_function_calling_60k")
    assert [run.license for run in store] == ["cc-by-4.0"]
    with pytest.raises(UsageError, match=r"did you mean xlam_function_calling_60k\?"):
        adp.convert(rows, str(tmp_path / "b"), format="xlam_function_calling")


def test_data_do_not_name_files(tmp_path):
    from adp.converters.registry import formats
    from adp.core.code_files import data_names_no_code

    recipe = write(tmp_path, "mine.yaml", GOOD)
    assert formats.get(f"recipe:{recipe}").name == "mine"
    with data_names_no_code(), pytest.raises(UsageError, match="data must not"):
        formats.get(f"recipe:{recipe}")


def test_the_json_schema_takes_every_recipe_of_the_package():
    import yaml

    schema = Draft202012Validator(json_schema())
    for name, file in catalogue._files().items():
        errors = [it.message for it in schema.iter_errors(yaml.safe_load(file.read_text("utf-8")))]
        assert errors == [], name
    assert list(schema.iter_errors({"name": "x"}))


def test_an_earlier_store_holds_what_a_recipe_read(tmp_path):
    recipe = write(tmp_path, "mine.yaml", GOOD)
    rows = rows_file(tmp_path)
    adp.convert(rows, str(tmp_path / "a"), recipes=[recipe])
    with pytest.raises(AdpError, match="nothing new"):
        adp.convert(rows, str(tmp_path / "b"), recipes=[recipe], since=str(tmp_path / "a"))
