"""Small entries in BFCL's form, written for the tests."""

from __future__ import annotations

import json

FUNCTION = {
    "name": "maths.add",
    "description": "Adds.",
    "parameters": {
        "type": "dict",
        "properties": {
            "a": {"type": "float", "description": "One."},
            "b": {"type": "integer"},
            "why": {"type": "string", "description": "Reason."},
        },
        "required": ["a"],
    },
}
ANSWER = [{"maths.add": {"a": [2.0], "b": [3], "why": ["", "fun"]}}]


def row(entry_id="simple_python_0", text="What is 2 + 3?", function=(FUNCTION,)):
    return {
        "id": entry_id,
        "question": [[{"role": "user", "content": text}]],
        "function": list(function),
    }


def write(folder, name, rows, *, answers=None):
    """A file of questions, and one of answers."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(item if isinstance(item, str) else json.dumps(item) for item in rows)
    (folder / f"{name}.json").write_text(text, encoding="utf-8")
    if answers is not None:
        (folder / "possible_answer").mkdir(exist_ok=True)
        lines = [json.dumps({"id": key, "ground_truth": value}) for key, value in answers.items()]
        path = folder / "possible_answer" / f"{name}.json"
        path.write_text("\n".join(lines), encoding="utf-8")
    return folder
