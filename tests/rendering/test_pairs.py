"""Pairs as chats."""

from __future__ import annotations

from adp.rendering.chat import PairChats
from adp.rendering.pairs import BadPair, pair_chats
from adp_schema.builder import Origin, RowBuilder
from adp_schema.model import Pair
from tests.store_builders import write_store


def _store(folder, *, edit):
    builder = RowBuilder()
    for seq, name in enumerate(("good", "bad")):
        builder.begin(Origin(seq=seq, dataset="d", columns={}))
        builder.trajectory({"source_id": name})
        builder.step({"source": "user", "kind": "message", "text": "Do it."})
        builder.step({"source": "agent", "kind": "llm_turn", "text": f"{name} one"})
        if edit:
            columns = {"source": "environment", "kind": "context_edit", "edit_boundary": "replace"}
            builder.step({**columns, "edit_from": 0, "edit_to": 1, "edit_summary": name})
        else:
            builder.step({"source": "environment", "kind": "message", "text": "go on"})
        last = {"source": "agent", "kind": "llm_turn", "text": f"{name} two"}
        builder.step(last if name == "good" else {**last, "loss_weight": 0.0})
        builder.finish()
    return write_store(folder, builder)


def _pair(**columns):
    usual = {"pair_id": "p", "chosen_id": "d/good", "rejected_id": "d/bad", "level": "trajectory"}
    return Pair(**{**usual, "chosen_from": 1, "rejected_from": 1, **columns})


def test_the_prompt_is_what_both_sides_have_in_common(tmp_path):
    result = pair_chats(_store(tmp_path / "s", edit=False), _pair())
    assert isinstance(result, PairChats)
    assert result.shared == 1
    assert [result.chosen.messages[i].text for i in result.chosen.trained()] == [
        "good one",
        "good two",
    ]
    # A masked step has no part in the loss of a longer side.
    assert [result.rejected.messages[i].text for i in result.rejected.trained()] == ["bad one"]


def test_a_pair_of_single_steps_is_about_these_steps(tmp_path):
    pair = _pair(level="step", chosen_from=3, rejected_from=3)
    result = pair_chats(_store(tmp_path / "s", edit=False), pair)
    assert isinstance(result, PairChats)
    assert [result.rejected.messages[i].text for i in result.rejected.trained()] == ["bad two"]


def test_a_side_whose_context_was_edited_is_refused(tmp_path):
    result = pair_chats(_store(tmp_path / "s", edit=True), _pair())
    assert isinstance(result, BadPair)
    assert "edited" in result.reason


def test_a_side_that_is_not_there_is_refused(tmp_path):
    result = pair_chats(_store(tmp_path / "s", edit=False), _pair(rejected_id="d/gone"))
    assert isinstance(result, BadPair)
