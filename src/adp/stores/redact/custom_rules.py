"""Rules of the caller: a small file of names and regular expressions."""

from __future__ import annotations

import re
from typing import Any

import polars as pl
import yaml

from adp.core.input_files import read_text
from adp.stores.redact.options import GROUPS, kinds_by_group
from adp.stores.redact.rules import Rule, placeholder
from adp_schema.errors import InputError, UsageError

LONGEST = 2_000
"""Characters of a regular expression."""

MOST = 500
"""Rules of a file."""

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")


def read_rules(path: str) -> tuple[Rule, ...]:
    """Read rules from a file.

    The file is YAML or JSON: a list of objects with ``name``, ``regex`` and, if you like,
    ``what``. The expressions are those of the Rust crate regex (no look-around, no back
    references), which takes linear time whatever the expression and the text.

    Args:
        path: the file.

    Raises:
        InputError: the file cannot be read.
        UsageError: what it says is no list of rules.
    """
    try:
        value = yaml.safe_load(read_text(path))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, RecursionError) as error:
        first = str(error).partition("\n")[0]
        raise InputError(f"{path} is neither YAML nor JSON ({first})") from None
    if not isinstance(value, list) or not value or len(value) > MOST:
        raise UsageError(
            f"{path} must hold a list of 1 to {MOST} rules, each with 'name' and 'regex'"
        )
    rules = tuple(
        _rule(result, f"rule {number} of {path}") for number, result in enumerate(value, 1)
    )
    names = [rule.kind for rule in rules]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"{path} names '{twice}' twice; give each rule its own name")
    return rules


def _rule(entry: Any, where: str) -> Rule:
    if not isinstance(entry, dict) or not {"name", "regex"} <= entry.keys() <= {
        "name", "regex", "what",
    }:  # fmt: skip
        raise UsageError(f"{where} must be an object with 'name', 'regex' and perhaps 'what'")
    name, pattern = entry["name"], entry["regex"]
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise UsageError(
            f"{where} needs a name of small letters, digits and hyphens, at most 40 characters"
        )
    taken = {kind for kinds in kinds_by_group().values() for kind in kinds} | {*GROUPS, "all"}
    if name in taken:
        raise UsageError(
            f"{where} is called '{name}', which is a kind already; choose another name"
        )
    if not isinstance(pattern, str) or not 0 < len(pattern) <= LONGEST:
        raise UsageError(f"{where} needs a regex of 1 to {LONGEST:,} characters")
    _try(pattern, where)
    what = str(entry.get("what") or "A rule of your own")
    return Rule(name, "given", what, pattern, gate=pattern)


def _try(pattern: str, where: str) -> None:
    """Check that the engine takes a pattern, and that it does not match nothing at all."""
    try:
        empty = pl.Series([""]).str.contains(pattern)[0]
    except pl.exceptions.PolarsError as error:
        raise UsageError(
            f"{where} has a regex that is not valid: {_reason(str(error))}: {pattern}"
        ) from None
    if empty:
        raise UsageError(f"{where} has a regex that matches an empty text; make it say more")
    if pl.Series([placeholder("x")]).str.contains(f"^(?:{pattern})$")[0]:
        raise UsageError(f"{where} has a regex that matches anything; make it say more")


def _reason(text: str) -> str:
    """Why the engine refuses a pattern, without what Polars says around it."""
    match = re.search(r"^error: (.+)$", text, re.MULTILINE)
    reason = match[1] if match else text.split("\n", 1)[0].removeprefix("regex error: ")
    if "look-around" in reason or "backreferences" in reason:
        return "look-around and back references are not supported"
    return reason.rstrip(".")
