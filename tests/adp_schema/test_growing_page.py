"""The example of the page about stores, and calls that are no trajectory."""

import ast
import re
from pathlib import Path

import pytest

import adp
from adp.converters.export import export
from adp_schema.errors import UsageError
from tests.growing import numbered

PAGE = Path(__file__).parents[2] / "docs" / "store.md"
EXAMPLE = next(
    block
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    if "adp.grow(" in block
)


def commented(names):
    """Run the example; the value of each line whose comment begins with True or False."""
    lines = EXAMPLE.splitlines()
    for node in ast.walk(tree := ast.parse(EXAMPLE)):
        for field, body in ast.iter_fields(node):
            if field == "body" and isinstance(body, list):
                body[:] = [noted(item) for item in body]
    names["notes"] = {}
    exec(compile(ast.fix_missing_locations(tree), str(PAGE), "exec"), names)
    output = {
        number: result[1] == "True"
        for number, line in enumerate(lines, 1)
        if (result := re.search(r"# (True|False)\b", line))
    }
    return output, names["notes"]


def noted(node):
    if not isinstance(node, ast.Expr):
        return node
    target = ast.parse(f"notes[{node.lineno}] = 0").body[0]
    target.value = node.value
    return target


def test_the_example_runs_and_says_the_truth(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    output, notes = commented({})
    assert len(output) == 3
    assert {line: notes[line] for line in output} == output
    assert [table.to_pylist()[0] for table in notes.values() if hasattr(table, "to_pylist")]
    store = adp.open("rollouts")
    assert repr(store) == "<Store rollouts: 1 trajectory>"
    report = adp.validate("rollouts")
    assert {item.check.id for item in report.failed()} <= {"no-license", "calls-without-tools"}
    export(store, "openai_chat", "chats")
    assert '"search_flights"' in Path("chats/trajectories.jsonl").read_text()


@pytest.mark.parametrize("wrong", ["x", None, {}, 3, numbered])
def test_what_is_no_trajectory_is_refused(tmp_path, wrong):
    with adp.grow(tmp_path / "s") as store:
        with pytest.raises(UsageError, match=rf"not {type(wrong).__name__}; docs/store.md"):
            store.append(wrong)
        with pytest.raises((UsageError, TypeError)):
            store.extend(wrong)
        assert store.ids() == []


def test_one_trajectory_is_no_list(tmp_path):
    with adp.grow(tmp_path / "s") as store:
        with pytest.raises(UsageError, match="give a single trajectory to append"):
            store.extend(numbered("a"))
        assert store.extend([numbered("a")]) == 1
    assert repr(adp.open(tmp_path / "s")).endswith("/s: 1 trajectory>")
