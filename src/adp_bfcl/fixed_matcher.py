"""The matcher without the known faults of the official one. docs/bfcl.md lists the differences."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from adp_bfcl.categories import Language
from adp_bfcl.java_values import JAVA_TYPES, java_value
from adp_bfcl.javascript_values import JAVASCRIPT_TYPES, javascript_value
from adp_bfcl.matcher import (
    CRASHES,
    PYTHON_TYPES,
    Answer,
    Call,
    Function,
    described,
    name_of,
)
from adp_bfcl.verdict import CHECKER_ERROR, RIGHT, CheckerVerdict, Mismatch

_DATE = re.compile(r"(?<!\d)(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_BETWEEN_DIGITS = re.compile(r"(?<=\d) ?([./\-_*^]) ?(?=\d)")
_APART = re.compile(r"(?<=\d)[ ,]+(?=\d)")
_SIGN = re.compile(r"(?<![\w)])-(?=\.?\d)")
_MARKS = re.compile(r"[ ,./\-_*^]")
_KEPT = {mark: chr(0xE000 + number) for number, mark in enumerate(" ,./-_*^")}


def match_fixed(
    functions: Sequence[Function],
    calls: Sequence[Call],
    answers: Sequence[Answer],
    category: str,
    *,
    language: Language = Language.PYTHON,
    underscored: bool = False,
) -> CheckerVerdict:
    """Compare calls with the possible answers, without the official checker's known faults.

    Args:
        functions: documentation of the functions, with BFCL's types.
        calls: the decoded calls, each ``{name: {parameter: value}}``.
        answers: one ``{name: {parameter: [allowed, ...]}}`` for each expected call.
        category: name of the category.
        language: whose types are used.
        underscored: whether the model saw ``_`` for ``.`` in the names of functions.

    Returns:
        The verdict, with the official error types.
    """

    def fault(call: Call, answer: Answer) -> Mismatch | None:
        function = described(list(functions), name_of(answer)) or (
            functions[0] if len(functions) == 1 else None
        )
        try:
            _check_call(function, call, answer, language, underscored)
        except Mismatch as mismatch:
            return mismatch
        return None

    try:
        _dispatch(calls, answers, category, fault)
    except Mismatch as mismatch:
        return mismatch.verdict()
    except (*CRASHES, RecursionError) as error:
        return CheckerVerdict(False, CHECKER_ERROR, f"{type(error).__name__}: {error}")
    return RIGHT


def _dispatch(
    calls: Sequence[Call],
    answers: Sequence[Answer],
    category: str,
    fault: Callable[[Call, Answer], Mismatch | None],
) -> None:
    checker = "parallel_function_checker_no_order"
    if "parallel" not in category:
        kind = "multiple" if "multiple" in category else "simple"
        checker = f"{kind}_function_checker"
    if len(calls) != len(answers):
        raise Mismatch(f"{checker}:wrong_count", f"{len(calls)} calls; {len(answers)} expected")
    faults = [[fault(call, answer) for call in calls] for answer in answers]
    if "parallel" not in category:
        if faults and faults[0][0] is not None:
            raise faults[0][0]
        return
    left = unmatched([[reason is None for reason in row] for row in faults])
    if left is not None:
        reasons = "; ".join(str(reason) for reason in faults[left])
        raise Mismatch(f"{checker}:cannot_find_match", f"no call for answer {left}: {reasons}")


def unmatched(fits: Sequence[Sequence[bool]]) -> int | None:
    """A row that is left over when as many rows as can be get a column of their own.

    Augmenting paths (Kuhn, 1955). None: every row has one.

    Args:
        fits: for each row, which columns fit.
    """
    owner: dict[int, int] = {}

    def place(row: int, seen: set[int]) -> bool:
        for column, good in enumerate(fits[row]):
            if good and column not in seen:
                seen.add(column)
                if column not in owner or place(owner[column], seen):
                    owner[column] = row
                    return True
        return False

    return next((row for row in range(len(fits)) if not place(row, set())), None)


def _check_call(
    function: Function | None,
    call: Call,
    answer: Answer,
    language: Language,
    underscored: bool,
) -> None:
    name, allowed = next(iter(answer.items()))
    if underscored:
        name = name.replace(".", "_")
    if name not in call:
        raise Mismatch(
            "simple_function_checker:wrong_func_name", f"'{name}' is expected, not {list(call)}"
        )
    given = call[name]
    parameters = (function or {}).get("parameters") or {}
    known = parameters.get("properties") or {}
    for parameter, options in allowed.items():
        # An explicit null says as much as leaving the parameter out.
        if given.get(parameter) is None and "" not in options and None not in options:
            required = parameter in (parameters.get("required") or ())
            reason = "missing_required" if required else "missing_optional"
            raise Mismatch(f"simple_function_checker:{reason}", f"'{parameter}' is missing")
    for parameter, value in given.items():
        if parameter not in allowed:
            raise Mismatch("simple_function_checker:unexpected_param", f"'{parameter}'")
        if value is None and ("" in allowed[parameter] or None in allowed[parameter]):
            continue
        _check_value(parameter, value, known.get(parameter) or {}, allowed[parameter], language)


def _check_value(
    parameter: str,
    value: Any,
    documented: Mapping[str, Any],
    allowed: Sequence[Any],
    language: Language,
) -> None:
    value, wanted = _read(value, documented, language)
    # Two entries allow no value at all where they mean the empty list.
    options = [item for item in allowed if item != "" or wanted in (str, None)] if allowed else [[]]
    if any(same(value, option) for option in options):
        return
    if wanted is not None and not _is_a(value, wanted):
        error = "type_error:simple"
    elif not _items_fit(value, documented, language):
        error = "type_error:nested"
    else:
        kinds: dict[type, str] = {str: "string", list: "list/tuple", dict: "dict_value"}
        error = f"value_error:{kinds.get(type(value), 'others')}"
    raise Mismatch(error, f"'{parameter}' is {value!r}; allowed: {allowed!r}")


def _read(value: Any, documented: Mapping[str, Any], language: Language) -> tuple[Any, type | None]:
    declared = str(documented.get("type") or "any")
    if isinstance(value, tuple):
        value = list(value)
    if language is Language.PYTHON:
        return value, PYTHON_TYPES.get(declared) if declared != "any" else None
    types = JAVA_TYPES if language is Language.JAVA else JAVASCRIPT_TYPES
    if isinstance(value, str) and declared in types:
        convert = java_value if language is Language.JAVA else javascript_value
        items = (documented.get("items") or {}).get("type")
        value = convert(value, declared, items)
    return value, types.get(declared) if declared != "any" else None


def _is_a(value: Any, wanted: type) -> bool:
    if isinstance(value, bool) or wanted is bool:
        return isinstance(value, bool) and wanted is bool
    if wanted is float:
        return isinstance(value, int | float)
    if wanted is int:
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return isinstance(value, wanted)


def _items_fit(value: Any, documented: Mapping[str, Any], language: Language) -> bool:
    items = documented.get("items")
    if not isinstance(value, list) or not isinstance(items, Mapping):
        return True
    for item in value:
        child, wanted = _read(item, items, language)
        if wanted is not None and not _is_a(child, wanted):
            return False
        if not _items_fit(child, items, language):
            return False
    return True


def same(value: Any, option: Any) -> bool:
    """Whether a value is what an answer allows.

    A dictionary in an answer holds a list of allowed values for each key, at every depth; the text
    "" among them means that the key may be missing.
    """
    if isinstance(value, bool) or isinstance(option, bool):
        return value is option
    if isinstance(value, int | float) and isinstance(option, int | float):
        return value == option or math.isclose(value, option, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(value, str) and isinstance(option, str):
        return normal(value) == normal(option)
    if isinstance(value, list | tuple) and isinstance(option, list | tuple):
        return len(value) == len(option) and all(map(same, value, option))
    if isinstance(value, Mapping) and isinstance(option, Mapping):
        return _same_dict(value, option)
    return value is None and option is None


def _same_dict(value: Mapping[str, Any], option: Mapping[str, Any]) -> bool:
    if any(key not in option for key in value):
        return False
    for key, allowed in option.items():
        options = allowed if isinstance(allowed, list) else [allowed]
        if key not in value:
            if "" not in options:
                return False
        elif not any(same(value[key], item) for item in options) and not same(value[key], allowed):
            return False
    return True


def normal(text: str) -> str:
    """A text without case, spaces and marks, in which numbers stay what they are.

    The official checker drops ``, . / - _ * ^`` and spaces everywhere, so that 1/2 is 12 and -5 is
    5. Here they stay between digits and a minus stays before a number; a comma between thousands
    goes, and a date may be written with ``-``, ``/`` or ``.``.
    """
    text = _DATE.sub(r"\1-\2-\3", text.casefold().replace("'", '"'))
    text = _THOUSANDS.sub("", text)
    text = _BETWEEN_DIGITS.sub(lambda item: _KEPT[item[1]], text)
    text = _APART.sub(_KEPT[" "], text)
    text = _SIGN.sub(_KEPT["-"], text)
    return _MARKS.sub("", text)
