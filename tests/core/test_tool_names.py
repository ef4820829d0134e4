from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import adp
from adp.core.tool_names.columns import protocol_call, protocol_tools, source_call, source_tools
from adp.core.tool_names.mapping import NamedCall, tool_names
from adp.core.tool_names.runs import rename_tools
from adp_schema.errors import AdpError, UsageError
from adp_schema.model import Observation, Step, ToolCall, Trajectory
from adp_schema.store import Store
from tests import samples

TOOLS = tool_names().tools
NAMES = sorted({name for tool in TOOLS.values() for name in tool.names})
KEYS = sorted(
    {
        *(key for tool in TOOLS.values() for key in (*tool.arguments, *tool.parameters)),
        *("workdir", "language", "$tool_names", "ä"),
    }
)
values = st.one_of(
    st.sampled_from(["ls -l", "bash", "python", "a\nb", "", "☃"]),
    st.integers(),
    st.lists(st.sampled_from(["bash", "-lc", "ls", "a b"]), max_size=3),
    st.dictionaries(st.sampled_from(["a", "$tool_names"]), st.integers(), max_size=1),
)
arguments = st.dictionaries(st.sampled_from(KEYS), values, max_size=4)


def renamed(name: str | None, given: Any = None, **more: Any) -> Any:
    """Name and arguments of a call in the protocol; None when it keeps its own."""
    call = tool_names().rename(NamedCall(name, given, **more))
    return None if call is None else (call.name, call.arguments)


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (("bash", {"command": "ls"}), ("terminal", {"command": "ls"})),
        (
            ("execute_bash", {"cmd": "ls", "timeout": 3}),
            ("terminal", {"command": "ls", "timeout": 3}),
        ),
        (("shell", {"command": ["bash", "-lc", "ls | wc"]}), ("terminal", {"command": "ls | wc"})),
        (("shell", {"command": ["ls", "a b"]}), ("terminal", {"command": "ls 'a b'"})),
        (("ipython", {"code": "1"}), ("python", {"code": "1"})),
        (("execute", {"code": "1"}), ("python", {"code": "1"})),
        (("execute", {"code": "1", "db": "x"}), None),
        (("execute_code", {"language": "sh", "code": "ls"}), ("terminal", {"command": "ls"})),
        (("execute_code", {"language": "sql", "code": "select 1"}), None),
        (
            ("str_replace_based_edit_tool", {"command": "view", "path": "/a"}),
            ("file_editor", {"command": "view", "path": "/a"}),
        ),
        (
            ("edit_file", {"path": "/a", "old_str": "b", "content": "c"}),
            (
                "file_editor",
                {"path": "/a", "old_str": "b", "new_str": "c", "command": "str_replace"},
            ),
        ),
        (("edit_file", {"path": "/a", "instructions": "b"}), None),
        (("submit", {}), ("finish", {"task_completed": "true"})),
        (("stop", {"output": "3"}), ("finish", {"message": "3", "task_completed": "true"})),
        (("answer", {"answer": "3"}), ("finish", {"message": "3", "task_completed": "true"})),
        (("answer", {"question_id": 3}), None),
        (("websearch", {"q": "sea"}), ("web_search", {"query": "sea"})),
        (("search", {"keywords": "sea"}), None),
        (("bash", {}), None),
        (("bash", {"command": "a", "cmd": "b"}), None),
        (("bash", {"command": 3}), None),
    ],
)
def test_the_table(call: Any, wanted: Any) -> None:
    assert renamed(*call) == wanted


def test_code_is_a_call_of_the_tool_that_runs_its_language() -> None:
    assert renamed(None, text="ls", language="Bash") == ("terminal", {"command": "ls"})
    assert renamed("py", text="1", language="py") == ("python", {"code": "1"})
    assert renamed("python", text="select 1", language="sql") is None
    assert renamed(None, text="select 1", language="sql") is None
    assert renamed("bash", text="print(1)", language="python") is None


def test_no_name_stands_twice_and_each_tool_knows_its_own() -> None:
    assert len(NAMES) == sum(len(tool.names) for tool in TOOLS.values())
    for name, tool in TOOLS.items():
        assert name in tool.names
        assert tool.main in tool.parameters
        assert set(tool.required) <= set(tool.parameters)
        for rule in tool.names.values():
            targets = {**tool.arguments, **(rule.arguments if rule else {})}.values()
            assert set(targets) <= set(tool.parameters)
            assert set(rule.add if rule else ()) <= set(tool.parameters)


@st.composite
def calls(draw: st.DrawFn) -> dict[str, Any]:
    """Columns of any call: of known tools and others, as JSON, as code, as text that is none."""
    kind = draw(st.sampled_from(["function", "code", None]))
    name = draw(st.sampled_from([*NAMES, "execute_code", "search"]) | st.none())
    row: dict[str, Any] = {"name": name, "kind": kind, "step": 1, "call": 0}
    if kind == "code":
        row["language"] = draw(st.sampled_from(["bash", "python", "sql", None]))
    form = draw(st.sampled_from(["object", "text", "invalid", "none"]))
    if form == "object":
        separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,  ", " :")]))
        is_ascii = draw(st.booleans())
        text = json.dumps(draw(arguments), separators=separators, ensure_ascii=is_ascii)
        row |= {"arguments": text, "arguments_kind": "object"}
    elif form != "none":
        row |= {"arguments_raw": draw(st.sampled_from(["ls", "{", ""])), "arguments_kind": form}
    extra = draw(st.sampled_from([None, "{}", '{"a":1}', '{ "a" : {"$tool_names": {"name": 1}} }']))
    return {**row, "extra": extra}


@given(calls())
def test_the_names_of_the_source_come_back_with_the_same_characters(call: dict[str, Any]) -> None:
    changed = protocol_call(call)
    if changed is None:
        assert source_call(call) is None
        return
    new = {**call, **changed}
    assert new["name"] in TOOLS
    assert protocol_call(new) is None
    back = source_call(new)
    assert back is not None
    assert {**new, **back} == {"language": None, "arguments": None, "arguments_raw": None,
                               "arguments_kind": None, **call}  # fmt: skip


@given(calls())
def test_values_are_those_of_the_source(call: dict[str, Any]) -> None:
    new = {**call, **(protocol_call(call) or {})}
    if new["name"] == call["name"] or call.get("arguments") is None:
        return
    old, now = json.loads(call["arguments"]), json.loads(new["arguments"])
    tool = TOOLS[new["name"]]
    rest = [value for key, value in now.items() if value not in old.values()]
    made = [value for value in rest if value not in ("true", "str_replace")]
    assert len(made) <= 1  # a command in words, as one line
    assert set(tool.required) <= set(now)


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        (("shell", {"cmd": "ls", "dir": "/"}), {"command": "pwd"}, {"cmd": "pwd", "dir": "/"}),
        (("submit", {}), {"message": "so"}, {"message": "so"}),
        (("execute_code", {"language": "py", "code": "1"}), {"code": "2"},
         {"language": "py", "code": "2"}),
        (("shell", {"command": ["ls"]}), {"command": "pwd"}, {"command": "pwd"}),
    ],
)  # fmt: skip
def test_an_edit_is_kept_under_the_names_of_the_source(before: Any, edit: Any, after: Any) -> None:
    call = {"name": before[0], "kind": "function", "arguments": json.dumps(before[1])}
    new = {**call, **(protocol_call(call) or {})}
    new["arguments"] = json.dumps({**json.loads(new["arguments"]), **edit})
    back = {**new, **(source_call(new) or {})}
    assert (back["name"], json.loads(back["arguments"])) == (before[0], after)


def test_edited_code_stays_code_and_a_new_name_stays_new() -> None:
    call = {"name": "bash", "kind": "code", "language": "bash", "arguments_raw": "ls",
            "arguments_kind": "text"}  # fmt: skip
    new = {**call, **(protocol_call(call) or {})}
    new["arguments"] = '{"command": "pwd"}'
    back = {**new, **(source_call(new) or {})}
    assert (back["kind"], back["language"], back["arguments_raw"]) == ("code", "bash", "pwd")
    assert back["arguments"] is None
    new["name"] = "mine"
    assert {**new, **(source_call(new) or {})}["name"] == "mine"


def schema(name: str, **properties: Any) -> dict[str, Any]:
    """A tool on offer."""
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def test_tools_on_offer_are_renamed_with_their_calls() -> None:
    tools = [
        schema("shell", cmd={"type": "array", "description": "words"}),
        schema("bash", command={"type": "string"}),
        schema("search", q={"type": "string"}),
        schema("submit"),
    ]
    text = json.dumps(tools, indent=1)
    row = {"tools": text, "extra": '{"a":1}'}
    new = {**row, **(protocol_tools(row) or {})}
    written = [tool["function"] for tool in json.loads(new["tools"])]
    assert [tool["name"] for tool in written] == ["terminal", "search", "finish"]
    assert written[0]["parameters"]["properties"] == {
        "command": {"type": "string", "description": "words"}
    }
    assert written[0]["parameters"]["required"] == ["command"]
    assert written[2]["parameters"]["properties"] == {"task_completed": {"type": "string"}}
    assert {**new, **(source_tools(new) or {})} == row
    other = {"tools": json.dumps([schema("search", q={})])}
    assert protocol_tools(other) is None


def test_results_and_branches_are_renamed_too() -> None:
    def run() -> Trajectory:
        call = ToolCall(step=1, call=0, name="bash", kind="function", arguments='{"command": "ls"}')
        result = Observation(step=1, call_step=1, call=0, name="bash", text="a")
        other = Observation(step=1, call_step=1, call=0, name="stdout", text="b")
        step = Step(step=1, source="agent", calls=[call], observations=[result, other])
        return Trajectory(trajectory_id="a", steps=[Step(step=0, source="user", text="go"), step])

    first = run()
    first.branches = [run()]
    rename_tools(first, "adp")
    for item in (first, *first.branches):
        step = item.steps[1]
        assert step.calls[0].name == "terminal"
        assert [result.name for result in step.observations] == ["terminal", "stdout"]
    rename_tools(first, "source")
    assert first.branches[0] == run()
    first.branches = []
    assert first == run()


LEGACY = frozenset(
    {
        *("bash", "edit_file", "execute_bash", "execute_ipython_cell", "str_replace_editor"),
        *("stop", "submit"),
    }
)
"""Names that standardized records of the Agent Data Protocol must not have."""

FILES = sorted(
    [
        *samples.ROOT.glob("adp_v1/*/sample_std.json"),
        *samples.ROOT.glob("adp_v1/*/sample_raw.json"),
        *samples.ROOT.glob("adp_atif/*/sample_*.json"),
    ]
)


@pytest.mark.parametrize("source", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_real_runs_come_back_row_by_row_and_byte_by_byte(source: Path, tmp_path: Path) -> None:
    stores = []
    for naming in ("source", "adp"):
        try:
            stores.append(adp.convert(source, tmp_path / naming, tool_names=naming))
        except AdpError as error:
            pytest.skip(f"no store is made of it: {error}")
    plain, named = stores
    assert not LEGACY & set(_names(named))
    for first, second in zip(plain.trajectories(), named.trajectories(), strict=True):
        rename_tools(second, "source")
        assert second == first
    for store in stores:
        out = tmp_path / f"{store.name}-out"
        for name in sorted({str(run.source_format) for run in store.trajectories()}):
            try:
                adp.export(store, name, out / name)
            except UsageError:
                continue  # a format that is only read
    files = sorted(path.relative_to(tmp_path / "source-out") for path in
                   (tmp_path / "source-out").rglob("*") if path.is_file())  # fmt: skip
    for file in files:
        first, second = (tmp_path / f"{naming}-out" / file for naming in ("source", "adp"))
        assert first.read_bytes() == second.read_bytes()


def _names(store: Store) -> list[Any]:
    return store.scan("tool_calls").sort("seq", "step", "call").collect()["name"].to_list()
