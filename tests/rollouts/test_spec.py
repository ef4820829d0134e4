"""How environments, policies and scorers are named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.rollouts.environment import ENVIRONMENTS
from adp.rollouts.policy import POLICIES
from adp.rollouts.spec import load, read_spec, spec_text
from adp_schema.errors import InputError, UsageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("weather", ("weather", {})),
        ("weather:", ("weather", {})),
        ("toolworld:max_hops=2,failures=0.1", ("toolworld", {"max_hops": 2, "failures": 0.1})),
        ("a:x=[1, 2],y={b: c},z='p,q'", ("a", {"x": [1, 2], "y": {"b": "c"}, "z": "p,q"})),
        ("configured:file=tools.yaml", ("configured", {"file": "tools.yaml"})),
        ("configured:file=/a/b.yml", ("configured", {"file": "/a/b.yml"})),
        ("m:u=http://h:1/x", ("m", {"u": "http://h:1/x"})),
    ],
)
def test_a_name_with_settings(text, expected):
    assert read_spec(text) == expected


def test_a_file_with_a_name_and_settings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("my.yaml", "a:b=c.yaml".replace(":", "_"), "my.yml"):
        (tmp_path / name).write_text("name: weather\nworld: 3\n", encoding="utf-8")
        assert read_spec(name) == ("weather", {"world": 3})
        assert read_spec(str(tmp_path / name)) == ("weather", {"world": 3})
    (tmp_path / "no.yaml").write_text("world: 3\n", encoding="utf-8")
    with pytest.raises(UsageError, match="name:"):
        read_spec("no.yaml")
    with pytest.raises(InputError, match=r"nothing.yaml is not there"):
        read_spec("nothing.yaml")
    with pytest.raises(UsageError, match="key=value"):
        read_spec("weather:world")


@pytest.mark.parametrize(
    ("registry", "text", "message"),
    [
        (ENVIRONMENTS, "calculator:step=2", "unknown setting 'step'; did you mean steps"),
        (ENVIRONMENTS, "calculator:zzz=2", "unknown setting 'zzz'; known: .*steps"),
        (ENVIRONMENTS, "calculator:steps=many", "steps must be a whole number.*, not 'many'"),
        (POLICIES, "openai:model=m,api_key=sk-1", "api_key_env=NAME"),
    ],
)
def test_what_is_wrong_with_a_setting(registry, text, message):
    with pytest.raises(UsageError, match=message) as caught:
        load(registry, text)
    assert "Extra inputs" not in str(caught.value)
    assert "sk-1" not in str(caught.value)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z_]+", fullmatch=True).filter(lambda key: key != "name"),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.text(st.characters(categories=["L", "N", "P", "Zs"])),
            lambda child: (
                st.lists(child)
                | st.dictionaries(st.from_regex(r"[A-Za-z ,]+", fullmatch=True), child)
            ),
        ),
        max_size=3,
    )
)
def test_settings_on_one_line_are_read_as_they_were(settings):
    assert read_spec(spec_text({"name": "m3", **settings})) == ("m3", settings)
