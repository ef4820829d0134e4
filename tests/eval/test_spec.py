"""How environments, policies and scorers are named."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from adp.core.registry import Registry
from adp.eval.environment import ENVIRONMENTS, EnvironmentKind, Settings
from adp.eval.spec import load, read_spec
from adp_schema.errors import InputError, UsageError


class Mill(Settings):
    wheels: int = Field(default=1, ge=1)
    names: tuple[str, ...] = ()
    url: str | None = None


KIND = EnvironmentKind("mill", "A mill.", Mill, make=lambda settings: settings)
MILLS: Registry[EnvironmentKind] = Registry("environment", "none", {"mill": f"{__name__}:KIND"})


@pytest.fixture(autouse=True)
def _here(monkeypatch):
    monkeypatch.setattr(MILLS, "get", lambda name: {"mill": KIND}[name])


def test_a_name_with_settings():
    kind, settings = load(MILLS, "mill:wheels=3,names=[a, 'b,c'],url=http://h:8/v1?a=b")
    assert kind is KIND
    assert settings == Mill(wheels=3, names=("a", "b,c"), url="http://h:8/v1?a=b")
    assert load(MILLS, "mill", wheels=2)[1].wheels == 2


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("mill:wheels", "is not key=value"),
        ("mill:wheels=0", "wheels: Input should be greater"),
        ("mill:sails=4", "its settings: wheels, names, url"),
        ("none.yaml", "cannot be read"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(spec, said):
    with pytest.raises((UsageError, InputError), match=said):
        load(MILLS, spec)


def test_a_file(tmp_path):
    path = tmp_path / "mill.yaml"
    path.write_text("name: mill\nwheels: 5\n")
    assert load(MILLS, str(path))[1].wheels == 5
    path.write_text("wheels: 5\n")
    with pytest.raises(UsageError, match="needs a line 'name"):
        load(MILLS, str(path))


VALUES = st.one_of(
    st.integers(), st.booleans(), st.text("abc ,[]{}'\"=:", max_size=8), st.lists(st.integers())
)


@given(settings=st.dictionaries(st.text("abc", min_size=1, max_size=3), VALUES, max_size=4))
def test_what_is_written_as_json_comes_back(settings):

    text = "mill:" + ",".join(f"{key}={json.dumps(value)}" for key, value in settings.items())
    assert read_spec(text) == ("mill", settings)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(UsageError, match="toolworld"):
        ENVIRONMENTS.target("toolwrold")
