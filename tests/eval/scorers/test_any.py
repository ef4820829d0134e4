"""Whatever a trajectory holds, no scorer raises, and evidence is small JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adp.eval.scorer import SCORERS, Item, Scored
from adp.eval.scorers.capability import CAPABILITIES
from adp.rollouts.spec import load
from adp_schema.model import Observation, Step, Task, ToolCall, Trajectory
from tests.eval.scorers.runs import OURS, run, scorer

SPECS = (
    *OURS,
    "agent_reward:all_penalties=true",
    "agent_training:repeats=true",
    "answer:manner=et_agent,extract=false",
    *(f"capability:capability={name}" for name in CAPABILITIES),
    *(f"capability:compat=sage,capability={name}" for name in ("planning", *CAPABILITIES[3:])),
    "efficiency:correct=answer_math",
    "execution:correct=answer_f1",
    "format:style=et_agent",
    "format:style=playground",
    "outcome:success=reward",
    "reasoning_length:unit=chars",
    "reasoning_length:unit=recorded",
    "tool_f1:arguments=superset",
    "tool_f1:reference=gold_trajectory",
    "trajectory_match:mode=unordered,arguments=subset,matching=agentevals",
    "trajectory_match:mode=superset,reference=expected_calls,overrides={f: [a.b]}",
)

# Text with half characters, which JSON escapes can hold.
TEXT = st.one_of(
    st.sampled_from(
        [
            *("", "Error: no", "\ud800", "<answer>", "<answer>4</answer>", "\\boxed{\\frac12}"),
            *("[TOOL_CALL]{}", "<tool_call>", "<think></think><search>", "1,000.50", "a b c d e"),
        ]
    ),
    st.text(st.characters(codec=None), max_size=12),
)
VALUE = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.floats(), TEXT),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                [
                    *("name", "arguments", "function", "role", "tool_calls", "output", "answer"),
                    *("type", "properties", "required", "parameters", "enum", "items", "$ref"),
                    *("malformed", "messages", "f", "\udc00"),
                ]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)
JSON = st.one_of(
    st.none(),
    st.sampled_from(["", "{", "null", "[]", "NaN", '{"a": 1, "a": 2}', "[" * 3000, '"\\ud800"']),
    VALUE.map(json.dumps),
)
MAYBE = st.one_of(st.none(), TEXT)
INDEX = st.one_of(st.none(), st.integers(-2, 3))
NUMBER = st.one_of(st.none(), st.floats(), st.just(1.0))
NAME = st.one_of(st.none(), st.sampled_from(["f", "g", ""]))
CALL = st.builds(
    ToolCall,
    step=INDEX,
    call=INDEX,
    call_id=st.one_of(st.none(), st.sampled_from(["1", "2"])),
    kind=st.sampled_from([None, "function", "message", "code", "odd"]),
    name=NAME,
    arguments=JSON,
    arguments_raw=MAYBE,
    requestor=st.sampled_from([None, "agent", "user"]),
    origin=st.sampled_from([None, "parsed_from_text"]),
)
RESULT = st.builds(
    Observation,
    call_step=INDEX,
    call=INDEX,
    call_id=st.one_of(st.none(), st.sampled_from(["1", "2"])),
    text=MAYBE,
    is_error=st.sampled_from([None, True, False]),
    error_type=st.one_of(st.none(), st.just("parsing"), TEXT),
    exit_code=st.sampled_from([None, 0, 1]),
    duration_ms=NUMBER,
)
STEP = st.builds(
    Step,
    step=INDEX,
    source=st.sampled_from(
        [None, "agent", "agent", "agent", "user", "system", "environment", "odd"]
    ),
    kind=st.sampled_from([None, "message", "llm_turn", "context_edit", "event"]),
    text=MAYBE,
    prose=MAYBE,
    reasoning=MAYBE,
    is_copied_context=st.sampled_from([None, None, True]),
    tokens_in=st.one_of(st.none(), st.integers(-5, 5)),
    tokens_out=st.one_of(st.none(), st.integers(-5, 5)),
    duration_ms=NUMBER,
    cost_usd=NUMBER,
    extra=JSON,
    calls=st.lists(CALL, max_size=3),
    observations=st.lists(RESULT, max_size=3),
)
RUN = st.builds(
    Trajectory,
    trajectory_id=MAYBE,
    tools=JSON,
    success=st.sampled_from([None, True, False]),
    reward=NUMBER,
    rewards=JSON,
    terminated=st.sampled_from([None, True, False]),
    truncated=st.sampled_from([None, True, False]),
    error_type=st.sampled_from([None, None, None, "", "context_length", "infrastructure"]),
    error_message=MAYBE,
    stop_reason=MAYBE,
    final_answer=MAYBE,
    started_at=st.one_of(st.none(), st.datetimes()),
    ended_at=st.one_of(st.none(), st.datetimes()),
    total_tokens_in=st.one_of(st.none(), st.integers(-5, 5)),
    total_cost_usd=NUMBER,
    steps=st.lists(STEP, max_size=4),
)
ABOUT = st.dictionaries(
    st.sampled_from(
        [
            *("task_type", "capability", "category", "ground_truth", "checks", "metadata"),
            *("target_tools", "format", "must_contain", "max_words", "starts_with"),
        ]
    ),
    st.one_of(
        VALUE,
        st.sampled_from(["tool_selection", "task_planning", "timing_judgment", "json", "list"]),
        st.dictionaries(
            st.sampled_from(["top_k", "tool_sequence", "should_call_tool", "optimal_steps"]), VALUE
        ),
    ),
    max_size=4,
)
TASK = st.one_of(
    st.none(),
    st.builds(
        Task,
        instruction=MAYBE,
        turns=JSON,
        answers=JSON,
        expected_calls=JSON,
        gold_trajectory=JSON,
        extra=st.one_of(JSON, ABOUT.map(json.dumps)),
    ),
)
SCORED_BY = [scorer(spec) for spec in SPECS]


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.builds(Item, RUN, TASK), min_size=1, max_size=2))
def test_no_trajectory_makes_a_scorer_raise(items):
    for entry in SCORED_BY:
        listed = []
        for number, item in enumerate(items):
            before = repr(item)
            result = entry.score(item)
            assert result
            for score in result:
                assert (score.value is None) == (score.reason is not None), score
                text = json.dumps(dict(score.evidence), allow_nan=False, ensure_ascii=False)
                assert len(text.encode()) < 20_000  # no half characters either
                assert score.value is None or abs(score.value) < float("inf")
            assert [outcome.metric for outcome in result] == [
                outcome.metric for outcome in entry.score(item)
            ]
            assert before == repr(item)
            listed += [Scored(str(number), item.trajectory.task_id, 0, score) for score in result]
        for figure in entry.figures(listed):
            assert figure.value is not None or figure.reason
        assert entry.figures([])


@pytest.mark.parametrize("spec", OURS)
@pytest.mark.parametrize("kind", ["infrastructure", "environment", "policy"])
def test_what_broke_by_itself_is_unscored_as_infrastructure(spec, kind):
    item = run(error_type=kind, success=None, reward=0.0, task={"answers": '["1"]'})
    result = scorer(spec).score(item)
    assert all(score.value is None and score.infrastructure for score in result)
    assert {score.reason for score in result} == {f"the run broke: {kind}"}


@pytest.mark.parametrize("spec", OURS)
def test_kinds_say_what_they_are(spec):
    kind, chosen = load(SCORERS, spec)
    made = kind.make(chosen)
    assert kind.name == made.name == spec
    assert made.version
    assert kind.about.endswith(".")
    assert all(field.description for field in kind.settings.model_fields.values())
