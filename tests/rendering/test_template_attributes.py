"""Quick lookups give what the sandbox gives, and refuse what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

jinja2 = pytest.importorskip("jinja2")

from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: E402
from jinja2.utils import Namespace  # noqa: E402

from adp.rendering.template_attributes import quick_attributes  # noqa: E402


class Odd(dict[str, int]):
    """A kind of dict with an attribute of its own."""

    role = "odd"


VALUES: list[Any] = [
    {"role": "user", "keys": 1, "update": 2, "__class__": 3, "format": 4},
    {},
    Odd(role=1, other=2),
    "text",
    ["a", "b"],
    Namespace(role="x", format="y", deep={"a": 1}, kept="{}".format, _hidden=1),
    lambda: None,
    "text".upper,
    3,
    None,
    (number for number in range(2)),
]
NAMES = [
    *(
        "role",
        "other",
        "missing",
        "keys",
        "items",
        "update",
        "clear",
        "pop",
        "__class__",
        "_hidden",
    ),
    *(
        "__init__",
        "__globals__",
        "format",
        "format_map",
        "upper",
        "split",
        "append",
        "deep",
        "kept",
    ),
    *("gi_frame", "mro", "func_code", "__func__", ""),
]


def environments() -> tuple[Any, Any]:
    """The sandbox as it is, and one with quick lookups."""
    quick = ImmutableSandboxedEnvironment()
    quick_attributes(quick)
    return ImmutableSandboxedEnvironment(), quick


def outcome(environment: Any, value: Any, name: str) -> Any:
    """What a lookup gives, in a form to compare."""
    result = environment.getattr(value, name)
    if isinstance(result, jinja2.Undefined):
        try:
            str(result + "")
        except Exception as error:
            return type(result), type(error), str(error)
    if callable(result):
        return type(result), getattr(result, "__name__", ""), getattr(result, "__self__", None)
    return type(result), result


@pytest.mark.parametrize("name", NAMES)
def test_lookups_are_those_of_the_sandbox(name: str) -> None:
    plain, quick = environments()
    for value in VALUES:
        assert outcome(quick, value, name) == outcome(plain, value, name), value


@pytest.mark.parametrize(
    "source",
    [
        "{% for m in ms %}{{ loop.index }}{{ loop.last }}{{ loop.cycle('a', 'b') }}"
        "{{ loop.previtem.role }}{{ m.role }}{{ m.missing }}{{ m.role.upper() }}{% endfor %}",
        "{% set ns = namespace(n=0, s='') %}{% for m in ms %}{% set ns.n = ns.n + loop.index0 %}"
        "{% set ns.s = ns.s ~ m.role %}{% endfor %}{{ ns.n }}{{ ns.s.split('s') | join }}",
        "{{ 'a{}'.format(1) }}{{ '{0.role}'.format(ms) }}",
        "{{ '{0.__class__}'.format(ms) }}",
        "{{ ms.append(1) }}",
        "{{ ms[0].update({}) }}",
        "{{ ms.__class__.__mro__ }}",
        "{% set ns = namespace(f='{0.__class__}'.format) %}{{ ns.f(ms) }}",
    ],
)
def test_templates_come_out_alike(source: str) -> None:
    messages = [{"role": "system"}, {"role": "user"}]
    texts = []
    for environment in environments():
        try:
            texts.append(environment.from_string(source).render(ms=messages))
        except jinja2.TemplateError as error:
            texts.append((type(error), str(error)))
    assert texts[0] == texts[1]


def test_plain_values_do_not_go_through_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        ImmutableSandboxedEnvironment, "getattr", lambda *_: pytest.fail("the sandbox was asked")
    )
    quick = environments()[1]
    assert quick.getattr({"role": "user"}, "role") == "user"
    assert quick.getattr("text", "upper")() == "TEXT"
    assert quick.getattr(Namespace(n=1), "n") == 1
    with pytest.raises(pytest.fail.Exception):
        quick.getattr([], "append")
