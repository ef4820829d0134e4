"""The user's installed package bfcl-eval: where it is, and what to say when it is not there."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

from adp_schema.errors import AdpError, MissingExtraError


class BfclMissingError(MissingExtraError):
    """Something needs bfcl-eval (or mpmath, which it imports) and it is not installed.

    It is no extra of ours: with its dependencies it is 153 packages with old pins, of which only
    mpmath is needed here.

    Args:
        what: what needs it, the beginning of a sentence.
        other: what else the user can do.
        package: the package that is missing.
    """

    def __init__(self, what: str, other: str = "", package: str = "bfcl-eval") -> None:
        option = "--no-deps " if package == "bfcl-eval" else ""
        AdpError.__init__(
            self, f"{what}; run: pip install {option}{package}{', or ' if other else ''}{other}"
        )


def installed_folder() -> Path | None:
    """The folder of questions in the installed bfcl-eval; None when it is not installed.

    The package is found, not imported: its configuration module creates folders.
    """
    try:
        spec = importlib.util.find_spec("bfcl_eval")
    except (ImportError, ValueError):
        return None
    for place in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(place) / "data"
        if folder.is_dir():
            return folder
    return None


def module(name: str, what: str, other: str = "") -> Any:
    """Import a module of bfcl-eval; only those that import nothing but their own data.

    Args:
        name: name below ``bfcl_eval``.
        what: what needs it, the beginning of a sentence.
        other: what else the user can do.

    Raises:
        BfclMissingError: it, or a package that it imports, is not installed.
    """
    try:
        return importlib.import_module(f"bfcl_eval.{name}")
    except ImportError as error:
        package = error.name or "bfcl-eval"
        known = package.startswith("bfcl_eval")
        raise BfclMissingError(what, other, "bfcl-eval" if known else package) from error
