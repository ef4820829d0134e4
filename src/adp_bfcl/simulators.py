"""The simulated services of BFCL's multi-turn entries, from the user's own bfcl-eval.

A call is parsed with `ast`; its name is looked up among the public methods of the services and its
arguments are literals or further such calls. No text is run, whatever it says.
"""

from __future__ import annotations

import ast
import copy
import decimal
import importlib
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from adp_bfcl.installed_bfcl import module
from adp_bfcl.python_calls import DecodeError, fold, parse
from adp_schema.errors import UsageError

MODULES = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TwitterAPI": "posting_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}
"""The module of each class, which is also the name of the file with its documentation."""

STATELESS = ("MathAPI",)
_NAME = re.compile(r"\b([a-zA-Z_]\w*)\s*(?=\()")
_MOST_PRECISE = 10_000
_TOO_MANY_DIGITS = (
    "Exceeds the limit (4300 digits) for integer string conversion; "
    "use sys.set_int_max_str_digits() to increase the limit"
)


def service(name: str) -> type:
    """The class of a simulated service.

    Raises:
        BfclMissingError: bfcl-eval is not installed.
        UsageError: there is no such class.
    """
    if name not in MODULES:
        raise UsageError(f"BFCL has no simulated service '{name}'; known: {', '.join(MODULES)}")
    path = f"eval_checker.multi_turn_eval.func_source_code.{MODULES[name]}"
    attribute: type = getattr(
        module(path, "BFCL's multi-turn entries run its simulated services"), name
    )
    return attribute


class Services:
    """The services of one entry, in one state.

    Args:
        classes: names of the classes.
        config: initial state by class.
        long_context: whether the services answer at length.
        owner: who calls, ``model`` or ``gold``; see ``marked``.
        marked: whether names of methods before a parenthesis are marked inside texts, too, as the
            official program does with a search and replace over the source of the call. A text
            like "call ls() now" then differs from the expected one.

    Raises:
        BfclMissingError: bfcl-eval is not installed.
        UsageError: a class is unknown, or its state cannot be loaded.
    """

    def __init__(
        self,
        classes: Sequence[str],
        config: Mapping[str, Any],
        *,
        long_context: bool = False,
        owner: str = "model",
        marked: bool = False,
    ) -> None:
        self.instances: dict[str, Any] = {}
        self._methods: dict[str, Callable[..., Any]] = {}
        self._marks: dict[str, str] = {}
        self._marked = marked
        for name in classes:
            instance = service(name)()
            if name not in STATELESS:
                _load(instance, name, config.get(name) or {}, long_context)
            self.instances[name] = instance
            for method, bound in inspect.getmembers(instance, predicate=inspect.ismethod):
                if not method.startswith("_"):
                    self._methods[method] = bound
                    self._marks[method] = f"{owner}_{name}_instance"

    def run(self, calls: Sequence[str]) -> list[str]:
        """Carry out calls in their order.

        Args:
            calls: source of the calls, such as ``ls(a=True)``.

        Returns:
            What each one brought, as text; an error begins with ``Error during execution:``.
        """
        return [self._single(call) for call in calls]

    def state(self) -> dict[str, dict[str, Any]]:
        """Public attributes of each service."""
        return {name: public(instance) for name, instance in self.instances.items()}

    def known(self, name: str) -> bool:
        """Whether a service has a public method of that name."""
        return name in self._methods

    def _single(self, source: str) -> str:
        try:
            if self._marked:
                source = _NAME.sub(self._mark, source)
            return _text(self._value(parse(source.lstrip(" \t"))))
        except Exception as error:
            return f"Error during execution: {error}"

    def _mark(self, match: re.Match[str]) -> str:
        name = match[1]
        return f"{self._marks[name]}.{name}" if name in self._marks else name

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.List):
            return [self._value(item) for item in node.elts]
        if isinstance(node, ast.Tuple):
            return tuple(self._value(item) for item in node.elts)
        if isinstance(node, ast.Set):
            return {self._value(item) for item in node.elts}
        if isinstance(node, ast.Dict):
            return {
                self._value(key): self._value(value)
                for key, value in zip(node.keys, node.values, strict=True)
                if key is not None
            }
        if isinstance(node, ast.Name):
            raise NameError(f"name '{node.id}' is not defined")
        return fold(node)

    def _call(self, node: ast.Call) -> Any:
        method = self._method(node.func)
        names = [keyword.arg for keyword in node.keywords]
        if None in names or any(isinstance(value, ast.Starred) for value in node.args):
            raise DecodeError("arguments are unpacked")
        if len(set(names)) < len(names):
            raise DecodeError("keyword argument repeated")
        arguments = [self._value(value) for value in node.args]
        options = {str(keyword.arg): self._value(keyword.value) for keyword in node.keywords}
        _bounded(method, arguments, options)
        return method(*arguments, **options)

    def _method(self, node: ast.expr) -> Callable[..., Any]:
        attr = None
        if not self._marked and isinstance(node, ast.Name):
            attr = node.id
        elif self._marked and isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else None
            attr = node.attr if owner and self._marks.get(node.attr) == owner else None
        if attr in self._methods:
            return self._methods[str(attr)]
        child = node
        while isinstance(child, ast.Attribute):
            child = child.value
        name = child.id if isinstance(child, ast.Name) else ast.unparse(node)
        raise NameError(f"name '{name}' is not defined")


def _load(instance: Any, name: str, config: Mapping[str, Any], long_context: bool) -> None:
    try:
        instance._load_scenario(copy.deepcopy(config), long_context=long_context)
    except Exception as error:
        raise UsageError(f"the initial state of {name} cannot be loaded: {error}") from error


def _bounded(
    method: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any]
) -> None:
    """Refuse numbers with which MathAPI would compute for hours.

    Raises:
        ValueError: a number is too large; the text is that of Python where the result could not
            have been written anyway.
    """
    owner = type(getattr(method, "__self__", None)).__name__
    if owner != "MathAPI":
        return
    try:
        given = inspect.signature(method).bind(*arguments, **options).arguments
    except TypeError:
        return
    base, exponent = given.get("base"), given.get("exponent")
    bits = max(base.bit_length() - 1, 0) if isinstance(base, int) else 0
    if isinstance(exponent, int) and bits * exponent > 4300 * 3.33:
        raise ValueError(_TOO_MANY_DIGITS)
    for name in ("precision", "decimal_places"):
        value = given.get(name)
        if isinstance(value, int) and abs(value) > _MOST_PRECISE:
            raise ValueError(f"{name} must be at most {_MOST_PRECISE}")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if type(value) is dict:
        try:
            return json.dumps(value)
        except (TypeError, ValueError):
            return str(value)
    return str(value)


def public(instance: Any) -> dict[str, Any]:
    """The public attributes of an object: its state, as BFCL compares it."""
    return {name: value for name, value in vars(instance).items() if not name.startswith("_")}


@contextmanager
def clean_numbers() -> Iterator[None]:
    """Let MathAPI begin with the usual precision, and give the caller's back afterwards.

    MathAPI sets the precision of `decimal` and `mpmath` for the whole process.
    """
    mpmath: Any = None
    with suppress(ImportError):
        mpmath = importlib.import_module("mpmath")
    before = mpmath.mp.dps if mpmath is not None else 0
    with decimal.localcontext(decimal.Context(prec=28)):
        if mpmath is not None:
            mpmath.mp.dps = 15
        try:
            yield
        finally:
            if mpmath is not None:
                mpmath.mp.dps = before
