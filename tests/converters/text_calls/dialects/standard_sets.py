"""The samples of the agent data protocol: texts of the agent, and what upstream made of them."""

from __future__ import annotations

import json
from typing import Any

from tests.samples import ROOT


def turns(folder: str, name: str = "sample_raw.json") -> list[list[tuple[str, str]]]:
    """Role and text of the messages, a list a run."""
    out = []
    for record in json.loads((ROOT / folder / name).read_text(encoding="utf-8")):
        messages = record.get("messages") or record["conversations"]
        messages = json.loads(messages) if isinstance(messages, str) else messages
        out.append([(it["role"], it["content"] or "") for it in messages])
    return out


def actions(folder: str) -> list[list[tuple[str, Any]]]:
    """Name and arguments, or language and code, of the actions that upstream has, a list a run."""
    out = []
    for run in json.loads((ROOT / folder / "sample_std.json").read_text(encoding="utf-8")):
        values = []
        for item in run["content"]:
            if item["class_"] == "code_action":
                values.append((item["language"], item["content"]))
            elif item["class_"] == "api_action":
                values.append((item["function"], item["kwargs"]))
        out.append(values)
    return out
