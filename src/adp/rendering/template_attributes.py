"""Attributes in chat templates, looked up quickly where the sandbox of jinja2 allows them anyway.

A template asks for ``message.role`` some thousand times a conversation, and the sandbox looks each
time whether the object is one of a dozen kinds. For plain dicts, texts, loops and namespaces the
answer follows from type and name alone. Everything else goes the way of the sandbox.
"""

from __future__ import annotations

from typing import Any

_OF_DICT = frozenset(dir(dict))
_OF_TEXT = frozenset(name for name in dir(str) if name[0] != "_") - {"format", "format_map"}
_OF_LOOP = frozenset({"index", "index0", "first", "last", "length", "revindex", "revindex0"})
_PLAIN = frozenset({str, int, float, bool, list, dict, type(None)})


def quick_attributes(environment: Any) -> None:
    """Let a sandboxed environment of jinja2 look up attributes of plain values quickly.

    The values that come back, and what is refused, are those of the environment itself.

    Args:
        environment: of a compiled template; it is changed.
    """
    from jinja2.runtime import LoopContext
    from jinja2.utils import Namespace

    if "getattr" in vars(environment):
        return  # compiled templates are kept, and so are their environments
    sandboxed, undefined = environment.getattr, environment.undefined

    def get(value: Any, name: str) -> Any:
        kind = type(value)
        if kind is dict:
            if name not in _OF_DICT:
                try:
                    return value[name]
                except KeyError:
                    return undefined(obj=value, name=name)
        elif kind is str:
            if name in _OF_TEXT:
                return getattr(value, name)
        elif kind is LoopContext:
            if name in _OF_LOOP:
                return getattr(value, name)
        elif isinstance(value, Namespace) and name[:1] != "_":
            # Of other kinds of values the sandbox has more to say, such as of `str.format`.
            held = getattr(value, name, value)
            if type(held) in _PLAIN:
                return held
        return sandboxed(value, name)

    environment.getattr = get
