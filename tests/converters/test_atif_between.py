"""ATIF and other formats: every text, call, result and image arrives, or is reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from atif import Trajectory as Strict
from hypothesis import HealthCheck, Phase, given, settings

from adp.converters.registry import formats
from adp_schema import jsontext
from adp_schema.losses import Losses
from adp_schema.model import Trajectory
from tests.conservation import missing, write_back
from tests.converters.atif_records import atif_records, record, step
from tests.converters.sharegpt_records import sharegpt_records
from tests.converters.strategies import adp_v1_records, openai_records
from tests.converters.test_between_formats import records
from tests.roundtrip import read_one, write_one

DATA = Path(__file__).parents[2].parent / "shared" / "data"
ADP_FILES = sorted(DATA.glob("adp_v1/*/sample_std.json"))
ATIF_FILES = sorted(DATA.glob("adp_atif/*/sample_std.*json"))
MANY = settings(
    max_examples=30,
    deadline=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def between(data: bytes, source: str, target: str) -> list[tuple[Trajectory, dict, Losses]]:
    """Convert a record, and check that all of it arrived."""
    runs = read_one(formats.get(source), data)
    losses = Losses()
    written, back = write_back(target, runs, losses)
    assert missing(runs, back, losses) == []
    return [(run, json.loads(record), losses) for run, record in zip(runs, written, strict=False)]


@MANY
@given(adp_v1_records())
def test_adp_v1_to_atif(data):
    for _, written, _ in between(data, "adp_v1", "atif"):
        validate(written)


@MANY
@given(openai_records())
def test_openai_chat_to_atif(data):
    for _, written, _ in between(data, "openai_chat", "atif"):
        validate(written)


@MANY
@given(atif_records())
def test_atif_to_adp_v1(data):
    between(data, "atif", "adp_v1")


@MANY
@given(atif_records())
def test_atif_to_openai_chat(data):
    between(data, "atif", "openai_chat")


@MANY
@given(sharegpt_records(pairs=False))
def test_sharegpt_to_atif(data):
    for _, written, _ in between(data, "sharegpt", "atif"):
        validate(written)


@MANY
@given(atif_records())
def test_atif_to_sharegpt(data):
    between(data, "atif", "sharegpt")


def validate(written: dict) -> None:
    text = json.dumps(written)
    if "\\ud83d\\" not in text and "\\udc00" not in text and '\\ud83d"' not in text:
        Strict.model_validate(written)


@pytest.mark.parametrize("path", ADP_FILES, ids=lambda path: path.parent.name)
def test_a_real_adp_file_goes_there_and_back(path):
    """ADP v1 to ATIF and back: what is not the same again was reported on the way."""
    for data in records(path):
        ((run, written, losses),) = between(data, "adp_v1", "atif")
        Strict.model_validate(written)
        (atif,) = read_one(formats.get("atif"), json.dumps(written).encode())
        assert [call.name for item in atif.steps for call in item.calls] == [
            call.name for item in run.steps for call in item.calls
        ]
        assert [item.reward for item in atif.steps if item.reward is not None] == [
            item.reward for item in run.steps if item.reward is not None
        ]
        reasons = {item["reason"] for item in losses.items}
        assert len(reasons) <= 3, reasons


@pytest.mark.parametrize("path", ATIF_FILES, ids=lambda p: f"{p.parent.name}-{p.stem}")
@pytest.mark.parametrize("target", ["adp_v1", "openai_chat", "sharegpt"])
def test_a_real_atif_file_to_other_formats(path, target):
    for data in records(path):
        if b'"ATIF-' in data:
            between(data, "atif", target)


# ---- single cases --------------------------------------------------------------------------------


def harbor(run: Trajectory) -> tuple[dict, list[dict]]:
    losses = Losses()
    written = json.loads(jsontext.encode(formats.get("atif").write(run, losses)))
    Strict.model_validate(written)
    return written, losses.items


def adp(*content) -> Trajectory:
    data = json.dumps({"id": "r", "content": content, "details": {}}).encode()
    (run,) = read_one(formats.get("adp_v1"), data)
    return run


SEEN = {"class_": "text_observation", "content": "seen", "name": None, "source": "environment"}
ACT = {"class_": "api_action", "function": "f", "kwargs": {"a": 1.0}, "description": "why"}


def test_an_early_observation_is_a_step_without_a_model():
    written, losses = harbor(adp(SEEN, ACT))
    first, second = written["steps"]
    assert (first["source"], first["llm_call_count"], first["message"]) == ("agent", 0, "")
    assert first["observation"] == {"results": [{"content": "seen"}]}
    assert second["tool_calls"][0]["arguments"] == {"a": 1.0}
    assert losses == []


def test_code_is_an_argument():
    code = {"class_": "code_action", "language": "bash", "content": "ls", "description": None}
    run = adp(code, SEEN)
    written, losses = harbor(run)
    (call,) = written["steps"][0]["tool_calls"]
    assert (call["function_name"], call["arguments"]) == ("bash", {"code": "ls"})
    (result,) = written["steps"][0]["observation"]["results"]
    assert result == {"source_call_id": call["tool_call_id"], "content": "seen"}
    assert losses == []
    (back,) = read_one(formats.get("atif"), json.dumps(written).encode())
    again = back.steps[0].calls[0]
    assert (again.kind, again.language, again.arguments_raw) == ("code", "bash", "ls")


def test_a_late_result_goes_to_its_call_and_is_reported():
    first, second = ({**ACT, "tool_call_id": name} for name in "ab")
    results = [{**SEEN, "tool_call_id": name} for name in "ab"]
    written, losses = harbor(adp(first, second, *results))
    ids = [
        result["source_call_id"]
        for item in written["steps"]
        for result in item["observation"]["results"]
    ]
    assert ids == ["a", "b"]
    assert [item["path"] for item in losses] == ["$.steps[1].observations[0]"]


def chat(*messages) -> Trajectory:
    (run,) = read_one(formats.get("openai_chat"), json.dumps({"messages": messages}).encode())
    return run


@pytest.mark.parametrize(
    ("arguments", "written", "reported"),
    [
        ('{"a": 1.50}', {"a": 1.5}, False),
        ("{bad", {"arguments": "{bad"}, True),
        ("[1]", {"arguments": [1]}, True),
        ("", {"arguments": ""}, True),
    ],
)
def test_arguments_become_objects(arguments, written, reported):
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    record, losses = harbor(chat({"role": "assistant", "content": None, "tool_calls": [call]}))
    assert record["steps"][0]["tool_calls"][0]["arguments"] == written
    assert record["steps"][0]["message"] == ""
    assert bool(losses) is reported


def test_calls_of_a_user_are_kept_aside_and_reported():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "c", "content": "x"}
    run = chat({"role": "user", "content": "u", "tool_calls": [call]}, result)
    written, losses = harbor(run)
    (entry,) = written["steps"]
    assert entry["extra"]["tool_calls"][0]["function_name"] == "f"
    assert entry["observation"]["results"][0]["extra"]["source_call_id"] == "c"
    paths = {item["path"] for item in losses}
    assert {"$.steps[0].calls[0].name", "$.steps[0].observations[0].call_id"} <= paths


def test_a_step_of_the_environment_comes_back():
    written, losses = harbor(chat({"role": "observer", "content": "it rains"}))
    assert (written["steps"][0]["source"], losses) == ("system", [])
    (back,) = read_one(formats.get("atif"), json.dumps(written).encode())
    assert (back.steps[0].source, back.steps[0].text) == ("environment", "it rains")


def test_images_and_sounds():
    data = "UklGRiBwcm9iZSBvZiBhIHNvdW5k"
    parts = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "https://x.org/a.jpg?size=1"}},
        {"type": "image_url", "image_url": {"url": "https://x.org/a"}},
        {"type": "input_audio", "input_audio": {"data": data, "format": "mp3"}},
        {"type": "image_url", "image_url": {"url": "data:image/bmp;base64,AAAA"}},
    ]
    written, losses = harbor(chat({"role": "user", "content": parts}))
    assert written["schema_version"] == "ATIF-v1.8"
    kinds = [part.get("source", {}).get("media_type") for part in written["steps"][0]["message"]]
    assert kinds == [None, "image/jpeg", "image/png", "audio/mpeg"]
    assert "data:image/bmp" in json.dumps(written["steps"][0]["extra"]["message_parts"])
    assert [item["path"] for item in losses] == [
        "$.steps[0].content[2].media_type",
        "$.steps[0].content[4]",
    ]


# ---- flavours of what was read from ATIF ---------------------------------------------------------


def flavoured(data: dict, flavour: str) -> tuple[dict, list[str]]:
    (run,) = read_one(formats.get("atif"), json.dumps(data).encode())
    losses = Losses()
    written = json.loads(jsontext.encode(formats.get("atif").write(run, losses, flavour)))
    if flavour == "harbor":
        Strict.model_validate(written)
    return written, [item["path"] for item in losses.items]


LOOSE = record(
    step(source="user", model_name="m", metrics={"cost": 1}),
    step(
        llm_call_count=0,
        reasoning_content="r",
        reasoning_effort=2,
        timestamp="soon",
        message=[{"type": "image", "source": {"path": "a.webp"}, "extra": {"annotations": [1]}}],
        tool_calls=[{"tool_call_id": "c", "function_name": "f", "arguments": "{}", "x": 1}],
        observation={
            "results": [
                {"source_call_id": "gone", "content": "a"},
                {"subagent_trajectory_ref": [{"session_id": "s"}]},
            ],
            "extra": {"o": 1},
        },
        unknown=1,
    ),
    step(metrics={"cost": 0.5, "prompt_tokens": 1, "odd": 2}),
    final_metrics={"reward": 1.0, "total_steps": 3},
    agent={"model_name": "m", "odd": 1},
)


def test_loose_becomes_strict():
    written, losses = flavoured(LOOSE, "harbor")
    user, agent, last = written["steps"]
    assert user["extra"] == {"model_name": "m", "metrics": {"cost": 1}}
    assert agent["extra"] == {
        "unknown": 1,
        "timestamp": "soon",
        "message_parts": {"0": {"extra": {"annotations": [1]}}},
        "reasoning_content": "r",
        "observation_extra": {"o": 1},
    }
    assert agent["message"] == [
        {"type": "image", "source": {"media_type": "image/webp", "path": "a.webp"}}
    ]
    assert agent["reasoning_effort"] == 2
    assert agent["tool_calls"][0]["extra"] == {"x": 1}
    gone, ref = agent["observation"]["results"]
    assert gone == {"content": "a", "extra": {"source_call_id": "gone"}}
    assert ref["subagent_trajectory_ref"] == [{"trajectory_id": "s", "session_id": "s"}]
    assert last["metrics"] == {"prompt_tokens": 1, "cost_usd": 0.5, "extra": {"odd": 2}}
    assert written["final_metrics"] == {"total_steps": 3, "extra": {"reward": 1.0}}
    assert written["agent"] == {
        "name": "unknown",
        "version": "unknown",
        "model_name": "m",
        "extra": {"odd": 1},
    }
    assert losses == [
        "$.steps[1].observations[0].call_id",
        "$.steps[1].observations[0].native_call_id",
    ]


def test_upstream_keeps_what_it_knows():
    written, losses = flavoured(LOOSE, "upstream")
    user, agent, last = written["steps"]
    assert (user["model_name"], user["metrics"]) == ("m", {"cost": 1})
    assert agent["timestamp"] == "soon"
    assert agent["reasoning_effort"] == "2"
    assert agent["observation"]["extra"] == {"o": 1}
    assert agent["message"][0]["extra"] == {"annotations": [1]}
    assert agent["observation"]["results"][1]["content"] == ""
    assert agent["extra"] == {"unknown": 1}
    assert last["metrics"] == {"prompt_tokens": 1, "cost": 0.5, "extra": {"odd": 2}}
    assert written["final_metrics"] == {"reward": 1.0, "total_steps": 3}
    assert (written["agent"]["name"], written["agent"]["version"]) == ("atif", "unknown")
    assert losses == []


def test_embedded_trajectories_get_ids_of_their_own():
    inner = {"agent": {}, "steps": [step()]}
    data = record(step(), subagent_trajectories=[inner, inner])
    runs = read_one(formats.get("atif"), json.dumps(data).encode())
    runs[0].branches = runs[1:]
    losses = Losses()
    written = json.loads(jsontext.encode(formats.get("atif").write(runs[0], losses, "harbor")))
    Strict.model_validate(written)
    ids = [item["trajectory_id"] for item in written["subagent_trajectories"]]
    assert ids == ["subagent", "subagent#2"]
    assert [item["path"] for item in losses.items] == ["$.branches[1].source_id"]


def test_a_trajectory_without_steps_gets_one():
    written, losses = flavoured(record(), "harbor")
    assert written["steps"] == [{"step_id": 1, "source": "system", "message": ""}]
    assert losses == ["$.steps"]


def test_an_agent_that_is_not_known_has_no_name():
    """A file must name its agent; the word for one that is not known is no name, and comes back."""
    record = b'{"schema_version": "ATIF-v1.7", "agent": {"name": "unknown", "version": "unknown", '
    record += (
        b'"model_name": "small"}, "steps": [{"step_id": 1, "source": "user", "message": "q"}]}'
    )
    (run,) = read_one(formats.get("atif"), record)
    assert (run.agent_name, run.agent_version, run.agent_model) == (None, None, "small")
    assert json.loads(write_one(formats.get("atif"), run)) == json.loads(record)
    losses = Losses()
    write_one(formats.get("openai_chat"), run, losses)
    assert losses.items == []
