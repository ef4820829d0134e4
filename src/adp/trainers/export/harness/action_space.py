"""The actions of BrowserGym as a prompt describes them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal

from adp.trainers.export.harness.actions import gym_name
from adp_schema.errors import UsageError

_ACTIONS = {
    "noop(wait_ms)": "waits",
    "send_msg_to_user(text)": "tells the user something",
    "report_infeasible(reason)": "says that the goal cannot be reached",
    "goto(url)": "opens an address",
    "go_back()": "goes to the page before",
    "go_forward()": "goes to the page after",
    "click(bid)": "clicks an element",
    "dblclick(bid)": "clicks an element twice",
    "hover(bid)": "moves the pointer over an element",
    "fill(bid, value)": "writes into a field",
    "clear(bid)": "empties a field",
    "select_option(bid, options)": "chooses in a list",
    "press(bid, key_comb)": "presses keys in an element",
    "focus(bid)": "puts the focus on an element",
    "scroll(delta_x, delta_y)": "scrolls the page",
    "drag_and_drop(from_bid, to_bid)": "drags an element onto another one",
    "upload_file(bid, file)": "gives a file to an element",
}


def described(words: Literal["short", "browsergym"], tools: Sequence[Mapping[str, Any]]) -> str:
    """The part of a prompt that lists the actions.

    Args:
        words: a line each, or the words of browsergym-core.
        tools: tools of the data besides them.

    Raises:
        UsageError: browsergym-core is asked for, and is not installed.
    """
    lines = (
        _of_browsergym()
        if words == "browsergym"
        else "\n".join(f"{call}: {does}" for call, does in _ACTIONS.items())
    )
    more = "\n".join(_line(tool["function"]) for tool in tools)
    return f"# Action Space\n{lines}" + (f"\n{more}" if more else "")


def _line(function: Mapping[str, Any]) -> str:
    parameters = function.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
    keys = properties if isinstance(properties, Mapping) else ()
    names = ", ".join(gym_name(key) for key in keys)
    does = " ".join(str(function.get("description") or "").split())
    return f"{gym_name(function['name'])}({names})" + (f": {does}" if does else "")


@cache
def _of_browsergym() -> str:
    try:
        highlevel = importlib.import_module("browsergym.core.action.highlevel")
    except ImportError:
        raise UsageError(
            "action_space=browsergym needs the package browsergym-core; pip install browsergym-core"
        ) from None
    actions = highlevel.HighLevelActionSet(subsets=["chat", "infeas", "bid", "nav"])
    return str(actions.describe(with_long_description=True, with_examples=True)).strip()
