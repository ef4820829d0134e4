"""Compare what is made of the Agent Data Protocol's raw samples with its own standardized ones.

    python -m tools.adp_sets_table DATA [--write]

Run by `make adp-sets DATA=...`. DATA has a folder a data set, with ``sample_raw*.json`` and
``sample_std.json``. Each raw file is converted without options. Then each action of the protocol's
file, an API action or a code action, is looked for among the calls of the same run, by its name and
its arguments. What differs needs a reason of `REASONS`; what has none is a failure.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import adp
from adp_schema.model import Trajectory
from tools.markdown import table

PAGE = Path(__file__).parents[1] / "docs" / "adp-sets.md"
BEGIN, END = "<!-- table -->", "<!-- end of the table -->"

OTHER_RECORDS = frozenset({"openhands"})
"""Data sets whose two samples hold other records, so that only counts can be compared."""

REASONS = {
    "spaces": "the protocol's file lost spaces at the beginning or the end of a value",
    "number": "the protocol's file writes a number as a string",
    "tool": "code is here a call of the tool that the text names, with the code as its argument",
    "name": "the protocol has a name of its own for the action",
    "enter": "the protocol's file says 0 for every `press_enter_after`",
}

NAMES = {
    "navigate_back": "back", "navigate_home": "home", "long_press": "click",
    "close_tab": "tab_close",
}  # fmt: skip
"""Name of an action in the source -> its name in the protocol, where they differ."""

_SCROLLS = {"down": {"delta_x": 0, "delta_y": 500}, "up": {"delta_x": 0, "delta_y": -500}}
_TOOLS = {"bash": "command", "execute_bash": "command", "execute_ipython_cell": "code"}
_SERVER = re.compile(r"^[\w-]+-(?=\w+$)")

Action = tuple[str, Any]
"""Name or language, and arguments or code."""


@dataclass
class SetResult:
    """What came of a data set.

    Attributes:
        name: its folder.
        runs: trajectories.
        expected: actions of the protocol's file.
        calls: calls in the trajectories.
        observations: what came back.
        linked: those that answer a call.
        first: those that came before the first call of their run, which nothing can have asked for.
        equal: actions that are calls with the same name and arguments.
        reasons: reason -> actions that differ by it.
        missing: actions that no call is like, and why a difference has no reason.
    """

    name: str
    runs: int = 0
    expected: int = 0
    calls: int = 0
    observations: int = 0
    linked: int = 0
    first: int = 0
    equal: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    missing: list[str] = field(default_factory=list)


def compare_set(folder: Path) -> SetResult:
    """Convert the raw sample of a data set, and compare it with the standardized one."""
    raw = sorted(folder.glob("sample_raw*.json"))
    result = SetResult(folder.name)
    with tempfile.TemporaryDirectory() as scratch:
        runs = list(adp.convert([str(path) for path in raw], f"{scratch}/store"))
    result.runs = len(runs)
    for run in runs:
        _count(run, result)
    standard = json.loads((folder / "sample_std.json").read_text(encoding="utf-8"))
    expected = [list(actions_of(it)) for it in standard]
    result.expected = sum(map(len, expected))
    if folder.name not in OTHER_RECORDS:
        by_id: dict[str, list[Trajectory]] = {}
        for run in runs:
            for name in {run.source_id, run.task_id}:
                by_id.setdefault(name or "", []).append(run)
        for number, (record, actions) in enumerate(zip(standard, expected, strict=True)):
            known = by_id.get(record["id"])  # several runs may have one id: they are in order
            same = [known.pop(0)] if known else runs[number : number + 1]
            compare_run(actions, [call for it in same for call in calls_of(it)], result)
    return result


def _count(run: Trajectory, result: SetResult) -> None:
    called = False
    seen = list(run.early_observations)
    result.first += len(seen)
    for step in run.steps:
        result.calls += len(step.calls)
        called = called or bool(step.calls)
        seen += step.observations
        result.first += 0 if called else len(step.observations)
    result.observations += len(seen)
    result.linked += sum(it.call_step is not None for it in seen)


def actions_of(record: dict[str, Any]) -> Iterator[Action]:
    """The structured actions of a trajectory of the protocol's first version."""
    for item in record["content"]:
        if item["class_"] == "api_action":
            yield item["function"], {key: _unquoted(it) for key, it in item["kwargs"].items()}
        elif item["class_"] == "code_action":
            yield item["language"], item["content"]


def _unquoted(value: Any) -> Any:
    """A string that the protocol's file quotes, because it is pasted into a call in Python."""
    if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def calls_of(run: Trajectory) -> Iterator[Action]:
    """The calls of a trajectory."""
    for step in run.steps:
        for call in step.calls:
            if call.kind == "code":
                yield call.language or "", call.arguments_raw or ""
            else:
                yield call.name or "", call.json_value("arguments") or {}


def compare_run(actions: list[Action], calls: list[Action], result: SetResult) -> None:
    """Find each action among the calls of a run, in order."""
    wanted, there = [_key(it) for it in actions], [_key(it) for it in calls]
    matched: set[int] = set()
    for block in SequenceMatcher(None, wanted, there, autojunk=False).get_matching_blocks():
        for offset in range(block.size):
            action, call = actions[block.a + offset], calls[block.b + offset]
            matched.add(block.a + offset)
            reasons = list(differences(action, call))
            result.equal += not reasons
            result.reasons.update(reasons)
    left = (actions[it] for it in range(len(actions)) if it not in matched)
    result.missing += [json.dumps(action, sort_keys=True)[:200] for action in left]


def _key(action: Action) -> str:
    """An action without what `REASONS` explain."""
    name, arguments = action
    if name in _TOOLS and isinstance(arguments, dict) and set(arguments) == {_TOOLS[name]}:
        arguments = arguments[_TOOLS[name]]
    if isinstance(arguments, dict):
        name, arguments = _in_protocol(name, arguments)
        plain = {
            key: value.strip() if isinstance(value, str) else str(value)
            for key, value in arguments.items()
            if key != "press_enter_after"
        }
        return json.dumps([_SERVER.sub("", name), plain], sort_keys=True)
    language = {"execute_bash": "bash", "execute_ipython_cell": "python"}.get(name, name)
    return json.dumps([language, str(arguments).strip()])


def _in_protocol(name: str, arguments: dict[str, Any]) -> Action:
    """An action of a browser or a phone as the protocol calls it."""
    if name == "press" and set(arguments) == {"key_comb"}:
        return "keyboard_press", {"key": arguments["key_comb"]}
    if name == "scroll" and arguments.get("direction") in _SCROLLS and len(arguments) == 1:
        return name, _SCROLLS[arguments["direction"]]
    return NAMES.get(name, name), arguments


def differences(action: Action, call: Action) -> Iterator[str]:
    """The reasons why a call does not say the same as the action that it is."""
    if action == call:
        return
    (name, expected), (written, given) = action, call
    if isinstance(given, dict) and not isinstance(expected, dict):
        yield "tool"
        given = given[_TOOLS[written]]
    elif name != written or set(expected) != set(given):
        yield "name"
        return
    if not isinstance(given, dict):
        if expected != given:
            yield "spaces"
        return
    kinds = set()
    for key, value in expected.items():
        other = given[key]
        if value != other:
            kinds.add("enter" if key == "press_enter_after" else
                      "spaces" if isinstance(other, str) else "number")  # fmt: skip
    yield from sorted(kinds)


def compare_all(data: Path) -> list[SetResult]:
    """The results of all data sets that have both samples."""
    folders = sorted(path.parent for path in data.glob("*/sample_std.json"))
    return [compare_set(folder) for folder in folders if list(folder.glob("sample_raw*.json"))]


def lines(results: list[SetResult]) -> list[str]:
    """The table, as lines of Markdown."""
    heads = ("set", "runs", "actions in the protocol's file", "calls here", "equal",
             "different, and why", "linked", "before any call", "observations")  # fmt: skip
    rows = []
    for it in results:
        why = ", ".join(f"{number} {word}" for word, number in sorted(it.reasons.items()))
        is_other = it.name in OTHER_RECORDS
        rows.append(
            (it.name, str(it.runs), str(it.expected), str(it.calls),
             "other records" if is_other else str(it.equal), why,
             str(it.linked), str(it.first), str(it.observations))
        )  # fmt: skip
    return table(heads, rows)


def main() -> int:
    """Print the table, or write it into its page; 1 when something differs without a reason."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--write", action="store_true", help="write the table into its page")
    options = parser.parse_args()
    results = compare_all(options.data)
    text = "\n".join(lines(results))
    if options.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")
    else:
        print(text)
    faults = [f"{it.name}: no call is {action}" for it in results for action in it.missing]
    print("\n".join(faults) or "every action is a call, and every difference has a reason")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
