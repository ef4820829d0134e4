"""The published sessions: what `datasets` and teich, as they are installed, make of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adp.converters.registry import formats
from adp.converters.run import convert
from adp.converters.sts.trace import FIRST_LOOK, Form
from adp.workflows.publish import traces
from adp.workflows.publish.traces import TracesOptions, write_traces
from adp_schema import jsontext
from adp_schema.errors import InputError, OutputExistsError
from adp_schema.losses import Losses
from adp_schema.model import Trajectory
from adp_schema.store import Store
from tests.converters.strategies import openai_records
from tests.effort import examples

EXAMPLES = Path(__file__).parents[3] / "examples"
DATA = Path(__file__).parents[3].parent / "shared" / "data"
FORMS: tuple[Form, ...] = ("sts", "pi")


def store_of(folder: Path, *rows: dict[str, Any] | str) -> Store:
    """A store of chat rows."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (folder / "rows.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    convert([str(folder / "rows.jsonl")], str(folder / "store"))
    return Store.open(str(folder / "store"))


def written(store: Store, out: Path, form: Form = "sts") -> list[list[dict[str, Any]]]:
    """The sessions of a store, as lists of decoded lines."""
    done = write_traces(store.root, str(out), options=TracesOptions(form=form))
    files = sorted(out.rglob("*.jsonl"))
    assert len(files) == done.files == store.manifest.rows("trajectories")
    assert sum(file.stat().st_size for file in files) == done.size
    return [[json.loads(line) for line in file.read_bytes().split(b"\n")[:-1]] for file in files]


def inferred(folder: Path) -> Any:
    """What the JSON builder of `datasets` infers of a folder: features before teich is asked."""
    import datasets
    from datasets.packaged_modules.json.json import Json

    files = sorted(str(file) for file in folder.rglob("*.jsonl"))
    builder = Json(cache_dir=str(folder / "cache"))
    given = {"files_iterables": [[file] for file in files], "base_files": files}
    tables = builder._generate_tables(**given, original_files=files, allow_full_read=False)
    return datasets.Features.from_arrow_schema(next(iter(tables))[1].schema)


def is_detected(folder: Path) -> bool:
    from datasets.packaged_modules.json.json import has_agent_traces_markers

    return bool(has_agent_traces_markers(inferred(folder)))


def loaded(folder: Path, cache: Path) -> list[dict[str, Any]]:
    """The rows that `datasets` gives with teich."""
    import datasets
    from datasets.packaged_modules.json.json import AGENT_TRACES_FEATURES

    datasets.disable_progress_bars()
    rows = datasets.load_dataset(str(folder), split="train", cache_dir=str(cache))
    assert rows.features == AGENT_TRACES_FEATURES
    return list(rows)


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    folder = tmp_path_factory.mktemp("examples") / "store"
    convert([str(EXAMPLES)], str(folder))
    return Store.open(str(folder))


def chat_messages(run: Trajectory) -> list[dict[str, Any]]:
    """The oracle: the messages that the writer of chat rows gives."""
    record = jsontext.encode(formats.get("openai_chat").write(run, Losses()))
    messages: list[dict[str, Any]] = json.loads(record)["messages"]
    for message in messages:
        if isinstance(message["content"], str):
            message["content"] = jsontext.replace_surrogates(message["content"])
    return messages


def plain_text(content: Any) -> str:
    """A content as teich gives it: without the white space around it."""
    return content.strip() if isinstance(content, str) else ""


def by_session(store: Store) -> dict[str, Trajectory]:
    return {run.trajectory_id or "": run for run in store.trajectories(resolve=True)}


@pytest.mark.parametrize("form", FORMS)
def test_datasets_and_teich_read_the_examples(store: Store, tmp_path, form: Form):
    pytest.importorskip("teich")
    written(store, tmp_path / "out", form)
    rows = loaded(tmp_path / "out", tmp_path / "cache")
    runs = by_session(store)
    assert [row["session_id"] for row in rows] == list(
        dict.fromkeys(row["session_id"] for row in rows)
    )
    assert {row["session_id"] for row in rows} == set(runs)
    for row in rows:
        users = [
            message
            for message in chat_messages(runs[row["session_id"]])
            if message["role"] == "user"
        ]
        assert row["num_user_messages"] == len(users)
        if users and isinstance(users[0]["content"], str):
            assert row["prompt"] == users[0]["content"]


def test_the_form_of_pi_brings_every_message_and_call_through_teich(store: Store, tmp_path):
    pytest.importorskip("teich")
    written(store, tmp_path / "out", "pi")
    done = write_traces(store.root, str(tmp_path / "again"), options=TracesOptions(form="pi"))
    assert not any(".name" in loss for loss in done.losses)
    calls = 0
    for row in loaded(tmp_path / "out", tmp_path / "cache"):
        run = by_session(store)[row["session_id"]]
        wanted = chat_messages(run)
        assert [message["role"] for message in row["messages"]] == [
            message["role"] for message in wanted
        ]
        for message, other in zip(row["messages"], wanted, strict=True):
            if isinstance(other["content"], str):
                assert message["content"] == plain_text(other["content"])
            assert [call_of(call) for call in message.get("tool_calls") or ()] == [
                call_of(call) for call in other.get("tool_calls") or ()
            ]
        assert row["num_tool_calls"] == sum(len(step.calls) for step in run.steps)
        calls += row["num_tool_calls"]
        offered = {tool["function"]["name"] for tool in json.loads(run.tools or "[]")}
        assert offered <= {tool["function"]["name"] for tool in row["tools"]}
    assert calls >= 5


def call_of(call: dict[str, Any]) -> tuple[str, str, Any]:
    """Id, name and decoded arguments of a call."""
    arguments = call["function"]["arguments"]
    if isinstance(arguments, str) and jsontext.is_valid(arguments):
        arguments = json.loads(arguments)
    return call["id"], call["function"]["name"], arguments


CALL = {"id": "a/1", "type": "function"}
HARD = '{"n": 123456789012345678901234567890, "f": 1.10, "s": "\\u00e9\u2028", "s": 1}'


def with_call(arguments: str) -> dict[str, Any]:
    call = {**CALL, "function": {"name": "f", "arguments": arguments}}
    return {
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": None, "reasoning_content": "r", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "a/1", "content": "é\u2028\x85\x00 done"},
        ]
    }


def test_a_session_is_as_the_hub_documents_it(tmp_path):
    (lines,) = written(store_of(tmp_path, with_call(HARD)), tmp_path / "out")
    header, user, agent, result = lines
    assert header == {"type": "session", "harness": "adp", "id": header["id"]}
    assert user == {"type": "message", "message": {"role": "user", "content": "go"}}
    assert agent["message"] == {
        "role": "assistant",
        "content": "",
        "reasoningContent": "r",
        "toolCalls": [{"id": "a/1", "function": {"name": "f", "arguments": HARD}}],
    }
    text = "é\u2028\x85\x00 done"
    assert result["message"] == {"role": "tool", "toolCallId": "a/1", "content": text}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "arguments",
    [
        *(HARD, "not json", "[1]", '{"a": {"b": 1e999}}', "", '{"a": "\\ud83d"}'),
        *(json.dumps({"a": '["\\ud83d"]'}), '{"a": ' + "9" * 5000 + "}", "[" * 300 + "]" * 300),
    ],
)
def test_hard_arguments_load(tmp_path, form: Form, arguments):
    pytest.importorskip("teich")
    store = store_of(tmp_path, with_call(arguments))
    written(store, tmp_path / "out", form)
    (row,) = loaded(tmp_path / "out", tmp_path / "cache")
    assert row["num_tool_calls"] == (1 if form == "pi" else 0)
    assert (arguments == "not json") <= ("not json" in row["trace"])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "user", "content": "only this"}],
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
        [{"role": "user", "content": "x" * (FIRST_LOOK + 5)}, with_call("{}")["messages"][1]],
        [{"role": "user", "content": "lone \ud800 half"}],
    ],
    ids=["nothing", "one", "alike", "huge first", "surrogate"],
)
def test_detected_whatever_the_first_file_holds(tmp_path, form: Form, messages):
    tools = [{"type": "function", "function": {"name": "f", "big": 2**70}}]
    store = store_of(tmp_path, {"messages": messages, "tools": tools})
    written(store, tmp_path / "out", form)
    assert is_detected(tmp_path / "out")


@settings(max_examples=examples(50), suppress_health_check=list(HealthCheck))
@given(records=st.lists(openai_records(), min_size=1, max_size=3), form=st.sampled_from(FORMS))
def test_detected_and_loaded_for_any_store(tmp_path_factory, records, form: Form):
    folder = tmp_path_factory.mktemp("any")
    try:
        store = store_of(folder, *(record.replace(b"\n", b" ").decode() for record in records))
    except InputError:  # no record of a known format
        return
    if not store.manifest.rows("trajectories"):
        return
    sessions = written(store, folder / "out", form)
    assert is_detected(folder / "out")
    for file in (folder / "out").rglob("*.jsonl"):
        assert file.read_bytes().isascii()
    assert {lines[0]["id"] for lines in sessions} == set(by_session(store))
    pytest.importorskip("teich")
    assert len(loaded(folder / "out", folder / "cache")) == len(sessions)


def test_media_and_unanswered_results_are_reported(tmp_path):
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "look"}, image]},
        {"role": "tool", "tool_call_id": "none", "content": "stray"},
    ]
    store = store_of(tmp_path, {"messages": messages})
    (lines,) = written(store, tmp_path / "out")
    assert lines[1]["message"]["content"] == "look\n\n![image](https://example.org/a.png)"
    assert lines[2]["message"]["toolCallId"] == "none"
    done = write_traces(store.root, str(tmp_path / "again"))
    assert any("address in the text" in loss for loss in done.losses)
    assert any("no call before it has this id" in loss for loss in done.losses)


def test_odd_ids_become_files_of_their_own(tmp_path):
    ids = ["a/b", "a_b", "../../x", "A", "a", "x" * 500, "é", "a b\n"]
    rows = [{"id": name, **with_call("{}")} for name in ids]
    sessions = written(store_of(tmp_path, *rows), tmp_path / "out")
    assert {lines[0]["id"] for lines in sessions} == {f"rows/{name}" for name in ids}


def test_a_stopped_run_goes_on_and_writes_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(traces, "FILES_A_FOLDER", 3)
    rows = [{"id": f"r{number}", **with_call("{}")} for number in range(10)]
    store = store_of(tmp_path, *rows)
    whole = write_traces(store.root, str(tmp_path / "whole"))
    assert len(list((tmp_path / "whole" / "traces" / "rows").iterdir())) == 4
    real, calls = traces.trace_lines, []

    def stop(*words: Any) -> list[bytes]:
        calls.append(1)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return real(*words)

    monkeypatch.setattr(traces, "trace_lines", stop)
    with pytest.raises(KeyboardInterrupt):
        write_traces(store.root, str(tmp_path / "stopped"))
    with pytest.raises(OutputExistsError, match="other options"):
        write_traces(store.root, str(tmp_path / "stopped"), options=TracesOptions(form="pi"))
    again = write_traces(store.root, str(tmp_path / "stopped"))
    assert len(calls) == 8 + 4
    assert (again.files, again.size, again.losses) == (whole.files, whole.size, whole.losses)
    assert contents(tmp_path / "stopped") == contents(tmp_path / "whole")
    assert write_traces(store.root, str(tmp_path / "stopped")).files == whole.files
    assert len(calls) == 8 + 4
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine").touch()
    with pytest.raises(OutputExistsError, match="not empty"):
        write_traces(store.root, str(tmp_path / "other"))


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and ".run" not in path.parts]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def test_the_card_names_tag_license_and_main_data_set(store: Store, tmp_path):
    import yaml

    options = TracesOptions(repo_id="me/runs", license="mit")
    write_traces(store.root, str(tmp_path / "out"), options=options)
    _, front, body = (tmp_path / "out" / "README.md").read_text().split("---\n", 2)
    head = yaml.safe_load(front)
    assert head["license"] == "mit"
    assert "format:agent-traces" in head["tags"]
    assert head["configs"][0]["data_files"] == [{"split": "train", "path": "traces/**/*.jsonl"}]
    assert "[me/runs](https://huggingface.co/datasets/me/runs)" in body
    others = {file for file in contents(tmp_path / "out") if not file.endswith(".jsonl")}
    assert others == {"README.md", "SHA256SUMS"}


def test_without_teich_it_is_datasets_that_says_so(store: Store, tmp_path, monkeypatch):
    import datasets

    written(store, tmp_path / "out")
    monkeypatch.setattr(datasets.config, "TEICH_AVAILABLE", False)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - a class of theirs around theirs
        loaded(tmp_path / "out", tmp_path / "cache")
    messages = [str(caught.value), str(caught.value.__cause__)]
    assert any("please install 'teich'" in text for text in messages)


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason="the shared samples are not beside the checkout")
@pytest.mark.parametrize("form", FORMS)
def test_all_samples_are_written_and_loaded(tmp_path, form: Form):
    pytest.importorskip("teich")
    convert([str(DATA / name) for name in ("adp_v1", "adp_atif", "datasets")], str(tmp_path / "s"))
    store = Store.open(str(tmp_path / "s"))
    written(store, tmp_path / "out", form)
    rows = loaded(tmp_path / "out", tmp_path / "cache")
    assert {row["session_id"] for row in rows} == set(by_session(store))
    if form == "pi":
        assert sum(row["num_tool_calls"] for row in rows) == store.manifest.rows("tool_calls")
