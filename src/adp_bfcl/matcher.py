"""Does a list of calls fit the possible answers? The rules of BFCL's AST checker, written anew.

Verdicts and error types are those of bfcl-eval 2026.3.23, its faults included; docs/bfcl.md lists
them, and `adp_bfcl.fixed_matcher` is without them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from adp_bfcl.categories import Language
from adp_bfcl.java_values import JAVA_TYPES, java_value
from adp_bfcl.javascript_values import JAVASCRIPT_TYPES, javascript_value
from adp_bfcl.verdict import CHECKER_ERROR, RIGHT, CheckerVerdict, Mismatch

PYTHON_TYPES: Mapping[str, type] = {
    "string": str,
    "integer": int,
    "float": float,
    "boolean": bool,
    "array": list,
    "tuple": list,
    "dict": dict,
    "any": str,
}
"""The type that a value must have, by the type in the documentation of the function."""

CRASHES = (KeyError, TypeError, AttributeError, IndexError, ValueError, NotImplementedError)
"""What the official checker stops with when question and answer do not fit together."""

_IGNORED = str.maketrans("'", '"', " ,./-_*^")

Call = Mapping[str, Mapping[str, Any]]
Answer = Mapping[str, Mapping[str, Sequence[Any]]]
Function = Mapping[str, Any]


def match(
    functions: Sequence[Function],
    calls: Sequence[Call],
    answers: Sequence[Answer],
    category: str,
    *,
    language: Language = Language.PYTHON,
    underscored: bool = False,
) -> CheckerVerdict:
    """Compare calls with the possible answers, as the official checker does.

    Args:
        functions: documentation of the functions, with BFCL's types.
        calls: the decoded calls, each ``{name: {parameter: value}}``.
        answers: one ``{name: {parameter: [allowed, ...]}}`` for each expected call.
        category: name of the category; ``parallel`` or ``multiple`` in it choose the way.
        language: whose types are used.
        underscored: whether the model saw ``_`` for ``.`` in the names of functions.

    Returns:
        The verdict. Where the official checker stops with an exception, it is invalid with the
        error type ``checker_error``.
    """
    try:
        _dispatch(functions, calls, answers, category, language, underscored)
    except Mismatch as mismatch:
        return mismatch.verdict()
    except (*CRASHES, RecursionError) as error:
        return CheckerVerdict(False, CHECKER_ERROR, f"{type(error).__name__}: {error}")
    return RIGHT


def _dispatch(
    functions: Sequence[Function],
    calls: Sequence[Call],
    answers: Sequence[Answer],
    category: str,
    language: Language,
    underscored: bool,
) -> None:
    def single(function: Function, call: Call, answer: Answer) -> None:
        check_call(function, call, answer, language, underscored)

    if "parallel" in category:
        _in_any_order(functions, calls, answers, single)
    elif "multiple" in category:
        if len(calls) != len(answers):
            raise Mismatch("multiple_function_checker:wrong_count", _counts(calls, answers))
        single(described(functions, name_of(answers[0])), calls[0], answers[0])
    else:
        if len(calls) != 1:
            raise Mismatch("simple_function_checker:wrong_count", _counts(calls, answers))
        single(functions[0], calls[0], answers[0])


def _in_any_order(
    functions: Sequence[Function],
    calls: Sequence[Call],
    answers: Sequence[Answer],
    value: Callable[[Function, Call, Answer], None],
) -> None:
    """Each answer takes the first call that fits and is still free; nothing is taken back."""
    if len(calls) != len(answers):
        raise Mismatch("parallel_function_checker_no_order:wrong_count", _counts(calls, answers))
    free = list(range(len(calls)))
    for number, answer in enumerate(answers):
        function = described(functions, name_of(answer))
        reasons = []
        for index in free:
            try:
                value(function, calls[index], answer)
            except Mismatch as mismatch:
                reasons.append(f"call {index}: {mismatch.error_type} ({mismatch})")
            else:
                free.remove(index)
                break
        else:
            raise Mismatch(
                "parallel_function_checker_no_order:cannot_find_match",
                f"no call fits answer {number}: {'; '.join(reasons)}",
            )


def _counts(calls: Sequence[Call], answers: Sequence[Answer]) -> str:
    return f"{len(calls)} calls; {len(answers)} expected"


def name_of(answer: Answer) -> str:
    """Name of the function that an answer is about."""
    return next(iter(answer))


def described(functions: Any, name: str) -> Any:
    """Documentation of a function; None when there is none of that name."""
    if not isinstance(functions, list):
        return functions
    return next((function for function in functions if function["name"] == name), None)


def check_call(
    function: Function, call: Call, answer: Answer, language: Language, underscored: bool
) -> None:
    """Compare one call with one answer.

    Raises:
        Mismatch: it does not fit.
    """
    allowed = next(iter(answer.values()))
    name = function["name"]
    known, required = function["parameters"]["properties"], function["parameters"]["required"]
    if underscored:
        name = name.replace(".", "_")
    if name not in call:
        raise Mismatch(
            "simple_function_checker:wrong_func_name", f"'{name}' is expected, not {list(call)}"
        )
    given = call[name]
    for parameter in required:
        if parameter not in given:
            raise Mismatch("simple_function_checker:missing_required", f"'{parameter}' is missing")
    for parameter, value in given.items():
        if parameter not in known or parameter not in allowed:
            raise Mismatch("simple_function_checker:unexpected_param", f"'{parameter}'")
        _check_value(parameter, value, known[parameter], allowed[parameter], language)
    for parameter, options in allowed.items():
        if parameter not in given and "" not in options:
            raise Mismatch("simple_function_checker:missing_optional", f"'{parameter}' is missing")


def _check_value(
    parameter: str,
    value: Any,
    documented: Mapping[str, Any],
    allowed: Sequence[Any],
    language: Language,
) -> None:
    declared = documented["type"]
    value, wanted, child = _read(parameter, value, documented, language)
    if declared == "tuple" and type(value) is tuple:
        value = list(value)
    if language is Language.PYTHON and declared == "float" and type(value) is int:
        value = float(value)
    if not _check_type(parameter, value, allowed, wanted, child):
        if wanted is dict:
            return _check_dict(parameter, value, allowed)
        if wanted is list and child is dict:
            return _check_dicts(parameter, value, allowed)
        if wanted is str:
            return _check_text(parameter, value, allowed)
        if wanted is list:
            return _check_list(parameter, value, allowed)
    if value not in allowed:
        raise _wrong("value_error:others", parameter, value, allowed)
    return None


def _read(
    parameter: str, value: Any, documented: Mapping[str, Any], language: Language
) -> tuple[Any, type, type | None]:
    """The value, the type that it must have, and the type of what is in it."""
    declared = documented["type"]
    if language is Language.PYTHON:
        wanted = PYTHON_TYPES[declared]
        return value, wanted, PYTHON_TYPES[documented["items"]["type"]] if wanted is list else None
    types = JAVA_TYPES if language is Language.JAVA else JAVASCRIPT_TYPES
    convert = java_value if language is Language.JAVA else javascript_value
    wanted = types[declared]
    if type(value) is not str:
        suffix = "java" if language is Language.JAVA else "js"
        raise Mismatch(f"type_error:{suffix}", f"'{parameter}' must be a text, not {value!r}")
    if declared not in ("Array", "ArrayList", "array"):
        return convert(value, declared), wanted, None
    items = documented["items"]["type"]
    type_ = types[items]
    return convert(value, declared, items), wanted, type_


def _check_type(
    parameter: str, value: Any, allowed: Sequence[Any], wanted: type, child: type | None
) -> bool:
    """Check the type; True when the value is a variable, which must be equal to the letter.

    The answer has another type than the documentation where it names a variable.
    """
    hint = next((type(option) for option in allowed if option != ""), None)
    if type(value) is wanted:
        items: Any = value
        if child is None or any(_items_fit(parameter, items, option, child) for option in allowed):
            return hint is not None and hint is not wanted
        if type(value) is hint:
            raise _wrong("type_error:nested", parameter, value, allowed)
    elif hint is not None and type(value) is hint:
        return True
    raise Mismatch(
        "type_error:simple",
        f"'{parameter}' must be of type {wanted.__name__}, not {type(value).__name__}: {value!r}",
    )


def _items_fit(parameter: str, value: Sequence[Any], option: Any, child: type) -> bool:
    if type(option) is not list:
        return True
    try:
        for item in value:
            _check_type(parameter, item, option, child, None)
    except Mismatch:
        return False
    return True


def standard(value: Any) -> Any:
    """A text without case, spaces and the marks ``, . / - _ * ^``; anything else as it is."""
    return value.translate(_IGNORED).lower() if type(value) is str else value


def _standards(options: Any) -> list[Any]:
    return [standard(options[index]) for index in range(len(options))]


def _check_text(parameter: str, value: str, allowed: Sequence[Any]) -> None:
    texts = [option for option in allowed if type(option) is str]
    if standard(value) not in [standard(text) for text in texts]:
        raise _wrong("value_error:string", parameter, value, allowed)


def _check_list(parameter: str, value: Sequence[Any], allowed: Sequence[Any]) -> None:
    options = [_standards(option) for option in allowed]
    if [standard(item) for item in value] not in options:
        raise _wrong("value_error:list/tuple", parameter, value, allowed)


def _check_dict(parameter: str, value: Mapping[str, Any], allowed: Sequence[Any]) -> None:
    reason = "dict_checker:unclear"
    for option in allowed:
        if option == "":
            continue
        fault = _dict_fault(value, option)
        if fault is None:
            return
        reason = fault
    raise _wrong(reason, parameter, value, allowed)


def _dict_fault(value: Mapping[str, Any], option: Mapping[str, Any]) -> str | None:
    """Why a dictionary does not fit; keys inside it are not looked into."""
    reason = None
    for key, child in value.items():
        if key not in option:
            reason = "value_error:dict_key"
            break
        if standard(child) not in _standards(option[key]):
            reason = "value_error:dict_value"
            break
    for key, options in option.items():
        if key not in value and "" not in options:
            return "value_error:dict_key"
    return reason


def _check_dicts(parameter: str, value: Sequence[Any], allowed: Sequence[Any]) -> None:
    reason = "list_dict_checker:unclear"
    for option in allowed:
        if len(value) != len(option):
            reason = "value_error:list_dict_count"
            continue
        for index, item in enumerate(value):
            try:
                _check_dict(parameter, item, [option[index]])
            except Mismatch as mismatch:
                reason = mismatch.error_type
                break
        else:
            return
    raise _wrong(reason, parameter, value, allowed)


def _wrong(error_type: str, parameter: str, value: Any, allowed: Sequence[Any]) -> Mismatch:
    return Mismatch(error_type, f"'{parameter}' is {value!r}; allowed: {allowed!r}")
