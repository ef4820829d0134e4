from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.converters.openai_chat import CONVERTER as CHAT
from adp.converters.preference import CONVERTER as PREFERENCE
from adp.converters.sharegpt import CONVERTER as SHAREGPT
from adp.converters.text_calls import registry
from adp.converters.text_calls.apply import TextParser
from adp.converters.text_calls.dialect import Dialect, Marked, ParsedResult
from adp.converters.text_calls.restore import restore
from adp_schema.builder import Origin, RowBuilder
from adp_schema.losses import Losses
from adp_schema.model import Media, Pair, Trajectory
from adp_schema.protocols import Converter, RawRecord
from adp_schema.reader import assemble, to_models
from tests.converters.text_calls.tags_dialect import Tags


@pytest.fixture(autouse=True)
def _tags(monkeypatch: pytest.MonkeyPatch) -> None:
    tags = Tags()
    monkeypatch.setattr("adp.converters.text_calls.restore.dialect", lambda name: tags)


def parsed(
    record: dict[str, Any], converter: Converter = CHAT, parser: TextParser | None = None
) -> list[Trajectory]:
    """The trajectories of a record, with its texts parsed."""
    builder = RowBuilder()
    data = json.dumps(record).encode()
    builder.begin(Origin(0, "d", {"source_format": converter.name}, size=len(data)))
    converter.read(RawRecord(data, "f", 1, 0, len(data)), builder, Losses())
    builder.close_record(Losses())
    if parser is None:
        parser = TextParser(Tags())
    parser.change_record(builder)
    tables = builder.tables()
    media = {blob.media_id or "": blob for blob in to_models(tables["media"], Media)}
    runs = list(assemble(tables["trajectories"], tables, media))
    for run in runs:
        run.pairs = to_models(tables["pairs"], Pair)
    return runs


def chat(*turns: tuple[str, str]) -> dict[str, Any]:
    return {"messages": [{"role": role, "content": text} for role, text in turns]}


RUN = chat(
    ("system", "Use <act NAME>JSON</act>."),
    ("user", "How late is it?"),
    ("assistant", '<why>I look</why> Wait. <act clock>{"zone": "UTC"}</act>\n<act log>now</act>'),
    ("user", " <res>12:00</res>\n<res>error: none</res> "),
    ("assistant", "<why>done</why><end>noon</end>"),
    ("user", "<res>wrong</res>"),
    ("user", "thanks"),
)


def test_structure() -> None:
    run = parsed(RUN)[0]
    assert [step.source for step in run.steps] == ["system", "user", "agent", "agent", "user"]
    act = run.steps[2]
    assert act.text == RUN["messages"][2]["content"]
    assert (act.prose, act.reasoning) == ("Wait.", "I look")
    assert [(it.name, it.arguments, it.arguments_raw) for it in act.calls] == [
        ("clock", '{"zone": "UTC"}', None),
        ("log", None, "now"),
    ]
    assert {it.origin for it in act.calls} == {"parsed_from_text"}
    for call in act.calls:
        assert act.text is not None
        assert act.text[call.span_start : call.span_end].startswith("<act ")
    first, second = act.observations
    assert (first.text, first.name, first.call_step, first.call, first.is_error) == (
        *("12:00", "clock", 2, 0),
        None,
    )
    assert (second.text, second.call, second.is_error) == ("error: none", 1, True)
    assert run.final_answer == "noon"
    assert run.steps[3].prose == "noon"
    # What is marked as a result comes from the environment, even if no call waits for it.
    (last,) = run.steps[3].observations
    assert (last.text, last.call_step) == ("wrong", None)
    assert run.steps[4].text == "thanks"
    assert [step.turn for step in run.steps] == [0, 0, 0, 0, 1]


def test_counts() -> None:
    parser = TextParser(Tags())
    parsed(RUN, parser=parser)
    assert parser.counts == {
        **{"turns": 1, "calls": 2, "results": 3, "answers": 1},
        "unlinked": 1,
    }


def test_a_person_after_a_call_stays_one() -> None:
    run = parsed(chat(("assistant", "<act a>{}</act>"), ("user", "no, stop")))[0]
    assert [step.source for step in run.steps] == ["agent", "user"]


class Plain(Tags):
    """Tags whose results need no mark."""

    answers_all = True

    def results_in(self, text: str, calls: Any) -> Any:
        return Dialect.results_in(self, text, calls)


def test_where_results_are_marked_other_turns_are_a_person_s() -> None:
    turns = (("assistant", "<act a>{}</act>"), ("user", "one"))
    assert [it.source for it in parsed(chat(*turns), parser=TextParser(Plain()))[0].steps] == [
        "agent"
    ]
    more = (*turns, ("assistant", "<act b>{}</act>"), ("user", "<res>two"))
    run = parsed(chat(*more), parser=TextParser(Plain()))[0]
    assert [it.source for it in run.steps] == ["agent", "user", "agent"]
    assert [it.text for step in run.steps for it in step.observations] == ["two"]
    assert back(run) == chat(*more)


class Tagged(Tags):
    """Tags whose results may stand before other words."""

    def results_in(self, text: str, calls: Any) -> Any:
        start, end = text.find("<res>"), text.find("</res>")
        if start != 0 or end < 0:
            return ()
        return (ParsedResult(Marked((0, end + 6), (5, end))),)


def test_words_behind_the_results_stay_a_turn_of_the_user() -> None:
    record = chat(
        ("assistant", "<act a>{}</act>"), ("user", "<res>1</res>\nbe quick!"), ("user", "b")
    )
    run = parsed(record, parser=TextParser(Tagged()))[0]
    assert [(it.source, it.text) for it in run.steps[1:]] == [
        ("user", "\nbe quick!"),
        ("user", "b"),
    ]
    assert [it.text for it in run.steps[0].observations] == ["1"]
    assert back(run) == record


def test_a_result_that_the_agent_made_up_is_none() -> None:
    record = chat(("assistant", "<act a>{}</act> <res>mine</res>"), ("user", "<res>true</res>"))
    run = parsed(record)[0]
    assert [it.text for it in run.steps[0].observations] == ["true"]
    assert run.steps[0].prose == "<res>mine</res>"
    assert back(run) == record


def test_reasoning_beside_calls_of_the_source() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    record = chat(
        ("user", "go"), ("assistant", "<think>why</think>\nwait"), ("assistant", "<end>1</end>")
    )
    record["messages"][1]["tool_calls"] = [call]
    run = parsed(record)[0]
    step = run.steps[1]
    assert (step.reasoning, step.prose, step.calls[0].name) == ("why", "wait", "f")
    assert back(run) == record


def test_a_run_in_one_text() -> None:
    text = "<why>x</why><act a>{}</act> <res>1</res>\n<act b>{}</act><res>2</res> so <end>3</end>"
    record = chat(("user", "go"), ("assistant", text), ("user", "next"))
    run = parsed(record)[0]
    assert [step.source for step in run.steps] == ["user", "agent", "agent", "agent", "user"]
    assert [step.step for step in run.steps] == [0, 1, 2, 3, 4]
    results = [it for step in run.steps for it in step.observations]
    assert [(it.text, it.call_step, it.call) for it in results] == [("1", 1, 0), ("2", 2, 0)]
    assert run.final_answer == "3"


def test_tool_messages_are_linked() -> None:
    record = chat(("assistant", "<act a>{}</act><act b>{}</act>"))
    record["messages"] += [
        {"role": "tool", "content": "<res>1</res>"},
        {"role": "tool", "content": "<res>2</res>"},
    ]
    run = parsed(record)[0]
    results = [(it.text, it.call_step, it.call) for it in run.steps[0].observations]
    assert results == [("1", 0, 0), ("2", 0, 1)]


def back(run: Trajectory, converter: Converter = CHAT) -> Any:
    losses = Losses()
    restore(run, losses)
    record = converter.write(run, losses)
    assert not losses.items
    from adp_schema import jsontext

    return json.loads(jsontext.encode(record))


_TEXTS = st.lists(
    st.sampled_from(
        ["<act a>", "</act>", "{}", '{"k": 1}', "<why>", "</why>", "<res>", "</res>", "<end>",
         "</end>", " ", "\n", "words", "<think>", "</think>", "é", "\ud800"]
    ),
    max_size=12,
).map("".join)  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool", "system"]), _TEXTS)))
def test_any_chat_comes_back(turns: list[tuple[str, str]]) -> None:
    record = chat(*turns) if turns else chat(("user", ""))
    if any("\ud800" in text for _, text in turns):
        return  # such records are read by the runner only after they were sanitised
    assert back(parsed(record)[0]) == record


@given(st.lists(st.tuples(st.sampled_from(["human", "gpt", "observation", "system"]), _TEXTS),
                min_size=1))  # fmt: skip
def test_any_sharegpt_row_comes_back(turns: list[tuple[str, str]]) -> None:
    if any("\ud800" in text for _, text in turns):
        return
    record = {"conversations": [{"from": role, "value": text} for role, text in turns], "x": 1}
    assert back(parsed(record, SHAREGPT)[0], SHAREGPT) == record


def test_edits_show() -> None:
    run = parsed(RUN)[0]
    act = run.steps[2]
    act.calls[0].arguments = '{"zone": "CET"}'
    act.calls[1].name = "note"
    act.reasoning = "I ask"
    act.observations[0].text = "13:00"
    messages = back(run)["messages"]
    assert messages[2]["content"] == (
        '<why>I ask</why> Wait. <act clock>{"zone": "CET"}</act>\n<act note>now</act>'
    )
    assert messages[3]["content"] == " <res>13:00</res>\n<res>error: none</res> "


def test_a_call_that_ends_the_run_gives_the_answer() -> None:
    for arguments, answer in (('{"answer": "7"}', "7"), ('{"answer": 7}', None), ("7", None)):
        run = parsed(chat(("assistant", f"<act finish>{arguments}</act>")))[0]
        assert run.final_answer == answer
        assert back(run) == chat(("assistant", f"<act finish>{arguments}</act>"))


def test_a_dropped_call_is_cut_out() -> None:
    run = parsed(RUN)[0]
    del run.steps[2].calls[1]
    assert back(run)["messages"][2]["content"].endswith("</act>\n")


def test_an_edit_that_cannot_be_written_is_a_loss() -> None:
    run = parsed(RUN)[0]
    run.steps[2].calls[0].arguments = '{"a": "</act>"}'
    losses = Losses()
    restore(run, losses)
    assert "dialect tags has no way to write it" in losses.items[0]["reason"]


def test_pairs_and_branches_are_numbered_anew() -> None:
    record = {
        "prompt": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "<act a>{}</act>"},
            {"role": "user", "content": "<res>1</res>"},
        ],
        "chosen": [{"role": "assistant", "content": "<end>1</end>"}],
        "rejected": [{"role": "assistant", "content": "2"}],
    }
    main, other = parsed(record, PREFERENCE)
    pair = main.pairs[0]
    assert [step.step for step in main.steps] == [0, 1, 2]
    assert (other.parent_step, [step.step for step in other.steps]) == (2, [2])
    assert (pair.context_up_to, pair.chosen_from, pair.rejected_from) == (2, 2, 2)
    assert (pair.chosen_to, pair.rejected_to) == (3, 3)
    main.branches, main.pairs = [other], [pair]
    losses = Losses()
    restore(main, losses)
    assert (other.parent_step, other.steps[0].step) == (3, 3)
    assert (pair.context_up_to, pair.chosen_from, pair.chosen_to) == (3, 3, 4)


def test_registered_dialects_have_a_name_each() -> None:
    assert [it.name for it in registry.dialects()] == list(registry.DIALECTS)
