"""What OpenHands and BrowserGym make of the texts that are written for them.

    python -m tools.oracle.harness_rows JOBS --out FILE

It runs in the environment of the harnesses (`make harness-tests`), which has none of our code but
``tools``. A job with ``what: openhands`` holds ``messages`` and ``tools``; its answer has the
messages as the converter of the OpenHands SDK reads them, and as it writes those again. A job with
``what: browsergym`` holds ``actions``; its answer has the calls that BrowserGym's parser reads in
each, and why its action set refuses it.
"""

from __future__ import annotations

import importlib
import os
import sys
import types
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tools.oracle.rows import Job, answer


def converter() -> Any:
    """The module of the OpenHands SDK that turns calls into text; no other part of it is loaded."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    spec = find_spec("openhands")
    assert spec is not None
    assert spec.submodule_search_locations
    root = Path(next(iter(spec.submodule_search_locations)))
    for name in ("openhands.sdk", "openhands.sdk.llm", "openhands.sdk.llm.mixins"):
        package = types.ModuleType(name)
        package.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
        sys.modules.setdefault(name, package)
    return importlib.import_module("openhands.sdk.llm.mixins.fn_call_converter")


def openhands(job: Job) -> list[Job]:
    """Messages with calls, and the text that OpenHands writes of them."""
    module = converter()
    tools = job["tools"]
    read = module.convert_non_fncall_messages_to_fncall_messages(job["messages"], tools)
    written = module.convert_fncall_messages_to_non_fncall_messages(
        read, tools, add_in_context_learning_example=False
    )
    return [{"read": read, "written": written}]


def browsergym(job: Job) -> list[Job]:
    """The calls in each action."""
    parser = importlib.import_module("browsergym.core.action.parsers").highlevel_action_parser
    highlevel = importlib.import_module("browsergym.core.action.highlevel")
    actions = highlevel.HighLevelActionSet(subsets=["chat", "infeas", "bid", "nav"], strict=True)
    results: list[Job] = []
    for action in job["actions"]:
        calls = [
            [name, {item.name: item.value for item in arguments}]
            for name, arguments in parser.parse_string(action, parse_all=True).as_list()
        ]
        try:
            actions.to_python_code(action)
        except (NameError, ValueError) as error:
            results.append({"calls": calls, "refused": str(error)})
        else:
            results.append({"calls": calls, "refused": None})
    return results


if __name__ == "__main__":
    work = {"openhands": openhands, "browsergym": browsergym}
    packages = ("openhands-sdk", "browsergym-core")
    raise SystemExit(answer(work, packages, __doc__ or ""))
