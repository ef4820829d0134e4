"""Logs of agents that are written again: what was said, called and answered comes back in order."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import adp
from adp.converters.readers import READERS
from adp.converters.registry import formats
from adp.converters.user_format import is_written
from adp_schema import jsontext, media
from adp_schema.builder import Origin, RowBuilder
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.model import Media, Observation, Step, Trajectory
from adp_schema.parts import Parts, resolve
from adp_schema.protocols import SkipRecordError
from adp_schema.reader import assemble, to_models
from tests.conservation import missing, nest
from tests.converters.strategies import openai_records, words
from tests.effort import examples
from tests.fuzz.cases import make
from tests.fuzz.readers import EXAMPLES, example_files, example_records
from tests.roundtrip import read_one, write_one
from tools.tables.column_table import column_table

APIS = {"anthropic_messages", "inspect", "openai_responses", "otlp"}
"""Written, too, but no sessions: their tests are in `test_writers`."""
WRITTEN = [name for name in sorted(READERS) if is_written(formats.get(name)) and name not in APIS]
ANY = settings(
    max_examples=examples(60),
    deadline=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
MUTATIONS = examples(24)
PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(range(40))


def test_what_is_written():
    assert WRITTEN == ["claude_code", "codex", "opencode", "pi"]


# ---- what is said, called and answered -------------------------------------------------------


def pieces(row: Step | Observation, run: Trajectory) -> list[Any]:
    """The content of a row, without the order that its columns alone have."""
    reasoning = row.reasoning if isinstance(row, Step) else None
    parts = [
        (part.type, part.text, part.media_id) for part in resolve(row.content, row.text, reasoning)
    ]
    if not row.content:
        parts = [("reasoning", reasoning, None), ("text", row.text, None)]
    out = []
    for kind, text, blob in parts:
        if kind == "media":
            out.append(("media", run.media[blob or ""].data))
        elif kind != "tool_call" and text:
            out.append((kind, media.restore(text, run.media)))
    return out


def conversation(run: Trajectory) -> list[Any]:
    """Every message, call and result of a run in order; no events."""
    items: list[Any] = []
    calls = [(call.step, call.call) for step in run.steps for call in step.calls]
    for step in run.steps:
        if step.kind != "event":
            items.append((step.source, pieces(step, run)))
            if step.kind == "context_edit":
                items.append(("edit", step.edit_summary))
        for call in step.calls:
            items.append(("call", call.name or "", json.loads(call.arguments or "{}")))
        for row in step.observations:
            place = (row.call_step, row.call)
            texts = [text for kind, text in pieces(row, run) if kind == "text"]
            blobs = [data for kind, data in pieces(row, run) if kind == "media"]
            answered = calls.index(place) if place in calls else None
            items.append(("result", answered, "\n\n".join(texts), blobs))
    return items


@st.composite
def runs(draw: st.DrawFn) -> Trajectory:
    """A run as any agent might make one: a system prompt, and turns of the user."""
    text = words().filter(_is_plain)
    builder = RowBuilder()
    builder.begin(Origin(0, "d", {"source_hash": "0" * 32, "source_format": "other"}))
    builder.trajectory({"source_id": "run", "agent_model": draw(st.sampled_from(["m-1", None]))})
    if draw(st.booleans()):
        builder.step({"source": "system", "kind": "message", "text": builder.text(draw(text))})
    number = 0
    for _ in range(draw(st.integers(1, 3))):
        parts = Parts()
        parts.text(builder.text(draw(text)))
        if draw(st.booleans()):
            parts.media(builder.media(media.media_of_bytes(PIXEL, "image/png")))
        builder.step({"source": "user", "kind": "message", **parts.columns()})
        for _ in range(draw(st.integers(0, 3))):
            number = _turn(draw, builder, text, number)
    builder.finish()
    tables = builder.tables()
    blobs = {blob.media_id or "": blob for blob in to_models(tables["media"], Media)}
    (run,) = assemble(tables["trajectories"], tables, blobs)
    return run


def _is_plain(text: str) -> bool:
    """Whether a text says something, and may stand in a store as it is."""
    return bool(text.strip()) and jsontext.replace_surrogates(text) == text


def _turn(draw: st.DrawFn, builder: RowBuilder, text: st.SearchStrategy[str], number: int) -> int:
    """A turn of the model with its calls, most of which are answered."""
    parts, calls = Parts(), draw(st.integers(0, 2))
    for kind in draw(st.permutations(["reasoning", "text", "text", "calls"])):
        if kind == "calls":
            for index in range(calls):
                parts.call(index)
        elif draw(st.booleans()):
            getattr(parts, kind)(builder.text(draw(text)))
    builder.step({"source": "agent", "kind": "llm_turn", **parts.columns()})
    for index in range(calls):
        arguments = jsontext.text_of({"path": draw(st.sampled_from(["a", "\xe9\n"])), "n": index})
        columns = {"kind": "function", "name": "read", "arguments_kind": "object"}
        builder.call({**columns, "call_id": f"c{number + index}", "arguments": arguments})
    for index in draw(st.permutations(range(calls))):
        if draw(st.integers(0, 5)):
            result = Parts()
            result.text(builder.text(draw(text)))
            if draw(st.booleans()):
                result.media(builder.media(media.media_of_bytes(PIXEL, "image/png")))
            columns = {"source": "environment", **result.columns()}
            builder.observation(columns, answers=f"c{number + index}")
    return number + calls


@pytest.mark.parametrize("name", WRITTEN)
@ANY
@given(run=runs())
def test_any_run_comes_back_in_order(name, run):
    converter, expected = formats.get(name), conversation(run)
    (back,) = read_one(converter, write_one(converter, run))
    result = conversation(back)
    if name == "opencode":  # a result stands with its call
        result, expected = in_call_order(result), in_call_order(expected)
    assert result == expected


def in_call_order(items: list[Any]) -> list[Any]:
    """The results that follow each other, in the order of their calls."""
    out: list[Any] = []
    for item in items:
        out.append(item)
        at = len(out) - 1
        while item[0] == "result" and at and out[at - 1][0] == "result" and out[at - 1] > out[at]:
            out[at - 1], out[at] = out[at], out[at - 1]
            at -= 1
    return out


@pytest.mark.parametrize("name", WRITTEN)
@ANY
@given(data=openai_records())
def test_any_chat_arrives_or_is_reported(name, data):
    losses = Losses()
    (run,) = read_one(formats.get("openai_chat"), data)
    (back,) = read_one(formats.get(name), write_one(formats.get(name), run, losses))
    assert missing([run], [back], losses) == []


def test_no_column_is_lost_in_silence():
    table = column_table({name: formats.get(name) for name in WRITTEN})
    assert all(word.startswith("written") for word in table["steps.text"].values())


@pytest.mark.parametrize("name", WRITTEN)
def test_examples_go_back_into_their_own_format(name):
    """What is said and done is the same, and nothing else goes without a report."""
    converter, tried = formats.get(name), 0
    for path in example_files(name):
        for data in example_records(path):
            runs = read_one(converter, data)
            back = []
            for run in nest(runs, converter):
                back += read_one(converter, write_one(converter, run))
            assert [conversation(run) for run in back] == [conversation(run) for run in runs], path
            tried += 1
    assert tried


@pytest.mark.parametrize("name", WRITTEN)
def test_what_the_examples_of_other_formats_say_arrives_or_is_reported(name, examples_store):
    converter = formats.get(name)
    for run in examples_store.trajectories():
        if run.source_format == name:
            continue
        losses = Losses()
        gone = missing([run], read_one(converter, write_one(converter, run, losses)), losses)
        assert [piece for piece in gone if not _is_said_elsewhere(*piece)] == [], run.trajectory_id


def _is_said_elsewhere(piece: tuple[str, Any], paths: tuple[str, ...]) -> bool:
    """The folder, which every format writes in a key of its own, and the tool of a result."""
    named = piece[0] == "name" and ".observations[" in paths[0]
    return named or piece in (("extra", "cwd"), ("extra", "directory"))


@pytest.fixture(scope="module")
def examples_store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    return adp.convert([str(EXAMPLES)], str(folder / "store"))


@pytest.mark.parametrize("name", WRITTEN)
def test_the_examples_of_all_go_to_each(name, tmp_path):
    """From any of the formats to any other: each file is read as what it was written as."""
    sources = [str(EXAMPLES / source) for source in WRITTEN if source != name]
    store = adp.convert(sources, str(tmp_path / "store"))
    report = adp.export(store, name, str(tmp_path / "out"))
    again = adp.convert([str(tmp_path / "out")], str(tmp_path / "again"))
    assert set(again.manifest.counts.model_dump().items()) >= {("rejected", 0), ("skipped", 0)}
    assert again.manifest.counts.records == report.records
    assert {row["source_format"] for row in again.scan("trajectories").collect().to_dicts()} == {
        name
    }


# ---- files and branches ------------------------------------------------------------------------

NAMES = {
    "claude_code": "-home-ann-shop/11111111-aaaa-4bbb-8ccc-222222222222.jsonl",
    "codex": "sessions/2026/03/01/rollout-2026-03-01T10-00-00-11111111-aaaa-4bbb-8ccc-"
    "222222222222.jsonl",
    "opencode": "ses_6f955bc5e2915cbaa8ba18277c.json",
}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_files_have_the_names_that_the_program_looks_for(name, tmp_path):
    store = adp.convert([str(EXAMPLES / "pi" / "session.jsonl")], str(tmp_path / "store"))
    adp.export(store, name, str(tmp_path / "out"))
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert [path.relative_to(tmp_path / "out").as_posix() for path in files] == [NAMES[name]]


@pytest.mark.parametrize(
    "name", ["codex", *(pytest.param(w, marks=pytest.mark.slow) for w in WRITTEN if w != "codex")]
)
def test_the_same_store_gives_the_same_bytes(name, examples_store, tmp_path):
    written = []
    for folder in ("one", "two"):
        adp.export(examples_store, name, str(tmp_path / folder))
        paths = sorted(path for path in (tmp_path / folder).rglob("*") if path.is_file())
        written.append([(p.relative_to(tmp_path / folder), p.read_bytes()) for p in paths])
    assert written[0] == written[1]
    assert len(written[0]) > 20


def test_two_runs_of_one_id_get_a_file_each(tmp_path):
    line = {"id": "7d0c0000-0000-4000-8000-00000000000f", "messages": []}
    line["messages"] = [{"role": "user", "content": "Go."}]
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "chats.jsonl").write_text(json.dumps(line) + "\n")
    store = adp.convert([str(tmp_path / "a"), str(tmp_path / "b")], str(tmp_path / "store"))
    report = adp.export(store, "claude_code", str(tmp_path / "out"))
    again = adp.convert([str(tmp_path / "out")], str(tmp_path / "again"))
    assert report.files == again.manifest.counts.trajectories == 2


@pytest.mark.parametrize("name", ["claude_code", "pi"])
def test_a_branch_of_another_format_stands_in_the_file_of_its_run(name, tmp_path):
    other = "pi" if name == "claude_code" else "claude_code"
    store = adp.convert([str(EXAMPLES / other)], str(tmp_path / "store"))
    adp.export(store, name, str(tmp_path / "out"))
    again = adp.convert([str(tmp_path / "out")], str(tmp_path / "again"))
    kinds = ("alternate", "fork", "rewind")
    expected, again_read = (
        sorted(
            json.dumps(conversation(run), default=repr)
            for run in side.trajectories()
            if run.branch_kind in kinds
        )
        for side in (store, again)
    )
    assert len(again_read) == len(expected) > 0
    assert again_read == expected


# ---- edits and mutations -----------------------------------------------------------------------


@pytest.mark.parametrize("name", WRITTEN)
def test_an_edit_of_the_store_shows_in_its_own_format(name):
    """What columns hold wins over what the source said."""
    converter = formats.get(name)
    for path in example_files(name):
        for data in example_records(path):
            runs, back = read_one(converter, data), []
            for run in runs:
                _edit(run)
            for run in nest(runs, converter):
                back += read_one(converter, write_one(converter, run))
            assert [conversation(run) for run in back] == [conversation(run) for run in runs], path


def _edit(run: Trajectory) -> None:
    """Change each name, argument and text."""
    for number, step in enumerate(run.steps):
        if step.kind == "event":
            continue
        after = run.steps[number + 1 : number + 2]
        summary = run.source_format == "opencode" and after and after[0].kind == "context_edit"
        if step.text is not None and not summary:
            step.text, step.content = f"Edited {number}.", None
        for call in step.calls:
            call.name = f"{call.name}_edited"
            if call.arguments is not None:
                call.arguments = '{"edited": true}'
        for row in step.observations:
            if row.text is not None:
                row.text, row.content = f"Result {number}.", None


@pytest.mark.parametrize("name", WRITTEN)
def test_mutated_examples_go_back_or_it_is_reported(name):
    converter = formats.get(name)
    for number in range(MUTATIONS):
        data, _ = make(name, 5, number)
        try:
            runs = read_one(converter, data)
        except (RecordError, SkipRecordError, UnicodeDecodeError):
            continue
        losses, back = Losses(), []
        for run in nest(runs, converter):
            back += read_one(converter, write_one(converter, run, losses))
        same = [conversation(run) for run in back] == [conversation(run) for run in runs]
        assert same or losses.items, data
