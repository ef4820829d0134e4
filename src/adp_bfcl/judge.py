"""From an answer to a verdict: decoding, the check of the form, and the right checker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adp_bfcl.categories import is_relevance, language_of, wants_no_call
from adp_bfcl.decoding import Mode, attempts_call, decode, is_list_of_calls
from adp_bfcl.entries import BfclEntry
from adp_bfcl.fixed_matcher import match_fixed
from adp_bfcl.matcher import Answer, Function, match
from adp_bfcl.multi_turn import judge_multi_turn
from adp_bfcl.python_calls import DecodeError
from adp_bfcl.verdict import CheckerVerdict, Rules


def judge_answer(
    answer: Any,
    functions: Sequence[Function],
    answers: Sequence[Answer] | None,
    category: str,
    *,
    mode: Mode = "fc",
    underscored: bool | None = None,
    rules: Rules = "official",
    malformed: bool = False,
) -> CheckerVerdict:
    """Judge the answer to a single-turn entry.

    Args:
        answer: what the model answered, in the form of ``mode``.
        functions: documentation of the functions, with BFCL's types.
        answers: the possible answers; not used for the (ir)relevance categories.
        category: name of the category since v4, such as ``simple_python``.
        mode: ``fc``: a list of ``{name: arguments as JSON}`` or a text; ``prompt``: a text.
        underscored: whether the model saw ``_`` for ``.`` in the names of functions; None: in
            function-calling mode it did.
        rules: whose verdicts.
        malformed: whether the answer is known to be a call that could not be read.

    Returns:
        The verdict, with BFCL's error type.

    Raises:
        MissingExtraError: the text holds calls in Java or JavaScript, and tree-sitter is not
            installed.
    """
    if underscored is None:
        underscored = mode == "fc"
    language = language_of(category)
    try:
        calls: Any = decode(answer, mode, language)
    except DecodeError as error:
        if is_relevance(category):
            names = [str(function.get("name")) for function in functions]
            tried = malformed or attempts_call(answer, names)
            return _relevance("malformed" if tried else "abstained", category, rules, str(error))
        return CheckerVerdict(False, "ast_decoder:decoder_failed", str(error))
    if is_relevance(category):
        return _relevance(_state(calls), category, rules, "")
    if not is_list_of_calls(calls):
        return CheckerVerdict(
            False, "ast_decoder:decoder_wrong_output_format", "the answer is no list of calls"
        )
    check = match if rules == "official" else match_fixed
    return check(
        functions, calls, answers or (), category, language=language, underscored=underscored
    )


def judge_entry(
    entry: BfclEntry,
    result: Any,
    *,
    mode: Mode = "fc",
    rules: Rules = "official",
    malformed: bool = False,
) -> CheckerVerdict:
    """Judge what was answered to any entry.

    Args:
        entry: the entry.
        result: the answer as in a result file.
        mode: form of the answer.
        rules: whose verdicts.
        malformed: whether the answer is known to be a call that could not be read.

    Raises:
        BfclMissingError: it has several turns, and bfcl-eval is not installed.
        MissingExtraError: see `judge_answer`.
    """
    if entry.multi_turn:
        return judge_multi_turn(entry, result, mode=mode, rules=rules)
    return judge_answer(
        result,
        entry.functions,
        entry.answers,
        entry.category,
        mode=mode,
        rules=rules,
        malformed=malformed,
    )


def _state(calls: Any) -> str:
    if not is_list_of_calls(calls):
        return "malformed"
    return "called" if calls else "abstained"


def _relevance(state: str, category: str, rules: Rules, detail: str) -> CheckerVerdict:
    """A verdict about calling or not calling.

    The official rules take what cannot be read for *not called*; the fixed rules take it for
    neither: it is wrong in both categories.
    """
    if wants_no_call(category):
        right = state != "called" if rules == "official" else state == "abstained"
        reason = "irrelevance_error:decoder_success"
    else:
        right, reason = state == "called", "relevance_error:decoder_failed"
    if not right and state == "malformed" and rules == "fixed":
        reason = "relevance_error:malformed_call"
    return CheckerVerdict(right, None if right else reason, detail, relevance=state)
