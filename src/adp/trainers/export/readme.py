"""The README.md of an export: how to load it and train on it, what is in it, what was left out.

It is a data card too: its head names the file and the types of the columns, so that
``load_dataset("OUT")`` and the trainers' own commands read every row as it was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Types = Mapping[str, str]
"""Columns and their types: ``string``, ``bool``, ``messages`` (a list of JSON values)."""

_PYTHON = {"string": 'Value("string")', "bool": 'Value("bool")', "messages": "List(Json())"}


def page(title: str, body: str, facts: Mapping[str, Any], types: Types | None = None) -> str:
    """The page.

    Args:
        title: its heading.
        body: how to train on it; Markdown.
        facts: what `Exporter.files` gets.
        types: columns with their types, for the head; None writes no head.
    """
    parts = [_head(facts, types)] if types else []
    parts.append(f"# {title}\n")
    parts.append(_counts(facts))
    parts.append(body.strip() + "\n")
    parts.append(_left_out(facts))
    parts.append(f"## Made by\n\n```sh\n{facts['command']}\n```\n")
    parts.append("`export.json` holds these counts, the options, and the versions and hashes.\n")
    return "\n".join(part for part in parts if part)


def _head(facts: Mapping[str, Any], types: Types) -> str:
    lines = ["---", "configs:", "- config_name: default", "  data_files:", "  - split: train"]
    lines += [f"    path: {facts['file']}", "dataset_info:", "  features:"]
    for name, kind in types.items():
        lines.append(f"  - name: {name}")
        lines.append("    list: json" if kind == "messages" else f"    dtype: {kind}")
    return "\n".join([*lines, "---", ""])


def _counts(facts: Mapping[str, Any]) -> str:
    unit = {"steps": "trained steps"}.get(facts["unit"], facts["unit"])
    return (
        f"{facts['rows']:,} rows from the store `{facts['store']}`, "
        f"with {facts['in_rows']:,} of its {facts['in_store']:,} {unit}.\n"
    )


def _left_out(facts: Mapping[str, Any]) -> str:
    unit = {"steps": "trained steps"}.get(facts["unit"], facts["unit"])
    lines: list[str] = []
    if facts["left_out"]:
        lines += ["## Left out", "", f"| {unit} | why |", "|---|---|"]
        lines += [f"| {count:,} | {_cell(why)} |" for why, count in facts["left_out"].items()]
        lines.append("")
    if facts["changed"]:
        lines += ["## Written differently", "", "| how often | what |", "|---|---|"]
        lines += [f"| {count:,} | {_cell(what)} |" for what, count in facts["changed"].items()]
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def loading(types: Types, file: str, *, as_text: bool) -> str:
    """The section on how to load a file of messages, with exact numbers.

    Args:
        types: columns with their types.
        file: name of the file.
        as_text: whether each message is written as JSON text already.
    """
    columns = ", ".join(f'"{name}": {_PYTHON[kind]}' for name, kind in types.items())
    names = [name for name, kind in types.items() if kind == "messages"]
    head = (
        "## Load it\n\n"
        "Run in this folder. Give the types as below: without them `datasets` fills arguments with "
        "nulls, or fails at the first argument that the beginning of the file does not have. The "
        'head of this page says the same to `load_dataset("PATH/OF/THIS/FOLDER")` and to the '
        "command `trl`.\n\n"
    )
    plain = (
        "```python\n"
        "from datasets import Features, Json, List, Value, load_dataset\n\n"
        f"features = Features({{{columns}}})\n"
        f'dataset = load_dataset("json", data_files="{file}", features=features, split="train")\n'
        "```\n"
    )
    if as_text:
        return head + plain
    lines = "\n".join(
        f'            row["{name}"] = [json.dumps(message) for message in row["{name}"]]'
        for name in names
    )
    exact = (
        "`Json()` rounds numbers in arguments to ten decimals (3.141592653589793 becomes "
        "3.1415926536). What it is given as text it keeps as it is, so this is exact:\n\n"
        "```python\n"
        "import json\n"
        "from datasets import Dataset, Features, Json, List, Value\n\n"
        f"features = Features({{{columns}}})\n\n"
        "def rows():\n"
        f'    with open("{file}", encoding="utf-8") as file:\n'
        "        for line in file:\n"
        "            row = json.loads(line)\n"
        f"{lines}\n"
        "            yield row\n\n"
        "dataset = Dataset.from_generator(rows, features=features)\n"
        "```\n\n"
        "With `--set as_text=true` the file itself is written that way, and `load_dataset` is "
        "exact.\n"
    )
    return head + plain + "\n" + exact
