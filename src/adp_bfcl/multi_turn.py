"""Judge the calls of a multi-turn entry by the state and the answers of the services.

The rules of BFCL's multi_turn_checker: after each turn in which something is to be done, there is
a call, the public state of each service is that of the expected calls, and everything that the
expected calls of the turn brought is among what the model's calls brought so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from adp_bfcl.decoding import Mode, sources
from adp_bfcl.entries import BfclEntry
from adp_bfcl.python_calls import DecodeError
from adp_bfcl.simulators import Services, clean_numbers, public
from adp_bfcl.verdict import CHECKER_ERROR, RIGHT, CheckerVerdict, Mismatch, Rules

Steps = Sequence[Sequence[Sequence[str]]]
"""Source of the calls: by turn, by step, in order."""


def judge_multi_turn(
    entry: BfclEntry, result: Any, *, mode: Mode = "fc", rules: Rules = "official"
) -> CheckerVerdict:
    """Judge the answers to a multi-turn entry.

    Args:
        entry: the entry.
        result: the answers by turn and step, each in the form of ``mode``, as in a result file.
        mode: ``fc`` or ``prompt``.
        rules: whose verdicts.

    Raises:
        BfclMissingError: bfcl-eval is not installed.
        UsageError: the entry names a service that there is not.
    """
    if not isinstance(result, list):
        return CheckerVerdict(False, "multi_turn:inference_error", "there is no list of turns")
    if len(result) != len(entry.turns_of_calls):
        text = f"{len(result)} turns; {len(entry.turns_of_calls)} expected"
        return CheckerVerdict(False, "multi_turn:force_terminated", text)
    strange = next((turn for turn in result if not isinstance(turn, Iterable)), entry)
    if strange is not entry:
        text = f"a turn is {strange!r}, which is no list of steps"
        return CheckerVerdict(False, CHECKER_ERROR, text)
    return check_multi_turn(entry, decoded_turns(result, mode), rules=rules)


def decoded_turns(result: Iterable[Iterable[Any]], mode: Mode) -> list[list[list[str]]]:
    """Source of the calls by turn and step; steps without calls that can be read are left out."""
    return [_decoded(turn, mode) for turn in result]


def _decoded(turn: Iterable[Any], mode: Mode) -> list[list[str]]:
    steps = []
    for answer in turn:
        try:
            calls = sources(answer, mode)
        except DecodeError:
            # What cannot be read is taken for talk, and the next step counts.
            continue
        if calls:
            steps.append(calls)
    return steps


def check_multi_turn(
    entry: BfclEntry, steps: Steps, *, rules: Rules = "official"
) -> CheckerVerdict:
    """Judge calls that are decoded already.

    Args:
        entry: the entry, with the expected calls.
        steps: the model's calls by turn and step.
        rules: ``official``; or ``fixed``: texts of the model are left as they are (see
            `adp_bfcl.simulators.Services`), and a turn in which nothing can be done must
            bring no call of a service.

    Raises:
        BfclMissingError: bfcl-eval is not installed.
        UsageError: the entry names a service that there is not.
    """
    with clean_numbers():
        try:
            _check(entry, steps, rules)
        except Mismatch as mismatch:
            return mismatch.verdict()
        except (AttributeError, IndexError, RecursionError) as error:
            return CheckerVerdict(False, CHECKER_ERROR, f"{type(error).__name__}: {error}")
    return RIGHT


def services_of(entry: BfclEntry, owner: str, *, marked: bool) -> Services:
    """The services of an entry in their initial state."""
    return Services(
        entry.classes,
        entry.config,
        long_context=entry.long_context,
        owner=owner,
        marked=marked,
    )


def _check(entry: BfclEntry, steps: Steps, rules: Rules) -> None:
    marked = rules == "official"
    model = services_of(entry, "model", marked=marked)
    gold = services_of(entry, "gold", marked=marked)
    so_far: list[str] = []
    for number, expected in enumerate(entry.turns_of_calls):
        turn = steps[number]
        for calls in turn:
            so_far += model.run(calls)
        wanted = gold.run(expected)
        if not expected:
            if rules == "fixed":
                _nothing_called(model, turn, number)
            continue
        if not turn or (len(turn) == 1 and not turn[0]):
            raise Mismatch("multi_turn:empty_turn_model_response", f"turn {number} has no call")
        _same_state(model, gold, number)
        _all_there(so_far, wanted, number)


def _nothing_called(model: Services, turn: Sequence[Sequence[str]], number: int) -> None:
    called = [
        call for calls in turn for call in calls if model.known(call.partition("(")[0].strip())
    ]
    if called:
        raise Mismatch(
            "multi_turn:irrelevance_error:decoder_success",
            f"turn {number} cannot be done, and {called[0][:200]} was called",
        )


def _same_state(model: Services, gold: Services, number: int) -> None:
    for name, expected in gold.instances.items():
        instance = model.instances[name]
        differing = [
            attribute
            for attribute, value in public(expected).items()
            if getattr(instance, attribute) != value
        ]
        if differing:
            raise Mismatch(
                "multi_turn:instance_state_mismatch",
                f"turn {number}: {name} differs in {', '.join(differing)}",
            )


def _all_there(so_far: Sequence[str], wanted: Sequence[str], number: int) -> None:
    left = list(so_far)
    missing = []
    for text in wanted:
        if text in left:
            left.remove(text)
        else:
            missing.append(text)
    if missing:
        raise Mismatch(
            "multi_turn:execution_response_mismatch",
            f"turn {number}: no call brought {missing[0][:200]}",
        )
