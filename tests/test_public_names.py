"""The public names of both packages."""

import importlib

import pytest

import adp
import adp_schema


@pytest.mark.parametrize("package", [adp, adp_schema], ids=lambda package: package.__name__)
class TestPublicNames:
    def test_all_can_be_imported(self, package):
        missing = [name for name in package.__all__ if not hasattr(package, name)]
        assert not missing

    def test_star_import_works(self, package):
        names: dict[str, object] = {}
        exec(f"from {package.__name__} import *", names)
        assert set(package.__all__) <= set(names)

    def test_classes_and_functions_have_docstrings(self, package):
        bare = [
            name
            for name in package.__all__
            if callable(value := getattr(package, name)) and not (value.__doc__ or "").strip()
        ]
        assert not bare

    def test_are_sorted_and_listed_once(self, package):
        def rank(name):  # constants, classes, the rest, as ruff sorts them
            return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)

        assert package.__all__ == sorted(set(package.__all__), key=rank)

    def test_dir_lists_them(self, package):
        assert set(package.__all__) <= set(dir(package))

    def test_unknown_name_is_an_attribute_error(self, package):
        with pytest.raises(AttributeError, match="no_such_name"):
            package.no_such_name  # noqa: B018


def test_every_error_is_public():
    errors = importlib.import_module("adp_schema.errors")
    classes = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.AdpError)
    }
    assert classes <= set(adp_schema.__all__)


def test_adp_gives_the_classes_of_the_schema():
    for name in set(adp.__all__) & set(adp_schema.__all__):
        assert getattr(adp, name) is getattr(adp_schema, name)


def test_convert_open_query_export(tmp_path):
    source = tmp_path / "chat.jsonl"
    line = b'{"id": "a", "messages": [{"role": "user", "content": "hi"}]}\n'
    source.write_bytes(line)
    store = adp.convert(source, tmp_path / "store")
    assert store.manifest.counts.used == 1
    for given in (store, tmp_path / "store", str(tmp_path / "store")):
        assert adp.query(given, "SELECT text FROM steps").to_pylist() == [{"text": "hi"}]
    assert adp.open(tmp_path / "store").get("chat/a").steps[0].text == "hi"
    report = adp.export(store, "openai_chat", tmp_path / "out")
    assert (report.files, report.records, report.losses) == (1, 1, {})
    assert (tmp_path / "out" / "chat.jsonl").read_bytes() == line


def test_grow_and_seal(tmp_path):
    with adp.grow(tmp_path / "store", seal_count=1) as growing:
        assert growing.append(adp.Trajectory(dataset="d", source_id="a"))
    assert adp.open(tmp_path / "store").journal is not None
    store = adp.seal(tmp_path / "store")
    assert store.journal is None
    assert [trajectory.trajectory_id for trajectory in store.trajectories()] == ["d/a"]


def test_dir_shows_the_interface_alone():
    assert dir(adp) == adp.__all__
