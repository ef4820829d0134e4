"""Records of ATIF for tests: JSON text with every spelling, and small ones to write by hand."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from adp.converters.atif import CONVERTER
from adp_schema.losses import Losses
from adp_schema.model import Trajectory
from tests.converters.strategies import (
    IDS,
    KEYS,
    NAMES,
    NUMBERS,
    OTHER,
    PIXEL,
    VALUES,
    Text,
    arguments,
    escaped,
    fields,
    literal,
    strings,
)
from tests.converters.strategies import _array as array
from tests.converters.strategies import _object as an_object
from tests.roundtrip import read_one, write_one

_NULL = st.just("null")
_ODD_TEXT = st.one_of(strings(), strings(), strings(), NUMBERS, _NULL, VALUES)
_COUNTS = st.sampled_from(["0", "1", "12.0", "1e2", "-0", "1.5", "null", '"3"', "1e999", "NaN"])
_COSTS = st.one_of(NUMBERS, _NULL)
_FLAGS = st.sampled_from(["true", "false", "null", "1", '"yes"'])
_TIMES = st.sampled_from(
    [
        *("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456+02:00", "2026-01-02T03:04:05"),
        *("yesterday", "", "2026-01-02", "0001-01-01T00:00:00+09:00", "\ud83d"),
    ]
).map(escaped)


def _list(items: Text, most: int = 3) -> Text:
    return st.builds(array, st.lists(items, max_size=most), st.booleans())


def extras() -> Text:
    """The free object ``extra``; a key may occur twice."""
    pairs = st.lists(st.tuples(KEYS, VALUES), max_size=3)
    web = fields(
        {"html": _ODD_TEXT, "axtree": _ODD_TEXT, "url": _ODD_TEXT},
        {
            "image_observation": VALUES,
            "viewport_size": st.sampled_from(
                ["[1280, 720]", "[1.0,2]", "null", "[1]", "[-0, 0]", "[null, 3]", "[1e999, 2]"]
            ),
        },
    )
    context = fields({"type": st.just('"compaction"'), "boundary": _BOUNDARIES})
    adp = fields(
        {
            "source": st.sampled_from(['"environment"', '"user"', '"x"']),
            "kind": st.sampled_from(['"code"', '"event"', '"llm_turn"', "7"]),
            "name": _ODD_TEXT,
            "is_error": _FLAGS,
            "exit_code": _COUNTS,
            "labels": st.sampled_from(['["a"]', "[]", "[1]"]),
            "structured": VALUES,
            "reward": NUMBERS,
            "language": _ODD_TEXT,
            "success": _FLAGS,
        },
    )
    known = {
        "reward": st.one_of(NUMBERS, _NULL, strings()),
        "web": st.one_of(web, _NULL, strings()),
        "adp": st.one_of(adp, VALUES),
        "context_management": st.one_of(context, context, VALUES),
    }
    return st.one_of(
        st.builds(an_object, pairs, st.booleans()), fields({}, known), fields({}, known), VALUES
    )


_BOUNDARIES = st.sampled_from(['"replace"', '"append"', '"other"', "1"])


def _parts() -> Text:
    paths = st.sampled_from(
        [
            *("https://x.org/a.png", "a/b.png", "", f"data:image/png;base64,{PIXEL}"),
            *(f"data:image/jpeg;base64,{PIXEL}", f"data:image/jpeg;base64,{OTHER}", "\xe9"),
        ]
    ).map(literal)
    mimes = st.sampled_from(['"image/png"', '"image/jpeg"', "null", '""', "7", '"audio/wav"'])
    source = fields(
        {"media_type": mimes, "path": st.one_of(paths, paths, paths, VALUES)},
        {"duration_sec": NUMBERS},
    )
    text = fields({"type": st.just('"text"'), "text": strings()}, {"extra": VALUES})
    image = fields(
        {
            "type": st.sampled_from(['"image"', '"image"', '"audio"']),
            "source": st.one_of(source, source, paths),
        },
        {"extra": st.one_of(VALUES, fields({"annotations": VALUES})), "text": strings()},
    )
    return st.one_of(text, text, image, image, strings(), VALUES)


def _contents() -> Text:
    return st.one_of(strings(), strings(), _list(_parts()), _NULL, VALUES)


def _results() -> Text:
    ref = fields(
        {"trajectory_id": _ODD_TEXT, "trajectory_path": _ODD_TEXT, "session_id": _ODD_TEXT},
        {"extra": VALUES},
    )
    refs = st.one_of(_list(st.one_of(ref, ref, VALUES)), VALUES)
    return fields(
        {"source_call_id": st.one_of(IDS, IDS, IDS, _NULL, NUMBERS), "content": _contents()},
        {"subagent_trajectory_ref": refs, "extra": extras()},
    )


def _steps() -> Text:
    call = fields(
        {
            "tool_call_id": st.one_of(IDS, IDS, _NULL),
            "function_name": NAMES,
            "arguments": arguments(),
        },
        {"extra": extras()},
    )
    observation = fields({"results": st.one_of(_list(_results()), _NULL)}, {"extra": VALUES})
    ids = st.sampled_from(["[]", "[1, 2]", "[1,-0]", "[2147483648]", "[1.0]", "null", "[null]"])
    probs = st.one_of(_list(NUMBERS), st.sampled_from(["[-0.0, NaN]", "[-1e-05]", "[[1]]", "null"]))
    metrics = fields(
        {"prompt_tokens": _COUNTS, "completion_tokens": _COUNTS, "cost_usd": _COSTS},
        {
            "cached_tokens": _COUNTS,
            "cost": _COSTS,
            "prompt_token_ids": ids,
            "completion_token_ids": ids,
            "logprobs": probs,
            "extra": VALUES,
        },
    )
    return fields(
        {
            "step_id": st.sampled_from(["1", "2", "3", "4", "1.0", '"1"']),
            "timestamp": st.one_of(_TIMES, _ODD_TEXT),
            "source": st.sampled_from(
                ['"agent"', '"agent"', '"agent"', '"user"', '"system"', '"environment"', '"x"']
            ),
            "message": _contents(),
        },
        {
            "model_name": _ODD_TEXT,
            "reasoning_effort": _ODD_TEXT,
            "reasoning_content": _ODD_TEXT,
            "tool_calls": st.one_of(_list(call), _list(call), _NULL),
            "observation": st.one_of(observation, observation, _NULL),
            "metrics": st.one_of(metrics, metrics, VALUES),
            "is_copied_context": _FLAGS,
            "llm_call_count": _COUNTS,
            "extra": extras(),
        },
        required=("source",),
    )


def _trajectories(embedded: Text | None) -> Text:
    agent = fields(
        {"name": _ODD_TEXT, "version": _ODD_TEXT, "model_name": _ODD_TEXT},
        {"tool_definitions": VALUES, "extra": VALUES},
    )
    totals = fields(
        {"total_prompt_tokens": _COUNTS, "total_cost_usd": _COSTS},
        {"total_steps": _COUNTS, "reward": NUMBERS, "extra": VALUES},
    )
    usual = {
        "schema_version": st.sampled_from(['"ATIF-v1.7"', '"ATIF-v1.4"', "null", "1"]),
        "session_id": st.one_of(NAMES, _NULL, NUMBERS),
        "trajectory_id": st.one_of(NAMES, _NULL),
        "agent": st.one_of(agent, agent, _NULL),
        "steps": _list(_steps(), 4),
    }
    further = {
        "notes": _ODD_TEXT,
        "final_metrics": st.one_of(totals, totals, VALUES),
        "continued_trajectory_ref": _ODD_TEXT,
        "extra": extras(),
        "trial": VALUES,
    }
    if embedded is not None:
        further["subagent_trajectories"] = st.one_of(_list(embedded, 2), _NULL)
    return fields(usual, further, required=("steps",))


def atif_records() -> st.SearchStrategy[bytes]:
    """Records of the format ``atif`` as JSON text."""
    whole = _trajectories(_trajectories(_trajectories(None)))
    return whole.map(lambda text: text.encode("utf-8"))


# ---- reading and writing -------------------------------------------------------------------------


def nested(trajectories: list[Trajectory]) -> list[Trajectory]:
    """Put branches into their parents, as an export does."""
    known = {run.trajectory_id: run for run in trajectories}
    tops = []
    for run in trajectories:
        parent = known.get(run.parent_id) if run.parent_id is not None else None
        (tops if parent is None else parent.branches).append(run)
    return tops


def read(data: bytes, losses: Losses | None = None) -> Trajectory:
    """The main trajectory of a record, with its branches."""
    (run,) = nested(read_one(CONVERTER, data, losses))
    return run


def write(run: Trajectory, losses: Losses | None = None) -> bytes:
    """A trajectory as a record, in the flavour as-read."""
    return write_one(CONVERTER, run, losses)


def step(**keys: Any) -> dict[str, Any]:
    """A step of the agent."""
    return {"step_id": 1, "source": "agent", "message": "m", **keys}


def record(*steps: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """A record with numbered steps."""
    numbered = [{**result, "step_id": index + 1} for index, result in enumerate(steps)]
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": "s",
        "trajectory_id": "t",
        "agent": {"name": "a", "version": "1"},
        "steps": numbered,
        **keys,
    }
