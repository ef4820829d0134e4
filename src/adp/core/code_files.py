"""Code of the user's own, named as ``FILE.py:NAME`` or ``package.module:NAME``.

Only what the user writes on the command line, in a suite or in an entry point is loaded like this;
nothing in data names code.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from adp_schema.errors import AdpError, InputError, UsageError, unknown_name

CODE_NAME = re.compile(r"(?P<place>[^=]+\.py|[A-Za-z_]\w*(?:\.\w+)+):(?P<name>[A-Za-z_]\w*)")
"""A place and a name; behind the colon of a setting there is an equals sign."""

_MODULE_NAME = re.compile(r"(?P<place>[A-Za-z_]\w*):(?P<name>[A-Za-z_]\w*)")
"""A module in no package, where nothing else can be meant."""


_in_data: ContextVar[bool] = ContextVar("in_data", default=False)
_no_code: ContextVar[str] = ContextVar("no_code", default="")


@contextmanager
def data_names_no_code() -> Iterator[None]:
    """Refuse names of code in this block, because what is looked up was read in data."""
    token = _in_data.set(True)
    try:
        with no_code("data must not; name it in the call instead"):
            yield
    finally:
        _in_data.reset(token)


@contextmanager
def no_code(why: str) -> Iterator[None]:
    """Refuse names of code in this block.

    Args:
        why: the end of the sentence that says so.
    """
    token = _no_code.set(why)
    try:
        yield
    finally:
        _no_code.reset(token)


def refuse_in_data(text: str) -> None:
    """Refuse a name that leads to a file, where what is looked up was read in data.

    Raises:
        UsageError: it was.
    """
    if _in_data.get():
        raise UsageError(f"'{text}' names a file, and data must not; name it in the call instead")


def load_code(text: str) -> tuple[Any, Path | None]:
    """Load an object that is named by its place.

    Args:
        text: ``FILE.py:NAME`` or ``package.module:NAME``. Modules are looked for in the present
            folder, too.

    Returns:
        The object, and the file that it is defined in, where it was named by a file.

    Raises:
        InputError: there is no such file.
        UsageError: the text has another form, the code cannot be imported, or has no such name.
    """
    if why := _no_code.get():
        raise UsageError(f"'{text}' names code, and {why}")
    parts = CODE_NAME.fullmatch(text) or _MODULE_NAME.fullmatch(text)
    if parts is None:
        raise UsageError(f"'{text}' is neither FILE.py:NAME nor package.module:NAME")
    place, name = parts["place"], parts["name"]
    if not place.endswith(".py"):
        _look_in(str(Path.cwd()))
        return attribute_of(text), None
    path = Path(place).resolve()
    if not path.is_file():
        raise InputError(f"there is no file {place}")
    state = path.stat()
    return _attribute(_module_of(path, (state.st_mtime_ns, state.st_size)), name, place), path


def attribute_of(target: str) -> Any:
    """What ``module:NAME`` is.

    Raises:
        UsageError: the module cannot be imported, or has no such name.
    """
    module, _, name = target.partition(":")
    return _attribute(_imported(module, lambda: importlib.import_module(module)), name, module)


def unknown_item(kind: str, name: str, known: Iterable[str]) -> str:
    """Return the sentence for a name that is not known, where code can be named, too.

    Args:
        kind: what the name names, such as ``"format"``.
        name: the name that was not found.
        known: all names that exist.
    """
    if name.endswith(".py"):
        return f"'{name}' names a file and no {kind} in it; write {name}:NAME"
    return unknown_name(kind, name, known)


@cache
def _module_of(path: Path, state: tuple[int, int]) -> ModuleType:
    """The module of a file, imported once while it is unchanged; it can import its neighbours."""
    _look_in(str(path.parent))
    # In no package, and by no name that another module could have.
    name = f"adp_code_{len(sys.modules)}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    loader = spec.loader
    assert loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        _imported(path.name, lambda: loader.exec_module(module))
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _look_in(folder: str) -> None:
    # Last, so that nothing that is installed is hidden.
    if folder not in sys.path:
        sys.path.append(folder)


def _imported(place: str, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except AdpError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(f"{place} cannot be imported: {type(error).__name__}: {error}") from error


def _attribute(module: Any, name: str, place: str) -> Any:
    try:
        return getattr(module, name)
    except AttributeError:
        known = [known_name for known_name in vars(module) if not known_name.startswith("_")]
        raise UsageError(unknown_name(f"name in {place}", name, known)) from None
