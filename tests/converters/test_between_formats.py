"""From one format to another: every text, name and argument arrives, or the report says not."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from adp.converters.registry import formats
from adp_schema import jsontext, media, shape
from adp_schema.model import Observation, Row, Step, ToolCall, Trajectory
from adp_schema.parts import JOINT, resolve
from adp_schema.protocols import Losses
from tests.converters.strategies import adp_v1_records, openai_records
from tests.roundtrip import read_one, write_one

DATA = Path(__file__).parents[2].parent / "shared" / "data"
ADP_FILES = sorted(DATA.glob("adp_v1/*/sample_std.json"))
CHAT_FILES = [
    *sorted(DATA.glob("datasets/toucan_like/*.json")),
    *sorted(DATA.glob("datasets/swe_smith_trajectories/*.json")),
    *sorted(DATA.glob("datasets/nnetnav_wa/*.json")),
    *sorted(DATA.glob("datasets/fireact/gpt_format*")),
    *sorted(DATA.glob("formats/llamafactory_v1/*_demo_[24].jsonl")),
    *sorted(DATA.glob("formats/dataclaw/*.jsonl")),
    *(
        DATA / "adp_v1" / name / "sample_raw.json"
        for name in ("code_feedback", "mini-coder", "nnetnav-wa", "swe-smith")
        if DATA.exists()
    ),
]
MANY = settings(
    max_examples=150,
    deadline=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

Piece = tuple[str, Any]
"""Kind of a value, and the value."""


class Found:
    """The pieces of a trajectory, each with the paths that a loss report may give for it."""

    def __init__(self, run: Trajectory) -> None:
        self.pieces: list[tuple[Piece, tuple[str, ...]]] = []
        self._blobs = run.media
        self._extras("$", run)
        for index, row in enumerate(run.early_observations):
            self._observation(row, f"$.early_observations[{index}]")
        for index, step in enumerate(run.steps):
            path = f"$.steps[{index}]"
            self._step(step, path)
            for n, row in enumerate(step.observations):
                self._observation(row, f"{path}.observations[{n}]")

    def counted(self) -> Counter[Piece]:
        return Counter(piece for piece, _ in self.pieces)

    def _add(self, kind: str, value: Any, *paths: str) -> None:
        self.pieces.append(((kind, value), paths))

    def _exact(self, row: Row, column: str) -> Any:
        value = shape.original(row, column, shape.unpack(row.extra))  # type: ignore[attr-defined]
        return media.restore(value, self._blobs) if isinstance(value, str) else value

    def _words(self, kind: str, text: str | None, *paths: str) -> None:
        """Formats join texts by a blank line and cut them there, so words are compared."""
        for words in (text or "").split(JOINT):
            if words.strip("\n"):
                self._add(kind, words.strip("\n"), *paths)

    def _extras(self, path: str, row: Row) -> None:
        for key in shape.unpack(row.extra).fields:  # type: ignore[attr-defined]
            self._add("extra", key, f"{path}.extra.{key}")

    def _step(self, step: Step, path: str) -> None:
        self._extras(path, step)
        # Calls that were found in the text are pieces of their own.
        spoken = "text" if step.prose is None else "prose"
        self._words("text", self._exact(step, spoken), f"{path}.text")
        self._words("reasoning", self._exact(step, "reasoning"), f"{path}.reasoning")
        self._words("name", step.actor and self._exact(step, "actor"), f"{path}.actor")
        self._parts(step, path)
        for index, call in enumerate(step.calls):
            self._call(call, f"{path}.calls[{index}]")

    def _parts(self, row: Step | Observation, path: str) -> None:
        reasoning = row.reasoning if isinstance(row, Step) else None
        for index, part in enumerate(resolve(row.content, row.text, reasoning)):
            if part.type == "media":
                self._add("media", part.media_id, f"{path}.content[{index}]")
            elif part.type == "opaque":
                self._add("opaque", bytes(part.value), f"{path}.content[{index}]")

    def _call(self, call: ToolCall, path: str) -> None:
        self._extras(path, call)
        self._add("tool", self._exact(call, "name") or "", f"{path}.name")
        paths = (f"{path}.arguments", f"{path}.arguments_raw")
        text = self._exact(call, "arguments")
        raw = self._exact(call, "arguments_raw")
        if call.kind == "code":
            self._add("argument", (("code",), f'"{raw or text or ""}"'), *paths)
            return
        written = raw if text is None else text
        if written is None:
            return
        try:
            value = spelled(written)
        except ValueError:
            value = written
        for where, leaf in leaves(value):
            self._add("argument", (where, leaf), *paths)

    def _observation(self, row: Observation, path: str) -> None:
        self._extras(path, row)
        for column in ("text", "axtree", "html", "url"):
            self._words("text", self._exact(row, column), f"{path}.{column}")
        self._words("name", row.name and self._exact(row, "name"), f"{path}.name")
        self._parts(row, path)


class Pairs(list[Any]):
    """An object with its keys in order, also those that occur twice."""


def spelled(text: str) -> Any:
    """A JSON value whose numbers are text, marked as numbers."""

    def number(source: str) -> tuple[str]:
        return (source,)

    return json.loads(
        text,
        parse_int=number,
        parse_float=number,
        parse_constant=number,
        object_pairs_hook=Pairs,
    )


def leaves(value: Any, where: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Each scalar of a JSON value with its path."""
    if isinstance(value, Pairs):
        for key, item in value:
            yield from leaves(item, (*where, key))
        if not value:
            yield where, "{}"
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, (*where, index))
        if not value:
            yield where, "[]"
    elif isinstance(value, tuple):
        yield where, value[0]
    else:
        yield where, f'"{value}"' if isinstance(value, str) else json.dumps(value)


def lost(paths: tuple[str, ...], losses: Losses) -> bool:
    """Whether the report names one of the paths; a report on a whole step says nothing."""
    reported = [item["path"] for item in losses.items if not item["path"].endswith("]")]
    reported += [item["path"] for item in losses.items if ".content[" in item["path"]]
    return any(
        path == there or path.startswith(there + ".") for path in paths for there in reported
    )


def missing(source: Trajectory, target: Trajectory, losses: Losses) -> list[Any]:
    """The pieces of the source that are neither in the target nor in the report."""
    there = Found(target).counted()
    gone = []
    for piece, paths in Found(source).pieces:
        if lost(paths, losses):
            continue
        if there[piece]:
            there[piece] -= 1
        else:
            gone.append((piece, paths))
    return gone if target.source_format != "sharegpt" else not_inside(gone, target)


def not_inside(pieces: list[Any], target: Trajectory) -> list[Any]:
    """The pieces that are no words inside a longer text: this format joins and wraps words."""
    rows: list[Any] = [*target.steps, *target.early_observations]
    rows += [row for step in target.steps for row in step.observations]
    texts = [shape.original(row, "text", shape.unpack(row.extra)) or "" for row in rows]
    texts = [media.restore(text, target.media) for text in texts]
    gone = []
    for piece, paths in sorted(pieces, key=lambda item: -len(str(item[0][1]))):
        kind, words = piece
        index = -1
        if kind in ("text", "reasoning"):
            index = next((i for i, text in enumerate(texts) if words in text), -1)
        if index < 0:
            gone.append((piece, paths))
        else:
            texts[index] = texts[index].replace(words, "\0", 1)
    return gone


def between(data: bytes, source: str, target: str) -> tuple[Trajectory, dict[str, Any], Losses]:
    """Convert a record, check that all of it arrived, and return what was written."""
    losses = Losses()
    (run,) = read_one(formats.get(source), data)
    written = write_one(formats.get(target), run, losses)
    (back,) = read_one(formats.get(target), written)
    assert back.losses is None or not back.json_value("losses") or b"\\ud" in data
    assert missing(run, back, losses) == []
    return run, json.loads(written), losses


def check_ids(record: dict[str, Any], losses: Losses) -> None:
    """Ids of calls are unique; a result has the id of an earlier call, or is reported."""
    seen: set[str] = set()
    strays = 0
    for message in record["messages"]:
        for call in message.get("tool_calls") or []:
            assert call["id"] not in seen
            seen.add(call["id"])
            assert isinstance(json.loads(call["function"]["arguments"]), (dict, list, str, int))
        if message["role"] == "tool":
            strays += message["tool_call_id"] not in seen
        assert message["role"] in ("system", "user", "assistant", "tool")
    reported = [item for item in losses.items if item["path"].endswith("_id")]
    assert strays <= len(reported)


def check_adp(record: dict[str, Any]) -> None:
    """The record is ADP 1.5.0, and its action ids are unique."""
    assert record["schema_version"] == "1.5.0"
    assert isinstance(record["id"], str)
    ids = [
        item["tool_call_id"]
        for item in record["content"]
        if item["class_"].endswith("action") and item.get("tool_call_id") is not None
    ]
    assert len(ids) == len(set(ids))
    for item in record["content"]:
        if item["class_"] == "api_action":
            assert isinstance(item["kwargs"], dict)


@MANY
@given(adp_v1_records())
def test_adp_v1_to_openai_chat(data):
    _, record, losses = between(data, "adp_v1", "openai_chat")
    check_ids(record, losses)


@MANY
@given(openai_records())
def test_openai_chat_to_adp_v1(data):
    _, record, _ = between(data, "openai_chat", "adp_v1")
    check_adp(record)


def records(path: Path) -> list[bytes]:
    data = path.read_bytes()
    if path.suffix == ".jsonl":
        return [line for line in data.splitlines() if line.strip()]
    return [bytes(raw) for raw in jsontext.decode_array(data)]


@pytest.mark.skipif(not DATA.exists(), reason="the reference data are not here")
def test_all_files_are_there():
    assert (len(ADP_FILES), len(CHAT_FILES)) == (17, 12)


@pytest.mark.parametrize("path", ADP_FILES, ids=lambda path: path.parent.name)
def test_a_real_adp_file_to_openai_chat(path):
    for data in records(path):
        run, record, losses = between(data, "adp_v1", "openai_chat")
        check_ids(record, losses)
        for step in run.steps:
            assert all(re.search(r"\S", call.name or call.language or "") for call in step.calls)


@pytest.mark.parametrize("path", CHAT_FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_real_chat_file_to_adp_v1(path):
    for data in records(path):
        _, record, _ = between(data, "openai_chat", "adp_v1")
        check_adp(record)


def test_the_check_can_fail():
    data = b'{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b",'
    data += b'"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":'
    (run,) = read_one(formats.get("openai_chat"), data + b'{"x":[1.0]}}}]}]}')
    (other,) = read_one(formats.get("openai_chat"), data + b'{"x":[1]}}}]}]}')
    assert missing(run, run, Losses()) == []
    assert [piece for piece, _ in missing(run, other, Losses())] == [
        ("argument", (("x", 0), "1.0"))
    ]
    other.steps[0].text = other.steps[1].calls[0].name = None
    assert len(missing(run, other, Losses())) == 3
    losses = Losses()
    losses.add("$.steps[1].calls[0].arguments", "")
    losses.add("$.steps[0]", "")
    assert len(missing(run, other, losses)) == 2
