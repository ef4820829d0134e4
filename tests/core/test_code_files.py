"""Code of the user's own, by its place."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint

import pytest

from adp.core.code_files import load_code
from adp.core.registry import Registry
from adp_schema.errors import InputError, UsageError


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    (tmp_path / "own_helper_of_test.py").write_text("ANSWER = 42\n")
    (tmp_path / "mine.py").write_text("from own_helper_of_test import ANSWER\nclass Shop: ...\n")
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
    (tmp_path / "leaves.py").write_text("import sys\nsys.exit(0)\n")
    package = tmp_path / "own_package_of_test"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "inner.py").write_text("WORD = 'inner'\n")
    return tmp_path


def test_a_file_and_a_module(here):
    result, file = load_code("mine.py:Shop")
    assert (result.__name__, file) == ("Shop", (here / "mine.py").resolve())
    assert load_code(f"{here}/mine.py:Shop")[0] is result
    assert load_code("mine.py:ANSWER")[0] == 42
    assert load_code("own_package_of_test.inner:WORD") == ("inner", None)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("none.py:Shop", InputError, "there is no file none.py"),
        ("mine.py:Shops", UsageError, "unknown name in mine.py 'Shops'; did you mean Shop"),
        ("broken.py:X", UsageError, "broken.py cannot be imported: ModuleNotFoundError: No module"),
        ("leaves.py:X", UsageError, "leaves.py cannot be imported: SystemExit"),
        ("own_package_of_test.nothing:X", UsageError, "cannot be imported: ModuleNotFound"),
        ("shop:Shop", UsageError, "shop cannot be imported: ModuleNotFound"),
        ("shop.:Shop", UsageError, "neither FILE.py:NAME nor"),
    ],
)
def test_what_is_wrong_is_one_sentence(here, text, error, message):
    with pytest.raises(error, match=message):
        load_code(text)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nothing_of_this_name:KIND", "ModuleNotFoundError"),
        ("json:KIND", "unknown name in json 'KIND'"),
    ],
)
def test_an_entry_point_that_is_wrong_is_no_bug_of_this_package(monkeypatch, target, message):
    entries = [EntryPoint("shop", target, "adp.shops")]
    monkeypatch.setattr("adp.core.registry.entry_points", lambda group: entries)
    with pytest.raises(UsageError, match=message) as caught:
        Registry("shop", "adp.shops", {}).get("shop")
    assert "adp.shops" in str(caught.value)


@pytest.mark.parametrize(
    ("registry", "kind"),
    [
        ("adp.eval.scorer:SCORERS", "scorer"),
        ("adp.eval.suite:SUITES", "suite"),
        ("adp.curation.registry:OPS", "op"),
        ("adp.converters.registry:formats", "format"),
        ("adp.trainers.export.registry:exporters", "exporter"),
    ],
)
def test_every_registry_takes_a_file_and_says_what_is_missing(registry, kind, tmp_path):
    from adp.core.code_files import attribute_of, data_names_no_code

    (tmp_path / "mine.py").write_text("THING = object()\n", encoding="utf-8")
    name = f"{tmp_path / 'mine.py'}:THING"
    with pytest.raises(UsageError, match=rf"is no {kind}: it has no "):
        attribute_of(registry).get(name)
    with data_names_no_code(), pytest.raises(UsageError, match="data must not"):
        attribute_of(registry).get(name)


@pytest.mark.parametrize("registry", ["adp.eval.scorer:SCORERS", "adp.converters.registry:formats"])
def test_a_file_without_a_name_is_told_how_to_name_what_is_in_it(registry, here):
    from adp.core.code_files import attribute_of

    with pytest.raises(UsageError, match=r"names a file and no \w+ in it; write mine\.py:NAME"):
        attribute_of(registry).get("mine.py")
